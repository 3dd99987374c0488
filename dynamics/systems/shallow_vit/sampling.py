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

Without noise a sample is its counts and its label, so equal samples are one vector with a weight
(`Vectors`). Where output weights are per position, the positions of the tokens matter too: every
vector then has one order of its tokens, and samples are only merged where counts decide everything.

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
from dynamics.validation import (
    check_cost,
    integer,
    known_word,
    random_stream,
    refuse,
    written,
)
from theory.papers.shallow_vit import data_law

IntArray = NDArray[np.int64]

RELEVANT, CONFUSION, OTHER = range(3)
EXPECTATIONS = ("exact", "sampled", "auto")
MOST_NUMBERS = 2**29
"""Numbers of all samples: 4 GiB."""
MOST_VECTORS = 20_000
"""Count vectors of a law that are enumerated at most."""


class Streams(NamedTuple):
    """What is drawn from a seed, each from a stream of its own.

    Attributes
    ----------
    start : Generator
        Weights; see `start`.
    training, tokens : Generator
        Counts of the training samples; positions of their tokens and noise.
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
    """The streams of a seed, the weights from another one where ``start`` is not None.

    Parameters
    ----------
    seed : int or numpy Generator
    start : int or None
        Another seed, for the weights alone.

    Raises
    ------
    InvalidRequest
        If either is no whole number from 0.
    """
    result = Streams(*random_stream(seed).spawn(6))
    if start is None:
        return result
    return result._replace(start=random_stream(start, "start").spawn(6)[0])


def even(parameters: Parameters) -> IntArray:
    """Counts (relevant, confusion, others) of every sample of ``fixed``, shape (M,)."""
    shares = parameters.shares
    counts = [shares.n_star, shares.n_confusion, *data_law.even_rest(shares)]
    return np.array(counts, dtype=np.int64)


def arranged(counts: IntArray, labels: FloatArray) -> IntArray:
    """Counts (relevant, confusion, others) as counts of the patterns 1, 2, others.

    Parameters
    ----------
    counts : int array, shape (N, M)
    labels : float array, shape (N,)
        +1 or -1.
    """
    swapped = counts.copy()
    swapped[:, :2] = counts[:, 1::-1]
    return np.where(labels[:, None] > 0, counts, swapped)


def count_vectors(parameters: Parameters, samples: int, generator: Generator) -> Samples:
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
    chances, parts, many = data_law.chances(parameters.shares), [], 0
    while many < samples:
        counts = generator.multinomial(parameters.L, chances, size=samples)
        parts.append(counts[counts[:, 0] != counts[:, 1]])
        many += len(parts[-1])
    counts = np.concatenate(parts)[:samples].astype(np.int64)
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


def patterns_and_noise(
    parameters: Parameters, counts: IntArray, generator: Generator
) -> tuple[IntArray, FloatArray]:
    """Pattern of every token (N, L), and standard Gaussian noise (N, L, d).

    Parameters
    ----------
    parameters : Parameters
    counts : int array, shape (N, M)
    generator : numpy Generator
        Of tokens. Positions and noise have streams of their own.
    """
    for_patterns, for_noise = generator.spawn(2)
    sequences = patterns(counts, for_patterns)
    return sequences, for_noise.standard_normal((*sequences.shape, parameters.d))


def patterns_only(counts: IntArray, generator: Generator) -> IntArray:
    """The patterns of `patterns_and_noise`, without the noise.

    Parameters
    ----------
    counts : int array, shape (N, M)
    generator : numpy Generator
        Of tokens.
    """
    return patterns(counts, generator.spawn(2)[0])


def tokens(parameters: Parameters, sequences: IntArray, noise: FloatArray) -> FloatArray:
    """Tokens mu_pattern + c_0 noise, shape (N, L, d).

    Parameters
    ----------
    parameters : Parameters
    sequences : int array, shape (N, L)
        Pattern of every token.
    noise : float array, shape (N, L, d)
        Standard Gaussian.
    """
    return np.eye(parameters.d)[sequences] + parameters.noise * noise


def kinds(sequences: IntArray, labels: FloatArray) -> IntArray:
    """Of every token: 0 the pattern of the label, 1 the confusion pattern, 2 another.

    Parameters
    ----------
    sequences : int array, shape (N, L)
        Patterns, from 0.
    labels : float array, shape (N,)
    """
    relevant = np.where(labels > 0, 0, 1)[:, None]
    discriminative = np.where(sequences == relevant, RELEVANT, CONFUSION)
    return np.where(sequences < 2, discriminative, OTHER).astype(np.int64)


@dataclass(frozen=True, eq=False)
class Vectors:
    """Distinct weighted vectors, and which of them every sample is.

    Attributes
    ----------
    counts : int array, shape (S, M)
    labels, weights : float arrays, shape (S,)
        +1 or -1; chances, of sum 1.
    sequences : int array, shape (S, L), or None
        Pattern of every token, where that matters.
    member : int array, shape (N,)
        Vector of every sample; empty where nothing was drawn.
    """

    counts: IntArray
    labels: FloatArray
    weights: FloatArray
    sequences: IntArray | None
    member: IntArray


def expectation_of(expectation: str, samples: int | None) -> str:
    """Name of the expectation, ``exact`` or ``sampled``.

    Parameters
    ----------
    expectation : str
        One of `EXPECTATIONS`.
    samples : int or None
        N; None for the law itself.

    Raises
    ------
    InvalidRequest
        For another name, or where it does not go with the samples.
    """
    known_word("expectation", expectation, EXPECTATIONS)
    if expectation == "exact" and samples is not None:
        refuse("samples", samples, "are drawn, and the expectation is exact", "left out", "sampled")
    if expectation == "sampled" and samples is None:
        refuse("samples", samples, "is not given", "a whole number of at least 1", 100)
    return "exact" if samples is None else "sampled"


def vectors(parameters: Parameters, samples: int | None, streams: Streams) -> Vectors:
    """The vectors of the law, or of N samples.

    Parameters
    ----------
    parameters : Parameters
    samples : int or None
        N; None for the law itself.
    streams : Streams

    Raises
    ------
    InvalidRequest
        If the law has too many vectors, with their number.
    """
    per_position = parameters.output_weights == "per_position"
    if samples is None:
        size = data_law.support_size(parameters.shares, parameters.data)
        if size > MOST_VECTORS:
            problem = (
                f"has {written(size)} count vectors, more than are enumerated ({MOST_VECTORS:,})"
            )
            refuse("data", parameters.data, problem, "fixed, or any with samples=N", "samples=1000")
        law = data_law.law(parameters.shares, parameters.data)
        rows = Samples(law.counts, law.labels.astype(np.float64))
        weights, member = law.probability, np.empty(0, dtype=np.int64)
    else:
        many = integer("samples", samples, at_least=1, at_most=10**8)
        size = 4 * (parameters.L if per_position else parameters.M)
        check_cost("samples", many, lambda n: n * size, MOST_NUMBERS, "numbers")
        rows, member = count_vectors(parameters, many, streams.training), np.arange(many)
        weights = np.full(many, 1.0 / many)
        if not per_position:
            rows, member = distinct(rows)
            weights = np.bincount(member) / many
    sequences = None
    if per_position:
        order = patterns_only(rows.counts, streams.tokens)
        sequences = np.ascontiguousarray(order)
    counts = np.ascontiguousarray(rows.counts)
    return Vectors(counts, rows.labels, weights, sequences, member)


def distinct(samples: Samples) -> tuple[Samples, IntArray]:
    """Samples without repetitions, in order of appearance, and the index of each among them."""
    indices: dict[bytes, int] = {}
    rows = np.column_stack([samples.labels.astype(np.int64), samples.counts])
    member = np.array([indices.setdefault(row.tobytes(), len(indices)) for row in rows])
    first = np.unique(member, return_index=True)[1]
    return Samples(samples.counts[first], samples.labels[first]), member.astype(np.int64)


def weight_table(
    a: FloatArray, law: Vectors, length: int
) -> tuple[FloatArray, IntArray, FloatArray]:
    """Output weights as the kernels read them: of pattern j, ``scale[j]`` times a row of a table.

    Parameters
    ----------
    a : float array, shape (m,) or (m, L)
    law : Vectors
    length : int
        L.

    Returns
    -------
    table : float array, shape (rows, m)
    rows : int array, shape (S, M)
    scale : float array, shape (S, M)
    """
    counts = law.counts
    if law.sequences is None:
        return a[None, :], np.zeros(counts.shape, dtype=np.int64), counts / length
    several, patterns = counts.shape
    table = np.empty((several * patterns, a.shape[0]))
    for s, sequences in enumerate(law.sequences):
        at = (sequences[:, None] == np.arange(patterns)).astype(np.float64)
        table[s * patterns : (s + 1) * patterns] = (a @ at).T / length
    rows = np.arange(several * patterns, dtype=np.int64).reshape(counts.shape)
    return table, rows, (counts > 0).astype(np.float64)


def token_patterns(vectors: Vectors) -> IntArray:
    """Pattern of every token, shape (S, L); sorted by pattern where positions do not matter."""
    if vectors.sequences is not None:
        return vectors.sequences
    patterns = np.arange(vectors.counts.shape[1])
    return np.stack([np.repeat(patterns, row) for row in vectors.counts])
