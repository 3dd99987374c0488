r"""What the mean over samples is a sum of: weighted count vectors, the law's own or drawn.

Without noise a sample is its counts and its label, so equal samples are one vector with a weight.
Where output weights are per position, the places of the tokens matter too: every vector then has
one order of its tokens, drawn, and samples are only merged where counts decide everything.

- ``exact``: the law itself, enumerated (one drawn order of tokens for each vector, where they have
  places);
- ``sampled``: N samples;
- ``auto``: sampled where a number of samples is given, else exact.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from dynamics.problem import FloatArray
from dynamics.systems.shallow_vit.empirical import sampling
from dynamics.systems.shallow_vit.empirical.sampling import Samples, Streams
from dynamics.systems.shallow_vit.parameters import Parameters
from dynamics.training import minibatches
from dynamics.validation import integer, refuse
from theory.systems.shallow_vit import data_law

IntArray = NDArray[np.int64]

NAMES = ("exact", "sampled", "auto")
MOST_VECTORS = 20_000
"""Count vectors of a law that are enumerated at most."""


@dataclass(frozen=True, eq=False)
class Vectors:
    """Distinct weighted vectors, and which of them every sample is.

    Attributes
    ----------
    counts : int array, shape (S, M)
    labels, weights : float arrays, shape (S,)
        +1 or -1; chances, of sum 1.
    places : int array, shape (S, L), or None
        Pattern of every token, where that matters.
    member : int array, shape (N,)
        Vector of every sample; empty where nothing was drawn.
    """

    counts: IntArray
    labels: FloatArray
    weights: FloatArray
    places: IntArray | None
    member: IntArray

    def batches(self, dealt: Sequence[IntArray] = ()) -> tuple[IntArray, IntArray, FloatArray]:
        """First and one after last place of every batch in a list of vectors, with their shares.

        Parameters
        ----------
        dealt : sequence of int arrays
            Samples of every batch.

        Returns
        -------
        bounds : int array, shape (1 + batches, 2)
            The first row is the whole.
        index : int array
        share : float array
            Of a vector in its batch.
        """
        index, share = [np.arange(self.labels.size)], [self.weights]
        for samples in dealt:
            found, many = np.unique(self.member[samples], return_counts=True)
            index.append(found)
            share.append(many / samples.size)
        return *minibatches.joined(index), np.concatenate(share)


def chosen(expectation: str, samples: int | None) -> str:
    """``exact`` or ``sampled``.

    Raises
    ------
    InvalidRequest
        For another name, or where it does not go with the samples.
    """
    if expectation not in NAMES:
        refuse("expectation", expectation, "is unknown", ", ".join(NAMES), "auto")
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
        Of `sampling.streams`.

    Raises
    ------
    InvalidRequest
        If the law has too many vectors, with their number.
    """
    placed = parameters.output_weights == "per_position"
    if samples is None:
        size = data_law.support_size(parameters.shares, parameters.data)
        if size > MOST_VECTORS:
            problem = f"has {size:,} count vectors, more than are enumerated ({MOST_VECTORS:,})"
            refuse("data", parameters.data, problem, "fixed, or any with samples=N", "samples=1000")
        law = data_law.law(parameters.shares, parameters.data)
        found = Samples(law.counts, law.labels.astype(np.float64))
        weights, member = law.probability, np.empty(0, dtype=np.int64)
    else:
        many = integer("samples", samples, at_least=1, at_most=10**8)
        found, member = sampling.drawn(parameters, many, streams.training), np.arange(many)
        weights = np.full(many, 1.0 / many)
        if not placed:
            found, member = distinct(found)
            weights = np.bincount(member) / many
    places = None
    if placed:
        order = sampling.places_only(found.counts, streams.tokens)
        places = np.ascontiguousarray(order)
    counts = np.ascontiguousarray(found.counts)
    return Vectors(counts, found.labels, weights, places, member)


def distinct(samples: Samples) -> tuple[Samples, IntArray]:
    """Samples without repetitions, in order of appearance, and the place of each among them."""
    known: dict[bytes, int] = {}
    rows = np.column_stack([samples.labels.astype(np.int64), samples.counts])
    member = np.array([known.setdefault(row.tobytes(), len(known)) for row in rows])
    first = np.unique(member, return_index=True)[1]
    return Samples(samples.counts[first], samples.labels[first]), member.astype(np.int64)


def weight_table(
    a: FloatArray, found: Vectors, length: int
) -> tuple[FloatArray, IntArray, FloatArray]:
    """Output weights as the kernels read them: of pattern j, ``scale[j]`` times a row of a table.

    Parameters
    ----------
    a : float array, shape (m,) or (m, L)
    found : Vectors
    length : int
        L.

    Returns
    -------
    table : float array, shape (rows, m)
    rows : int array, shape (S, M)
    scale : float array, shape (S, M)
    """
    counts = found.counts
    if found.places is None:
        return a[None, :], np.zeros(counts.shape, dtype=np.int64), counts / length
    several, patterns = counts.shape
    table = np.empty((several * patterns, a.shape[0]))
    for s, places in enumerate(found.places):
        at = (places[:, None] == np.arange(patterns)).astype(np.float64)
        table[s * patterns : (s + 1) * patterns] = (a @ at).T / length
    rows = np.arange(several * patterns, dtype=np.int64).reshape(counts.shape)
    return table, rows, (counts > 0).astype(np.float64)
