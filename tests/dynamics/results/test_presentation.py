"""What results are shown with travels with them, through stores too, and needs no registry."""

import json

import pytest

import dynamics
from dynamics import library, plotting, registry
from dynamics.presentation import Origin, Panel, PlotDescription, Presentation
from theory.notation import Notation, NotationEntry


def problems():
    """One problem of each system; the letters of the second are those of its own rows."""
    for name in library.built_in_names():
        system = dynamics.load_system(name)
        yield system.ReducedPopulation(
            system.Parameters(**system.default_runs["compare"].parameters)
        ).presentation
        yield system.presentation


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


@pytest.mark.parametrize("shown", [*problems(), OWN, Presentation.empty("nothing")])
def test_plain_values_and_back(shown):
    again = Presentation.from_json(json.loads(json.dumps(shown.to_json())))
    assert again == shown
    assert again.notation.source == shown.notation.source
    assert list(again.notation.values()) == list(shown.notation.values())
    assert again.to_json() == shown.to_json()
    assert Presentation.from_attributes(shown.attributes()) == shown


@pytest.fixture
def nowhere(monkeypatch):
    """No system can be found any more."""

    def lost(*words):
        raise AssertionError(f"a system was looked up: {words}")

    for name in ("load_system", "load_unchanged", "_named", "system_names", "built_in_names"):
        monkeypatch.setattr(registry, name, lost)


def test_an_older_store_has_a_plain_presentation(system, nowhere):
    run = dynamics.descend(system.ReducedPopulation(system.Parameters(D=4, C=2)), 0.02, 20)
    older = run.stored()
    del older.attrs["presentation"]
    again = dynamics.Trajectory.from_stored(older)
    assert set(again.presentation.event_latex) == set(run.events)
    assert again.presentation.plot.panels[0].names == ("alpha", "gamma", "rho")
    assert len(plotting.training(again)) == 2


def test_loaded_results_are_drawn_without_any_registry(system, tmp_path, nowhere):
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
    calm = overlaid.flow
    found = dynamics.branches(reduced, calm.final_state, "alpha", count=4, steps=256)
    assert plotting.branches(found).get_ylabel().startswith(r"$\alpha$")
