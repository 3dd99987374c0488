"""Width, time axes, titles and limits of pictures, through the data of their artists."""

from dataclasses import replace

import numpy as np
import pytest

import dynamics
from dynamics import plotting
from dynamics.models.engine.definition import plot_description
from dynamics.plotting.runs import training
from dynamics.validation import InvalidRequest


@pytest.fixture(scope="module")
def system():
    return dynamics.load_system("positional_attention")


@pytest.fixture(scope="module")
def run(system):
    law = system.Parameters(D=9, C=3, random_sets="mixed")
    return dynamics.descend(system.ReducedPopulation(law), eta=0.1, steps=9000)


def title(axes):
    return np.ravel(axes)[0].figure.get_suptitle()


@pytest.mark.parametrize("width", [2, 1e3, "wide", float("nan")])
def test_a_width_that_no_page_has_is_refused(width):
    with pytest.raises(InvalidRequest, match="width="), plotting.look(width=width):
        pass


def test_a_title_has_two_lines_and_the_caption_all_constants(run, tmp_path):
    many = {f"c{k}": k for k in range(130)}
    axes = training(replace(run, parameters=dict(run.parameters) | many))
    assert title(axes).count("\n") == 1
    assert title(axes).endswith("(all in the caption)")
    plotting.write(axes, tmp_path / "p.png")
    caption = (tmp_path / "p.caption.txt").read_text(encoding="utf-8")
    assert "$D = 9$" in caption
    assert all(f"{k}$" in caption for k in range(130))
    plotting.write(training(run), tmp_path / "q.png")
    assert not (tmp_path / "q.caption.txt").exists()


def test_a_picture_of_some_of_the_scalars_says_so(run):
    plot = replace(run.presentation.plot, omission="shown: 30 of 120 scalars")
    part = replace(run, presentation=replace(run.presentation, plot=plot))
    assert title(training(part)).splitlines()[-1] == "shown: 30 of 120 scalars"


def test_what_a_plain_plot_leaves_out_is_counted():
    model = dynamics.Model(
        start=lambda: {"w": np.ones(120)},
        risk=lambda theta, xp: xp.sum(theta["w"] ** 4),
        name="many",
    )
    names = [f"w_{k}" for k in range(120)]
    assert plot_description(model.model, names, (), ()).omission == "shown: 30 of 120 scalars"
    assert plot_description(model.model, names[:12], (), ()).omission == ""


@pytest.mark.parametrize(
    ("risk", "drawn"),
    [
        ([0.25, 1e-9, 1e-15, 3e-17, 1e-17, 3e-17, -1e-17], 5),
        ([0.25, 1e-9, 1e-15, 3e-17, 0.0, 0.0, 3e-17], 4),
        ([0.25, 1e-5, 1e-12, 1e-18, 1e-24, 1e-30, 2e-31], 7),  # of squares
        ([-1e-21, -1e-18, -1e-12, -1e-6, -0.1, -0.2, -0.25], 7),  # from a saddle
        ([0.25, 1e-9, 1e-17, 1e-9, 0.2, 0.1, 0.1], 7),
    ],
)
def test_a_risk_is_drawn_to_the_rounding_of_its_terms(run, risk, drawn):
    cut = slice(1, 1 + len(risk))
    short = replace(
        run, steps=run.steps[cut], time=run.time[cut], states=run.states[cut], events=run.events,
        observables={n: s[cut] for n, s in run.observables.items()} | {"risk": np.array(risk)},
    )  # fmt: skip
    (line, *_) = training(short)[-1].lines
    assert np.isfinite(line.get_ydata()).sum() == drawn
    np.testing.assert_array_equal(line.get_ydata()[:drawn], np.abs(risk)[:drawn])


def test_a_run_that_diverged_is_drawn_while_it_is_finite(system):
    problem = system.ReducedPopulation(system.Parameters(D=9, C=3))
    run = dynamics.descend(problem, eta=1.0, steps=100)
    assert run.outcome.kind == "diverged"
    with np.errstate(invalid="ignore"):
        assert not np.nanmax(np.abs(run["risk"])) < 1e6
    axes = training(run)
    for panel in axes:
        for line in panel.lines:
            values = np.asarray(line.get_ydata(), float)
            assert np.nanmax(np.abs(values), initial=0.0) < 1e6
    assert title(axes).splitlines()[-1].startswith("diverged at $")
    assert axes[-1].get_xlim()[1] < run.time[-1]
