"""Until when the scalars of a reduction are stable, and how departures from them grow."""

from dataclasses import replace
from functools import cache
from math import inf
from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import dynamics
from dynamics.analysis.comparison import explanation
from dynamics.analysis.stability import departure, of_growth, stability
from dynamics.analysis.transverse_growth import TransverseGrowth, least_curvature
from dynamics.analysis.transverse_stability import propagate, split, transverse
from dynamics.papers.positional_attention.manifold import Manifold
from dynamics.results.stability import LEFT, OFF
from theory.symmetry import PermutationGroup


def pair(rate, still=0.0):
    """Two entries that stay equal; their difference grows as exp(rate * time)."""

    def start():
        return {"w": np.zeros(2), "still": np.full(2, still)}

    def risk(theta, xp):
        w = theta["w"]
        return ((w[0] + w[1]) / 2 - 1) ** 2 - rate * (w[0] - w[1]) ** 2 / 4

    system = dynamics.Model(start=start, risk=risk)
    parameters = system.Parameters()
    return system.ReducedPopulation(parameters), system.FullPopulation(parameters)


def test_a_departure_reaches_its_size_when_its_exponential_does():
    rate, horizon = 3.0, 10.0
    reduced, full = pair(rate, still=7.0)
    found = stability(reduced, full, dynamics.flow(reduced, horizon))
    at = np.log(LEFT / OFF) / rate
    assert found.limited
    # Starts have a part across in what never moves, and so at most OFF in the difference.
    assert len(found.left) == 3
    assert all(at * (1 - 1e-6) <= time < horizon for time in found.left)
    assert found.growth == pytest.approx(np.exp(rate * horizon), rel=1e-6)
    assert found.safe <= at


def test_a_departure_follows_the_exponential_all_along():
    """The implicit integrator damps it: its steps are long beside the time in which it grows."""
    reduced, full = pair(0.5)
    start = full.initial_state + OFF * np.array([1.0, -1.0, 0.0, 0.0])
    run = dynamics.flow(reduced, 60.0)
    found = departure(full, run, start, inf)
    expected = OFF * np.exp(0.5 * found.time)
    np.testing.assert_allclose(found.distance, expected, rtol=1e-5)
    assert found.reaches() == pytest.approx(2 * np.log(LEFT / OFF), rel=1e-6)
    assert found.reaches(1e300) == inf


def test_a_space_that_attracts_is_stable_without_full_training(monkeypatch):
    reduced, full = pair(-0.5)
    monkeypatch.setattr("dynamics.analysis.stability.departure", None)
    found = stability(reduced, full, dynamics.flow(reduced, 1e4))
    assert (found.until, found.limited, found.left) == (1e4, False, ())
    assert found.growth == 1.0
    assert str(found) == "the classes hold to time 1e+04: no departure grows"


@pytest.mark.filterwarnings("ignore:eta=1 at step 1")
def test_steps_may_repel_where_the_flow_attracts():
    reduced, full = pair(-3.0)  # a step of 1 multiplies the difference by -2
    found = stability(reduced, full, dynamics.descend(reduced, 1.0, 60))
    assert found.limited
    assert min(found.left) == pytest.approx(np.log2(LEFT / OFF), abs=3.0)
    assert not stability(reduced, full, dynamics.descend(reduced, 0.1, 600)).limited


def test_the_growth_alone_tells_the_time_to_which_it_is_small():
    time = np.linspace(0.0, 10.0, 101)
    found = of_growth(TransverseGrowth.of(time, np.full(101, -2.0)), 4)
    # Equation (1): exp(2 t) < 1e7 / 2, at the record before.
    assert found.safe == pytest.approx(np.log(LEFT / OFF / 2) / 2, abs=0.1)
    assert found.safe < np.log(LEFT / OFF / 2) / 2
    assert str(found).startswith("the classes hold to time 7.7 at least: by time 10")
    assert not of_growth(TransverseGrowth.of(time, np.full(101, -0.5)), 4).limited


def test_a_declared_reduction_lies_in_the_space_of_every_entry():
    """Its scalars are lifted by their names, several of one class among them."""
    system = dynamics.load_system("sparse_parity")
    parameters = system.Parameters()
    reduced, full = system.ReducedPopulation(parameters), system.FullPopulation(parameters)
    state = reduced.initial_state
    lifted = full.lift(np.stack([state, state - reduced.gradient(state)]), reduced.scalars)
    np.testing.assert_allclose(lifted[0], full.initial_state)
    slope = full.gradient(full.initial_state)
    np.testing.assert_allclose(lifted[1], full.initial_state - slope, atol=1e-14)
    assert np.abs(full.outside(slope)).max() < 1e-15
    found = stability(reduced, full, dynamics.descend(reduced, 0.2, 20))
    assert (found.left, found.until) == ((inf, inf, inf), pytest.approx(4.0))


MODELS = Path(__file__).resolve().parents[2] / "support" / "models"


def network():
    """An aligned deep linear network whose strongest mode starts at 0."""
    rng = np.random.default_rng(0)
    U, V = (np.linalg.qr(rng.standard_normal((4, 4)))[0] for _ in range(2))

    def start(scale=0.1):
        size = scale * np.array([0.0, 1, 1, 1])
        return {"W1": size[:, None] * V.T, "W2": size * U}

    def fixed():
        return {"T": U * [4.0, 2.0, 1.0, 1.0] @ V.T}

    def risk(theta, xp):
        return xp.sum((theta["W2"] @ theta["W1"] - theta["T"]) ** 2) / 2

    return dynamics.Model(start=start, fixed=fixed, risk=risk)


def problems(system, **constants):
    parameters = system.Parameters(**constants)
    return system.ReducedPopulation(parameters), system.FullPopulation(parameters)


def test_rounding_that_grows_is_told_from_a_wrong_reduction():
    """4e-15 at step 100, 2.5e-8 at 400, .8 at 700: no wrong derivation."""
    reduced, full = problems(network())
    result = dynamics.compare(reduced, full, eta=0.02, steps=700)
    assert result.full["outside"].max() > 0.1
    told = explanation(result, reduced, full)
    assert "rounding grows on a manifold that repels" in told
    assert "largest rate of the linearised flow 4)" in told


def test_a_wrong_reduction_is_called_wrong():
    system = dynamics.load_system(MODELS / "softmax_icl.py")
    reduced, full = problems(system)
    _, other = problems(system, p1=0.5, p2=0.3)
    result = dynamics.compare(reduced, full, eta=1.0, steps=50)
    assert explanation(result, reduced, full) == ""
    run = dynamics.descend(other, eta=1.0, steps=50)
    values = full.orbit_values(run.states)
    deviations = {n: np.ptp(values[n], axis=1) for n in reduced.state_names}
    wrong = type(result)(result.reduced, run, deviations)
    reduced.realization = other.realization
    reduced.closure = replace(reduced.closure, grade="checked at 60 states")
    assert explanation(wrong, reduced, other).startswith("the reduction is wrong: at time")


def test_lanczos_finds_what_the_whole_hessian_has(monkeypatch):
    system = dynamics.load_system(MODELS / "positional.py")
    reduced, full = problems(system, D=6)
    state = reduced.lift(np.array([0.35, 0.1, -0.05]))
    hessian = full.jacobian(state)
    across = np.linalg.svd(np.column_stack([full.outside(row) for row in np.eye(37)]))
    basis = across[0][:, across[1] > 0.5]
    known = np.linalg.eigvalsh(basis.T @ hessian @ basis).min()
    assert least_curvature(full, state) == pytest.approx(known, abs=1e-10)
    monkeypatch.setattr("dynamics.analysis.transverse_growth.DENSE", 1)
    assert least_curvature(full, state) == pytest.approx(known, abs=1e-6)


class Quadratic:
    """The full problem of a risk with a given Hessian, whose first two entries are the scalars."""

    scalars = ("a", "b")

    def __init__(self, eigenvalues):
        size = len(eigenvalues)
        turn = np.linalg.qr(np.random.default_rng(1).standard_normal((size, size)))[0]
        self.hessian = np.diag([-3.0 * np.abs(eigenvalues).max()] * 2 + [0.0] * size)
        self.hessian[2:, 2:] = turn * eigenvalues @ turn.T

    def outside(self, vector):
        return np.append([0.0, 0.0], vector[2:])

    def hessian_product(self, state, vector):
        return self.hessian @ vector


@pytest.mark.parametrize("unit", [1e-200, 1.0, 1e100])
@pytest.mark.parametrize("least", [-1.0, -0.01, 0.001])
def test_the_error_of_the_least_curvature_is_relative_to_the_largest(unit, least):
    """A model in other units has the same curvatures in others."""
    eigenvalues = unit * np.append(least, np.linspace(0.1, 5.0, 97))
    found = least_curvature(Quadratic(eigenvalues), np.zeros(100)) / unit
    assert found == pytest.approx(least, rel=0, abs=5e-6)


SYSTEM = dynamics.load_system("positional_attention")
LAW = SYSTEM.Parameters(D=9, C=3, q=0.6)


@cache
def along():
    """The spectrum along the flow."""
    times = np.concatenate([[0.0], np.geomspace(1e-3, 1e5, 300)])
    run = dynamics.flow(SYSTEM.ReducedPopulation(LAW), 1e5, rtol=1e-10, record=times)
    return transverse(Manifold(LAW), run)


def test_split_gives_the_orbits_and_their_complement():
    swaps = PermutationGroup(5, (np.array([0, 2, 1, 3, 4]), np.array([0, 1, 2, 4, 3])))
    fixed, across = split(swaps)
    basis = np.concatenate([fixed, across], axis=1)
    np.testing.assert_allclose(basis.T @ basis, np.eye(5), atol=1e-15)
    half = np.sqrt(0.5)
    wanted = [[1, 0, 0], [0, half, 0], [0, half, 0], [0, 0, half], [0, 0, half]]
    np.testing.assert_allclose(fixed, wanted)
    np.testing.assert_allclose(np.abs(across[1]), np.abs(across[2]))


def test_propagator_of_hessians_that_do_not_commute():
    def bend(time):
        turn, grow = np.cos(3 * time), np.sin(2 * time)
        return np.array([[-1.0, turn, 0.3], [turn, 0.5, grow], [0.3, grow, -0.4 * time]])

    def rate(time, flat):
        return (-bend(time) @ flat.reshape(3, 3)).ravel()

    wanted = solve_ivp(rate, (0, 2), np.eye(3).ravel(), rtol=1e-12, atol=1e-12).y[:, -1]
    lengths = np.linalg.svd(wanted.reshape(3, 3))[1]
    errors = []
    for records in (101, 201):
        time = np.linspace(0, 2, records)
        largest, typical, worst = propagate(time, [bend(t) for t in time])
        errors.append([largest[-1] / lengths[0] - 1, typical[-1] ** 2 * 3 / (lengths**2).sum() - 1])
        grown = np.linalg.norm(wanted.reshape(3, 3) @ worst)
        assert grown == pytest.approx(lengths[0], rel=1e-3)
    np.testing.assert_allclose(np.divide(*errors), 4, rtol=0.05)
    summed = np.trapezoid([np.linalg.eigvalsh(bend(t))[0] for t in time], time)
    assert largest[-1] < 0.8 * np.exp(-summed)  # the sum of the worst rates overestimates


def test_spectrum_of_a_small_size():
    found, (D, C), negative = along(), (9, 3), (38, 32, 70)
    plateau, later = found.at(3.0), found.at(100.0)
    counts = found.negative[plateau], found.negative[later], found.eigenvalues.shape[1]
    assert counts == negative
    assert found.eigenvalues[found.time > 1].min() == pytest.approx(-0.0107, abs=1e-4)
    assert found.attracting_from == pytest.approx(3.09e3, rel=0.01)
    assert found.peak == pytest.approx(487.0, rel=0.01)
    # Across is less stable than along: the symmetric line repels more than gamma grows.
    assert found.eigenvalues[plateau, 0] < found.symmetric[plateau, 0] < 0
    assert found.multiplicity(plateau) == D - D // C
    first = {name: share[plateau, 0] for name, share in found.shares.items()}
    assert first["rows"] > 0.98
    assert first["gamma"] + first["rho"] == pytest.approx(1)


def test_the_full_flow_grows_the_worst_deviation_by_the_peak():
    """Nothing linear here: the full flow from a start displaced along the worst direction."""
    found, full, omega = along(), SYSTEM.FullPopulation(LAW), 1e-6
    manifold = Manifold(LAW, full)
    start, end = full.initial_state, found.time[found.amplification.argmax()]
    start[manifold.trained] += omega * found.worst
    run = dynamics.flow(full, end, rtol=1e-11, initial=start, record=2)
    across = split(manifold.symmetry)[1]
    grown = np.linalg.norm(across.T @ run.final_state[manifold.trained]) / omega
    assert grown == pytest.approx(found.peak, rel=0.01)
