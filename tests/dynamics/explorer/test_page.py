"""The page as a file: every letter is told, and inlined texts stay as they were, inside."""

import json
import re
import shlex
from html.parser import HTMLParser

import pytest

import dynamics
from dynamics.cli import parser_of
from dynamics.explorer import own_points, page_model_of
from dynamics.explorer.description import page_description
from dynamics.explorer.driver import worker_script
from dynamics.explorer.page import page

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


HOSTILE = "</script><!-- <script>alert(1)</script> --> & \"quoted\" 'twice' $title \u2028 ${x}"


class Elements(HTMLParser):
    """Elements of a page with their attributes, and what is in scripts."""

    def __init__(self, text):
        super().__init__()
        self.elements, self.scripts, self._open = [], [], None
        self.feed(text)

    def handle_starttag(self, tag, attrs):
        self.elements.append((tag, dict(attrs)))
        self._open = tag
        if tag == "script":
            self.scripts.append("")

    def handle_endtag(self, tag):
        self._open = None

    def handle_data(self, data):
        if self._open == "script":
            self.scripts[-1] += data


@pytest.fixture(scope="module")
def given():
    """Description and worker of a page."""
    system = dynamics.load_system("deep_linear")
    model = page_model_of(system, system.Parameters(D=2))
    description = json.loads(json.dumps(page_description(system, model)))
    return description, worker_script(model.script, model.problem)


def test_what_is_inlined_is_what_was_given(given):
    description = given[0] | dict.fromkeys(("summary", "title", "name"), HOSTILE)
    worker = given[1] + HOSTILE
    inlined = Elements(page(description, worker)).scripts[:2]
    assert [json.loads(text) for text in inlined] == [description, worker]


def test_hostile_texts_make_no_elements(given):
    hostile = given[0] | dict.fromkeys(("summary", "title", "source", "version"), HOSTILE)
    assert Elements(page(hostile, HOSTILE)).elements == Elements(page(*given)).elements


def test_nothing_points_outside(given):
    text = page(*given)
    without_names = re.sub(r"http://www.w3.org/[\w/]+", "", text)
    assert not re.search(r"https?:|//[\w-]+\.\w|@import|url\((?!#)", without_names)
    loading = {"src", "href", "action", "data", "poster", "srcset"}
    found = [(tag, a) for tag, a in Elements(text).elements if loading & set(a)]
    assert found == [("link", {"rel": "icon", "href": "data:,"})]
    policy = re.search(r'Content-Security-Policy" content="([^"]+)"', text)[1]
    assert "default-src 'none'" in policy
    assert "connect-src" not in policy


def test_a_number_that_json_has_no_word_for_is_refused(given):
    run = given[0]["run"] | {"horizon": float("inf")}
    with pytest.raises(ValueError, match="JSON"):
        page(given[0] | {"run": run}, "")
