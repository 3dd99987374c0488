"""Slices beside loops over the points of a sweep."""

import numpy as np
import pytest
from sweeps import CONVERGED, DIVERGED, HORIZON, OSCILLATING, sweep

from dynamics.phase_diagrams import Axis, Quantity, boundary, select
from dynamics.validation import InvalidRequest

QS, NUS = [0.1, 0.3, 0.2], [1e-4, 1e-3, 1e-2, 1e-1]


def t1(q, nu, **_):
    return np.nan if q < 0.15 and nu > 5e-3 else 100 * q / nu


def ends(q, nu, **_):
    if nu == 1e-1:
        return {0.1: DIVERGED, 0.2: -1, 0.3: -2}[q]
    return OSCILLATING if (q, nu) == (0.3, 1e-2) else HORIZON


@pytest.fixture
def grid():
    variables = {"time_T1": t1, "risk": lambda q, nu, **_: q * nu}
    return sweep({"q": QS, "p": [3], "nu": NUS}, variables, ends, derived={"two": "q**2"})


def test_a_slice_has_every_value_at_its_place(grid):
    found = select(grid, "risk", "q", "nu")
    np.testing.assert_array_equal(found.x.values, sorted(QS))
    assert (found.values.shape, found.facet) == ((1, 4, 3), None)
    for row, column in np.ndindex(4, 3):
        q, nu = found.x.values[column], found.y.values[row]
        value, outcome = found.values[0, row, column], ends(q, nu)
        assert found.outcome[0, row, column] == outcome
        assert value == q * nu if outcome == HORIZON else np.isnan(value)
    assert found.held == {"p": 3.0, "beta": 1.0, "time": 1e5}
    assert found.derived == {"two": "q**2"}
    turned = select(grid, "risk", "nu", "q")
    np.testing.assert_array_equal(turned.values[0].T, found.values[0])
    line = select(grid, "risk", "nu", at={"q": 0.2 * (1 + 1e-12)})
    np.testing.assert_array_equal(line.values[0, 0], found.values[0, :, 1])
    assert line.held["q"] == 0.2


def test_yes_and_no_know_what_is_not_known(grid):
    found = select(grid, "reached(T1)", "q", "nu").values[0]
    np.testing.assert_array_equal(found[:, 0], [1, 1, 0, np.nan])
    np.testing.assert_array_equal(found[3], [np.nan] * 3)
    early = select(grid, "time_T1 < 5e4", "q", "nu").values[0]
    late = select(grid, "time_T1>=5e4", "q", "nu").values[0]
    np.testing.assert_array_equal(early[:, 0], [0, 1, 0, np.nan])
    np.testing.assert_array_equal(late[:3], 1 - early[:3])
    assert early[2, 2] == 1
    small = select(grid, "risk<2e-4", "q", "nu").values[0]
    np.testing.assert_array_equal(small[:, 2], [1, 0, np.nan, np.nan])


@pytest.mark.parametrize(
    ("relation", "answer"), [("<", 0), ("<=", 1), (">", 0), (">=", 1), ("==", 1), ("!=", 0)]
)
def test_every_relation(relation, answer):
    grid = sweep({"q": [0.5]}, {"risk": 0.25})
    assert Quantity.read(f" risk {relation} 2.5e-1", grid).of(grid) == answer


def test_a_horizon_decides_nothing_about_later_times():
    ends = {0.1: 200.0, 0.2: 2e4, 0.3: 200.0, 0.4: 200.0}
    grid = sweep(
        {"q": list(ends)},
        {"time_T1": lambda q: 150.0 if q == 0.4 else np.nan, "end_time": lambda q: ends[q]},
        lambda q: CONVERGED if q == 0.3 else HORIZON,
    )

    def answers(text):
        return Quantity.read(text, grid).of(grid).tolist()

    unknown = pytest.approx(np.nan, nan_ok=True)
    assert answers("time_T1<1e4") == [unknown, 0, 0, 1]
    assert answers("time_T1>=1e4") == [unknown, 1, 1, 0]
    assert answers("time_T1<=200") == [0, 0, 0, 1]
    assert answers("reached(T1)") == [0, 0, 0, 1]
    assert select(grid, "time_T1<1e4", "q").values[0, 0].tolist() == [unknown, 0, 0, 1]


def test_seeds_are_a_median_and_a_share():
    times = {0: 1.0, 1: 5.0, 2: np.nan, 3: 3.0, 4: np.nan}
    grid = sweep(
        {"seed": list(times), "q": [0.1, 0.2]},
        {"time_T1": lambda seed, q: times[seed], "risk": lambda seed, q: seed * q},
        lambda seed, q: CONVERGED if q == 0.1 else [DIVERGED, HORIZON, DIVERGED, -1, 3][seed],
    )  # fmt: skip
    found = select(grid, "time_T1", "q")
    assert found.seeds == 5
    np.testing.assert_array_equal(found.values[0, 0], [5.0, 3.0])  # late: not reached; 1 and 5
    np.testing.assert_array_equal(found.low[0, 0], [1.0, 1.0])
    np.testing.assert_array_equal(found.high[0, 0], [np.nan, 5.0])
    np.testing.assert_array_equal(found.outcome[0, 0], [CONVERGED, DIVERGED])
    share = select(grid, "reached(T1)", "q").values[0, 0]
    np.testing.assert_array_equal(share, [0.6, 1.0])
    one = select(grid, "risk", "q", at={"seed": 3})
    np.testing.assert_array_equal(one.values[0, 0], [3 * 0.1, np.nan])
    assert (one.seeds, one.held["seed"]) == (0, 3.0)
    facets = select(grid, "risk", "q", facet="seed").values
    np.testing.assert_array_equal(facets[3], one.values[0])


@pytest.mark.parametrize(
    ("request_", "message"),
    [
        (("rsk", "q", "nu"), "quantity='rsk' is not in the dataset.*time_T1.*nearest: risk"),
        (("reached(T2)", "q", "nu"), "quantity='T2' is not an event .*; quantity can be T1"),
        (("risk<=x", "q", "nu"), "compares with x, which is not a number"),
        (("risk<nan", "q", "nu"), "compares with nan, which is not a number"),
        (("risk", "Q", "nu"), "x='Q' is not an axis of the sweep; x can be q, p, nu"),
        (("risk", "q", "q"), "two axes at once"),
        (("risk", "q"), "at has no nu, which the sweep varies.*nu = 0.0001, 0.001, 0.01, 0.1"),
        (("risk", "q", None, {"nu": 2e-3}), "at nu=0.002 is not in the sweep.*nearest: 0.001"),
        (("risk", "q", None, {"mu": 2e-3}), "at='mu' is not an axis of the sweep.*nearest: nu"),
        (("risk", "q", "nu", {"q": 0.1}), "at q=0.1 fixes the x axis"),
    ],
)
def test_what_is_not_there_is_refused_in_one_line(grid, request_, message):
    with pytest.raises(InvalidRequest, match=message) as caught:
        select(grid, *request_)
    assert "\n" not in str(caught.value)


def test_boundaries_lie_half_way_and_not_where_nothing_is_known(grid):
    lines = boundary(select(grid, "time_T1<5e4", "nu", "q"))
    assert len(lines) == 2
    assert min(line[:, 0].min() for line in lines) == pytest.approx(np.sqrt(1e-4 * 1e-3))
    values = select(grid, "time_T1<5e4", "nu", "q").values[0]
    known = np.isfinite(values)
    crossed = sum(
        values[a] != values[b]
        for a in np.ndindex(values.shape) for b in ((a[0], a[1] + 1), (a[0] + 1, a[1]))
        if b[0] < 3 and b[1] < 4 and known[a] and known[b]
    )  # fmt: skip
    assert sum(map(len, lines)) == crossed
    pairs = sweep({"point": [0, 1]}, {"q": 0.5, "risk": 1.0})
    for request, message in (
        (lambda: boundary(select(grid, "risk", "nu", "q")), "has no boundary"),
        (lambda: boundary(select(grid, "risk<1", "nu", at={"q": 0.1})), "second axis"),
        (lambda: select(grid.drop_vars("outcome"), "risk", "q", "nu"), "no variable 'outcome'"),
        (lambda: select(pairs, "risk", "q"), "x='q' needs an unpaired sweep"),
    ):
        with pytest.raises(InvalidRequest, match=message):
            request()


@pytest.mark.parametrize("corner", [[[0, 0], [1, 1]], [[1, 0], [0, 1]]])
def test_two_lines_in_one_cell_join_the_yes_corners(corner):
    no = [tuple(place) for place in corner]
    grid = sweep({"m": [0, 1], "n": [0, 1]}, {"risk": lambda m, n: (m, n) not in no})
    lines = boundary(select(grid, "risk>=1", "m", "n"))
    cut = [np.abs(np.array(corner) - line.mean(axis=0)).sum(axis=1).round(2) for line in lines]
    assert sorted(map(tuple, cut)) == [(0.5, 1.5), (1.5, 0.5)]


def test_axes_know_whether_they_are_geometric():
    for values, expected in (
        ([1, 2, 5, 10, 20], True), (np.geomspace(1, 8, 4), True), (np.linspace(0.1, 1, 10), False),
        ([0, 1, 10], False), ([1, 10], True), ([1, 2], False), ([5], False), ([1, 2, 3], False),
    ):  # fmt: skip
        axis = Axis.of("q", values)
        assert axis.logarithmic == expected
        np.testing.assert_allclose(axis.at(axis.index(axis.values)), axis.values, rtol=1e-14)
        assert (np.diff(axis.edges) > 0).all()
        assert len(axis.edges) == len(axis.values) + 1
        np.testing.assert_array_equal(
            np.searchsorted(axis.edges, axis.values), np.arange(len(values)) + 1
        )
