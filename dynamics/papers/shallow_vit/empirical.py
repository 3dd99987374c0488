"""Empirical problem: every entry of W_O, W_V, W_K, W_Q is trained on N samples of noisy tokens."""

from __future__ import annotations

from typing import Annotated, Any, ClassVar

import numpy as np
import pydantic
from numpy.random import Generator
from pydantic import BeforeValidator

from dynamics.models.engine.sampled import BATCH, DTYPE, Training
from dynamics.papers.shallow_vit import sampling
from dynamics.papers.shallow_vit.parameters import Parameters
from dynamics.papers.shallow_vit.problems import FullProblem, checked_start
from dynamics.papers.shallow_vit.sampling import IntArray, Tokens
from dynamics.papers.shallow_vit.starts import SYMMETRIC, start_of
from dynamics.parameter_fields import STRICT, check_parameters, number, refusing, whole
from dynamics.problem import FloatArray
from dynamics.training.minibatches import sampling_settings
from dynamics.validation import check_cost, integer, known_word, refuse
from theory.papers.shallow_vit.data_law import SPARSIFIERS, rounded


def _sparsifier(value: object) -> str | None:
    if value in (None, "none"):
        return None
    return known_word("sparsify", value, ("none", *SPARSIFIERS))


@refusing
@pydantic.dataclasses.dataclass(frozen=True, config=STRICT, kw_only=True)
class TokenTraining(Training):
    """Options of training for the empirical problem, and of its tokens.

    `start` is another seed, for the weights alone, or ``"symmetric"``, see `NoiseFree`. `sparsify`
    is the order in which tokens of training and test samples are removed (Remark 2). ``"random"``
    removes in random order, ``"noisiest"`` first the tokens farthest from their pattern.
    ``"irrelevant"`` removes first tokens of other patterns, then of the confusion pattern, then of
    the label's pattern. `removed` is the removed share of the L tokens of every sample.
    `noisy_share` is the share of tokens with noise of standard deviation `noisy_std` per
    coordinate, at random positions in every sample. `test_samples` is the number of fresh samples
    for test loss and test error. The two shares of tokens are rounded to whole tokens, halves up.
    """

    start: Annotated[int | str | None, BeforeValidator(checked_start)] = None
    sparsify: Annotated[str | None, BeforeValidator(_sparsifier)] = None
    removed: number(at_least=0.0) = 0.0  # type: ignore[valid-type]
    noisy_share: number(at_least=0.0, at_most=1.0) = 0.0  # type: ignore[valid-type]
    noisy_std: number(at_least=0.0) = 1.0  # type: ignore[valid-type]
    test_samples: whole(1) = 1000  # type: ignore[valid-type]


class FullEmpirical(FullProblem):
    """Training of every entry of W_O, W_V, W_K and W_Q on N samples of noisy tokens.

    A token is the vector mu of its pattern plus Gaussian noise in every coordinate. The noise has
    standard deviation c_0, or ``noisy_std`` in noisy tokens. Every training and test sample loses
    the same number of tokens, so all sequences have the same length.

    `samples` is the number N; `seed` sets the start, the samples, the test samples and the
    mini-batches, see `sampling.streams`; `**training` has the options of `TokenTraining`, ``batch``
    and ``dtype``. Raises InvalidRequest for an invalid number of samples, an invalid option, or if
    every token is removed.
    """

    view = "full empirical"
    options: ClassVar = {
        "start": "another seed, for the weights alone; or symmetric (without noise)",
        "batch": BATCH,
        "dtype": DTYPE,
        "sparsify": "tokens removed first: random, irrelevant or noisiest (default: none)",
        "removed": "share of the tokens to remove (default 0)",
        "noisy_share": "share of tokens with other noise (default 0)",
        "noisy_std": "standard deviation of that noise (default 1)",
        "test_samples": "fresh samples of the test set (default 1000)",
    }

    def __init__(
        self,
        parameters: Parameters,
        samples: int = 200,
        seed: int | Generator = 0,
        **training: Any,
    ) -> None:
        check_parameters(parameters, Parameters)
        self.samples = integer("samples", samples, at_least=1, at_most=10**8)
        self.training = TokenTraining(**training)
        of_tokens = (lambda n: n * parameters.L * parameters.d), sampling.MOST_NUMBERS, "numbers"
        check_cost("samples", self.samples, *of_tokens)
        check_cost("test_samples", self.training.test_samples, *of_tokens)
        begun = self.training.start
        streams = sampling.streams(seed, begun if isinstance(begun, int) else None)
        start = start_of(parameters, streams.start, begun == SYMMETRIC)
        self.settings = sampling_settings(self.samples, seed, self.training)
        drawn = noisy_tokens(
            parameters, self.samples, self.training, streams.training, streams.tokens
        )
        test = noisy_tokens(
            parameters, self.training.test_samples, self.training, streams.test, streams.test_tokens
        )
        batches = self.training.minibatches(streams.order, self.samples)
        super().__init__(parameters, start, drawn, test, batches)


def remaining_length(parameters: Parameters, sparsify: str | None, removed: float) -> int:
    """Number L' of tokens that remain in a sample after removal of a share.

    Raises InvalidRequest if no token remains, or if tokens are removed without `sparsify`.
    """
    length = parameters.L
    gone = rounded(removed, length)
    if gone and sparsify is None:
        words = ", ".join(SPARSIFIERS)
        problem = f"does not say which tokens to remove first, with removed={removed:g}"
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
    """Positions of the remaining tokens, ascending, shape (N, L').

    `remaining` is the number L'. `kinds`, shape (N, L), is 0 for the label's pattern, 1 for the
    confusion pattern, 2 for another. `distance`, shape (N, L), is the distance of each token from
    its pattern; `generator` breaks ties.
    """
    chance = generator.random(kinds.shape)
    first = {None: chance, "random": chance, "irrelevant": chance - kinds, "noisiest": -distance}
    order = np.argsort(first[sparsify], axis=1, kind="stable")
    return np.sort(order[:, kinds.shape[1] - remaining :], axis=1).astype(np.int64)


def noisy_tokens(
    parameters: Parameters,
    samples: int,
    training: TokenTraining,
    counts: Generator,
    tokens: Generator,
) -> Tokens:
    """Noisy tokens of N samples of the data law, some of them removed.

    `training` has the options for noisy and removed tokens. `counts` and `tokens` are the
    generators of the counts and of the tokens. Positions, noise, choice of noisy tokens and choice
    of removed tokens use separate streams, so that changing one of these leaves the draws of all
    others unchanged.
    """
    left = remaining_length(parameters, training.sparsify, training.removed)
    data = sampling.count_vectors(parameters, samples, counts)
    for_patterns, for_noise, for_noisy, for_removed = tokens.spawn(4)
    sequences = sampling.patterns(data.counts, for_patterns)
    rank = np.argsort(for_noisy.random(sequences.shape), axis=1, kind="stable")
    noisy = rank < rounded(training.noisy_share, parameters.L)
    spread = np.where(noisy, training.noisy_std, parameters.noise)
    noise = spread[:, :, None] * for_noise.standard_normal((*sequences.shape, parameters.d))
    distance, of_kind = np.linalg.norm(noise, axis=2), sampling.kinds(sequences, data.labels)
    stay = remaining_tokens(training.sparsify, left, of_kind, distance, for_removed)
    sequences = np.take_along_axis(sequences, stay, axis=1)
    values = np.eye(parameters.d)[sequences] + np.take_along_axis(noise, stay[:, :, None], axis=1)
    return Tokens(
        values, sequences, data.labels, np.ones(sequences.shape), np.full(samples, 1.0 / samples)
    )
