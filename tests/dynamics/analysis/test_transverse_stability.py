"""Spectrum across a symmetric manifold, and growth of what leaves it."""

from functools import cache
from pathlib import Path

import numpy as np
import pytest
from scipy.integrate import solve_ivp

import dynamics
from dynamics.analysis.comparison import explanation
from dynamics.analysis.transverse_stability import (
    TransverseGrowth,
    least_curvature,
    propagate,
    split,
    transverse,
    transverse_growth,
)
from dynamics.systems.positional_attention.full.manifold import Manifold
from theory.symmetry import Partition, PermutationGroup

MODELS = Path(__file__).resolve().parents[2] / "support" / "models"
SYSTEM = dynamics.load_system("positional_attention")


@cache
def along(D, C, q, time=1e5, records=300):
    """The spectrum along the flow, with its problem."""
    parameters = SYSTEM.Parameters(D=D, C=C, q=q)
    times = np.concatenate([[0.0], np.geomspace(1e-3, time, records)])
    run = dynamics.flow(SYSTEM.ReducedPopulation(parameters), time, rtol=1e-10, record=times)
    return transverse(Manifold(parameters), run)


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
    """Against an integrator; the error falls fourfold when the intervals are halved."""

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


@pytest.mark.parametrize(
    ("size", "negative", "worst", "attracting", "peak"),
    [
        ((8, 2, 0.5), (27, 27, 54), -0.0105, 2.12e3, 124.8),
        ((9, 3, 0.6), (38, 32, 70), -0.0107, 3.09e3, 487.0),
    ],
)
def test_spectrum_of_two_small_sizes(size, negative, worst, attracting, peak):
    found, (D, C, _) = along(*size), size
    plateau, later = found.at(3.0), found.at(100.0)
    counts = found.negative[plateau], found.negative[later], found.eigenvalues.shape[1]
    assert counts == negative
    assert found.eigenvalues[found.time > 1].min() == pytest.approx(worst, abs=1e-4)
    assert found.attracting_from == pytest.approx(attracting, rel=0.01)
    assert found.peak == pytest.approx(peak, rel=0.01)
    assert found.cross.max() < 1e-12
    assert found.decoupled_peak("v") < 1.25
    # Across is less stable than along: the symmetric line repels more than gamma grows.
    assert found.eigenvalues[plateau, 0] < found.symmetric[plateau, 0] < 0
    first = found.multiplets(plateau)[0]
    assert first.multiplicity == D - D // C
    assert first.shares["rows"] > 0.98
    assert first.shares["gamma"] + first.shares["rho"] == pytest.approx(1)
    assert sum(m.multiplicity for m in found.multiplets(plateau)) == negative[2]


@pytest.mark.parametrize("size", [(8, 2, 0.5), (9, 3, 0.6)])
def test_two_hundred_and_forty_records_give_the_peak(size):
    finer = along(*size, records=600).peak
    assert along(*size, records=240).peak == pytest.approx(finer, rel=0.01)


def test_the_fixed_directions_have_the_spectrum_of_the_reduced_problem():
    found = along(12, 3, 0.4)
    problem = SYSTEM.ReducedPopulation(SYSTEM.Parameters(D=12, C=3, q=0.4))
    for record in (5, 150, 290):
        reduced = np.sort(np.linalg.eigvals(problem.jacobian(found.run.states[record])).real)
        np.testing.assert_allclose(found.symmetric[record], reduced, rtol=1e-9)
    assert found.peak == pytest.approx(151, rel=0.01)


def test_a_wrong_symmetry_mixes_the_parts():
    parameters = SYSTEM.Parameters(D=8, C=2)
    run = along(8, 2, 0.5).run
    manifold = Manifold(parameters, SYSTEM.FullPopulation(parameters))
    scattered = Partition(np.array([0, 1, 2, 3, 3, 1, 0, 2]))
    wrong = Manifold(parameters, SYSTEM.FullPopulation(parameters, scattered))
    manifold.symmetry = wrong.symmetry
    assert transverse(manifold, run).cross.max() > 1e-4


@pytest.mark.parametrize(("size", "omega"), [((8, 2, 0.5), 1e-5), ((9, 3, 0.6), 1e-6)])
def test_the_full_flow_grows_the_worst_deviation_by_the_peak(size, omega):
    """Nothing linear here: the full flow from a start displaced along the worst direction."""
    found = along(*size)
    parameters = SYSTEM.Parameters(D=size[0], C=size[1], q=size[2])
    full = SYSTEM.FullPopulation(parameters)
    manifold = Manifold(parameters, full)
    start, end = full.initial_state, found.time[found.amplification.argmax()]
    start[manifold.trained] += omega * found.worst
    run = dynamics.flow(full, end, rtol=1e-11, initial=start, record=2)
    across = split(manifold.symmetry)[1]
    grown = np.linalg.norm(across.T @ run.final_state[manifold.trained]) / omega
    assert grown == pytest.approx(found.peak, rel=0.01)


@pytest.mark.long
@pytest.mark.parametrize(
    ("q", "time", "records", "peak"),
    [(0.5, 1e5, 240, 584), (0.25, 4e4, 240, 492)],
)
def test_peak_at_sixteen_patches(q, time, records, peak):
    assert along(16, 4, q, time, records).peak == pytest.approx(peak, rel=0.01)


def modes(h=4):
    rng = np.random.default_rng(0)
    U, V = (np.linalg.qr(rng.standard_normal((h, h)))[0] for _ in range(2))
    return U, np.array([4.0, 2.0, 1.0, 1.0]), V


def network(strongest=0.0):
    """An aligned deep linear network whose strongest mode starts at a given size."""

    def start(h=4, scale=0.1):
        U, _, V = modes(h)
        size = scale * np.array([strongest, 1, 1, 1])
        return {"W1": size[:, None] * V.T, "W2": size * U}

    def fixed(h):
        U, s, V = modes(h)
        return {"T": U * s @ V.T}

    def risk(theta, xp):
        return xp.sum((theta["W2"] @ theta["W1"] - theta["T"]) ** 2) / 2

    return dynamics.Model(start=start, fixed=fixed, risk=risk, eta=0.02, steps=800)


def problems(system, **constants):
    parameters = system.Parameters(**constants)
    return system.ReducedPopulation(parameters), system.FullPopulation(parameters)


def test_rounding_that_grows_is_told_from_a_wrong_reduction():
    """4e-15 at step 100, 2.5e-8 at 400, .8 at 700: no wrong derivation."""
    reduced, full = problems(network())
    result = dynamics.compare(reduced, full, eta=0.02, steps=700)
    assert result.full["outside"].max() > 0.1
    told = explanation(result, reduced, full)
    assert "the reduction holds" in told
    assert "rounding grows on a manifold that repels" in told
    assert "largest rate of the linearised flow 4)" in told


def test_a_wrong_reduction_is_called_wrong():
    """Classes of the balanced law, held for one that is not."""
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
    assert explanation(wrong, reduced, other).startswith("the reduction is wrong: at time")


def test_a_space_that_attracts_is_said_to():
    reduced, full = problems(dynamics.load_system(MODELS / "softmax_icl.py"))
    run = dynamics.descend(reduced, eta=1.0, steps=100)
    growth = transverse_growth(reduced, full, run, 5)
    assert growth.least.min() > -1e-12
    assert growth.amplification.max() < 1 + 1e-9


def test_the_growth_from_half_of_the_states_tells_its_error():
    """Of rates that fall as 1/t, whose integral is a logarithm, at 2 k + 1 and k + 1 states."""
    time = np.linspace(1.0, 4.0, 13)
    growth = TransverseGrowth(time, -1 / time, np.ones(13))
    half = np.exp(np.trapezoid(1 / time[::2], time[::2]))
    assert growth.halved == pytest.approx(half, rel=1e-14)
    every = np.exp(np.trapezoid(1 / time, time))
    assert abs(every - 4.0) < abs(growth.halved - every)
    even = TransverseGrowth(time[:12], -1 / time[:12], np.ones(12))
    ends = np.append(time[:12:2], time[11])
    assert even.halved == pytest.approx(np.exp(np.trapezoid(1 / ends, ends)), rel=1e-14)


def test_lanczos_finds_what_the_whole_hessian_has(monkeypatch):
    system = dynamics.load_system(MODELS / "positional.py")
    reduced, full = problems(system, D=6)
    state = reduced.lift(np.array([0.35, 0.1, -0.05]))
    hessian = full.jacobian(state)
    across = np.linalg.svd(np.column_stack([reduced.outside(row) for row in np.eye(37)]))
    basis = across[0][:, across[1] > 0.5]
    known = np.linalg.eigvalsh(basis.T @ hessian @ basis).min()
    assert least_curvature(reduced, full, state) == pytest.approx(known, abs=1e-10)
    monkeypatch.setattr("dynamics.analysis.transverse_stability.DENSE", 1)
    assert least_curvature(reduced, full, state) == pytest.approx(known, abs=1e-6)


def test_positional_attention_agrees_with_its_own_spectrum():
    """The transverse spectrum of the built-in system, whose Hessian is in closed form."""
    built_in = dynamics.load_system("positional_attention")
    parameters = built_in.Parameters(D=6, C=3, alpha0=1e-3)
    own = built_in.FullPopulation(parameters)
    reduced, full = problems(dynamics.load_system(MODELS / "positional.py"), D=6)
    scalars = np.array([0.35, 0.1, -0.05])
    matrix = np.eye(6) * parameters.beta
    matrix[reduced.lift(scalars)[1:].reshape(6, 6) == 0.1] = 0.1
    matrix[reduced.lift(scalars)[1:].reshape(6, 6) == -0.05] = -0.05
    hessian = own.jacobian(np.concatenate([scalars[:1], matrix.ravel()]))
    trained = np.concatenate([[True], ~np.eye(6, dtype=bool).ravel()])
    ours = full.jacobian(reduced.lift(scalars))
    np.testing.assert_allclose(
        ours[np.ix_(trained, trained)], hessian[np.ix_(trained, trained)], atol=1e-12
    )
