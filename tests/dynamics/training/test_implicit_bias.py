"""What update rules of published work tend to: margins of separable data, selected tokens."""

import numpy as np
import pytest
from scipy.optimize import linprog, minimize

import dynamics

SEPARABLE = '''
"""Logistic loss on linearly separable draws."""
import numpy as np


def start(d=12):
    return {"w": np.zeros(d)}


def law(d, count=40, seed_0=2):
    draws = np.random.default_rng(seed_0)
    X, truth = draws.standard_normal((count, d)), draws.standard_normal(d)
    for x in X:
        yield 1 / count, {"x": np.sign(x @ truth) * x}


def loss(theta, sample, xp):
    return xp.softplus(-(theta["w"] @ sample["x"]))
'''

SELECTION = '''
"""Attention that selects one token of seven (Tarzanagh et al. 2023)."""
import numpy as np

SCORES = np.array([1.0] + [0.5] * 6)


def start():
    return {"p": np.zeros(2)}


def law():
    X = np.random.default_rng(0).normal(0, 0.2, (3, 7, 2))
    X = X + np.array([(1, 0)] + [(-1, 1)] * 3 + [(-0.5, -0.5)] * 3)
    for each in X:
        yield 1 / 3, {"X": each}


def loss(theta, sample, xp):
    return xp.softplus(-(xp.softmax(sample["X"] @ theta["p"]) @ SCORES))
'''


def loaded(text, folder):
    path = folder / "model.py"
    path.write_text(text, encoding="utf-8")
    system = dynamics.load_system(path)
    return system, system.Parameters()


@pytest.fixture(scope="module")
def separable(tmp_path_factory):
    system, parameters = loaded(SEPARABLE, tmp_path_factory.mktemp("separable"))
    reduced = system.ReducedPopulation(parameters)
    signed = np.array([sample["x"] for _, sample in system.model.law(12)])
    return reduced, signed


def largest_margin(signed):
    """Of all directions with entries of size 1 at most."""
    count, d = signed.shape
    found = linprog(
        np.append(np.zeros(d), -1.0),
        A_ub=np.column_stack([-signed, np.ones(count)]),
        b_ub=np.zeros(count),
        bounds=[(-1, 1)] * d + [(None, None)],
    )
    return -found.fun


@pytest.mark.parametrize(
    ("rule", "eta", "steps", "least", "most"),
    [
        ("gd", 1.0, 20_000, 0.0, 0.75),
        ("adam", 0.03, 20_000, 0.9, 1.0),
        ("sign", 0.01, 10_000, 0.95, 1.0),
    ],
)
def test_adam_and_signs_tend_to_the_largest_margin(separable, rule, eta, steps, least, most):
    """Of the largest entry of w: adam .930, signs .994, descent .711 of what there can be."""
    problem, signed = separable
    run = dynamics.descend(problem, eta=eta, steps=steps, rule=rule, record=[steps])
    w = problem.lift(run.final_state)
    share = (signed @ w).min() / np.abs(w).max() / largest_margin(signed)
    assert least <= share <= most + 1e-9


def test_normalised_descent_selects_a_token_sooner(tmp_path):
    system, parameters = loaded(SELECTION, tmp_path)
    problem = system.ReducedPopulation(parameters)
    plain = dynamics.descend(problem, eta=1.0, steps=4000, record=[4000])
    rule = dynamics.rule("normalized", eps=1e-12)  # gradients of the end are far below 1e-6
    run = dynamics.descend(problem, eta=0.1, steps=4000, rule=rule, record=[60])
    sizes = np.linalg.norm(run.states, axis=1)
    assert list(run.steps) == [0, 60, 4000]
    assert np.linalg.norm(plain.final_state) == pytest.approx(5.88, abs=5e-3)
    assert sizes[1] == pytest.approx(5.97, abs=5e-3)
    assert sizes[1] > np.linalg.norm(plain.final_state)
    assert sizes[2] == pytest.approx(27.5, abs=5e-2)
    X = np.array([sample["X"] for _, sample in system.model.law()])
    apart = (X[:, :1] - X[:, 1:]).reshape(-1, 2)
    separator = minimize(
        lambda p: p @ p, np.array([1.0, 0.0]), jac=lambda p: 2 * p, method="SLSQP",
        constraints={"type": "ineq", "fun": lambda p: apart @ p - 1, "jac": lambda p: apart},
    ).x  # fmt: skip
    cosine = run.final_state @ separator / np.linalg.norm(separator) / sizes[2]
    assert cosine == pytest.approx(0.9966, abs=5e-5)
