"""Portraits and basins of fields that are known, and of the real problem."""

from pathlib import Path

import numpy as np
import pytest
from scalars import Scalars, wells
from scipy.optimize import brentq

import dynamics
from dynamics.analysis.phase_portrait import basins, portrait
from dynamics.analysis.phase_portrait.basins import ends_of
from dynamics.analysis.phase_portrait.elimination import along_run
from dynamics.cli import main
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
    field = lambda u, x, y: (1e3 * (u - x), x**3 - u, y)  # noqa: E731
    found = portrait(
        Scalars(("u", "x", "y"), field, (0.5, 0.1, 1.0)), 20.0, box=BOX, starts=0, grid=8
    )
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
        portrait(wells(), 1.0, **arguments)


def test_one_scalar_and_a_plane_that_a_conserved_law_ties_are_refused():
    """The values of the sink keep their sum: with one at rest the other is."""
    with pytest.raises(InvalidRequest, match="plane="):
        portrait(Scalars(("x",), lambda x: (x,), (1.0,)), 1.0)
    system = dynamics.load_system("attention_sink")
    problem = system.ReducedPopulation(system.Parameters())
    with pytest.raises(InvalidRequest, match="conservation laws tie them"):
        portrait(problem, 3000.0, ("a", "b_c"), grid=8)


UNIT = ((-1.0, 1.0), (-1.0, 1.0))


def divided(ends, count=10, box=UNIT):
    return basins(ends, box, (0, 1), count)


def area(line):
    x, y = line[:-1].T
    return float(np.sum(x * np.roll(y, -1) - np.roll(x, -1) * y)) / 2


def test_an_end_that_depends_continuously_on_the_start_is_one_basin():
    """Its slope of 300 is far above that of a grid of one to one."""
    (one,) = divided(lambda points: points * [300.0, 1.0])
    assert one.starts == 100
    assert sum(map(area, one.outline)) == pytest.approx(4.0)
    assert not one.separatrices


def test_a_jump_is_found_where_it_is():
    def ends(points):
        x, y = points.T
        return np.stack([np.where(x > 0.3 * y + 0.1, 1.0, -1.0), y], axis=1)

    first, second = divided(ends)
    (line,) = first.separatrices
    np.testing.assert_allclose(line[:, 0], 0.3 * line[:, 1] + 0.1, atol=1e-7)
    assert np.ptp(line[:, 1]) == pytest.approx(2.0)
    assert not second.separatrices
    assert area(first.outline[0]) == pytest.approx(2.2)
    assert area(second.outline[0]) == pytest.approx(1.8)


def test_a_jump_beside_a_larger_continuous_change_is_found():
    """Ends change by 3 on the steep side of each jump of 1."""

    def ends(points):
        x, y = points.T
        return np.stack([np.where(x > 0.02, 1.0, 0.0) + 30 * np.clip(x - 0.02, 0, 0.1), y], axis=1)

    first, _ = divided(ends)
    np.testing.assert_allclose(first.separatrices[0][:, 0], 0.02, atol=1e-7)


def test_a_basin_may_have_a_hole_and_lie_in_two_pieces():
    def ends(points):
        size = np.hypot(*points.T)
        ring = (size > 0.4) & (size < 0.8)
        return np.stack([np.where(ring, 1.0, 0.0), np.zeros(len(points))], axis=1)

    found = divided(ends, 40)
    assert len(found) == 2
    ring = next(basin for basin in found if basin.ends[0, 0] == 1.0)
    other = next(basin for basin in found if basin.ends[0, 0] == 0.0)
    assert sum(map(area, ring.outline)) == pytest.approx(np.pi * (0.64 - 0.16), rel=0.01)
    assert sum(map(area, other.outline)) == pytest.approx(4 - np.pi * (0.64 - 0.16), rel=0.01)


def test_starts_that_end_nowhere_are_a_basin():
    def ends(points):
        return np.where(points[:, :1] > 0.05, np.nan, points)

    found = divided(ends)
    nowhere = [basin for basin in found if not np.isfinite(basin.ends).all()]
    assert [basin.starts for basin in nowhere] == [50]
    (line,) = [line for basin in found for line in basin.separatrices]
    np.testing.assert_allclose(line[:, 0], 0.05, atol=1e-7)


def test_two_wells_are_divided_by_the_saddle():
    """A third scalar is drawn to x fast, and x is pushed by it."""

    def risk(theta, xp):
        x, y, u = theta["z"]
        return x**4 / 4 - u**2 / 2 + y**2 / 2 + 500 * (u - x) ** 2

    system = dynamics.Model(start=lambda: {"z": np.array([0.1, 1.0, 0.5])}, risk=risk)
    problem = system.ReducedPopulation(system.Parameters())
    found = portrait(problem, 30.0, ("z_0", "z_1"), BOX, starts=0, grid=8, basin_starts=6)
    ends = sorted(float(np.median(basin.ends[:, 0])) for basin in found.basins)
    np.testing.assert_allclose(ends, (-1.0, 1.0), rtol=2e-3)
    (line,) = [line for basin in found.basins for line in basin.separatrices]
    np.testing.assert_allclose(line[:, 0], 0.0, atol=1e-6)


def test_a_flow_that_diverges_ends_nowhere():
    away = Scalars(("x", "y"), lambda x, y: (x - x**3, y), (0.1, 0.1))
    found = ends_of(away, lambda x, y: np.array([x, y]), 50.0)(np.array([[0.5, 0.3], [1.5, 0.3]]))
    np.testing.assert_allclose(found[0], 0.0, atol=1e-6)
    assert np.isnan(found[1]).all()


MODEL = """
def start(x=0.1):
    return {"u": [x], "w": [0.5]}


def risk(theta, xp):
    return (theta["u"][0] ** 2 - 1) ** 2 / 4 + theta["w"][0] ** 2
"""


def test_a_window_on_the_command_line_draws_basins(tmp_path, monkeypatch, capsys):
    monkeypatch.chdir(tmp_path)

    def drawn(*words):
        quick = ("--out", "plane.png", "--option", "grid=4", "--option", "starts=0")
        return main(["figure", "mine.py", "plane", *quick, *words]), capsys.readouterr()

    Path("mine.py").write_text(MODEL.replace("x=0.1", "a=0.1").replace("[x]", "[a]"))
    code, told = drawn("--x", "-.9:2", "--y", "-1:1", "--basins", "6")
    assert (code, told.err) == (0, "")
    assert "2 basins of the starts of a grid" in told.out
    code, told = drawn("--plane", "w_0,u_0")
    assert (code, "basin" in told.out) == (0, False)
    for words, refusal in {
        ("--x", "3"): "x='3' is not a window",
        ("--x", "3:-3"): "x='3:-3' is not a window",
        ("--plane", "u_0"): "is not a plane of the state",
        ("--basins", "3"): "basin_starts=3",
    }.items():
        code, told = drawn(*words)
        assert (code, refusal in told.err) == (2, True), told.err
    Path("mine.py").write_text(MODEL)  # its constant x keeps the flag
    code, told = drawn("--x", "0.2", "--option", "y=-1:1", "--option", "basins=4")
    assert (code, told.err) == (0, "")
