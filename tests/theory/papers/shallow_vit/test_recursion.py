"""Steps of the three recursions against central differences of the loss of tokens."""

import itertools

import bags
import numpy as np
import pytest
import sympy

from theory.papers.shallow_vit import recursion as r
from theory.papers.shallow_vit.data_law import Shares, law
from theory.papers.shallow_vit.model import W_O, evaluate
from theory.papers.shallow_vit.notation import PAIRS
from theory.papers.shallow_vit.symmetry import asymmetry, class_means, named, pattern_group
from theory.symmetry import classes

MARGIN = 1.0
GATE = [{"gate": lambda u: float(u > 0)}, "math"]


def stepped(expression, values, eta):
    """A step evaluated with arrays."""
    both = values | {matrix.T: value.T for matrix, value in values.items()}
    parts = evaluate(expression, both, np.matmul)
    return sum(float(coefficient.subs(r.eta, eta)) * value for coefficient, value in parts)


@pytest.fixture(scope="module")
def case():
    """Four patterns that are not orthonormal, three samples of unequal counts."""
    rng = np.random.default_rng(5)
    patterns = rng.normal(size=(5, 4)) / 2
    shapes = ((6, 3), (3, 5), (4, 5), (4, 5))
    weights = [rng.normal(size=shape) / 2 for shape in shapes]
    samples = [((3, 1, 1, 0), 1, 0.5), ((1, 2, 1, 1), -1, 0.3), ((2, 0, 1, 2), 1, 0.2)]
    return patterns, weights, rng.choice([-0.5, 0.5], size=6), samples


def printed_slopes(weights, a, sample, margin):
    """E and T of one sample by what is printed, definition by definition, indices from 1."""
    counts, y, _ = sample
    values = dict(zip((W_O, r.V, r.K, r.Q), weights, strict=True))
    known = {"y": y, "margin": margin, "L": sum(counts), "M": len(counts), "m": len(a)}
    known |= {"a": [0, *a], "c": [0, *counts]}
    for name, value in {r.H: W_O * r.V, r.B: r.K.T * r.Q, **r.of_sample()}.items():
        plain = value.args[0] if value.func == r.weighted else value
        if isinstance(name, sympy.MatrixSymbol):
            values[name] = stepped(plain, values, 0)
            known[name.name] = np.pad(values[name], ((1, 0), (1, 0)))
        elif name.is_Symbol:
            known[name.name] = sympy.lambdify(list(known), value, GATE)(**known)
        else:
            base, rows = str(name.args[0]), r.m if str(name.args[0]) == "D" else r.M
            entry = sympy.lambdify(["i", "j", *known], plain, GATE)
            places = itertools.product(range(1, known[rows.name] + 1), range(1, known["M"] + 1))
            found = np.reshape([entry(i, j, **known) for i, j in places], (-1, known["M"]))
            values[sympy.MatrixSymbol(base, rows, r.M)] = found
            known[base] = np.pad(found, ((1, 0), (1, 0)))
    return values[r.E], values[r.T]


@pytest.mark.parametrize("margin", [MARGIN, 0.05, 3.0])
def test_one_step_on_patterns_descends_the_loss_on_tokens(case, margin):
    patterns, weights, a, samples = case
    tokens = [(bags.tokens_of(c, patterns), y, w) for c, y, w in samples]
    slopes = bags.central_differences(
        lambda now: sum(w * max(margin - y * bags.output(now, x, a), 0) for x, y, w in tokens),
        weights,
    )
    assert max(np.abs(slope).max() for slope in slopes) > 1e-3
    eta, (W_O_now, *others) = 0.1, weights
    V, K, Q = (matrix @ patterns for matrix in others)
    each = [printed_slopes((W_O_now, V, K, Q), a, sample, margin) for sample in samples]
    E, T = (
        sum(w * part for (*_, w), part in zip(samples, of_all, strict=True))
        for of_all in zip(*each, strict=True)
    )
    values = {W_O: W_O_now, r.V: V, r.K: K, r.Q: Q, r.E: E, r.T: T}
    values[r.GAMMA] = patterns.T @ patterns
    moved = {name: stepped(step, values, eta) for name, step in r.closure().items()}
    assert np.abs(moved[W_O] - (W_O_now - eta * slopes[0])).max() < 1e-8
    for name, matrix, slope in zip((r.V, r.K, r.Q), others, slopes[1:], strict=True):
        assert np.abs(moved[name] - (matrix - eta * slope) @ patterns).max() < 1e-8


def test_inner_products_close(case):
    patterns, weights, a, samples = case
    W, V, K, Q = weights[0], *(w @ patterns for w in weights[1:])
    gamma, eta = patterns.T @ patterns, 0.05
    state = {W_O: W, r.V: V, r.K: K, r.Q: Q}
    inner = {
        name: np.matmul(*(_of(factor, state) for factor in pair)) for pair, name in r.INNER.items()
    }
    for _ in range(40):
        E, T, _ = bags.pattern_slopes(inner[r.H], inner[r.B], samples, a, MARGIN)
        given = {r.E: E, r.T: T, r.GAMMA: gamma}
        state = {n: stepped(s, state | given, eta) for n, s in r.closure().items()}
        inner = {n: stepped(s, inner | given, eta) for n, s in r.gram().items()}
    assert np.abs(T).max() > 1e-3
    for pair, name in r.INNER.items():
        expected = np.matmul(*(_of(factor, state) for factor in pair))
        assert np.abs(inner[name] - expected).max() < 1e-12


def _of(factor, state):
    return state[factor] if factor in state else state[factor.T].T


def collapsed_run(shares, data, steps=50, eta=0.2):
    """Patterns and the 16 scalars side by side; largest asymmetry and largest deviation."""
    rng = np.random.default_rng(0)
    V, K = (np.linalg.qr(rng.normal(size=(6, 6)))[0][:, : shares.M] for _ in range(2))
    neurons, a = bags.closed_ensemble(V, 0.3 * rng.normal(size=(2, 6)), np.array([0.3, -0.2]))
    state = {W_O: neurons, r.V: V, r.K: K, r.Q: K.copy()}
    known = law(shares, data)
    samples = list(zip(known.counts.tolist(), known.labels, known.probability, strict=True))
    orbits = classes(pattern_group(shares.M))
    places = {pair: tuple(where[0]) for pair, where in named(orbits).items()}
    names = list(r.collapse())
    t = sympy.symbols([f"t_{pair}" for pair in PAIRS], real=True)
    move = sympy.lambdify(
        [names, t], [r.collapse()[n].subs({r.M: shares.M, r.eta: eta}) for n in names], "math"
    )
    scalars = [float(name.name.rsplit("_", 1)[1] in ("11", "kk")) for name in names]
    uneven = apart = 0.0
    for _ in range(steps):
        B = state[r.K].T @ state[r.Q]
        E, T, each = bags.pattern_slopes(state[W_O] @ state[r.V], B, samples, a, 30.0)
        # Of the fixed law, the orbit means of the positive sample alone.
        means = class_means(each[0] if data == "fixed" else T, orbits)
        scalars = move(scalars, [means[orbits.labels[places[pair]]] for pair in PAIRS])
        given = {r.E: E, r.T: T, r.GAMMA: np.eye(shares.M)}
        state = {n: stepped(s, state | given, eta) for n, s in r.closure().items()}
        inner = {
            "B": state[r.K].T @ state[r.Q],
            "G_K": state[r.K].T @ state[r.K],
            "G_Q": state[r.Q].T @ state[r.Q],
        }
        uneven = max(uneven, *(asymmetry(matrix, orbits) for matrix in inner.values()))
        for name, value in zip(names, scalars, strict=True):
            code, pair = name.name.rsplit("_", 1)
            apart = max(apart, abs(inner[code][places[pair]] - value))
    assert abs(B - np.eye(shares.M)).max() > 0.1
    return uneven, apart


@pytest.mark.parametrize(
    ("shares", "data"), [(Shares(4, 20, 0.5, 0.1), "fixed"), (Shares(4, 8, 0.5, 0.1), "fixed_disc")]
)
def test_sixteen_scalars_follow_the_patterns(shares, data):
    uneven, apart = collapsed_run(shares, data)
    assert uneven < 1e-13
    assert apart < 1e-13


@pytest.mark.parametrize(("patterns", "others"), [(5, 4), (4, 7), (3, 2)])
def test_masses_by_query_type(patterns, others):
    rng = np.random.default_rng(7)
    orbits = classes(pattern_group(patterns))
    B = rng.normal(size=orbits.count)[orbits.labels]
    counts = np.array([9, 2, *[others] * (patterns - 2)])
    P = counts[:, None] * np.exp(B)
    P /= P.sum(axis=0)
    values = {f"B_{pair}": B[tuple(where[0])] for pair, where in named(orbits).items()}
    values |= {"n_star": 9, "n_confusion": 2, "n_other": others, "M": patterns, "B_kl": 0} | values
    for (_, mass), query in zip(r.relevant_masses().items(), (0, 1, 2), strict=True):
        value = mass.subs({s: values[s.name] for s in mass.free_symbols})
        assert float(value) == pytest.approx(P[0, query], abs=1e-14)
