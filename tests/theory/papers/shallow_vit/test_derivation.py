"""The printed page: evaluated as it stands, against a network on tokens and the law of counts."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pages
import pytest

from theory.papers.shallow_vit import recursion as r
from theory.papers.shallow_vit.data_law import DATA, Shares, law
from theory.papers.shallow_vit.derivation import page

SHARES = Shares(4, 6, 0.5, 0.2)
CONSTANTS = {
    "M": 4, "L": 6, "m": 3, "alpha_star": 0.5, "alpha_confusion": 0.2, "margin": 0.4, "eta": 0.05
}  # fmt: skip


def case(data, loss="hinge", patterns=None, **options):
    """A reader at random weights, the samples (counts, label, weight of the page), the weights."""
    rng = np.random.default_rng(11)
    mu = rng.normal(size=(5, 4)) / 2 if patterns is None else patterns
    shapes = {"W_O": (3, 2), "W_V": (2, 5), "W_K": (4, 5), "W_Q": (4, 5)}
    weights = {name: rng.normal(size=shape) for name, shape in shapes.items()}
    a = rng.choice([-0.5, 0.5], size=3)
    known = CONSTANTS | weights | {"mu": mu, "a": a, "gate": lambda u: float(u > 0)}
    printed = page(data, loss, **options)
    if patterns is None:
        kept = [s for s in printed.sections if "16" not in s.heading]
        printed = replace(printed, sections=tuple(kept))
    counts = [c for c in itertools.product(range(7), repeat=4) if sum(c) == 6]
    if data == "iid":
        counts = [c for c in counts if c[0] > c[1]]
        known["N"] = 1.0
    elif data == "fixed_disc":
        counts = [c for c in counts if c[:2] == (3, 1)]
    else:
        read = pages.Reader(printed, known)
        counts = [tuple(read("c", k) for k in range(1, 5))]
    samples = [(c, 1, {}) for c in counts] + [((c[1], c[0], *c[2:]), -1, {}) for c in counts]

    def weight(c, y):
        there = c if y == 1 else (c[1], c[0], *c[2:])
        return read("w", there, y, c=there, y=y)

    def mean(f):
        return math.fsum(
            w * f(c=c, y=y, cache=cache) for (c, y, cache), w in zip(samples, chances, strict=True)
        )

    read = pages.Reader(printed, known, mean, first=1)
    if data == "iid":
        known["N"] = math.fsum(weight(c, 1) for c in counts) * 2
    chances = [weight(c, y) for c, y, _ in samples]
    return read, [(c, y, w) for (c, y, _), w in zip(samples, chances, strict=True)], known


@pytest.mark.parametrize("data", DATA)
def test_probabilities_of_the_page_are_the_law_counted(data):
    _, samples, _ = case(data)
    known = law(SHARES, data)
    expected = zip(known.counts.tolist(), known.labels, known.probability, strict=True)
    expected = {(tuple(c), int(y)): w for c, y, w in expected}
    found = {(tuple(c), y): w for c, y, w in samples}
    assert found == pytest.approx(expected, rel=1e-13)


def risk(weights, mu, a, samples, loss, margin):
    """The loss on patterns by matrices; complex where a weight is."""
    W_O, W_V, W_K, W_Q = weights
    total = 0
    for counts, y, w in samples:
        tokens = np.repeat(mu, counts, axis=1)
        attention = np.exp((W_K @ tokens).T @ (W_Q @ tokens))
        seen = W_O @ W_V @ tokens @ (attention / attention.sum(axis=0))
        F = (a @ np.where(seen.real > 0, seen, 0)).sum() / tokens.shape[1]
        cost = -y * F if loss == "linear" else margin - y * F
        total += w * (cost if loss == "linear" or cost.real > 0 else 0)
    return total


@pytest.mark.parametrize(("data", "loss"), [("fixed", "hinge"), ("fixed_disc", "linear")])
def test_page_is_gradient_descent_on_tokens(data, loss):
    read, samples, known = case(data, loss)
    names = ("W_O", "W_V", "W_K", "W_Q")
    here = [known[name].astype(complex) for name in names]
    rest = (known["mu"], known["a"], samples, loss, CONSTANTS["margin"])
    assert read("R") == pytest.approx(risk(here, *rest).real, rel=1e-13)
    for number, name in enumerate(("W_O", "V", "K", "Q")):
        slope = np.zeros(here[number].shape)
        for place in np.ndindex(slope.shape):
            moved = [matrix.copy() for matrix in here]
            moved[number][place] += 1e-30j
            slope[place] = risk(moved, *rest).imag / 1e-30
        assert np.abs(slope).max() > 1e-3
        stepped = known[names[number]] - CONSTANTS["eta"] * slope
        expected = stepped if name == "W_O" else stepped @ known["mu"]
        assert np.abs(read(f"{name}'") - expected).max() < 1e-13


def test_inner_products_of_the_page_move_as_its_patterns_do():
    read, *_ = case("fixed_disc")
    new = {name: read(f"{name}'") for name in ("W_O", "V", "K", "Q")}
    for (first, second), name in r.INNER.items():
        left, right = (new[str(f)] if str(f) in new else new[str(f.T)].T for f in (first, second))
        expected = left @ right
        assert np.abs(read(f"{name}'") - expected).max() < 1e-13
        assert np.abs(read(f"{name}'") - read(name.name)).max() > 1e-6
