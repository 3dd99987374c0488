"""Width, time axes, titles and limits of pictures, through the data of their artists."""

import itertools
from dataclasses import replace

import numpy as np
import pytest

import dynamics
from dynamics import plotting
from dynamics.plotting.runs import training
from dynamics.validation import InvalidRequest


@pytest.fixture(scope="module")
def run():
    system = dynamics.load_system("positional_attention")
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


def test_no_name_of_an_event_overlaps_another_or_leaves_the_page(run):
    with plotting.look(linear=True, width=8.6):
        axes = training(run)
    axes[0].figure.draw_without_rendering()
    names = [text.get_window_extent() for text in axes[0].texts if text.get_text()]
    assert len(names) >= 5
    assert not any(one.overlaps(other) for one, other in itertools.combinations(names, 2))
    assert max(name.x1 for name in names) < axes[0].figure.bbox.x1


def test_a_picture_of_some_of_the_scalars_says_so():
    model = dynamics.Model(
        start=lambda: {"w": np.linspace(1, 2, 120)}, risk=lambda theta, xp: xp.sum(theta["w"] ** 4)
    )
    many = dynamics.descend(model.ReducedPopulation(model.Parameters()), 1e-3, 3)
    assert title(training(many)).splitlines()[-1] == "shown: 30 of 120 scalars"


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
    run = dynamics.descend(
        system.ReducedPopulation(system.Parameters(D=9, C=3)), eta=1.0, steps=100
    )
    assert run.outcome.kind == "diverged"
    axes = training(run)
    for line in (line for panel in axes for line in panel.lines):
        values = np.asarray(line.get_ydata(), float)
        assert np.nanmax(np.abs(values), initial=0.0) < 1e6
    assert title(axes).splitlines()[-1].startswith("diverged at $")
    assert axes[-1].get_xlim()[1] < run.time[-1]
