import numpy as np
import pytest

import dynamics
from dynamics import plotting
from dynamics.training.stability_limit import limits_along


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
    """With the driver, a little above and a little below."""
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
