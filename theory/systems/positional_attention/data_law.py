r"""The data law of Definition 2.1 and Assumption 1.

D patches in :math:`R^d`, split into L = D/C disjoint sets of size C. The label y is a fair sign, a
signal set is drawn uniformly. With :math:`x_j = \langle w^\star, X_j\rangle`: every patch of the
signal set has x = y; every other patch has x = +1, -1, 0 with probability q/2, q/2, 1-q. Noise is
centred and orthogonal to the feature :math:`w^\star`.

Conditioned on y = +1, a set with a patches at +1 and b at -1 has *type* (a, b).
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator

import sympy

from theory.systems.positional_attention.notation import NOTATION

a, b, C, q, L = NOTATION.symbols("a b C q L")

VALUE_PROBABILITY = {1: q / 2, -1: q / 2, 0: 1 - q}


def composition() -> dict[int, sympy.Expr]:
    """How many patches of a set of type (a, b) have each value."""
    return {1: a, -1: b, 0: C - a - b}


def type_probability() -> sympy.Expr:
    """P(a, b): the multinomial law of the type of a random set (section 3 of the paper's law)."""
    counts = composition()
    arrangements = sympy.factorial(C) / sympy.prod([sympy.factorial(n) for n in counts.values()])
    return arrangements * sympy.prod([VALUE_PROBABILITY[x] ** n for x, n in counts.items()])


def configurations(
    sets: tuple[tuple[int, ...], ...],
) -> Iterator[tuple[int, tuple[int, ...], sympy.Expr]]:
    """Every (label, patch values, probability) of the law, for a small explicit partition.

    Parameters
    ----------
    sets : tuple of tuples of int
        Members of each set.
    """
    size = sum(map(len, sets))
    for label, signal in itertools.product((1, -1), sets):
        others = [i for i in range(size) if i not in signal]
        for values in itertools.product(VALUE_PROBABILITY, repeat=len(others)):
            patches = dict.fromkeys(signal, label) | dict(zip(others, values, strict=True))
            weight = sympy.prod([VALUE_PROBABILITY[x] for x in values])
            yield label, tuple(patches[i] for i in range(size)), weight / (2 * len(sets))


def bayes_error(sets: int, set_size: int, q_value: float) -> float:
    r"""Irreducible error of the law: the best classifier knows the partition and the feature.

    Given all :math:`x_j`, the likelihood of y = ±1 is proportional to the number of sets that are
    all ±1. With r = (q/2)^C and the signal at y = +1, the best rule errs when more of the L-1
    random sets are all -1 than 1 + (those all +1), and on ties half of the time.

    Parameters
    ----------
    sets, set_size : int
        L and C.
    q_value : float
        q.
    """
    import numpy as np
    from scipy.special import gammaln, xlogy

    r, others = (q_value / 2) ** set_size, sets - 1
    minus, plus = np.arange(others + 1)[:, None], np.arange(others + 1)[None, :]
    rest = others - minus - plus
    inside = rest >= 0
    rest = np.where(inside, rest, 0)
    log_weight = gammaln(others + 1.0) - gammaln(minus + 1.0) - gammaln(plus + 1.0)
    log_weight = log_weight - gammaln(rest + 1.0)
    log_weight += xlogy(minus + plus, r) + xlogy(rest, max(0.0, 1.0 - 2.0 * r))
    weight = np.where(inside, np.exp(log_weight), 0.0)
    share = np.where(minus > plus + 1, 1.0, np.where(minus == plus + 1, 0.5, 0.0))
    return float((weight * share).sum())
