"""The printed page: evaluated as it stands, against the network, its gradient and the law."""

import math
from dataclasses import replace
from types import SimpleNamespace

import naive
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


def slopes(random_sets, at):
    """Risk of the network, and its derivatives by alpha, A_23 and A_04."""
    law = SimpleNamespace(**CONSTANTS, random_sets=random_sets)
    same = np.equal.outer(np.arange(6) // 2, np.arange(6) // 2)
    matrix = np.where(same, at["gamma"], at["rho"])
    np.fill_diagonal(matrix, law.beta)
    risk, d_alpha, d_matrix = naive.population(law, SETS, at["alpha"], matrix)
    return risk, (d_alpha, d_matrix[2, 3], d_matrix[0, 4])


@pytest.mark.parametrize("random_sets", RANDOM_SETS)
def test_page_is_gradient_descent_on_every_entry(random_sets):
    rng = np.random.default_rng(3)
    for degree in (None,) if random_sets == ANY else (None, 3):
        at = dict(zip(AT, rng.uniform(-0.5, 0.5, 3), strict=True))
        read = reader(random_sets, degree, at)
        risk, by_entries = slopes(random_sets, at)
        for state, by_entry in zip(STATE, by_entries, strict=True):
            assert abs(by_entry) > 1e-5
            moved = read(f"{state.name}'") - at[state.name]
            assert moved == pytest.approx(-CONSTANTS["eta"] * by_entry, rel=1e-12, abs=1e-15)
        assert read("R") == pytest.approx(risk, rel=1e-12)
    assert [read("n", state) for state in STATE] == [1, 6, 24]


def test_leading_order_is_the_signal_set_alone():
    """The last section against the recursion of the page without random sets and with nu = 0."""
    exact, alone = reader(ANY), {"nu": 0, "K": 0, "m": (1,)}
    exact.mean = lambda f: f(**alone)
    letters = {n: exact(n, **alone) for n in ("G", "Gamma", "Xi")}
    letters["sig"] = 1 / (1 + math.exp(exact("F", **alone)))
    last = replace(page(), sections=page().sections[-1:])
    read = pages.Reader(last, CONSTANTS | AT | letters)
    assert read("F") == pytest.approx(exact("F", **alone), rel=1e-13)
    for name in ("gamma", "rho"):
        moved = exact(f"{name}'", **alone) - AT[name]
        assert read(f"{name}' - {name}") == pytest.approx(moved, rel=1e-10)
