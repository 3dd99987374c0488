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

import numpy as np
from numpy.typing import NDArray

from dynamics.systems.positional_attention.expectation.configurations import (
    Configurations,
    assemble,
    type_compositions,
    type_probabilities,
)
from dynamics.validation import refuse

MAX_CONFIGURATIONS = 5_000_000
"""Largest number of multisets that is enumerated."""


def count(sets: int, set_size: int) -> int:
    """Number of multisets of L-1 types."""
    kinds = (set_size + 1) * (set_size + 2) // 2
    return comb(sets - 1 + kinds - 1, kinds - 1)


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
    types = _multisets(len(composition), sets - 1, number)
    probability = _weights(types, type_probabilities(composition, q))
    return assemble(patches, set_size, types, probability)


def _largest(set_size: int) -> int:
    sets = 2
    while count(sets + 1, set_size) <= MAX_CONFIGURATIONS:
        sets += 1
    return sets * set_size


def _multisets(kinds: int, size: int, number: int) -> NDArray[np.int64]:
    chosen = itertools.combinations_with_replacement(range(kinds), size)
    flat = np.fromiter(itertools.chain.from_iterable(chosen), np.int64, number * size)
    return flat.reshape(number, size)


def _weights(types: NDArray[np.int64], chance: NDArray[np.float64]) -> NDArray[np.float64]:
    """Multinomial weights of sorted multisets: position l of a run of length r brings l/r."""
    weight, run = np.ones(len(types)), np.ones(len(types))
    for position in range(types.shape[1]):
        if position:
            same = types[:, position] == types[:, position - 1]
            run = np.where(same, run + 1, 1)
        weight *= chance[types[:, position]] * (position + 1) / run
    return weight
