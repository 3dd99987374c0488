"""Sums over counts and contours against loops over masks, mpmath, fractions, and each other."""

import copy
from fractions import Fraction
from math import comb

import masked
import mpmath
import numpy as np
import pytest

import dynamics
from dynamics.expectations import masks
from dynamics.validation import InvalidRequest

KINDS = ("counts", "contour")


@pytest.fixture
def system():
    return dynamics.load_system("masked_image_modeling")


def entries(problem, state):
    """Ups and Phi of every patch from a reduced state, (P, P) and (P, features)."""
    parameters, rows = problem.parameters, problem.rows
    ups = np.empty((parameters.P, parameters.P))
    phi = np.empty((parameters.P, parameters.features))
    for row, start in zip(rows.types, rows.starts, strict=False):
        ups[row.patches] = state[start : start + len(row.ups_names)][row.ups_of]
        phi[row.patches] = state[start + len(row.ups_names) :][row.phi_of]
    return ups, phi


def cases(system):
    areas = "0,0,0,1,1,2;0,1,1,0,0,0"
    return [
        system.Parameters(P=8, C_global=4, C_local=2, masked=3),
        system.Parameters(P=7, C_global=1, C_local=3, masked=2, z="0.6,1.4", odds="0.3,0.7"),
        system.Parameters(family="custom", areas=areas, masked=3, z="0.7,1.0,1.6"),
        system.Parameters(family="custom", areas=areas, masked=1),
        system.Parameters(family="custom", areas=areas, masked=5),
    ]


@pytest.mark.parametrize("index", range(5))
@pytest.mark.parametrize("kind", KINDS)
def test_every_entry_of_the_gradient_is_that_of_a_loop_over_masks(system, index, kind):
    parameters = cases(system)[index]
    problem = system.ReducedPopulation(parameters, kind)
    state = np.random.default_rng(index).normal(size=problem.layout.size)
    ups, phi = entries(problem, state)
    own_ups, own_phi = entries(problem, problem.gradient(state))
    for p in range(parameters.P):
        _, by_ups, by_phi, _ = masked.row(parameters, p, ups[p], phi[p])
        np.testing.assert_allclose(own_ups[p], by_ups, rtol=1e-11, atol=1e-15)
        np.testing.assert_allclose(own_phi[p], by_phi, rtol=1e-11, atol=1e-15)


def naive_rows(problem, state):
    """Row by row, of its first patch: rates of its states, attention, own attention, gap."""
    parameters, (ups, phi) = problem.parameters, entries(problem, state)
    result = []
    for kind in problem.rows.types:
        p = kind.patches[0]
        loss, by_ups, by_phi, own = masked.row(parameters, p, ups[p], phi[p])
        by_area, elsewhere = masked.attention(parameters, p, ups[p], phi[p])
        rates = np.zeros(len(kind.ups_names) + len(kind.phi_names))
        rates[kind.ups_of[0]] = -np.array(by_ups)
        rates[len(kind.ups_names) + kind.phi_of[0]] = -np.array(by_phi)
        attended = [*np.bincount(kind.phi_of[0], by_area), elsewhere]
        gap = loss - masked.floor(parameters, p)
        result.append((rates, attended, np.nan if own is None else own, gap, loss))
    return result


@pytest.mark.parametrize(
    ("index", "kind"), [(0, "counts"), (1, "contour"), (2, "counts"), (3, "contour")]
)
def test_every_observable_by_loops_over_masks(system, index, kind):
    parameters = cases(system)[index]
    problem = system.ReducedPopulation(parameters, kind)
    rows = problem.rows
    own, remote, local, far = map(int, rows.references)
    state = np.random.default_rng(8).normal(size=problem.layout.size)
    seen, naive = problem.observables(state), naive_rows(problem, state)
    rates = np.concatenate([row[0] for row in naive])
    expected = {f"d_{name}": rate for name, rate in zip(problem.state_names, rates, strict=True)}
    for name, (_, attended, own_attention, gap, _) in zip(rows.names, naive, strict=True):
        keys = [n for n in seen if n.startswith((f"{name}_A_", f"{name}_masked"))]
        expected |= dict(zip(keys, attended, strict=True))
        expected |= {f"{name}_own_attention": own_attention, f"{name}_gap": gap}
    several = [(row.patches.size, *each) for row, each in zip(rows.types, naive, strict=True)]
    risk = sum(many * loss for many, *_, loss in several)
    excess = sum(many * gap for many, *_, gap, _ in several)
    attending = sum(many for many, _, _, own_attention, *_ in several if own_attention >= 0.5)
    expected |= {"risk": risk, "floor": risk - excess, "excess": excess}
    expected |= {"patch_association": attending / parameters.P}
    expected |= {"A_g": naive[far][2], "gap_g": naive[far][3]}
    start = np.concatenate([row[0] for row in naive_rows(problem, problem.initial_state)])
    if local >= 0:
        ratios = (abs(of[remote] / of[own]) for of in (rates, start))
        expected |= dict(zip(("rho", "rho0"), ratios, strict=True))
        expected |= {"alpha_m": rates[own], "alpha_0": rates[remote]}
        expected |= {"Phi_m": state[own], "Phi_0": state[remote]}
        expected |= {"A_m": naive[local][2], "gap": naive[local][3]}
    others = {"Delta", "Delta_eff"} | (set() if local >= 0 else set(problem.order_names) | {"rho0"})
    assert seen.keys() - others == expected.keys() - others
    for name, value in expected.items():
        assert seen[name] == pytest.approx(value, rel=1e-12, abs=1e-12, nan_ok=True), name


def exact_row(problem, state, p):
    """Loss of row p, and its derivatives by Ups and Phi, by a loop over masks in mpmath."""
    ups, phi = entries(problem, state)
    with mpmath.workdps(30):
        loss, by_ups, by_phi, _ = masked.row(
            problem.parameters, p, list(map(mpmath.mpf, ups[p])), list(map(mpmath.mpf, phi[p])),
            mpmath.mpf, mpmath.exp,
        )  # fmt: skip
        return float(loss), list(map(float, by_ups)), list(map(float, by_phi))


@pytest.mark.parametrize("kind", KINDS)
def test_digits_against_mpmath(system, kind):
    parameters = system.Parameters(P=7, C_global=3, C_local=2, masked=3, z="0.5,1.5")
    problem = system.ReducedPopulation(parameters, kind)
    state = np.random.default_rng(3).normal(size=problem.layout.size) * 2
    own_ups, own_phi = entries(problem, problem.gradient(state))
    for p in (0, 6):
        _, by_ups, by_phi = exact_row(problem, state, p)
        for found, exact in zip([*own_ups[p], *own_phi[p]], [*by_ups, *by_phi], strict=True):
            assert found == pytest.approx(exact, rel=1e-13, abs=1e-16)


@pytest.mark.parametrize(("z", "spread"), [("1", 400.0), ("1,100", 20.0)])
def test_counts_are_right_where_a_mask_hides_the_heaviest_key(system, z, spread):
    """Without that key the denominator is less than e^-745 of it, or than its square root."""
    parameters = system.Parameters(P=8, C_global=2, C_local=2, masked=4, z=z)
    problem = system.ReducedPopulation(parameters, "counts")
    state = spread * np.random.default_rng(4).normal(size=problem.layout.size)
    own_ups, own_phi = entries(problem, problem.gradient(state))
    seen, floors = problem.observables(state), problem.rows.floors
    for name, row, floor in zip(problem.rows.names, problem.rows.types, floors, strict=True):
        p = int(row.patches[0])
        loss, by_ups, by_phi = exact_row(problem, state, p)
        assert seen[f"{name}_gap"] + floor == pytest.approx(loss, rel=1e-12)
        np.testing.assert_allclose(own_ups[p], by_ups, rtol=1e-10, atol=1e-14 * loss)
        np.testing.assert_allclose(own_phi[p], by_phi, rtol=1e-10, atol=1e-14 * loss)


def test_the_start_is_a_fraction_and_the_effective_exponent_that_of_rho(system):
    areas = "0,0,0,0,1,1,2,2;0,0,1,1,0,2,0,2"
    parameters = system.Parameters(family="custom", areas=areas, masked=4)
    for kind in KINDS:
        problem = system.ReducedPopulation(parameters, kind)
        assert problem.risk(problem.initial_state) == pytest.approx(93 / 56, rel=1e-15)
        seen = problem.observables(problem.initial_state)
        assert seen["floor"] == pytest.approx(16 / 35, rel=1e-14)
    parameters = system.Parameters(P=12, C_global=8, C_local=2, masked=3)
    exponent = np.log(system.ReducedPopulation(parameters).rho0) / np.log(12)
    assert exponent == pytest.approx(parameters.Delta_eff, abs=1e-13)


@pytest.mark.parametrize(("hidden", "spread"), [(1, 4000.0), (5, 30.0), (15, 400.0)])
def test_the_contour_reaches_its_end_where_keys_differ_by_more_than_a_double_holds(
    system, hidden, spread
):
    """Scores differ by up to 1e6; gradients are of the size of z^3 before terms cancel."""
    parameters = system.Parameters(P=16, C_global=8, C_local=4, masked=hidden, z="1,100")
    counts, contour = (system.ReducedPopulation(parameters, kind) for kind in KINDS)
    draw = np.random.default_rng(6).normal(size=counts.layout.size)
    for state in (spread * draw, spread * np.sign(draw)):
        assert contour.risk(state) == pytest.approx(counts.risk(state), rel=1e-11, abs=1e-8)
        assert np.abs(contour.gradient(state) - counts.gradient(state)).max() < 1e-5


def test_where_the_contour_ends_counts_are_named_at_once(system):
    parameters = system.Parameters(P=16, C_global=8, C_local=4)
    problem = system.ReducedPopulation(parameters, "contour")
    state = 1e11 * np.random.default_rng(1).normal(size=problem.layout.size)
    assert np.isnan(problem.gradient(state)).any()
    run = dynamics.descend(problem, eta=1.0, steps=1000, initial=state)
    assert (run.outcome.kind, run.outcome.step) == ("precision lost", 0)
    assert "try expectation='counts', or a smaller eta" in run.outcome.remedy
    assert problem.gradient_failure(problem.initial_state) == ""
    assert problem.gradient_failure(np.full(state.size, np.nan)) == ""
    counts = system.ReducedPopulation(parameters, "counts")
    assert np.isfinite(counts.gradient(state)).all()
    assert counts.gradient_failure(state) == ""


def test_what_is_dropped_is_negligible_and_the_rest_is_right():
    sizes, opened = (15, 512, 496), 512
    found, chances = masks.configurations(sizes, opened)
    assert found.shape[1] < 10_000
    assert chances.sum() == pytest.approx(1.0, abs=1e-15)
    for place in (0, 123, int(chances.argmax())):
        h = found[:, place].astype(int)
        ways = [comb(n, int(k)) for n, k in zip(sizes, h, strict=True)]
        exact = Fraction(ways[0] * ways[1] * ways[2], comb(sum(sizes), opened))
        assert chances[place] == pytest.approx(float(exact), rel=1e-13)


def test_the_cheaper_expectation_is_taken(system):
    grid = system.Parameters(family="two_cluster_grid", b11=32, b10=32, C_local=8, T=2)
    assert system.ReducedPopulation(grid).settings["expectation"] == "counts+contour"
    small = system.ReducedPopulation(system.Parameters(P=4096, C_global=2048, C_local=16))
    assert small.settings["expectation"] == "counts"
    with pytest.raises(InvalidRequest, match=r"expectation='counts' needs .* terms at P=224"):
        system.ReducedPopulation(grid, "counts")
    with pytest.raises(InvalidRequest, match="expectation='exact' is unknown"):
        system.ReducedPopulation(grid, "exact")


@pytest.mark.parametrize("index", [0, 2])
def test_states_read_together_are_read_as_each_alone(system, index):
    problem = system.ReducedPopulation(cases(system)[index])
    states = np.random.default_rng(index).normal(size=(4, problem.layout.size))
    for name, values in problem.observables_along(states).items():
        found = [problem.observables(state)[name] for state in states]
        np.testing.assert_array_equal(values, found, err_msg=name)


@pytest.mark.parametrize(
    "sizes",
    [
        {"P": 6, "C_global": 2, "C_local": 2, "masked": 3},
        {"P": 256}, {"P": 256, "C_global": 16, "C_local": 16, "masked": 192},
        {"P": 60, "C_global": 30, "C_local": 15, "z": "0.5,1.0,1.5", "odds": "0.2,0.5,0.3"},
    ],
)  # fmt: skip
def test_errors_are_within_their_estimate(system, sizes):
    """Of the contour by the sum over counts, whose own estimate is of rounding alone."""
    parameters = system.Parameters(**sizes)
    counts, contour = (system.ReducedPopulation(parameters, kind).expectation for kind in KINDS)
    draw, size = np.random.default_rng(1), counts.data.reading.shares.size
    for scale in (0.0, 0.5, 2.0, 10.0):
        state = scale * draw.normal(size=size)
        allowed = contour.error_estimate(state)["estimate"]
        assert np.abs(contour.gradient(state) - counts.gradient(state)).max() <= allowed[0] < 1e-11
        assert abs(contour.value(state) - counts.value(state)) <= allowed[-1] < 1e-9
        assert counts.error_estimate(state)["estimate"][0] < 1e-13


def test_a_coarse_contour_estimates_its_error(system):
    expectation = system.ReducedPopulation(cases(system)[0], "contour").expectation
    coarse = copy.deepcopy(expectation)
    coarse.data = coarse.data._replace(law=coarse.data.law._replace(step=6 * masks.STEP))
    state = np.random.default_rng(2).normal(size=expectation.data.reading.shares.size)
    error = np.abs(coarse.gradient(state) - expectation.gradient(state)).max()
    assert 1e-9 < error <= coarse.error_estimate(state)["estimate"][0] < 100 * error


@pytest.mark.long
@pytest.mark.parametrize("kind", KINDS)
@pytest.mark.parametrize("index", [0, 4])
def test_estimates_against_mpmath(system, kind, index):
    """At most one of 80 errors above its estimate, none tenfold; median within 1000 times."""
    problem = system.ReducedPopulation(cases(system)[index], kind)
    draw, ratios = np.random.default_rng(index), []
    for scale in np.geomspace(0.1, 30.0, 40):
        state = scale * draw.normal(size=problem.layout.size)
        of_gradient, *_, of_risk = problem.expectation.error_estimate(state)["estimate"]
        found_ups, found_phi = entries(problem, problem.gradient(state))
        risk, error = 0.0, 0.0
        for row in problem.rows.types:
            p = int(row.patches[0])
            loss, by_ups, by_phi = exact_row(problem, state, p)
            risk += row.patches.size * loss
            error = max(error, np.abs(found_ups[p] - by_ups).max())
            error = max(error, np.abs(found_phi[p] - by_phi).max())
        ratios += [error / of_gradient, abs(problem.risk(state) - risk) / of_risk]
    assert max(ratios) < 10
    assert sum(ratio > 1 for ratio in ratios) <= 1
    assert np.median(ratios) > 1e-3


def test_an_event_that_rounding_decides_does_not_hold_up_a_flow(system):
    """The rates of Phi_m and Phi_0 are equal at the start: no stretch tells when they part."""
    parameters = system.Parameters(family="custom", areas="0,0,1,1;0,1,1,0", masked=2)
    runs = [dynamics.flow(system.ReducedPopulation(parameters, kind), time=500) for kind in KINDS]
    for name in ("E4", "E4p"):
        assert runs[1].events[name].time == pytest.approx(runs[0].events[name].time, rel=1e-6)
    np.testing.assert_allclose(runs[1].final_state, runs[0].final_state, rtol=1e-7)
