"""Noisy tokens of training and test samples, and the options that say how they are made.

A token is mu_pattern and Gaussian noise in every coordinate, of standard deviation c_0, or of
another one for the noisy ones. Some go before the network sees them (`sparsify`).
"""

from __future__ import annotations

import dataclasses
from typing import Annotated, Any

import numpy as np
import pydantic
from numpy.random import Generator
from pydantic import BeforeValidator

from dynamics.problem import FloatArray
from dynamics.systems.shallow_vit.empirical import sampling, sparsification
from dynamics.systems.shallow_vit.parameters import Parameters
from dynamics.systems.shallow_vit.realization import SYMMETRIC
from dynamics.systems.shallow_vit.reduced import unrolled
from dynamics.validation import STRICT, integer, number, refuse, whole


def _sparsifier(value: object) -> str | None:
    if value in (None, "none"):
        return None
    if value not in sparsification.SPARSIFIERS:
        words = ", ".join(sparsification.SPARSIFIERS)
        refuse("sparsify", value, "is unknown", f"none, {words}", sparsification.SPARSIFIERS[0])
    return str(value)


def _start(value: object) -> int | str | None:
    if value is None or value == SYMMETRIC:
        return None if value is None else SYMMETRIC
    if isinstance(value, str):
        refuse("start", value, "is unknown", "a whole number, or 'symmetric'", SYMMETRIC)
    return integer("start", value, at_least=0, at_most=2**62)


@pydantic.dataclasses.dataclass(frozen=True, config=STRICT, kw_only=True)
class Training:
    """How the empirical problem is trained, and what is done to its tokens.

    Attributes
    ----------
    start : int, "symmetric" or None
        Another seed, for the weights alone; or a symmetric start, as of `ReducedPopulation`.
    batch : int or None
        Samples of a mini-batch. Every epoch deals the samples out anew, each to one batch; a batch
        of all samples or more is all of them.
    sparsify : str or None
        Which tokens go first, of training and test samples: ``"random"``, ``"irrelevant"``,
        ``"noisiest"``; see `sparsify`.
    removed : float
        Share of the tokens of every sample that go.
    noisy_share : float
        Share of the tokens of every sample, in random places, whose noise is ``noisy_std``.
    noisy_std : float
        Standard deviation per coordinate of their noise.
    test_samples : int
        Fresh samples for test loss and test error.
    """

    start: Annotated[int | str | None, BeforeValidator(_start)] = None
    batch: whole(1, optional=True) = None  # type: ignore[valid-type]
    sparsify: Annotated[str | None, BeforeValidator(_sparsifier)] = None
    removed: number(at_least=0.0) = 0.0  # type: ignore[valid-type]
    noisy_share: number(at_least=0.0, at_most=1.0) = 0.0  # type: ignore[valid-type]
    noisy_std: number(at_least=0.0) = 1.0  # type: ignore[valid-type]
    test_samples: whole(1) = 1000  # type: ignore[valid-type]


@dataclasses.dataclass(frozen=True)
class Tokens:
    """Samples as the network sees them.

    Attributes
    ----------
    values : float array, shape (N, L', d)
        Tokens.
    places : int array, shape (N, L')
        Their patterns, from 0.
    kinds : int array, shape (N, L')
        0 relevant, 1 confusion, 2 another.
    labels : float array, shape (N,)
    """

    values: FloatArray
    places: sampling.IntArray
    kinds: sampling.IntArray
    labels: FloatArray

    def compiled(self) -> tuple[Any, ...]:
        """What the kernels read: tokens, the same with queries contiguous, labels, kinds."""
        many, length, depth = self.values.shape
        rows = unrolled.aligned(many, depth, unrolled.padded(length))
        rows[:, :, :length] = self.values.transpose(0, 2, 1)
        return np.ascontiguousarray(self.values), rows, self.labels, self.kinds


def drawn(
    parameters: Parameters,
    samples: int,
    training: Training,
    counts: Generator,
    tokens: Generator,
) -> Tokens:
    """Noisy tokens of samples of the data law, some of them removed.

    Parameters
    ----------
    parameters : Parameters
    samples : int
        N.
    training : Training
    counts, tokens : numpy Generator
        Of the counts, and of places and noise; which tokens are noisy and which go have streams of
        their own, so that they change nothing else.
    """
    left = sparsification.remaining(parameters, training.sparsify, training.removed)
    found = sampling.drawn(parameters, samples, counts)
    places, noise = sampling.places_and_noise(parameters, found.counts, tokens)
    for_noisy, for_removed = tokens.spawn(2)
    noisy = round(training.noisy_share * parameters.L)
    rank = np.argsort(for_noisy.random(places.shape), axis=1, kind="stable")
    spread = np.full(places.shape, parameters.noise)
    np.put_along_axis(spread, rank[:, :noisy], training.noisy_std, axis=1)
    noise *= spread[:, :, None]
    kinds = sparsification.kinds(places, found.labels)
    distance = np.linalg.norm(noise, axis=2)
    stay = sparsification.kept(training.sparsify, left, kinds, distance, for_removed)
    places, kinds = (np.take_along_axis(part, stay, axis=1) for part in (places, kinds))
    values = np.eye(parameters.d)[places] + np.take_along_axis(noise, stay[:, :, None], axis=1)
    return Tokens(values, places, kinds, found.labels)
