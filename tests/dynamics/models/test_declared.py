"""Declared reductions: held against every entry, refused where they part, and run beyond."""

import json
from math import comb
from pathlib import Path

import numpy as np
import pytest

import dynamics
from dynamics.cli import main
from dynamics.validation import InvalidRequest

SQUARES = """
import itertools
import numpy as np

names = {"a": ("w", 0), "b": ("w", 1)}
def start(D=5):
    return {"w": np.r_[0.3, np.full(D - 1, 0.1)]}
def law(D):
    for signs in itertools.product((-1.0, 1.0), repeat=D):
        yield 0.5**D, np.array(signs)
def loss(theta, sample, xp, c=0.5):
    z = xp.sum(theta["w"] * sample)
    return z**4 / 4 + c * z**2
def sizes(D):
    return {"a": 1, "b": D - 1}
def configurations(D):
    for first in (-1.0, 1.0):
        for p, (minus, plus) in dynamics.multinomial(D - 1, (0.5, 0.5)):
            yield p / 2, (first, plus - minus)
def reduced(scalars, sample, xp, c):
    return (scalars["a"] * sample[0] + scalars["b"] * sample[1]) ** 4 / 4
"""


def in_file(tmp_path, text):
    path = tmp_path / "own.py"
    path.write_text(f"import dynamics\n{text}")
    return dynamics.load_system(path)


def parity_risk(D, eta, steps, k=3, half=6):
    """Gradient descent on the 4 numbers of each neuron, by a loop of numpy."""
    law = np.array([
        [2 * i - k, 2 * j - (D - k), comb(k, i) * comb(D - k, j) / 2.0**D, (-1.0) ** (k - i)]
        for i in range(k + 1) for j in range(D - k + 1)
    ])  # fmt: skip
    own, rest, p, y = law.T
    u, v = np.full(2 * half, 1 / D), np.full(2 * half, 1 / D)
    a, b = np.repeat([0.5, -0.5], half), np.tile(np.linspace(-D, D, half) / D, 2)
    for _ in range(steps):
        h = np.outer(own, u) + np.outer(rest, v) + b
        e = p * (np.maximum(h, 0) @ a - y)
        g = np.outer(e, a) * (h > 0)
        slopes = own @ g / k, rest @ g / (D - k), np.maximum(h, 0).T @ e, g.sum(axis=0)
        u, v, a, b = (x - eta * s for x, s in zip((u, v, a, b), slopes, strict=True))
    h = np.maximum(np.outer(own, u) + np.outer(rest, v) + b, 0)
    return float(p @ (h @ a - y) ** 2 / 2)


def test_where_inputs_can_be_listed_the_closure_is_proved_and_beyond_declared():
    parity, D = dynamics.load_system("sparse_parity"), 51
    closure = parity.closure()
    assert (closure.scalars, closure.grade, closure.entries) == (48, "proved", 120)
    assert "the declared recursion equals that of all 120 entries at D=8" in closure.remarks[-1]
    run = dynamics.descend(parity.ReducedPopulation(parity.Parameters()), 0.2, 1500)
    assert run["risk"][-1] == pytest.approx(7.812385e-06, rel=1e-6)
    closure = parity.closure(parity.Parameters(D=D))
    assert (closure.scalars, closure.entries, closure.grade) == (48, 12 * D + 24, "declared")
    assert closure.sizes[:2] == (3, D - 3)
    assert "compared with every entry at D=8 half=6 k=3 (" in closure.proof
    run = dynamics.descend(parity.ReducedPopulation(parity.Parameters(D=D)), 0.2, 300)
    assert run["risk"][-1] == pytest.approx(parity_risk(D, 0.2, 300), rel=1e-9)


def test_positional_attention_beyond_is_the_paper_kernel():
    """Declared at D = 16; compared with every entry at D = 9."""
    paper = dynamics.load_system("positional_attention")
    file = dynamics.load_system(Path(dynamics.models.__file__).parent / "positional_attention.py")
    mixed = file.Parameters(D=9, C=3, random_sets="mixed", scale=1.5)
    assert file.closure(mixed).grade == "proved"
    problem = file.ReducedPopulation(file.Parameters(D=16, C=4))
    expected = paper.ReducedPopulation(paper.Parameters(D=16, C=4), "exact")
    assert problem.closure.grade == "declared"
    rng = np.random.default_rng(0)
    for _ in range(20):
        state = problem.initial_state + rng.standard_normal(3) * (0.01, 0.5, 0.5)
        slope = expected.gradient(state)
        np.testing.assert_allclose(problem.gradient(state), slope, rtol=1e-11, atol=1e-15)
        assert problem.risk(state) == pytest.approx(expected.risk(state), rel=1e-12)


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ("", "", "reduced does not reproduce the gradient of every entry at D=5: d_[ab] has"),
        ('"b": D - 1', '"b": D - 2', "b covers 3 entries, but 4 stay equal to w\\[1\\]"),
        ('"b": D - 1', '"b": 0', "b has 0 entries; expected a positive integer"),
        ('"b": D - 1', '"e": D - 1', "'e' is missing in names"),
        ("scalars[\"a\"] *", "scalars[\"f\"] *", "reduced raises KeyError"),
        ("yield p / 2", "yield p / 3", "the probabilities of configurations sum to 0.66"),
        ("names =", "others =", "reduced needs names as well"),
        ("def sizes(", "def many(", "reduced needs sizes as well"),
        ("def configurations(", "def many(", "reduced needs configurations as well"),
    ],
)  # fmt: skip
def test_a_wrong_declaration_is_refused_in_one_line(old, new, words, tmp_path):
    # As it stands the loss of the entries has a term in c that the declared one lacks.
    with pytest.raises(InvalidRequest, match=words) as refused:
        in_file(tmp_path, SQUARES.replace(old, new, 1) if old else SQUARES).closure()
    assert "\n" not in str(refused.value)


def test_one_that_is_right_only_at_some_constant_is_refused_at_others(tmp_path):
    system = in_file(tmp_path, SQUARES)
    assert "equals that of all 5 entries" in system.closure(system.Parameters(c=0.0)).remarks[-1]
    for sizes in ({}, {"D": 40}):  # held at D=5 first
        with pytest.raises(InvalidRequest, match="does not reproduce"):
            system.closure(system.Parameters(c=0.1, **sizes))
    text = SQUARES + "def observables(theta, xp):\n    return {'n': xp.sum(theta['w'])}\n"
    text += "def reduced_observables(scalars, xp, D):\n    return {'n': scalars['a'] * D}\n"
    system = in_file(tmp_path, text)
    with pytest.raises(InvalidRequest, match=r"n is .* in the declaration and .* for every entry"):
        system.closure(system.Parameters(c=0.0))


def test_commands_take_sizes_beyond(tmp_path, capsys):
    out = str(tmp_path / "run")
    words = ["run", "sparse_parity", "--D", "51", "--steps", "20", "--out", out, "--json"]
    assert main(words) == 0
    closure = json.loads(capsys.readouterr().out)["closure"]
    assert (closure["grade"], closure["scalars"], closure["entries"]) == ("declared", 48, 636)
    assert main(["derive", "sparse_parity", "--D", "51"]) == 0
    assert "declared by the model; compared with every entry at D=8" in capsys.readouterr().out
    assert main(["derive", "sparse_parity", "--D", "51", "--prove"]) == 2
    assert main(["compare", "sparse_parity", "--D", "51", "--steps", "20"]) == 2
    assert "more than" in capsys.readouterr().err
