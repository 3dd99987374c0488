r"""The exact expectation: all multisets of types, with multinomial weights.

A random set has one of K = (C+1)(C+2)/2 types (a, b). F is symmetric in the sets, so the
expectation over L-1 of them is a sum over multisets, each with weight

.. math:: \frac{(L-1)!}{\prod_k m_k!} \prod_k P_k^{m_k}.

Configurations do not depend on the state: they are built once per (D, C, q).
"""

from __future__ import annotations

import itertools
from functools import lru_cache
from math import comb
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dynamics.systems.positional_attention.reduced import weighted_sum
from dynamics.systems.positional_attention.reduced.configurations import (
    Configurations,
    assemble,
    multinomial_weights,
    type_compositions,
    type_probabilities,
)
from dynamics.systems.positional_attention.reduced.weighted_sum import WeightedSum
from dynamics.validation import refuse
from theory.systems.positional_attention import recursion

if TYPE_CHECKING:
    from dynamics.systems.positional_attention.parameters import Parameters

MAX_CONFIGURATIONS = 5_000_000
"""Largest number of multisets that is enumerated."""


def count(sets: int, set_size: int) -> int:
    """Number of multisets of L-1 types."""
    kinds = (set_size + 1) * (set_size + 2) // 2
    return comb(sets - 1 + kinds - 1, kinds - 1)


def seconds(parameters: Parameters) -> float:
    """Predicted time of one gradient; infinite where there are too many configurations."""
    number = count(parameters.L, parameters.C)
    if number > MAX_CONFIGURATIONS:
        return float("inf")
    return weighted_sum.predicted_seconds(number * parameters.L, weighted_sum.cells_of(parameters))


def exact(parameters: Parameters) -> WeightedSum:
    """The sum over all configurations of a problem, ready to run."""
    chosen = configurations(parameters.D, parameters.C, parameters.q)
    return WeightedSum(
        "exact",
        weighted_sum.compiled(parameters.p, chosen.threaded),
        weighted_sum.arrays(chosen, recursion.derive(parameters.p), parameters),
        {"expectation": "exact"},
        chosen,
    )


@lru_cache(maxsize=4)
def configurations(patches: int, set_size: int, q: float) -> Configurations:
    """All configurations of (D, C, q), those of probability 0 left out, ordered by Z.

    Raises
    ------
    ValueError
        If there are more than `MAX_CONFIGURATIONS` of them.
    """
    sets = patches // set_size
    number = count(sets, set_size)
    if number > MAX_CONFIGURATIONS:
        refuse(
            "expectation",
            "exact",
            f"needs {number:,} configurations at D={patches} C={set_size}",
            f"sizes of at most {MAX_CONFIGURATIONS:,} configurations",
            f"D={_largest(set_size)} at C={set_size}",
        )
    composition = type_compositions(set_size)
    types = multisets(len(composition), sets - 1)
    probability = multinomial_weights(types, type_probabilities(composition, q))
    return assemble(patches, set_size, types, probability)


def _largest(set_size: int) -> int:
    sets = 2
    while count(sets + 1, set_size) <= MAX_CONFIGURATIONS:
        sets += 1
    return sets * set_size


def multisets(kinds: int, size: int) -> NDArray[np.int64]:
    """Every multiset of so many of the kinds 0, 1, ..., as ascending rows, shape (n, size).

    Parameters
    ----------
    kinds, size : int
        Kinds there are, and members of a multiset.
    """
    number = comb(kinds + size - 1, size)
    rows = itertools.combinations_with_replacement(range(kinds), size)
    flat = np.fromiter(itertools.chain.from_iterable(rows), np.int64, number * size)
    return flat.reshape(number, size)
