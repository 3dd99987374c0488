"""Gradient descent beside the flow, and beyond its stability limit."""

import numpy as np
import pytest

import dynamics
from dynamics import plotting
from dynamics.analysis.comparison import explanation
from dynamics.training.stability_limit import limits_along


@pytest.fixture(scope="module")
def problem():
    system = dynamics.load_system("positional_attention")
    return system.ReducedPopulation(system.Parameters(D=8, C=2))


@pytest.fixture(scope="module")
def result(problem):
    return dynamics.overlay(problem, [0.001, 0.004, 0.002, 0.008], time=40.0, rtol=1e-12)


def test_gradient_descent_is_a_distance_of_order_eta_from_the_flow(result):
    assert list(result.etas) == [0.008, 0.004, 0.002, 0.001]
    for name, order in result.orders.items():
        assert order == pytest.approx(1.0, abs=0.1), name
    for distances in result.deviations.values():
        assert (np.diff(distances) < 0).all()


def test_distances_are_taken_at_equal_times(problem, result):
    run = result.runs[1]
    smooth = dynamics.flow(problem, 40.0, 1e-12, record=run.time)
    naive = np.abs(smooth["gamma"] - run["gamma"]).max()
    assert result.deviations["gamma"][1] == pytest.approx(naive, rel=1e-6)


def test_is_saved_loaded_and_drawn(result, tmp_path):
    again = dynamics.load(dynamics.save(result, tmp_path / "overlay"))
    np.testing.assert_array_equal(again.flow.states, result.flow.states)
    assert again.orders == result.orders
    axes = plotting.overlay(again)
    for panel, name in zip(axes, ("alpha", "gamma", "rho", "risk"), strict=True):
        assert len(panel.lines) == 5
        np.testing.assert_array_equal(panel.lines[2].get_ydata(), result.runs[1][name][1:])


def test_rules_are_laid_over_each_other_by_steps(problem, tmp_path):
    rules = ["gd", "momentum", dynamics.rule("adam", b1=0.5)]
    found = dynamics.overlay(problem, [0.1, 0.01, 0.001], 300, rules)
    found = dynamics.load(dynamics.save(found, tmp_path / "rules"))
    assert found.flow is None
    assert found.labels[2] == "adam, b1 = 0.5, eta = 0.001"
    table = found.to_dataframe()
    assert table["step"].is_unique
    np.testing.assert_array_equal(table["run_2_alpha"], found.runs[2]["alpha"])
    axes = plotting.overlay(found)
    assert axes[-1].get_xlabel() == "steps"
    marks = [line for line in axes[0].lines if line.get_marker() not in ("", "None")]
    happened = [event for run in found.runs for event in run.events.values() if event]
    assert len(marks) == len(happened)
    assert {mark.get_xdata()[0] for mark in marks} == {event.step for event in happened}


def test_a_rule_that_divides_by_rounding_explains_why_the_runs_deviate(tmp_path):
    """At the start the gradient of w is 0 by cancellation, so that Adam amplifies its rounding."""
    (tmp_path / "cancel.py").write_text("""
def start():
    return {"w": [0.0, 0.0, 0.0], "u": [0.0]}

def law():
    for i in range(3):
        for y in (0.1, 0.2, -0.3):
            yield 1 / 9, {"i": i, "y": y}

def loss(theta, sample, xp):
    u = theta["u"][0]
    return (theta["w"][sample["i"]] - sample["y"] - u) ** 2 + (u - 1) ** 2
""")
    system = dynamics.load_system(str(tmp_path / "cancel.py"))
    parameters = system.Parameters()
    reduced, full = system.ReducedPopulation(parameters), system.FullPopulation(parameters)
    adam = dynamics.rule("adam", eps=1e-30)
    with pytest.warns(dynamics.TrainingWarning, match="rounding decides"):
        result = dynamics.compare(reduced, full, eta=0.01, steps=6, rule=adam, record=1)
    assert result.largest_deviation > 1e-3
    assert "at step 0 the gradient of w_0 is" in explanation(result, reduced, full)


@pytest.fixture(scope="module")
def onset():
    """A problem, its state of the least limit, and what sets in there."""
    system = dynamics.load_system("positional_attention")
    problem = system.ReducedPopulation(system.Parameters())
    run = dynamics.flow(problem, time=1e5, record=200)
    limits = limits_along(problem, run)
    kept = (run.time > 1) & (limits > 0)
    start = run.states[np.argmin(np.where(kept, limits, np.inf))]
    return problem, start, dynamics.onsets(problem, start)


def test_period_two_and_divergence_set_in_where_predicted(onset):
    problem, start, found = onset
    assert found.period_two == pytest.approx(found.limit, rel=0.01)
    assert found.period_two < found.non_finite < 2 * found.limit
    above = dynamics.descend(problem, 1.01 * found.non_finite, 4000, initial=start)
    below = dynamics.descend(problem, 0.99 * found.non_finite, 4000, initial=start)
    assert above.outcome.kind == "diverged"
    assert below.outcome.kind == "oscillating"


def test_branches_are_one_then_two_then_none(onset):
    problem, start, _ = onset
    found = dynamics.branches(problem, start, "alpha", count=40)
    several = [np.unique(np.round(row, 4)).size for row in found.values]
    calm = found.etas < 0.99 * found.onsets.limit
    period = (found.etas > 1.02 * found.onsets.limit) & (found.etas < found.onsets.non_finite)
    assert max(np.array(several)[calm]) <= 2
    spread = np.ptp(found.values, axis=1)
    assert (spread[period] > 100 * spread[calm].max()).all()
    assert np.isnan(found.values[found.etas > found.onsets.non_finite]).all()
    axes = plotting.branches(found)
    assert axes.get_xlabel().startswith("learning rate")


def softened(u, xp):
    """Four times the log of cosh u/2: its curvature is 1 at 0, and less elsewhere."""
    return 2 * (xp.softplus(u) + xp.softplus(-u))


def test_a_scalar_at_rest_at_zero_is_thrown_out_of_it():
    """A step multiplies u by 1 - eta: beyond 2 it alternates for good, and v beyond 8."""
    system = dynamics.Model(
        start=lambda: {"u": 1.0, "v": 0.5},
        risk=lambda theta, xp: softened(theta["u"], xp) + softened(theta["v"] - 1, xp) / 4,
    )
    found = dynamics.onsets(system.ReducedPopulation(system.Parameters()), [0.0, 1.0])
    assert found.limit == pytest.approx(2.0, rel=1e-6)
    assert found.period_two == pytest.approx(2.0, rel=2e-3)
