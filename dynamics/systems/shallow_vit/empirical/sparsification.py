r"""Token sparsification: L' = L - round(removed L) tokens of every sample are kept (Remark 2).

Which go first is a matter of the sparsifier:

- ``random``: any;
- ``irrelevant``: those whose pattern does not affect the label, then those of the confusion
  pattern, then those of the label's, each kind in random order;
- ``noisiest``: those farthest from their pattern.

The tokens that stay keep their order. Every sample loses the same number, in training and in test,
so the network sees sequences of one length L'.
"""

from __future__ import annotations

import numpy as np
from numpy.random import Generator

from dynamics.problem import FloatArray
from dynamics.systems.shallow_vit.empirical.sampling import IntArray
from dynamics.systems.shallow_vit.parameters import Parameters
from dynamics.validation import refuse
from theory.systems.shallow_vit.data_law import rounded

SPARSIFIERS = ("random", "irrelevant", "noisiest")
RELEVANT, CONFUSION, OTHER = range(3)


def remaining(parameters: Parameters, sparsify: str | None, removed: float) -> int:
    """L', the tokens of a sample that stay.

    Raises
    ------
    InvalidRequest
        If none stays, or if some are to go and no sparsifier says which.
    """
    length = parameters.L
    gone = rounded(removed, length)
    if gone and sparsify is None:
        words = ", ".join(SPARSIFIERS)
        problem = f"does not say which tokens go first, with removed={removed:g}"
        refuse("sparsify", None, problem, words, SPARSIFIERS[0])
    if gone >= length:
        most = (length - 1) / length
        problem = f"removes every token of L={length}"
        refuse("removed", removed, problem, f"0 to {most:g}", f"{most:g}")
    return length - gone


def kinds(places: IntArray, labels: FloatArray) -> IntArray:
    """Of every token: 0 the pattern of the label, 1 the confusion pattern, 2 another.

    Parameters
    ----------
    places : int array, shape (N, L)
        Patterns, from 0.
    labels : float array, shape (N,)
    """
    relevant = np.where(labels > 0, 0, 1)[:, None]
    discriminative = np.where(places == relevant, RELEVANT, CONFUSION)
    return np.where(places < 2, discriminative, OTHER).astype(np.int64)


def kept(
    sparsify: str | None,
    remaining: int,
    kinds: IntArray,
    distance: FloatArray,
    generator: Generator,
) -> IntArray:
    """Places of the tokens that stay, ascending, shape (N, L').

    Parameters
    ----------
    sparsify : str or None
    remaining : int
        L'.
    kinds : int array, shape (N, L)
    distance : float array, shape (N, L)
        Of each token from its pattern.
    generator : numpy Generator
        Decides between tokens that are alike.
    """
    chance = generator.random(kinds.shape)
    first = {None: chance, "random": chance, "irrelevant": chance - kinds, "noisiest": -distance}
    order = np.argsort(first[sparsify], axis=1, kind="stable")
    return np.sort(order[:, kinds.shape[1] - remaining :], axis=1).astype(np.int64)
