"""The sampled expectation: configurations drawn from the law, equal ones gathered.

Draws are stratified by the sum z of the random sets: its quantiles are taken at equal distances
with one random offset, and the types given z. The standard deviation of 2000 draws at D=16 falls to
0.2 to 0.4 of that of independent draws early in training, to about 0.4 half way, to 0.6 to 0.95
late. Antithetic draws (every set's signs exchanged) do not pay: from the first plateau on they
leave 0.95 to 1.00 of the variance of a gradient. ``make bench`` prints both, as variances.

Unbiased, with the standard errors that one sample shows. What is rare is missing from it: late in
training the gradient is carried by configurations of probability below 1e-7, which a sample of any
usual size does not contain, and its standard error cannot know of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray

from dynamics.systems.positional_attention.reduced import weighted_sum
from dynamics.systems.positional_attention.reduced.configurations import (
    Configurations,
    assemble,
    type_compositions,
    type_probabilities,
)
from dynamics.systems.positional_attention.reduced.weighted_sum import WeightedSum
from theory.systems.positional_attention import recursion

if TYPE_CHECKING:
    from dynamics.systems.positional_attention.parameters import Parameters

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]


def sampled(parameters: Parameters, samples: int, seed: int) -> WeightedSum:
    """The mean over drawn configurations of a problem, ready to run."""
    chosen = configurations(parameters.D, parameters.C, parameters.q, samples, seed)
    return WeightedSum(
        "sampled",
        weighted_sum.compiled(parameters.p, chosen.threaded),
        weighted_sum.arrays(chosen, recursion.derive(parameters.p), parameters),
        {"expectation": "sampled", "samples": samples, "seed": seed},
        chosen,
        samples,
    )


def configurations(
    patches: int, set_size: int, q: float, samples: int, seed: int
) -> Configurations:
    """So many draws of the types of the L-1 random sets, as weighted configurations.

    Parameters
    ----------
    patches, set_size : int
        D and C.
    q : float
        q.
    samples : int
        Number of draws.
    seed : int
        Seed of the `numpy.random.Generator`.
    """
    sets, generator = patches // set_size - 1, np.random.default_rng(seed)
    composition = type_compositions(set_size)
    law = type_probabilities(composition, q)
    law = law / law.sum()
    own = composition[:, 0] - composition[:, 1]
    each = np.bincount(own + set_size, law).astype(np.float64)
    # Laws of the sum of 0, 1, ..., sets sets; that of r sets begins at -r C.
    sums = [np.ones(1)]
    for _ in range(sets):
        sums.append(np.convolve(sums[-1], each))
    quantiles = (np.arange(samples) + generator.random()) / samples
    left = _inverse(sums[sets], quantiles) - sets * set_size
    types = np.empty((samples, sets), dtype=np.int64)
    of_sum = [np.flatnonzero(own == j) for j in range(-set_size, set_size + 1)]
    for r in range(sets, 0, -1):
        drawn = _one_set(left, each, sums[r - 1], generator.random(samples)) - set_size
        for j, members in enumerate(of_sum):
            rows = np.flatnonzero(drawn == j - set_size)
            chance = law[members] / law[members].sum() if each[j] > 0 else None
            types[rows, r - 1] = generator.choice(members, rows.size, p=chance)
        left = left - drawn
    distinct, times = np.unique(np.sort(types, axis=1), axis=0, return_counts=True)
    return assemble(patches, set_size, distinct, times / samples)


def _one_set(left: IntArray, each: FloatArray, rest: FloatArray, chance: FloatArray) -> IntArray:
    """Sum of one set, counted from -C, given what it and the rest of the sets add up to."""
    found = np.empty(left.size, dtype=np.int64)
    width = rest.size // 2
    for total in np.unique(left):
        # Own sum j - C leaves total - (j - C) for the others, whose law begins at -width.
        place = total - (np.arange(each.size) - each.size // 2) + width
        inside = (place >= 0) & (place < rest.size)
        joint = np.where(inside, each * rest[np.clip(place, 0, rest.size - 1)], 0.0)
        rows = np.flatnonzero(left == total)
        found[rows] = _inverse(joint / joint.sum(), chance[rows])
    return found


def _inverse(law: FloatArray, chance: FloatArray) -> IntArray:
    """Quantiles of a law on 0, 1, ...; never a value of probability 0."""
    grown = np.cumsum(law)
    return np.searchsorted(grown / grown[-1], chance, side="right").astype(np.int64)
