r"""Samples: counts of the patterns among the L tokens, labels, and noisy tokens.

The pattern of the label is pattern 1 (index 0) for y = +1 and pattern 2 for y = -1; the other one
of these two is the confusion pattern. The counts of the M patterns in a sample have the sum L. The
parameter ``data`` names the law of the counts:

- ``fixed``: n_star, n_confusion, and the rest as even as possible, with more of the first patterns;
- ``fixed_disc``: n_star, n_confusion, and the rest uniform over the M - 2 other patterns;
- ``iid``: all counts multinomial; ties of patterns 1 and 2 are rejected, and the two are exchanged
  so that the pattern of the label has the majority.

Labels alternate from +1. Token l of a sample is :math:`\mu_{\mathrm{pattern}(l)}` plus noise
:math:`N(0, c_0^2)` in every coordinate.

Without noise, counts and label determine a sample, so equal samples become one vector with a weight
(`Vectors`). With output weights per position, the order of tokens matters, and equal samples are
not merged.

Samples are drawn one by one, so a larger N extends the samples of a smaller N with the same seed.
The `streams` of a seed are the same in every problem, so problems share start and data.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from dynamics.papers.shallow_vit.parameters import Parameters
from dynamics.problem import FloatArray
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
"""Maximum count of numbers in all samples, which take 4 GiB."""
MOST_VECTORS = 20_000
"""Maximum number of count vectors of an enumerated law; a larger law must be sampled."""


class Streams(NamedTuple):
    """Independent random streams of a seed.

    `start` draws the weights. `training` draws the counts of the training samples, `tokens` the
    positions and noise of their tokens; `test` and `test_tokens` do the same for the test samples.
    `order` draws the order of mini-batches.
    """

    start: Generator
    training: Generator
    tokens: Generator
    test: Generator
    test_tokens: Generator
    order: Generator


@dataclass(frozen=True)
class Samples:
    """Samples: counts of the patterns, shape (N, M), and labels +1 or -1, shape (N,)."""

    counts: IntArray
    labels: FloatArray


def streams(seed: int | Generator, start: int | None = None) -> Streams:
    """Random streams of a nonnegative seed; a second seed `start` draws the weights if given."""
    result = Streams(*random_stream(seed).spawn(6))
    if start is None:
        return result
    return result._replace(start=random_stream(start, "start").spawn(6)[0])


def even(parameters: Parameters) -> IntArray:
    """Counts of relevant, confusion and other tokens in samples of ``fixed``, shape (M,)."""
    shares = parameters.shares
    counts = [shares.n_star, shares.n_confusion, *data_law.even_rest(shares)]
    return np.array(counts, dtype=np.int64)


def arranged(counts: IntArray, labels: FloatArray) -> IntArray:
    """Counts (N, M) of patterns 1, 2, others, from counts of relevant, confusion, other tokens."""
    swapped = counts.copy()
    swapped[:, :2] = counts[:, 1::-1]
    return np.where(labels[:, None] > 0, counts, swapped)


def count_vectors(parameters: Parameters, samples: int, generator: Generator) -> Samples:
    """Draw N samples of the data law."""
    labels = np.where(np.arange(samples) % 2 == 0, 1.0, -1.0)
    counts = np.tile(even(parameters), (samples, 1))
    if parameters.data == "fixed_disc":
        left, many = int(counts[0, 2:].sum()), parameters.M - 2
        counts[:, 2:] = generator.multinomial(left, np.full(many, 1.0 / many), size=samples)
    elif parameters.data == "iid":
        counts = _without_ties(parameters, samples, generator)
    return Samples(arranged(counts, labels), labels)


def _without_ties(parameters: Parameters, samples: int, generator: Generator) -> IntArray:
    """Counts (N, M), drawn until patterns 1 and 2 differ; the larger of the two counts is first."""
    chances, parts, many = data_law.chances(parameters.shares), [], 0
    while many < samples:
        counts = generator.multinomial(parameters.L, chances, size=samples)
        parts.append(counts[counts[:, 0] != counts[:, 1]])
        many += len(parts[-1])
    counts = np.concatenate(parts)[:samples].astype(np.int64)
    counts[:, :2] = np.sort(counts[:, :2], axis=1)[:, ::-1]
    return counts


def patterns(counts: IntArray, generator: Generator) -> IntArray:
    """Pattern of every token, in a random order, shape (N, L), from counts (N, M)."""
    many, length = counts.shape[0], int(counts[0].sum())
    ordered = np.repeat(np.tile(np.arange(counts.shape[1]), many), counts.ravel())
    order = np.argsort(generator.random((many, length)), axis=1, kind="stable")
    return np.take_along_axis(ordered.reshape(many, length), order, axis=1)


def kinds(sequences: IntArray, labels: FloatArray) -> IntArray:
    """Kind of every token: 0 for the label's pattern, 1 for the confusion pattern, 2 for others."""
    relevant = np.where(labels > 0, 0, 1)[:, None]
    discriminative = np.where(sequences == relevant, RELEVANT, CONFUSION)
    return np.where(sequences < 2, discriminative, OTHER).astype(np.int64)


def expectation_of(expectation: str, samples: int | None) -> str:
    """Name of the expectation, ``exact`` or ``sampled``; ``auto`` depends on `samples`.

    `samples` is the number N, or None for the law. Raises InvalidRequest for another name, or for a
    name that contradicts `samples`.
    """
    known_word("expectation", expectation, EXPECTATIONS)
    if expectation == "exact" and samples is not None:
        refuse("samples", samples, "are drawn, but the expectation is exact", "left out", "sampled")
    if expectation == "sampled" and samples is None:
        refuse("samples", samples, "is not given", "a whole number of at least 1", 100)
    return "exact" if samples is None else "sampled"


@dataclass(frozen=True, eq=False)
class Tokens:
    """Samples as lists of distinct tokens, which are the input of a network.

    `values`, shape (N, n, d), has the tokens, or None if tokens are patterns. `patterns`, shape (N,
    n), has the pattern of each token, from 0; `labels`, shape (N,), is +1 or -1; `times`, shape (N,
    n), counts the occurrences of each token. `weights`, shape (N,), has the probabilities of the
    samples, with sum 1; `output`, shape (N, n, m), has output weights, or None if all samples have
    the same.
    """

    values: FloatArray | None
    patterns: IntArray
    labels: FloatArray
    times: FloatArray
    weights: FloatArray
    output: FloatArray | None = None

    @cached_property
    def kinds(self) -> IntArray:
        """Kind of every token, shape (N, n): 0 relevant, 1 confusion, 2 other."""
        return kinds(self.patterns, self.labels)

    def arrays(self) -> dict[str, FloatArray]:
        """Name -> array of the samples that the loss reads."""
        found = {"times": self.times, "y": self.labels}
        found |= {"is_relevant": 1.0 * (self.kinds == RELEVANT)}
        found |= {"is_confusion": 1.0 * (self.kinds == CONFUSION)}
        own = {"X": self.values, "a": self.output}
        return found | {name: part for name, part in own.items() if part is not None}


@dataclass(frozen=True, eq=False)
class Vectors:
    """Distinct count vectors with their probabilities, and the number of each sample's vector.

    `counts` has shape (S, M); `labels`, shape (S,), is +1 or -1; `weights`, shape (S,), has
    probabilities with sum 1. `member`, shape (N,), has the index of the vector of every sample and
    is empty for the law. `sequences`, shape (S, L), has the pattern of every token, or is None if
    positions do not matter.
    """

    counts: IntArray
    labels: FloatArray
    weights: FloatArray
    member: IntArray
    sequences: IntArray | None

    def on_patterns(self, a: FloatArray) -> Tokens:
        """One token per pattern, with output weights averaged over the pattern's positions."""
        many, output = np.arange(self.counts.shape[1]), None
        if self.sequences is not None:
            at = (self.sequences[:, None] == many[:, None]) / np.maximum(self.counts, 1)[:, :, None]
            output = at @ a.T
        patterns, times = np.tile(many, (self.labels.size, 1)), self.counts.astype(float)
        return Tokens(None, patterns, self.labels, times, self.weights, output)

    def token_by_token(self, depth: int) -> Tokens:
        """Tokens of d entries, one per position; sorted by pattern if positions do not matter."""
        many, patterns = np.arange(self.counts.shape[1]), self.sequences
        if patterns is None:
            patterns = np.stack([np.repeat(many, row) for row in self.counts])
        times = np.ones(patterns.shape)
        return Tokens(np.eye(depth)[patterns], patterns, self.labels, times, self.weights)


def vectors(parameters: Parameters, samples: int | None, streams: Streams) -> Vectors:
    """Count vectors of N samples, or of the law itself if `samples` is None.

    Raises InvalidRequest if the law has more than `MOST_VECTORS` count vectors.
    """
    per_position = parameters.output_weights == "per_position"
    if samples is None:
        size = data_law.support_size(parameters.shares, parameters.data)
        if size > MOST_VECTORS:
            problem = f"has {written(size)} count vectors, above the limit of {MOST_VECTORS:,}"
            allowed = "fixed, or another value together with samples=N"
            refuse("data", parameters.data, problem, allowed, "samples=1000")
        law = data_law.law(parameters.shares, parameters.data)
        counts, labels, weights = law.counts, law.labels.astype(np.float64), law.probability
        member = np.empty(0, dtype=np.int64)
    else:
        many = integer("samples", samples, at_least=1, at_most=10**8)
        size = 4 * (parameters.L if per_position else parameters.M)
        check_cost("samples", many, lambda n: n * size, MOST_NUMBERS, "numbers")
        drawn, member = count_vectors(parameters, many, streams.training), np.arange(many)
        counts, labels, weights = drawn.counts, drawn.labels, np.full(many, 1.0 / many)
        if not per_position:
            rows = np.column_stack([labels.astype(np.int64), counts])
            rows, member, times = np.unique(rows, axis=0, return_inverse=True, return_counts=True)
            counts, labels, weights = rows[:, 1:], rows[:, 0].astype(np.float64), times / many
    sequences = patterns(counts, streams.tokens.spawn(1)[0]) if per_position else None
    return Vectors(np.ascontiguousarray(counts), labels, weights, member.ravel(), sequences)
