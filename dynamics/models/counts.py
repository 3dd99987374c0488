"""Probabilities of counts of independent draws, for the configurations of declared reductions."""

from __future__ import annotations

import math
from collections.abc import Iterable, Iterator, Sequence
from functools import lru_cache
from typing import Any

import numpy as np

from dynamics.problem import FloatArray
from dynamics.validation import InvalidRequest, integer

MAX_EXACT = 500
"""For more draws than this, products of binomial probabilities replace the multinomial coefficient,
which would overflow."""
SUM_TOLERANCE = 1e-12


def multinomial(n: int, probabilities: Sequence[float]) -> Iterator[tuple[float, tuple[int, ...]]]:
    """Yield the possible counts per category of n independent draws, with their probabilities.

    Parameters
    ----------
    n : int
        Number of draws.
    probabilities : sequence of float
        Probability of each category, with sum 1.

    Returns
    -------
    iterator of (float, tuple of int)
        Probability, and number of draws in each category.

    Raises
    ------
    InvalidRequest
        If n is not an integer >= 0, or the probabilities do not sum to 1.

    Examples
    --------
    >>> from dynamics import multinomial
    >>> list(multinomial(2, (0.5, 0.5)))
    [(0.25, (0, 2)), (0.5, (1, 1)), (0.25, (2, 0))]
    """
    n = integer("n", n, at_least=0, at_most=10**9)
    try:
        given = list(probabilities)
        if any(hasattr(p, "free_symbols") for p in given):  # symbolic constants of a model
            return ((_in_symbols(each, given), each) for each in _counts(n, len(given)))
        chances = [float(p) for p in given]
    except (TypeError, ValueError):
        raise InvalidRequest(f"probabilities={probabilities!r} must be numbers") from None
    if not (min(chances, default=-1.0) >= 0 and abs(math.fsum(chances) - 1) <= SUM_TOLERANCE):
        raise InvalidRequest(f"probabilities={probabilities!r} do not sum to 1")
    return _listed(n, chances)


def multisets(
    types: Iterable[tuple[float, Any]], n: int
) -> Iterator[tuple[float, tuple[Any, ...]]]:
    """Yield the possible multisets of n independent draws from a law, with their probabilities.

    Parameters
    ----------
    types : iterable of (float, object)
        Probability and value of each type, like the samples of a ``law``.
    n : int
        Number of draws.

    Returns
    -------
    iterator of (float, tuple)
        Probability, and the n values, in the order of the types.

    Raises
    ------
    InvalidRequest
        If n is not an integer >= 0, or the probabilities do not sum to 1.

    Examples
    --------
    >>> from dynamics import multisets
    >>> list(multisets([(0.5, -1), (0.5, 1)], 2))
    [(0.25, (1, 1)), (0.5, (-1, 1)), (0.25, (-1, -1))]
    """
    try:
        chances, values = zip(*types, strict=True)
    except (TypeError, ValueError):
        raise InvalidRequest(f"types={types!r} must be (probability, value) pairs") from None
    return (
        (p, tuple(value for value, k in zip(values, counts, strict=True) for _ in range(k)))
        for p, counts in multinomial(n, chances)
    )


def _listed(n: int, chances: Sequence[float]) -> Iterator[tuple[float, tuple[int, ...]]]:
    """Yield the probability and the counts of each outcome, for validated arguments."""
    chance = _exact if n <= MAX_EXACT else _successive
    for counts in _counts(n, len(chances)):
        yield chance(counts, chances), counts


def _counts(n: int, categories: int) -> Iterator[tuple[int, ...]]:
    """Yield all tuples of integers >= 0 with sum n, in lexicographic order."""
    if categories == 1:
        yield (n,)
        return
    for first in range(n + 1):
        for rest in _counts(n - first, categories - 1):
            yield (first, *rest)


def _in_symbols(counts: Sequence[int], chances: Sequence[Any]) -> Any:
    """Probability of some counts as an expression in symbolic probabilities."""
    powers = (p**k for p, k in zip(chances, counts, strict=True))
    return math.prod(powers, start=_coefficient(counts))


def _coefficient(counts: Sequence[int]) -> int:
    """Multinomial coefficient."""
    ways, left = 1, sum(counts)
    for count in counts:
        ways *= math.comb(left, count)
        left -= count
    return ways


def _exact(counts: Sequence[int], chances: Sequence[float]) -> float:
    """Multinomial probability, with sorted powers so that permuted arguments give equal floats."""
    powers = sorted(p**k for p, k in zip(chances, counts, strict=True))
    return float(_coefficient(counts)) * math.prod(powers)


def _successive(counts: Sequence[int], chances: Sequence[float]) -> float:
    """Multinomial probability as a product of conditional binomials, which do not overflow."""
    probability, left = 1.0, sum(counts)
    for k, count in enumerate(counts[:-1]):
        rest = math.fsum(chances[k:])
        probability *= float(_binomial(left, min(1.0, chances[k] / rest if rest else 0.0))[count])
        left -= count
    return probability


@lru_cache(maxsize=1 << 12)
def _binomial(n: int, p: float) -> FloatArray:
    """Binomial probabilities of 0, ..., n, shape (n + 1,)."""
    from scipy.stats import binom

    return np.asarray(binom.pmf(np.arange(n + 1), n, p))
