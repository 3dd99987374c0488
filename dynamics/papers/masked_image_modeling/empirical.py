r"""Empirical problem of N sampled images and masks, every entry of Q free.

.. math:: \hat L(Q) = \frac1N \sum_n \sum_{p \in M_n} \tfrac12 |F_p - X_p|^2

A scalar of the reduced problem is compared with the mean of the entries of Q that share it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, ClassVar

import numpy as np
import pydantic
from numpy.random import Generator

from dynamics.models.engine.sampled import BATCH, DTYPE, Training
from dynamics.papers.masked_image_modeling.full import FullProblem
from dynamics.papers.masked_image_modeling.parameters import Parameters
from dynamics.papers.masked_image_modeling.sizes import check_matrices, check_samples
from dynamics.parameter_fields import STRICT, check_parameters, number, refusing, word
from dynamics.problem import FloatArray
from dynamics.training.minibatches import sampling_settings
from dynamics.validation import integer, random_stream
from theory.papers.masked_image_modeling.images import sampled_images


@refusing
@pydantic.dataclasses.dataclass(frozen=True, config=STRICT, kw_only=True)
class MaskedTraining(Training):
    """Options of training for the empirical problem, with the paper's values as defaults.

    `start` is ``"zero"`` for Q = 0, or ``"random"`` for independent Gaussian entries of Q; `spread`
    is the standard deviation of the entries of a random start.
    """

    start: word("zero", "random") = "zero"  # type: ignore[valid-type]
    spread: number(at_least=0.0) = 1e-2  # type: ignore[valid-type]


class FullEmpirical(FullProblem):
    """Training of every entry of Q on N sampled images with their masks.

    `samples` is the number N; `seed` sets the samples, the start and the mini-batches; `**training`
    has the options of `MaskedTraining`: ``start``, ``spread``, ``batch``, ``dtype``. Raises
    InvalidRequest for an invalid number of samples, an invalid option, or sizes that exceed memory.

    Notes
    -----
    Q is expressed in the basis of positions and features. The method `gradient` uses all samples;
    `advance` uses the batch of each step. With mini-batches the order parameters at a step are
    computed from the batch of this step. The floor of the risk and the attention to the own area
    are means over the N samples.
    """

    view = "full empirical"
    options: ClassVar = {
        "start": "start of Q: zero (default) or random",
        "spread": "standard deviation of a random start (default 0.01)",
        "batch": BATCH,
        "dtype": DTYPE,
    }

    def __init__(
        self,
        parameters: Parameters,
        samples: int = 1000,
        seed: int | Generator = 0,
        **training: Any,
    ) -> None:
        check_parameters(parameters, Parameters)
        self.samples = integer("samples", samples, at_least=1, at_most=10**8)
        self.training = MaskedTraining(**training)
        check_matrices(parameters)
        of_step = min(self.samples, self.training.batch or self.samples)
        check_samples(parameters, self.samples, of_step)
        streams = random_stream(seed).spawn(3)
        images = sampled_images(parameters, self.samples, streams[0])
        self._start = np.zeros(parameters.d**2)
        if self.training.start == "random":
            self._start = self.training.spread * streams[1].standard_normal(self._start.size)
        dealt = self.training.minibatches(streams[2], self.samples)
        super().__init__(parameters, images, minibatches=dealt)
        self.settings = sampling_settings(self.samples, seed, self.training)

    @property
    def initial_state(self) -> FloatArray:
        """Flat start of training, with Q = 0 or random entries."""
        return self._start.copy()

    def orbit_values(self, states: FloatArray) -> Mapping[str, FloatArray]:
        """Reduced scalar -> mean of its entries, shape (records, 1)."""
        values = super().orbit_values(states)
        return {name: entries.mean(axis=1, keepdims=True) for name, entries in values.items()}
