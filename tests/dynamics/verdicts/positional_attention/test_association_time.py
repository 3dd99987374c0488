"""The law of T1: rows of flows, the fitted exponents, the picture."""

import numpy as np
import pytest

import dynamics
from dynamics.verdicts.figure import draw
from dynamics.verdicts.positional_attention import flow_figures
from dynamics.verdicts.positional_attention.flow_figures import FALLING, FIXED

SYSTEM = dynamics.load_system("positional_attention")
OPTIONS = {"D": [16, 20, 24], "means": [3.0, 5.0], "time": 1e7}


@pytest.fixture(scope="module")
def drawing():
    return draw(SYSTEM, "T1", options=OPTIONS, user_parameters={"C": 2})


def test_every_row_is_t1_of_its_flow(drawing):
    rows = drawing.data["rows"]
    assert len(rows) == 12
    for row in rows[:2] + rows[-2:]:
        nu = 1e-3 if row["case"] == FIXED else row["D"] ** -2.0
        given = {name: row[name] for name in ("D", "C", "q")} | {"nu": nu}
        run = dynamics.flow(SYSTEM.ReducedPopulation(SYSTEM.Parameters(**given)), 1e7)
        assert row["q"] * (row["D"] - row["C"]) == pytest.approx(row["mean"])
        assert row["T1"] == run.events["T1"].time


def test_exponents_are_those_of_least_squares_in_logarithms(drawing):
    for case in (FIXED, FALLING):
        own = [row for row in drawing.data["rows"] if row["case"] == case]
        x = np.log([(np.e, row["D"], row["mean"]) for row in own])
        fitted, *_ = np.linalg.lstsq(x, np.log([row["T1"] for row in own]))
        law = drawing.data["laws"][case]
        np.testing.assert_allclose(law["exponents"], fitted[1:], rtol=1e-9)
        (low, high), a = law["intervals"][0], law["exponents"][0]
        assert low < a < high
        assert f"a={a:.2f} ({low:.2f} to {high:.2f})" in drawing.caption


def test_flows_that_do_not_reach_t1_are_left_out():
    short = draw(SYSTEM, "T1", options=OPTIONS | {"time": 1.0}, user_parameters={"C": 2})
    assert all(np.isnan(row["T1"]) for row in short.data["rows"])
    assert "12 of 12 flows do not reach T1" in short.caption
    assert np.isnan(short.data["laws"][FIXED]["exponents"]).all()


def test_a_panel_has_points_law_and_rate_of_every_mean(drawing):
    left, right = drawing.axes
    assert len(left.lines) == len(right.lines) == 3 * len(OPTIONS["means"])
    assert flow_figures.LATEST >= 1e9
