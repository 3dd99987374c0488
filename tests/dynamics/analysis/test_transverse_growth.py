"""How much a deviation from the closed space of a model may grow, and what is said of it."""

from dataclasses import replace
from pathlib import Path

import numpy as np
import pytest

import dynamics
from dynamics.analysis.comparison import explanation
from dynamics.analysis.transverse_growth import least_curvature

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
