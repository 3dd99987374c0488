"""The printed page: evaluated as it stands, against the network, its gradient and the law."""

import itertools
import math
from dataclasses import replace

import numpy as np
import pages
import pytest
import sympy

from theory.papers.positional_attention.data_law import ANY, RANDOM_SETS, SetLaw
from theory.papers.positional_attention.derivation import page
from theory.papers.positional_attention.notation import NOTATION

SETS = ((0, 1), (2, 3), (4, 5))
STATE = NOTATION.symbols("alpha gamma rho")
AT = {"alpha": 0.31, "gamma": 0.42, "rho": -0.17}
CONSTANTS = {"D": 6, "C": 2, "q": 0.3, "p": 3, "nu": 0.02, "scale": 0.7, "beta": 1.1, "eta": 0.05}


def reader(random_sets, degree=None, at=AT):
    """The page at these numbers; types in the order of `SetLaw`, the signal set first."""
    law = SetLaw(CONSTANTS["C"], CONSTANTS["q"], random_sets)
    types = [t for t, p in zip(law.types.tolist(), law.probabilities, strict=True) if p > 0]
    a, b, c = zip((CONSTANTS["C"], 0, 0), *types, strict=True)
    known = CONSTANTS | at | {"a": a, "b": b, "c": c, "K": len(types), "y": 1, "states": tuple(AT)}
    known["all"] = [(1, *m) for m in pages.numbers(len(types), 2)]

    def mean(f):
        return math.fsum(read("W", sympy.IndexedBase("m"), m=m) * f(m=m) for m in known["all"])

    printed = page(degree, random_sets)
    exact = replace(printed, sections=printed.sections[:-1])
    read = pages.Reader(exact, known, mean)
    return read


def samples(random_sets):
    """Every (values times label, probability), from the words of the law."""
    sets, chance, found = SETS, {1: 0.15, -1: 0.15, 0: 0.7}, []
    for label, signal in itertools.product((1, -1), sets):
        others = [i for i in range(6) if i not in signal]
        for values in itertools.product(chance, repeat=4):
            patches = dict.fromkeys(signal, label) | dict(zip(others, values, strict=True))
            sums = [abs(sum(patches[i] for i in s)) for s in sets if s != signal]
            if random_sets == ANY or max(sums) < 2:
                weight = math.prod(chance[x] for x in values)
                found.append(([label * patches[i] for i in range(6)], weight))
    values, weights = map(np.array, zip(*found, strict=True))
    return values, weights / weights.sum()


def slope(random_sets, at, entry=None):
    """Risk of the network, and its derivative by one entry of A or by alpha (a complex step)."""
    matrix = np.array(
        [[1.1 if i == j else at["gamma" if i // 2 == j // 2 else "rho"] for j in range(6)]
         for i in range(6)], dtype=complex
    )  # fmt: skip
    alpha, tiny = complex(at["alpha"]), 1e-30j
    if entry is None:
        alpha += tiny
    else:
        matrix[entry] += tiny
    weights = np.exp(0.7 * matrix)
    weights /= weights.sum(axis=1, keepdims=True)
    values, chances = samples(random_sets)
    inner = 6 * alpha * values @ weights.T
    risk = chances @ np.log(1 + np.exp(-(inner**3 + 0.02 * inner).sum(axis=1)))
    return risk.real, risk.imag / 1e-30


@pytest.mark.parametrize("random_sets", RANDOM_SETS)
def test_page_is_gradient_descent_on_every_entry(random_sets):
    rng = np.random.default_rng(3)
    for degree in (None,) if random_sets == ANY else (None, 3):
        at = dict(zip(AT, rng.uniform(-0.5, 0.5, 3), strict=True))
        read = reader(random_sets, degree, at)
        for state, entry in zip(STATE, (None, (2, 3), (0, 4)), strict=True):
            risk, by_entry = slope(random_sets, at, entry)
            assert abs(by_entry) > 1e-5
            stepped = at[state.name] - CONSTANTS["eta"] * by_entry
            assert read(f"{state.name}'") == pytest.approx(stepped, rel=1e-13)
            moved = read(f"{state.name}'") - at[state.name]
            assert moved == pytest.approx(-CONSTANTS["eta"] * by_entry, rel=1e-12, abs=1e-15)
        assert read("R") == pytest.approx(risk, rel=1e-12)
    assert [read("n", state) for state in STATE] == [1, 6, 24]


def test_leading_order_is_the_signal_set_alone():
    """The last section against the recursion of the page without random sets and with nu = 0."""
    exact, printed = reader(ANY), page().sections[-1]
    alone = {"nu": 0, "K": 0, "m": (1,)}
    exact.mean = lambda f: f(**alone)
    letters = {n: exact(n, **alone) for n in ("G", "Gamma", "Xi")}
    letters["sig"] = 1 / (1 + math.exp(exact("F", **alone)))
    read = pages.Reader(replace(page(), sections=(printed,)), CONSTANTS | AT | letters)
    assert read("F") == pytest.approx(exact("F", **alone), rel=1e-13)
    for name in ("gamma", "rho"):
        moved = exact(f"{name}'", **alone) - AT[name]
        assert read(f"{name}' - {name}") == pytest.approx(moved, rel=1e-10)
    first, _, _, second, _ = (row[1] for row in printed.equations)
    assert sympy.simplify(first / printed.equations[1][1]).has(NOTATION.symbol("G"))
    hidden = sympy.simplify(second / first)
    assert not hidden.has(NOTATION.symbol("alpha"), NOTATION.symbol("Gamma"))
