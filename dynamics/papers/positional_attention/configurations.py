r"""Weighted configurations of the random sets, either all configurations or a sample.

A random set has type (a, b) if a of its C patches are +1 and b are -1; there are K = (C+1)(C+2)/2
types. The output F is symmetric in the L-1 random sets, so a configuration is the multiset of their
types. The expectation is a sum over configurations; a configuration with m_k sets of type k, of
probability P_k each, has the weight

.. math:: \frac{(L-1)!}{\prod_k m_k!} \prod_k P_k^{m_k}. \qquad (1)
"""

from __future__ import annotations

import itertools
from functools import lru_cache
from math import comb
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dynamics.problem import FloatArray, IntArray
from dynamics.validation import random_stream, refuse, written
from theory.papers.positional_attention.data_law import SetLaw

if TYPE_CHECKING:
    from dynamics.papers.positional_attention.parameters import Parameters

MAX_CONFIGURATIONS = 20_000
"""Maximum number of configurations in a compiled program, which then takes seconds to build."""
MAX_DEGREES = 220_000
"""Maximum of p times the number of configurations; a configuration has about p terms."""
SECONDS_OF_GRADIENT, SECONDS_OF_PROGRAM, OVERHEAD = 16e-9, 2e-4, 1.1e-6
"""Seconds that a configuration adds to a gradient, seconds that it adds to building the program,
and seconds of each gradient in addition. The three numbers are fitted to run times on one core,
with 6 to 38,760 configurations."""
GRADIENTS = 20_000
"""Assumed number of gradients of a run, over which the time of building the program is spread."""


class Configurations(NamedTuple):
    """Weighted configurations of the signal set and the random sets.

    `counts`, shape (n, L, 2), has the numbers of patches with +1 and with -1 in each set, the
    signal set first. `probability`, shape (n,), has the weights, with sum 1.
    """

    counts: FloatArray
    probability: FloatArray


def multinomial_weights(types: IntArray, chance: FloatArray) -> FloatArray:
    """Weights (1) of configurations, shape (n,), multiplied in long double.

    `types`, shape (n, L-1), has the type of each random set; equal types are adjacent, so the l-th
    of a run of equal types contributes a factor 1/l. `chance`, shape (K,), has the probability of
    each type.
    """
    weight, run = np.ones((2, len(types)), np.longdouble)
    for position in range(types.shape[1]):
        if position:
            same = types[:, position] == types[:, position - 1]
            run = np.where(same, run + 1, 1)
        weight *= chance[types[:, position]] * (position + 1) / run
    return weight.astype(np.float64)


def assemble(law: SetLaw, types: IntArray, probability: FloatArray) -> Configurations:
    """Configurations of signal set and random sets, without configurations of probability 0.

    `law` is the law of a random set; `types`, shape (n, L-1), has the type of each random set;
    `probability`, shape (n,), has the weights.
    """
    rows = np.flatnonzero(probability > 0)
    signal = np.broadcast_to([law.C, 0], (rows.size, 1, 2))
    counts = np.concatenate([signal, law.types[types[rows], :2]], axis=1)
    return Configurations(counts.astype(float), probability[rows])


def number_of_multisets(kinds: int, size: int) -> int:
    """Number of multisets with `size` members from `kinds` kinds."""
    return comb(size + kinds - 1, kinds - 1)


def number_of_configurations(sets: int, set_size: int) -> int:
    """Number of multisets of the types of L-1 random sets, for `sets` = L and `set_size` = C."""
    return number_of_multisets((set_size + 1) * (set_size + 2) // 2, sets - 1)


def multisets(kinds: int, size: int) -> IntArray:
    """All multisets of `size` members from the kinds 0, 1, ..., as ascending rows (n, size)."""
    rows = itertools.combinations_with_replacement(range(kinds), size)
    count = number_of_multisets(kinds, size) * size
    return np.fromiter(itertools.chain.from_iterable(rows), np.int64, count).reshape(-1, size)


@lru_cache(maxsize=4)
def enumeration(patches: int, law: SetLaw) -> Configurations:
    """All configurations of positive probability; above `MAX_CONFIGURATIONS` they are refused."""
    set_size, sets = law.C, patches // law.C
    number = number_of_configurations(sets, set_size)
    if number > MAX_CONFIGURATIONS:
        refuse(
            "expectation",
            "exact",
            f"needs {written(number)} configurations at D={patches} C={set_size}",
            f"exact up to {MAX_CONFIGURATIONS:,} configurations; the spectral expectation has no "
            "such limit",
            "spectral",
        )
    types = multisets(len(law.types), sets - 1)
    return assemble(law, types, multinomial_weights(types, law.probabilities))


def sample(patches: int, law: SetLaw, samples: int, seed: int) -> Configurations:
    """Weighted configurations of randomly drawn types of the L-1 random sets.

    Draws are stratified by the sum z of all patches in random sets. Quantiles of z have equally
    spaced probabilities with one random offset; then types are drawn given z. For 2000 draws at
    D=16, the standard deviation of a gradient, divided by that of independent draws, is 0.2 to 0.4
    early in training, about 0.4 half way and 0.6 to 0.95 late (``make bench`` prints these ratios).

    `patches` is the number D, `law` the law of a random set, `samples` the number of draws, `seed`
    the seed of the `numpy.random.Generator`.
    """
    set_size, sets, generator = law.C, patches // law.C - 1, random_stream(seed)
    probability, own = law.probabilities / law.probabilities.sum(), law.sums
    each = np.bincount(own + set_size, probability).astype(np.float64)
    # sums[r] is the law of the sum of r random sets; its first entry belongs to the sum -r C.
    sums = [np.ones(1)]
    for _ in range(sets):
        sums.append(np.convolve(sums[-1], each))
    quantiles = (np.arange(samples) + generator.random()) / samples
    left = _inverse(sums[sets], quantiles) - sets * set_size
    types = np.empty((samples, sets), dtype=np.int64)
    of_sum = [np.flatnonzero(own == j) for j in range(-set_size, set_size + 1)]
    for r in range(sets, 0, -1):
        set_sum = _one_set(left, each, sums[r - 1], generator.random(samples)) - set_size
        for j, members in enumerate(of_sum):
            rows = np.flatnonzero(set_sum == j - set_size)
            chance = probability[members] / probability[members].sum() if each[j] > 0 else None
            types[rows, r - 1] = generator.choice(members, rows.size, p=chance)
        left = left - set_sum
    distinct, times = np.unique(np.sort(types, axis=1), axis=0, return_counts=True)
    return assemble(law, distinct, times / samples)


def _one_set(left: IntArray, each: FloatArray, rest: FloatArray, chance: FloatArray) -> IntArray:
    """Draw (sum of one set) + C, given the total of this set and the sets not drawn yet."""
    quantiles = np.empty(left.size, dtype=np.int64)
    width = rest.size // 2
    for total in np.unique(left):
        # If this set has the sum j - C, the remaining sets have total - (j - C); their law starts
        # at -width.
        others = total - (np.arange(each.size) - each.size // 2) + width
        inside = (others >= 0) & (others < rest.size)
        joint = np.where(inside, each * rest[np.clip(others, 0, rest.size - 1)], 0.0)
        rows = np.flatnonzero(left == total)
        quantiles[rows] = _inverse(joint / joint.sum(), chance[rows])
    return quantiles


def _inverse(law: FloatArray, chance: FloatArray) -> IntArray:
    """Quantiles of a law on 0, 1, ...; values of probability 0 never occur."""
    grown = np.cumsum(law)
    return np.searchsorted(grown / grown[-1], chance, side="right").astype(np.int64)


def predicted_seconds(parameters: Parameters) -> float:
    """Predicted seconds of a gradient of the exact sum, including a share of building time.

    The result is infinite if the sum exceeds `MAX_CONFIGURATIONS` or `MAX_DEGREES`.
    """
    number = number_of_configurations(parameters.L, parameters.C)
    if number > MAX_CONFIGURATIONS or number * parameters.p > MAX_DEGREES:
        return float("inf")
    return (SECONDS_OF_GRADIENT + SECONDS_OF_PROGRAM / GRADIENTS) * number + OVERHEAD
