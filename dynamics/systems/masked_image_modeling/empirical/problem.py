r"""The empirical problem: N sampled images and masks, every entry of Q free.

.. math:: \hat L(Q) = \frac1N \sum_n \sum_{p \in M_n} \tfrac12 |F_p - X_p|^2

Nothing here knows the reduction. A state is read by its projection: the mean over the entries that
a scalar of the reduced problem stands for.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping
from functools import cache
from typing import Any, Literal

import numpy as np
import pydantic
from numpy.random import Generator

from dynamics import codegen
from dynamics.codegen.kernels.advance import advance
from dynamics.problem import FloatArray
from dynamics.systems.masked_image_modeling import cost
from dynamics.systems.masked_image_modeling.empirical import sampling
from dynamics.systems.masked_image_modeling.full.problem import FullProblem
from dynamics.systems.masked_image_modeling.kernels import empirical as empirical_kernels
from dynamics.systems.masked_image_modeling.kernels import full as brute_kernels
from dynamics.systems.masked_image_modeling.parameters import Parameters
from dynamics.training import minibatches
from dynamics.validation import STRICT, integer, number, whole


@pydantic.dataclasses.dataclass(frozen=True, config=STRICT, kw_only=True)
class Training:
    """How the empirical problem is trained; the paper's way by default.

    Attributes
    ----------
    start : str
        ``"zero"``: Q = 0; ``"random"``: independent Gaussian entries.
    spread : float
        Standard deviation of a random start.
    batch : int or None
        Images of a mini-batch. Batches are fixed; every epoch takes them in a new random order.
    """

    start: Literal["zero", "random"] = "zero"
    spread: number(at_least=0.0) = 1e-2  # type: ignore[valid-type]
    batch: whole(1, optional=True) = None  # type: ignore[valid-type]


class FullEmpirical(FullProblem):
    """Every entry of Q trained, on N sampled images with their masks.

    Parameters
    ----------
    parameters : Parameters
    samples : int
        N.
    seed : int or numpy Generator
        Of the samples, the start and the order of batches.
    **training
        See `Training`: ``start``, ``spread``, ``batch``.

    Raises
    ------
    InvalidRequest, pydantic.ValidationError
        In one line, for a number of samples or an option that cannot be, or sizes that do not fit.

    Notes
    -----
    The basis is that of positions and features. The gradient is that of the risk of all samples;
    `advance` takes the batch of each step, whose number decides it, so a run can be cut anywhere.
    With mini-batches the order parameters at a step are those of its batch. Floors and own
    attention are those of the samples.
    """

    view = "full empirical"

    def __init__(
        self,
        parameters: Parameters,
        samples: int = 1000,
        seed: int | Generator = 0,
        **training: Any,
    ) -> None:
        self.samples = integer("samples", samples, at_least=1, at_most=10**8)
        self.training = Training(**training)
        self.autonomous = self.training.batch is None
        cost.check_matrices(parameters)
        taken = min(self.samples, self.training.batch or self.samples)
        cost.check_images(parameters, self.samples, taken, "empirical", ("samples", self.samples))
        streams = np.random.default_rng(seed).spawn(3)
        images = sampling.drawn(parameters, self.samples, streams[0])
        super().__init__(parameters, images, _module())
        self._start = np.zeros(self.layout.size)
        if self.training.start == "random":
            self._start = self.training.spread * streams[1].standard_normal(self.layout.size)
        self._order_seed = int(streams[2].integers(2**62))
        starts = np.arange(0, self.samples, self.training.batch or self.samples)
        ends = np.append(starts[1:], self.samples)
        self._bounds = np.column_stack([starts, ends])
        self.settings = {
            "samples": self.samples,
            "seed": seed if isinstance(seed, int) else "generator",
            **{k: v for k, v in dataclasses.asdict(self.training).items() if v is not None},
        }

    @property
    def initial_state(self) -> FloatArray:
        """Q = 0, or a random one."""
        return self._start.copy()

    @property
    def identity(self) -> Mapping[str, Any]:
        """What a resumed run must find again: beside the settings, the numbers drawn."""
        drawn = minibatches.fingerprint((*self._data[1], self._start))
        return dict(super().identity) | {"drawn": drawn}

    def _stepped(self, first: int, last: int) -> tuple[Any, ...]:
        sizes = np.diff(self._bounds, axis=1).ravel()
        whole = np.array([[0, self.samples]])
        each = (
            np.concatenate([whole, self._bounds]),
            np.append(1.0, self.samples / sizes),
            1 + self.batch_order(first, last),
            np.zeros(1, np.int64),
        )
        return (*self._data[:2], each, *self._data[3:])

    def batch_order(self, first: int, last: int) -> np.ndarray:
        """The batch of every step first, ..., last - 1."""
        return minibatches.order(self._order_seed, len(self._bounds), first, last)

    def orbit_values(self, states: FloatArray) -> Mapping[str, FloatArray]:
        """Reduced state -> what stands beside it: the mean of its entries; (records, 1)."""
        values = super().orbit_values(states)
        return {name: entries.mean(axis=1, keepdims=True) for name, entries in values.items()}


@cache
def _module() -> codegen.CompiledModule:
    names = (brute_kernels.gradient, brute_kernels.order_parameters, brute_kernels.summary)
    parts = [codegen.kernel_source(empirical_kernels.accumulate, *names, advance)]
    return codegen.build("Masked image modelling, empirical problem.", ("Q",), parts)
