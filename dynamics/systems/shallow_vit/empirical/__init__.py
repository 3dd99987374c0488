r"""The empirical problem: N samples of noisy tokens, every entry of W_O, W_V, W_K, W_Q free.

A token is mu_pattern and Gaussian noise in every coordinate, of standard deviation c_0, or of
another one for the noisy ones. Token sparsification (Remark 2): L' = L - [removed L] tokens of
every sample stay. Which go first is a matter of the sparsifier:

- ``random``: any;
- ``irrelevant``: those whose pattern does not affect the label, then those of the confusion
  pattern, then those of the label's, each kind in random order;
- ``noisiest``: those farthest from their pattern.

The tokens that stay keep their order. Every sample loses the same number, in training and in test,
so the network sees sequences of one length L'.
"""

from __future__ import annotations

from functools import cached_property
from typing import Annotated, Any

import numpy as np
import pydantic
from numpy.random import Generator
from pydantic import BeforeValidator

from dynamics.problem import FloatArray
from dynamics.systems.empirical_problem import Batch, sampling_settings
from dynamics.systems.shallow_vit import sampling
from dynamics.systems.shallow_vit.full import TokenProblem, Tokens
from dynamics.systems.shallow_vit.parameters import Parameters
from dynamics.systems.shallow_vit.projection import Reader
from dynamics.systems.shallow_vit.realization import SYMMETRIC, start_of
from dynamics.systems.shallow_vit.sampling import IntArray
from dynamics.training.minibatches import MiniBatches
from dynamics.validation import (
    STRICT,
    check_cost,
    check_parameters,
    integer,
    known_word,
    number,
    refuse,
    refusing,
    whole,
)
from theory.papers.shallow_vit.data_law import rounded

SPARSIFIERS = ("random", "irrelevant", "noisiest")


def _sparsifier(value: object) -> str | None:
    if value in (None, "none"):
        return None
    return known_word("sparsify", value, ("none", *SPARSIFIERS))


def _start(value: object) -> int | str | None:
    if value is None or value == SYMMETRIC:
        return None if value is None else SYMMETRIC
    if isinstance(value, str):
        refuse("start", value, "is unknown", "a whole number, or 'symmetric'", SYMMETRIC)
    return integer("start", value, at_least=0, at_most=2**62)


@refusing
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
        ``"noisiest"``; see the top of this page.
    removed : float
        Share of the tokens of every sample that go.
    noisy_share : float
        Share of the tokens of every sample, at random positions, whose noise is ``noisy_std``: the
        nearest whole number of tokens, halves up, as of ``removed``.
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


class FullEmpirical(TokenProblem):
    """W_O, W_V, W_K and W_Q trained, every entry, on N samples of noisy tokens.

    Parameters
    ----------
    parameters : Parameters
    samples : int
        N.
    seed : int or numpy Generator
        Of the start, the samples, the test samples and the mini-batches; see `sampling.streams`.
    **training
        See `Training`: ``start``, ``batch``, ``sparsify``, ``removed``, ``noisy_share``,
        ``noisy_std``, ``test_samples``.

    Raises
    ------
    InvalidRequest
        In one line, for a number of samples or an option that cannot be, and for a sparsifier that
        removes every token.

    Notes
    -----
    The gradient is that of all samples; `advance` takes the batch of each step. Order parameters
    are those of all training samples: with mini-batches, a step also makes one pass without slopes
    over all of them.
    """

    view = "full empirical"

    def __init__(
        self,
        parameters: Parameters,
        samples: int = 200,
        seed: int | Generator = 0,
        **training: Any,
    ) -> None:
        check_parameters(parameters, Parameters)
        self.samples = integer("samples", samples, at_least=1, at_most=10**8)
        self.training = Training(**training)
        of_tokens = (lambda n: n * parameters.L * parameters.d), sampling.MOST_NUMBERS, "numbers"
        check_cost("samples", self.samples, *of_tokens)
        check_cost("test_samples", self.training.test_samples, *of_tokens)
        begun = self.training.start
        streams = sampling.streams(seed, begun if isinstance(begun, int) else None)
        start = start_of(parameters, streams.start, begun == SYMMETRIC)
        self.settings = sampling_settings(self.samples, seed, self.training)
        super().__init__(
            parameters,
            start,
            noisy_tokens(parameters, self.samples, self.training, streams.training, streams.tokens),
            noisy_tokens(
                parameters, self.training.test_samples, self.training, streams.test,
                streams.test_tokens,
            ),
            MiniBatches(int(streams.order.integers(2**62)), self.samples, self.training.batch),
        )  # fmt: skip

    def random_numbers(self) -> tuple[np.ndarray, ...]:
        """The tokens and labels, the test tokens, the output weights and the start."""
        tokens, test = self.tokens, self.test
        return tokens.values, tokens.labels, test.values, self.start.a, self.initial_state

    def batch(self, members: IntArray, number: int) -> Batch:
        """Samples of a step; see `SampledProblem.batch`."""
        return Batch(number, members, np.ones(members.size))

    @cached_property
    def reader(self) -> Reader:
        """What is read off a state on the patterns."""
        patterns, labels = self.tokens.patterns, self.tokens.labels
        counts = (patterns[:, :, None] == np.arange(self.parameters.M)).sum(axis=1)
        weights = np.full(self.samples, 1.0 / self.samples)
        return Reader(self.parameters, self.start.a, self.start.p, counts, labels, weights)


def remaining_length(parameters: Parameters, sparsify: str | None, removed: float) -> int:
    """L', the tokens of a sample that stay.

    Parameters
    ----------
    parameters : Parameters
    sparsify : str or None
    removed : float
        See `Training`.

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


def remaining_tokens(
    sparsify: str | None,
    remaining: int,
    kinds: IntArray,
    distance: FloatArray,
    generator: Generator,
) -> IntArray:
    """Positions of the tokens that stay, ascending, shape (N, L').

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


def noisy_tokens(
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
        Of the counts, and of positions and noise; which tokens are noisy and which go have streams
        of their own, so that they change nothing else.
    """
    left = remaining_length(parameters, training.sparsify, training.removed)
    data = sampling.count_vectors(parameters, samples, counts)
    sequences, noise = sampling.patterns_and_noise(parameters, data.counts, tokens)
    for_noisy, for_removed = tokens.spawn(2)
    noisy = rounded(training.noisy_share, parameters.L)
    rank = np.argsort(for_noisy.random(sequences.shape), axis=1, kind="stable")
    spread = np.full(sequences.shape, parameters.noise)
    np.put_along_axis(spread, rank[:, :noisy], training.noisy_std, axis=1)
    noise *= spread[:, :, None]
    kinds = sampling.kinds(sequences, data.labels)
    distance = np.linalg.norm(noise, axis=2)
    stay = remaining_tokens(training.sparsify, left, kinds, distance, for_removed)
    sequences = np.take_along_axis(sequences, stay, axis=1)
    values = np.eye(parameters.d)[sequences] + np.take_along_axis(noise, stay[:, :, None], axis=1)
    return Tokens(values, sequences, data.labels, np.ones(samples))
