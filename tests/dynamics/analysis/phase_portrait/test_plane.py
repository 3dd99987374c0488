"""Portraits of fields that are known, and of the real problem."""

import numpy as np
import pytest
from scalars import Scalars, slaved_wells, wells
from scipy.optimize import brentq

import dynamics
from dynamics.analysis.phase_portrait import portrait
from dynamics.analysis.phase_portrait.elimination import along_run
from dynamics.validation import InvalidRequest

BOX = ((-1.5, 1.6), (-1.1, 1.2))


@pytest.fixture(scope="module")
def problem():
    system = dynamics.load_system("positional_attention")
    return system.ReducedPopulation(system.Parameters(D=8, C=2))


def test_two_scalars_hide_nothing():
    found = portrait(wells(), 20.0, box=BOX, starts=2, grid=8)
    assert found.plane == ("x", "y")
    assert not found.eliminated
    np.testing.assert_allclose(found.rates[0], np.tile(found.x - found.x**3, (8, 1)))
    np.testing.assert_allclose(found.rates[1], -np.tile(found.y[:, None], (1, 8)))
    assert [len(found.nullclines[name].branches) for name in ("x", "y")] == [3, 1]
    assert [point.kind for point in found.fixed_points] == ["sink", "saddle", "sink"]
    places = [point.position for point in found.fixed_points]
    np.testing.assert_allclose(places, [(-1, 0), (0, 0), (1, 0)], atol=1e-10)
    np.testing.assert_allclose(found.fixed_points[1].eigenvalues, [-1, 1], atol=1e-6)
    assert len(found.runs) == 3
    for run in found.runs:
        expected = (np.sign(run.states[0, 0]), 0)
        np.testing.assert_allclose(run.final_state, expected, atol=1e-6)


def test_a_fast_scalar_is_slaved_and_the_plane_is_as_without_it():
    found = portrait(slaved_wells(), 20.0, box=BOX, starts=0, grid=8)
    assert found.plane == ("x", "y")
    assert found.eliminated["u"].kind == "slow"
    np.testing.assert_allclose(found.rates[0], np.tile(found.x - found.x**3, (8, 1)), atol=1e-12)
    assert [point.kind for point in found.fixed_points] == ["sink", "saddle", "sink"]
    assert found.slow is None


def test_what_follows_the_run_has_its_values(problem):
    fast_plane = portrait(problem, 1e4, ("alpha", "gamma"), starts=1, grid=10)
    run, how = fast_plane.runs[0], fast_plane.eliminated["rho"]
    assert (how.kind, how.along) == ("run", "gamma")
    turn = int(run["gamma"].argmax())
    assert how.until == run.time[turn]
    rho = along_run(run, "rho", fast_plane.plane, how)
    for state in run.states[5:turn:40]:
        assert rho(0.0, state[1]) == pytest.approx(state[2], rel=1e-9)
    assert rho(0.0, 1e3) == pytest.approx(run["rho"][turn], rel=1e-12)


def test_on_the_slow_plane_alpha_rests(problem):
    slow_plane = portrait(problem, 1e4, starts=1, grid=10)
    assert slow_plane.plane == ("gamma", "rho")
    assert slow_plane.eliminated["alpha"].kind == "slow"
    for name, k in (("gamma", 1), ("rho", 2)):
        (branch, *_) = slow_plane.nullclines[name].branches
        for gamma, rho in branch[::7]:
            alpha = brentq(lambda a, g=gamma, r=rho: problem.gradient((a, g, r))[0], 0.05, 2.0)
            found = problem.error_estimate(np.array([alpha, gamma, rho]))
            assert abs(found["value"][k]) < 1e-9 * found["gross"][k]


def test_rates_that_the_problem_itself_does_not_know_are_not_shown():
    wells_known = Scalars(
        ("x", "y"), lambda x, y: (x**3 - x, y), (0.1, 1.0), lambda x, y: (1e3 * (x > 0.5), 0.0)
    )
    found = portrait(wells_known, 5.0, box=BOX, starts=0, grid=8)
    np.testing.assert_array_equal(np.isnan(found.rates[0]), np.tile(found.x > 0.5, (8, 1)))
    assert np.isfinite(found.rates[1]).all()
    assert [point.kind for point in found.fixed_points] == ["sink", "saddle"]


@pytest.mark.parametrize(
    ("arguments", "word"),
    [
        ({"plane": ("x", "z")}, "plane="),
        ({"plane": ("x", "x")}, "plane="),
        ({"box": ((0.0, 1.0), (1.0, 1.0))}, "box="),
        ({"grid": 2}, "grid="),
        ({"starts": -1}, "starts="),
    ],
)
def test_wrong_requests_are_refused(arguments, word):
    with pytest.raises(InvalidRequest, match=word):
        portrait(slaved_wells(), 1.0, **arguments)


def test_one_scalar_and_a_plane_that_a_conserved_law_ties_are_refused():
    """The values of the sink keep their sum: with one at rest the other is."""
    with pytest.raises(InvalidRequest, match="plane="):
        portrait(Scalars(("x",), lambda x: (x,), (1.0,)), 1.0)
    system = dynamics.load_system("attention_sink")
    problem = system.ReducedPopulation(system.Parameters())
    with pytest.raises(InvalidRequest, match="conservation laws tie them"):
        portrait(problem, 3000.0, ("a", "b_c"), grid=8)
