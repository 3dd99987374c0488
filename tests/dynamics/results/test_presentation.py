"""What results are shown with travels with them, through stores too, and needs no registry."""

import json
from dataclasses import replace

import numpy as np
import pytest
from scalars import wells

import dynamics
from dynamics import library, plotting, registry
from dynamics.analysis.phase_portrait import portrait
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


def test_results_have_that_of_their_problem(system):
    problem = system.ReducedPopulation(system.Parameters(D=4, C=2))
    assert problem.notation is problem.presentation.notation
    for run in (dynamics.descend(problem, 0.02, 20), dynamics.flow(problem, 1.0)):
        assert run.presentation is problem.presentation
        again = dynamics.Trajectory.from_stored(run.stored())
        assert again.presentation == problem.presentation == system.presentation


def test_every_class_of_scalars_has_a_letter_in_its_result():
    system = dynamics.load_system("masked_image_modeling")
    parameters = system.Parameters(**system.default_runs["compare"].parameters)
    problem = system.ReducedPopulation(parameters)
    run = dynamics.descend(problem, 0.1, 4)
    assert set(run.layout.names) <= set(run.presentation.notation)
    assert set(run.presentation.notation) > set(system.notation)


@pytest.fixture
def nowhere(monkeypatch):
    """No system can be found any more."""

    def lost(*words):
        raise AssertionError(f"a system was looked up: {words}")

    for name in ("load_system", "load_unchanged", "_named", "system_names", "built_in_names"):
        monkeypatch.setattr(registry, name, lost)


def test_a_foreign_problem_is_stored_and_drawn_without_any_registry(nowhere, tmp_path):
    problem = wells()
    runs = [dynamics.flow(problem, 5.0), dynamics.flow(problem, 5.0, initial=(0.5, 2.0))]
    run = dynamics.load(dynamics.save(runs[0], tmp_path / "run"))
    assert run.presentation == Presentation.plain(problem)
    assert run.presentation.title == "toy"
    axes = plotting.training(run, runs[1])
    assert [line.get_label() for line in axes[0].lines][:3:2] == ["x", "y"]
    np.testing.assert_array_equal(axes[0].lines[0].get_ydata(), run["x"][run.time > 0])
    assert plotting.write(axes, tmp_path / "run.png").exists()
    plane = plotting.portrait(portrait(problem, 5.0))
    assert (plane.get_xlabel(), plane.get_ylabel()) == ("x", "y")
    below = plotting.several({"one": run, "two": runs[1]}, ["x", "y"])
    assert [panel.get_ylabel() for panel in below] == ["x", "y"]


def test_a_plain_presentation_has_every_scalar_once():
    from scalars import Scalars

    names = tuple(f"s_{k}" for k in range(9))
    plain = Presentation.plain(Scalars(names, lambda *s: s, [1.0] * 9))
    drawn = [name for panel in plain.plot.panels for name in panel.names]
    assert drawn == [*names, "risk"]
    assert [panel.logarithmic for panel in plain.plot.panels] == [False, False, True]
    assert plain.notation.label("s_1") == "s 1"


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
    axes = plotting.stability(overlaid.runs[0], calm, np.full(calm.time.size, 1.0))
    assert axes[1].get_ylabel() == r"$\alpha$"
    found = dynamics.branches(reduced, calm.final_state, "alpha", count=4, steps=256)
    assert plotting.branches(found).get_ylabel().startswith(r"$\alpha$")


def test_a_phase_that_did_not_begin_says_its_condition():
    run = dynamics.flow(wells(), 5.0)
    plot = PlotDescription(
        panels=(Panel((("x", 0),)),), spans=(("Phase I", "E", None), ("Phase II", "F", None))
    )
    for latex, told in (({"E": "x > 2"}, "$x > 2$"), ({}, "no Phase I: E ")):
        shown = replace(run.presentation, plot=plot, event_latex=latex)
        axes = plotting.training(replace(run, presentation=shown, reasons={"E": "never"}))
        texts = [text.get_text() for text in axes[0].texts]
        assert any(told in text and "never" in text for text in texts)
