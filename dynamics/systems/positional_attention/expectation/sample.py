"""The sampled expectation: configurations drawn from the law, equal ones gathered.

Unbiased, with the standard errors that one sample shows. What is rare is missing from it: late in
training the gradient is carried by configurations of probability below 1e-7, which a sample of any
usual size does not contain, and its standard error cannot know of them.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

import numpy as np

from dynamics.systems.positional_attention.expectation import weighted
from dynamics.systems.positional_attention.expectation.configurations import (
    Configurations,
    assemble,
    type_compositions,
    type_probabilities,
)
from dynamics.systems.positional_attention.expectation.weighted import WeightedSum
from theory.systems.positional_attention import recursion

if TYPE_CHECKING:
    from dynamics.systems.positional_attention.parameters import Parameters


def sampled(parameters: Parameters, samples: int, seed: int) -> WeightedSum:
    """The mean over drawn configurations of a problem, ready to run."""
    chosen = configurations(parameters.D, parameters.C, parameters.q, samples, seed)
    return WeightedSum(
        "sampled",
        weighted.compiled(parameters.p, chosen.threaded),
        weighted.arrays(chosen, recursion.derive(parameters.p), parameters),
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
    sets = patches // set_size - 1
    law = type_probabilities(type_compositions(set_size), q)
    drawn = np.random.default_rng(seed).multinomial(sets, law / law.sum(), size=samples)
    counts, times = np.unique(drawn, axis=0, return_counts=True)
    kinds = np.broadcast_to(np.arange(law.size), counts.shape).ravel()
    types = np.repeat(kinds, counts.ravel()).reshape(len(counts), sets)
    return assemble(patches, set_size, types, times / samples)
