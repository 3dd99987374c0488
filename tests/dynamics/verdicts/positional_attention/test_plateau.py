"""The end of training against the sign at the plateau of Event I: claim, grid and figure."""

import dataclasses

import numpy as np
import pytest

import dynamics
from dynamics.verdicts.figure import draw
from dynamics.verdicts.positional_attention import plateau
from dynamics.verdicts.positional_attention.plateau import MORE, ending, plateau_of, prediction

SYSTEM = dynamics.load_system("positional_attention")
SMALL = SYSTEM.Parameters(D=8, C=2, q=0.3)


def verdict(parameters, system=SYSTEM):
    (found,) = dynamics.verify(system, parameters, ["Association"])
    return found


@pytest.mark.parametrize(
    "given",
    [
        {"D": 16, "q": 0.7},
        {"D": 12, "C": 3, "q": 0.9, "beta": 3.0, "nu": 0.1},
        {"D": 12, "q": 0.6, "random_sets": "mixed", "p": 5, "scale": 0.5},
    ],
)
def test_rates_at_the_plateau_are_gradients_of_the_exact_expectation(given):
    parameters = SYSTEM.Parameters(**given)
    problem = SYSTEM.ReducedPopulation(parameters, "exact")
    one = prediction(parameters)
    for alpha in (one["alpha"], 0.05):
        slopes = problem.gradient(np.array([alpha, 0.0, 0.0]))
        found = plateau_of(parameters)
        assert found.rate(alpha) == pytest.approx(-slopes[0], rel=1e-12, abs=1e-13)
        assert found.lead(alpha) == pytest.approx(slopes[2] - slopes[1], rel=1e-12, abs=1e-15)
    assert abs(problem.gradient(np.array([one["alpha"], 0.0, 0.0]))[0]) < 1e-13


class Run(dict):
    """gamma and rho over time."""

    def __init__(self, **series):
        super().__init__(series)
        self.time, self.parameters = np.geomspace(1.0, 1e7, 8), {"scale": 1.0}


@pytest.mark.parametrize(
    ("gamma", "rho", "associated"),
    [(1.0, -8.0, True), (-9.0, -0.3, False), (0.2, 0.1, None), (-0.1, 0.3, None)],
)
def test_a_flow_has_ended_where_one_of_them_is_on_top(gamma, rho, associated):
    run = Run(gamma=np.linspace(0, gamma, 8), rho=np.linspace(0, rho, 8))
    assert ending(run) == {"gamma": gamma, "rho": rho, "associated": associated}


def test_a_flow_that_changes_sides_in_its_last_decade_is_open():
    run = Run(gamma=np.array([0.0] * 6 + [-1.0, 5.0]), rho=np.zeros(8))
    assert ending(run)["associated"] is None


@pytest.mark.parametrize(("q", "associated"), [(0.3, True), (0.9, False)])
def test_both_ends_are_predicted(q, associated):
    found = verdict(dataclasses.replace(SMALL, q=q))
    (row,) = found.evidence["table"]
    assert found.holds is True
    assert (row["associated"], row["lead"] > 0) == (associated, associated)
    assert "misses: none" in found.evidence["reason"]


def test_a_case_that_ends_otherwise_contradicts_and_is_named(monkeypatch):
    monkeypatch.setattr(plateau, "prediction", lambda _: {"alpha": 0.1, "lead": -1e-3})
    found = verdict(SMALL)
    assert found.holds is False
    assert found.measured == 0.0
    assert "misses: D=8, C=2, q=0.3, p=3, nu=0.001, beta=1, " in found.evidence["reason"]


class Turned(SYSTEM.ReducedPopulation):
    """gamma and rho move against their gradients."""

    has_jacobian = False

    def gradient(self, state):
        return super().gradient(state) * (1.0, -1.0, -1.0)


def test_turned_attention_ends_otherwise(monkeypatch):
    monkeypatch.setattr(plateau, "END", 1e4)
    found = verdict(SMALL, dataclasses.replace(SYSTEM, ReducedPopulation=Turned))
    assert found.holds is not True


@pytest.mark.parametrize("given", [{"beta": -0.5}, {"beta": 0.0}, {"D": 4}])
def test_without_a_plateau_or_a_positive_diagonal_nothing_is_decided(given):
    found = verdict(SYSTEM.Parameters(**{"D": 8, "C": 2} | given))
    assert found.word == "not decidable under this law"


def test_the_thorough_grid_has_cases_of_its_own():
    found = {(law["D"], law["C"]) for law in MORE}
    assert len(MORE) >= 120
    assert not found & {(D, 4) for D in (16, 32, 64, 128)} | found & {
        (D, 3) for D in (12, 24, 48, 96)
    }
    signs = [prediction(SYSTEM.Parameters(**law))["lead"] > 0 for law in MORE]
    assert 0.3 < np.mean(signs) < 0.7


def test_the_figure_has_the_line_between_the_ends():
    options = {"D": [8], "C": [2], "chances": [0.3, 0.9], "diagonals": [1.0, 2.0]}
    drawing = draw(SYSTEM, "association_ends", options=options)
    rows = drawing.data["rows"]
    assert [(row["q"], row["beta"]) for row in rows] == [
        (0.3, 1.0), (0.3, 2.0), (0.9, 1.0), (0.9, 2.0)
    ]  # fmt: skip
    assert [row["associated"] for row in rows] == [True, True, False, False]
    assert drawing.data["counts"] == {"D=8, C=2": {"flows": 4, "otherwise": 0, "open": 0}}
    (panel,) = drawing.axes.flat
    (line,) = [path for one in panel.collections for path in one.get_paths() if len(path.vertices)]
    for beta, q in line.vertices[:: len(line.vertices) // 5]:
        law = dataclasses.replace(SMALL, q=float(q), beta=float(beta))
        near = [dataclasses.replace(law, q=float(q) + shift) for shift in (-0.02, 0.02)]
        assert prediction(near[0])["lead"] > 0 > prediction(near[1])["lead"]
