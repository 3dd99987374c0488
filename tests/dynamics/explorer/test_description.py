"""What a page says of a system, and the command with which another machine does the same."""

import json
import shlex

import pytest

import dynamics
from dynamics.cli import parser_of
from dynamics.explorer import own_points, page_model_of
from dynamics.explorer.description import page_description

POINTS = {
    "positional_attention": {"D": 12, "C": 3, "random_sets": "mixed", "scale": 0.5},
    "masked_image_modeling": {"P": 12, "C_global": 8, "C_local": 2, "masked": 3},
    "shallow_vit": {"m": 30, "L": 20, "margin": 3.0},
}


@pytest.fixture(scope="module", autouse=True)
def few_points():
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(own_points, "MOST_TRIED", 2)
        yield


@pytest.fixture(scope="module", params=POINTS)
def described(request):
    system = dynamics.load_system(request.param)
    parameters = system.Parameters(**POINTS[request.param])
    return system, parameters, page_description(system, page_model_of(system, parameters))


def test_every_letter_has_a_meaning(described):
    system, _, description = described
    json.dumps(description, allow_nan=False)
    for kind in ("constants", "states", "observables", "events"):
        for each in description[kind]:
            assert each["meaning"].strip(), (kind, each["name"])
            assert each["mathml"].startswith("<math"), each["name"]
    known = {each["name"] for kind in ("states", "observables") for each in description[kind]}
    for panel in description["panels"]:
        assert set(panel["names"]) <= known
    assert description["panels"]
    assert (description["run"]["horizon"] is None) is not system.flows


def test_the_command_gives_the_very_parameters(described):
    system, parameters, description = described
    sliders = {each["name"]: getattr(parameters, each["name"]) for each in description["constants"]}
    words = shlex.split(description["command"])
    assert words[:3] == ["attdyn", "run", system.name]
    for name, value in sliders.items():
        words += [f"--{name}", str(value)]
    flags = parser_of("run", system).read(words[3:])
    assert system.Parameters(**flags) == parameters
