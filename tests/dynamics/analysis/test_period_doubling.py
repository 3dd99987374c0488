from functools import cache

import numpy as np
import pytest

import dynamics
from dynamics import plotting
from dynamics.training.stability_limit import limits_along

CASES = [{}, {"D": 9, "C": 3, "q": 0.5, "p": 5}]


def hardest(problem):
    """The state of the flow at which the limit is least."""
    run = dynamics.flow(problem, time=1e5, record=200)
    limits = limits_along(problem, run)
    kept = (run.time > 1) & (limits > 0)
    return run.states[np.argmin(np.where(kept, limits, np.inf))]


@cache
def onset(**settings):
    """A problem, its hardest state and what sets in there."""
    system = dynamics.load_system("positional_attention")
    problem = system.ReducedPopulation(system.Parameters(**settings))
    start = hardest(problem)
    return problem, start, dynamics.onsets(problem, start)


@pytest.mark.parametrize("settings", CASES)
def test_period_two_is_observed_where_it_is_predicted(settings, capsys):
    _, _, found = onset(**settings)
    assert found.period_two == pytest.approx(found.limit, rel=0.01)
    assert found.period_two < found.non_finite < 2 * found.limit
    with capsys.disabled():
        print(f"\n{settings or 'default'}: {found}")


def test_a_run_at_the_onset_of_non_finite_values_diverges():
    """With the driver, a little above and a little below."""
    problem, start, found = onset()
    above = dynamics.descend(problem, 1.01 * found.non_finite, 4000, initial=start)
    below = dynamics.descend(problem, 0.99 * found.non_finite, 4000, initial=start)
    assert above.outcome.kind == "diverged"
    assert below.outcome.kind == "oscillating"


def test_branches_are_one_then_two_then_none():
    problem, start, _ = onset()
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


def test_no_limit_no_onset(system):
    problem = system.ReducedPopulation(system.Parameters())
    with pytest.raises(ValueError, match="no stability limit"):
        dynamics.onsets(problem, problem.initial_state)


def reduced(start, risk):
    system = dynamics.Model(start=lambda: dict(start), risk=risk)
    return system.ReducedPopulation(system.Parameters())


def softened(u, xp):
    """Four times the log of cosh u/2: its curvature is 1 at 0, and less elsewhere."""
    return 2 * (xp.softplus(u) + xp.softplus(-u))


@pytest.mark.parametrize("u", [0.0])
def test_a_scalar_at_rest_at_zero_is_thrown_out_of_it(u):
    """A step multiplies u by 1 - eta: beyond 2 it alternates for good, and v beyond 8."""
    pair = reduced(
        {"u": 1.0, "v": 0.5},
        lambda theta, xp: softened(theta["u"], xp) + softened(theta["v"] - 1, xp) / 4,
    )
    found = dynamics.onsets(pair, [u, 1.0])
    assert found.limit == pytest.approx(2.0, rel=1e-6)
    assert found.period_two == pytest.approx(2.0, rel=2e-3)
