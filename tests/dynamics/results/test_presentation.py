"""What results are shown with travels with them, through stores too, and needs no registry."""

import json

import pytest

import dynamics
from dynamics import plotting, registry
from dynamics.presentation import Origin, Panel, PlotDescription, Presentation
from theory.notation import Notation, NotationEntry

OWN = Presentation(
    "a title",
    Notation(
        "a paper",
        (NotationEntry("w", "ω", r"\omega_1", "weight", (("even", True),), "D x D"),),
    ),
    PlotDescription(
        (Panel((("w", 3), ("risk", 0)), True, "D/2", "two\nlines", ("one", "other")),),
        (("first", None, "T"), ("second", "T", None)),
        {"T": "$T$"}, {"U": "$U$"}, ("w",), {"second": "alone"},
    ),
    {"T": r"w \geq 1"},
    Origin("/a/model.py", {"loss": "12ab"}),
)  # fmt: skip


def of_rows():
    """Of masked image modelling, the letters of which are those of its rows."""
    system = dynamics.load_system("masked_image_modeling")
    return system.ReducedPopulation(system.Parameters()).presentation


@pytest.mark.parametrize("shown", [of_rows(), OWN, Presentation.empty("nothing")])
def test_plain_values_and_back(shown):
    again = Presentation.from_json(json.loads(json.dumps(shown.to_json())))
    assert again == shown
    assert again.notation.source == shown.notation.source
    assert list(again.notation.values()) == list(shown.notation.values())
    assert again.to_json() == shown.to_json()
    assert Presentation.from_attributes(shown.attributes()) == shown


def test_loaded_results_are_drawn_without_any_registry(system, tmp_path, monkeypatch):
    for name in ("load_system", "load_unchanged", "_named", "system_names", "built_in_names"):
        monkeypatch.setattr(registry, name, None)
    parameters = system.Parameters(D=8, C=2)
    reduced, full = system.ReducedPopulation(parameters), system.FullPopulation(parameters)
    compared = dynamics.compare(reduced, full, eta=0.02, steps=300)
    overlaid = dynamics.overlay(reduced, [0.05, 0.02], time=20.0)
    compared, overlaid = (
        dynamics.load(dynamics.save(result, tmp_path / name))
        for name, result in (("compared", compared), ("overlaid", overlaid))
    )
    panels = plotting.comparison(compared)
    assert panels[0].get_ylabel() == r"$\alpha$"
    labels = [text.get_text() for text in plotting.deviation(compared).get_legend().get_texts()]
    assert set(labels) == {r"$\alpha$", r"$\gamma$", r"$\rho$"}
    below = plotting.overlay(overlaid)
    assert [panel.get_ylabel() for panel in below[:2]] == [r"$\alpha$", r"$\gamma$"]
