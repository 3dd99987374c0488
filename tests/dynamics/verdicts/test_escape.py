"""Escape times against a known rate and with a wrong one; regions on a Markov chain."""

import numpy as np
import pytest

import dynamics
from dynamics.verdicts.cases import Case
from dynamics.verdicts.draw import draw
from dynamics.verdicts.findings import Protocol, Undecided
from dynamics.verdicts.library import escape
from dynamics.verdicts.library.markov_attention import is_good, separatrix
from dynamics.verdicts.library.merged_staircase import escapes as of_the_leap


def of_rate(rate):
    """Two entries that stay equal; their difference grows as exp(rate * time)."""

    def start():
        return {"w": np.zeros(2)}

    def risk(theta, xp):
        w = theta["w"]
        return ((w[0] + w[1]) / 2 - 1) ** 2 - rate * (w[0] - w[1]) ** 2 / 4

    return dynamics.Model(start=start, risk=risk)


@pytest.mark.parametrize("rate", [0.2, 2.0])
def test_times_are_those_of_the_exponential(rate):
    system = of_rate(rate)
    found = escape.escapes(system, system.Parameters(), 40.0 / rate)
    expected = np.log(escape.AWAY / np.array(escape.OFFSETS)) / rate
    np.testing.assert_allclose(found["times"], expected, rtol=1e-5)
    assert found["rate"] == pytest.approx(rate, rel=1e-12)
    assert found["decade"] == pytest.approx(np.log(10) / rate, rel=1e-5)
    assert found["bend"] < 1e-5


def test_before_the_escape_nothing_is_decided():
    system = of_rate(0.2)
    case = Case(system, system.Parameters())
    with pytest.raises(Undecided, match="does not leave the classes before time 5"):
        escape.measured(case, 5.0)
    system = dynamics.load_system("merged_staircase")
    (verdict,) = dynamics.verify(system, system.Parameters(target="parity"), ["Escape"])
    assert verdict.finding.word == "not decidable under this law"


@pytest.mark.long
def test_the_leap_escapes_at_its_rate_and_not_at_another(monkeypatch):
    system = dynamics.load_system("merged_staircase")
    (verdict,) = dynamics.verify(system, claims=["Escape"])
    (row,) = verdict.evidence["table"]
    assert verdict.word == "holds"
    assert row["decade"] == pytest.approx(35.1, abs=0.2)
    assert row["rate"] == pytest.approx(0.0669, abs=1e-4)
    escape._escapes.cache_clear()
    curvature = escape.least_curvature
    monkeypatch.setattr(escape, "least_curvature", lambda *state: 1.2 * curvature(*state))
    assert of_the_leap(system, Protocol()).holds is False


SYSTEM = dynamics.load_system("markov_attention")


def test_the_sides_are_those_of_the_published_regions():
    below, above = SYSTEM.Parameters(), SYSTEM.Parameters(p=0.9, q=0.9)
    w = np.array([-1.5, -1.5, -0.5, -0.5, 0.5])
    e = np.array([0.998, 1.0, 0.1, 2.0, 0.1])
    np.testing.assert_array_equal(is_good(w, e, below), [False, True, True, True, True])
    np.testing.assert_array_equal(is_good(w, e, above), [True, True, False, True, False])
    assert separatrix(np.array([-1.5]))[0] == pytest.approx(0.998980, abs=1e-6)


@pytest.mark.long
def test_the_boundary_of_the_figure_is_the_separatrix():
    drawing = draw("markov_attention", "regions", options={"starts": 10})
    w, e = drawing.data["separatrices_0.1_0.1"].T
    curve = w < -0.8
    assert curve.sum() > 8
    np.testing.assert_allclose(np.abs(e[curve]), separatrix(w[curve]), rtol=1e-5)
    labels = [text.get_text() for text in drawing.axes[0].figure.legends[0].get_texts()]
    assert {"ends at global minima", "ends at local minima", "separatrix"} <= set(labels)
