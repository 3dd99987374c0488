r"""Samples: counts of the patterns among the L tokens, labels, and noisy tokens.

The pattern of the label is 1 (index 0) where y = +1 and 2 where y = -1; the other of the two is the
confusion pattern. A sample has counts c of the M patterns, of sum L (`Parameters`: ``data``):

- ``fixed``: n_star, n_confusion, and the rest as even as possible, the first patterns having more;
- ``fixed_disc``: the rest multinomial, uniform over the M - 2 other patterns;
- ``iid``: all counts multinomial; ties of patterns 1 and 2 are rejected, and the two are exchanged
  so that the pattern of the label has the majority.

Labels alternate, beginning with +1: as many + as -, or one more where N is odd (one sample is of
one class). Token l of a sample is :math:`\mu_{\mathrm{pattern}(l)}` and noise :math:`N(0, c_0^2)`
in every coordinate.

Everything is drawn sample by sample: with one seed, more samples begin with the fewer ones. The
`streams` of a seed are the same in every problem, so that problems share start and data.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from dynamics.problem import FloatArray
from dynamics.systems.shallow_vit.parameters import Parameters
from dynamics.validation import integer
from theory.systems.shallow_vit.data_law import chances, even_rest

IntArray = NDArray[np.int64]


class Streams(NamedTuple):
    """What is drawn from a seed, each from a stream of its own.

    Attributes
    ----------
    start : Generator
        Weights; see `start`.
    training, tokens : Generator
        Counts of the training samples; places of their tokens and noise.
    test, test_tokens : Generator
        The same of the test samples.
    order : Generator
        Order of mini-batches.
    """

    start: Generator
    training: Generator
    tokens: Generator
    test: Generator
    test_tokens: Generator
    order: Generator


@dataclass(frozen=True)
class Samples:
    """Counts and labels.

    Attributes
    ----------
    counts : int array, shape (N, M)
    labels : float array, shape (N,)
        +1 or -1.
    """

    counts: IntArray
    labels: FloatArray


def streams(seed: int | Generator, start: int | None = None) -> Streams:
    """The streams of a seed, the weights from another one where ``start`` is given.

    Raises
    ------
    InvalidRequest
        If either is no whole number from 0.
    """
    found = Streams(*_root("seed", seed).spawn(6))
    return found if start is None else found._replace(start=_root("start", start).spawn(6)[0])


def _root(name: str, seed: int | Generator) -> Generator:
    if isinstance(seed, Generator):
        return seed
    return np.random.default_rng(integer(name, seed, at_least=0, at_most=2**62))


def even(parameters: Parameters) -> IntArray:
    """Counts (relevant, confusion, others) of every sample of ``fixed``, shape (M,)."""
    given = parameters.shares
    return np.array([given.n_star, given.n_confusion, *even_rest(given)], dtype=np.int64)


def arranged(counts: IntArray, labels: FloatArray) -> IntArray:
    """Counts (relevant, confusion, others) as counts of the patterns 1, 2, others."""
    swapped = counts.copy()
    swapped[:, :2] = counts[:, 1::-1]
    return np.where(labels[:, None] > 0, counts, swapped)


def drawn(parameters: Parameters, samples: int, generator: Generator) -> Samples:
    """Samples of the data law.

    Parameters
    ----------
    parameters : Parameters
    samples : int
        N.
    generator : numpy Generator
    """
    labels = np.where(np.arange(samples) % 2 == 0, 1.0, -1.0)
    counts = np.tile(even(parameters), (samples, 1))
    if parameters.data == "fixed_disc":
        left, many = int(counts[0, 2:].sum()), parameters.M - 2
        counts[:, 2:] = generator.multinomial(left, np.full(many, 1.0 / many), size=samples)
    elif parameters.data == "iid":
        counts = _without_ties(parameters, samples, generator)
    return Samples(arranged(counts, labels), labels)


def _without_ties(parameters: Parameters, samples: int, generator: Generator) -> IntArray:
    """The first draws without a tie, the majority of patterns 1 and 2 first, shape (N, M)."""
    kept, found = [], 0
    while found < samples:
        counts = generator.multinomial(parameters.L, chances(parameters.shares), size=samples)
        kept.append(counts[counts[:, 0] != counts[:, 1]])
        found += len(kept[-1])
    counts = np.concatenate(kept)[:samples].astype(np.int64)
    counts[:, :2] = np.sort(counts[:, :2], axis=1)[:, ::-1]
    return counts


def patterns(counts: IntArray, generator: Generator) -> IntArray:
    """Pattern of every token, in a random order, shape (N, L).

    Parameters
    ----------
    counts : int array, shape (N, M)
        All of one sum L.
    generator : numpy Generator
    """
    many, length = counts.shape[0], int(counts[0].sum())
    ordered = np.repeat(np.tile(np.arange(counts.shape[1]), many), counts.ravel())
    order = np.argsort(generator.random((many, length)), axis=1, kind="stable")
    return np.take_along_axis(ordered.reshape(many, length), order, axis=1)


def places_and_noise(
    parameters: Parameters, counts: IntArray, generator: Generator
) -> tuple[IntArray, FloatArray]:
    """Pattern of every token (N, L), and standard Gaussian noise (N, L, d).

    Parameters
    ----------
    parameters : Parameters
    counts : int array, shape (N, M)
    generator : numpy Generator
        Of tokens. Places and noise have streams of their own.
    """
    for_places, for_noise = generator.spawn(2)
    places = patterns(counts, for_places)
    return places, for_noise.standard_normal((*places.shape, parameters.d))


def places_only(counts: IntArray, generator: Generator) -> IntArray:
    """The places of `places_and_noise`, without the noise."""
    return patterns(counts, generator.spawn(2)[0])


def tokens(parameters: Parameters, places: IntArray, noise: FloatArray) -> FloatArray:
    """Tokens mu_pattern + c_0 noise, shape (N, L, d)."""
    return np.eye(parameters.d)[places] + parameters.noise * noise
