"""Pictures of sweeps, checked through the data of their artists."""

import numpy as np
import pytest
from matplotlib.collections import LineCollection, QuadMesh
from matplotlib.colors import LogNorm
from sweeps import sweep

from dynamics import plotting
from dynamics.phase_diagrams import Axis, scaling, select
from dynamics.plotting import captions, labels, style
from dynamics.plotting.labels import CellAxis
from dynamics.validation import InvalidRequest
from theory.papers.positional_attention.notation import NOTATION

QS, CS = np.linspace(0.1, 0.9, 9), [2, 4, 8]
NUS = np.geomspace(1e-5, 1e-1, 9)
ENDS = {"invalid": -2, "pending": -1, "oscillating": 2, "diverged": 3, "lost": 4, "killed": 6}


def outcome(q, nu, C=4):
    if C == 8 and q < 0.25:
        return ENDS["invalid"]
    if nu > 5e-2:
        return ENDS["diverged"] if q > 0.5 else ENDS["pending"]
    return ENDS["killed"] if q > 0.85 and nu < 2e-5 else 1


def time(q, nu, C=4):
    return np.nan if q > 0.75 else 1e3 * C * q / nu**0.3


def risk(q, nu, C=4):
    return q * nu * C


@pytest.fixture(scope="module")
def grid():
    variables = {"time_T1": time, "risk": risk, "rho": lambda q, nu, C: q - 0.5}
    return sweep({"q": QS, "nu": NUS, "C": CS}, variables, outcome, {"D": 16, "time": 1e5})


@pytest.fixture(scope="module")
def panel(grid):
    return plotting.phase(select(grid, "time_T1", "q", "nu", at={"C": 4}))


def meshes(axes):
    return [each for each in axes.collections if type(each) is QuadMesh]


def legend(axes):
    return [text.get_text() for key in axes.figure.legends for text in key.get_texts()]


def test_every_value_is_in_its_cell_with_a_logarithmic_colour(grid, panel):
    found, drawn = select(grid, "time_T1", "q", "nu", at={"C": 4}), meshes(panel)[0]
    np.testing.assert_array_equal(drawn.get_array().filled(np.nan), found.values[0])
    corners = drawn.get_coordinates()
    assert corners[0, 0, 0] < 0.1 < corners[0, 1, 0]
    assert corners[0, 0, 1] < 1e-5 < corners[1, 0, 1]
    assert isinstance(drawn.norm, LogNorm)
    assert drawn.get_clim() == (np.nanmin(found.values), np.nanmax(found.values))
    assert (panel.get_yscale(), panel.get_ylabel()) == ("log", r"$\nu$")
    assert panel.get_title(loc="left") == "$D = 16$, up to time $10^{5}$, $C = 4$"


def test_every_cell_without_a_value_says_why(grid, panel):
    found = select(grid, "time_T1", "q", "nu", at={"C": 4})
    grey = meshes(panel)[1].get_array().filled(0) == 1
    np.testing.assert_array_equal(grey, np.isnan(found.values[0]) & (found.outcome[0] == 1))
    marks = {line.get_label(): line for line in panel.lines}
    for word, code in (("diverged", 3), ("killed its worker", 6), ("not computed yet", -1)):
        rows, columns = np.nonzero(found.outcome[0] == code)
        np.testing.assert_array_equal(marks[word].get_xdata(), found.x.values[columns])
        np.testing.assert_array_equal(marks[word].get_ydata(), found.y.values[rows])
    assert legend(panel) == ["not reached", "diverged", "killed its worker", "not computed yet"]


def test_few_whole_numbers_are_categories(grid):
    axes = plotting.phase(select(grid, "risk", "C", "q", at={"nu": NUS[2]}))
    assert [tick.get_text() for tick in axes.get_xticklabels()] == ["2", "4", "8"]
    np.testing.assert_array_equal(axes.get_xticks(), [0, 1, 2])
    np.testing.assert_array_equal(meshes(axes)[0].get_coordinates()[0, :, 0], [-0.5, 0.5, 1.5, 2.5])
    place = CellAxis(Axis.of("C", [2, 4, 8]))
    np.testing.assert_allclose(place.at([2, np.sqrt(32), 8]), [0, 1.5, 2])


def test_yes_and_no_have_two_colours_and_a_share_a_scale(grid):
    axes = plotting.phase(select(grid, "reached(T1)", "q", "nu", at={"C": 4}))
    assert legend(axes)[:2] == ["$T_1$ reached", "otherwise"]
    assert set(meshes(axes)[0].get_array().compressed()) == {0.0, 1.0}
    seeds = sweep({"q": QS, "nu": NUS, "seed": [0, 1, 2]},
                  {"risk": lambda q, nu, seed: float(q > 0.2 * seed)})  # fmt: skip
    axes = plotting.phase(select(seeds, "risk>=1", "q", "nu"))
    assert meshes(axes)[0].get_clim() == (0, 1)
    assert "share of 3 seeds" in axes.figure.axes[1].get_ylabel()


def test_a_boundary_runs_along_the_sides_of_cells(grid):
    asked = select(grid, "risk<1e-3", "q", "nu", at={"C": 4})
    axes = plotting.phase(select(grid, "risk", "q", "nu", at={"C": 4}), boundary=asked)
    (sides,) = [each for each in axes.collections if isinstance(each, LineCollection)]
    values, x, y = asked.values[0], asked.x.edges, asked.y.edges
    expected = set()
    for r, c in np.ndindex(values.shape):
        for other, side in (((r, c + 1), ((c + 1, r), (c + 1, r + 1))),
                            ((r + 1, c), ((c, r + 1), (c + 1, r + 1)))):  # fmt: skip
            inside = other[0] < values.shape[0] and other[1] < values.shape[1]
            if inside and {values[r, c], values[other]} == {0.0, 1.0}:
                expected.add(tuple((x[i], y[j]) for i, j in side))
    assert {tuple(map(tuple, segment)) for segment in sides.get_segments()} == expected
    assert r"boundary: population risk $R$ $< 10^{-3}$" in legend(axes)


def test_contours_are_where_the_values_are(grid):
    found = select(grid, "time_T1", "q", "nu", at={"C": 2})
    axes = plotting.phase(select(grid, "risk", "q", "nu", at={"C": 2}), contours=[found])
    drawn = next(each for each in axes.collections if hasattr(each, "levels"))
    assert set(drawn.levels) <= {1e4, 1e5, 1e3}
    for level, path in zip(drawn.levels, drawn.get_paths(), strict=True):
        for q, nu in path.vertices:
            assert time(q, nu, 2) == pytest.approx(level, rel=0.3)
    assert "time $T_1$" in legend(axes)


def test_what_does_not_lie_over_the_same_axes_is_refused(grid):
    found = select(grid, "risk", "q", "nu", facet="C")
    with pytest.raises(InvalidRequest, match="slice drawn over risk has"):
        plotting.phase(found, contours=[select(grid, "risk", "nu", "q", facet="C")])
    with pytest.raises(InvalidRequest, match="has no boundary"):
        plotting.phase(found, boundary=found)


def test_slices_are_lines_and_a_strip_says_what_is_missing(grid):
    found = select(grid, "time_T1", "q", "C", at={"nu": NUS[8]})
    axes = plotting.slices(found)
    for k, line in enumerate(axes.lines):
        np.testing.assert_array_equal(line.get_ydata(), found.values[0, k])
    drawn, colours = {}, [line.get_color() for line in axes.lines]
    for line in axes.figure.axes[1].lines:
        drawn.setdefault(line.get_label(), []).append((line.get_color(), list(line.get_xdata())))
    assert set(drawn) == {"diverged", "not computed yet", "not valid"}
    late = [q for q in QS if q > 0.5]
    assert drawn["diverged"] == [(colour, late) for colour in reversed(colours)]
    assert drawn["not valid"][0] == (colours[2], list(QS[:2]))  # from below


def test_scaling_divides_the_other_factors_out(grid):
    found = scaling(grid, "time_T1", ["nu", "C*q"])
    axes = plotting.scaling(found)
    np.testing.assert_array_equal(axes[0].lines[0].get_xydata().T, [found.fitted, found.measured])
    q = found.levels[:, 1]
    np.testing.assert_allclose(axes[2].lines[0].get_ydata(), 1e3 * q, rtol=1e-9)
    x, y = axes[1].lines[1].get_xydata().T
    np.testing.assert_allclose(np.diff(np.log(y)) / np.diff(np.log(x)), -0.3)
    assert axes[2].get_xlabel() == r"$C\,q$"
    assert f"{found.used} runs; left out" in axes[0].figure.get_suptitle()


def test_words_are_those_of_the_notation_table():
    assert labels.label(NOTATION, "samples") == "samples $N$"
    assert labels.formula(NOTATION, "nu*(D-C)**2 % samples") == r"\nu\,(D-C)^{2} \% N"
    shown = [style.number(v) for v in (0.5, 1e5, 2e-7, -1e-3, 1234.0, 0.0, 196, 0.0815)]
    assert shown == ["0.5", "10^{5}", r"2 \times 10^{-7}", "-10^{-3}", "1234", "0", "196", "0.0815"]
    held = {"p": 3, "expectation": "auto", "d": None}
    words = captions.fixed(NOTATION, held, {"q": "m/(D-C)"}, 6.0, 4)
    assert words == "$p = 3$, expectation auto, $q = m/(D-C)$, median of 4 seeds"


def test_a_sweep_with_nothing_computed_can_be_drawn(tmp_path):
    empty = sweep({"q": QS, "nu": NUS}, {"risk": np.nan}, -1)
    axes = plotting.phase(select(empty, "risk", "q", "nu"))
    assert legend(axes) == ["not computed yet"]
    assert plotting.write(axes, tmp_path / "empty.png").exists()
    assert plotting.write(plotting.slices(select(empty, "risk", "q", "nu")), tmp_path / "e.svg")
