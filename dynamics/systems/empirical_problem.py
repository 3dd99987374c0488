"""What problems on samples share: mini-batches, the data of a step, and what a run is resumed by.

The kernels of such a problem take their samples from the field ``batch`` of their data and change
nothing but what they are given to write into. The data of a step decide its batch, and the number
of the step decides the data, so a run can be cut and resumed at any step.
"""

from __future__ import annotations

import dataclasses
from abc import abstractmethod
from collections.abc import Iterable, Mapping
from typing import Any, NamedTuple

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from dynamics.codegen import AddressedModel, loops
from dynamics.problem import CompiledProblem, FloatArray, Layout
from dynamics.training.minibatches import MiniBatches, fingerprint

ALL_SAMPLES = -1
"""Number of the batch that holds every sample."""


class Batch(NamedTuple):
    """Samples over which a mean is taken.

    Attributes
    ----------
    number : int
        The step that it belongs to, or `ALL_SAMPLES`.
    members : int array, shape (B,)
        Which samples.
    weights : float array, shape (B,)
        Weight of each in the mean.
    """

    number: int
    members: NDArray[np.int64]
    weights: FloatArray


def sampling_settings(
    samples: int | None, seed: int | Generator, options: Mapping[str, Any] | Any
) -> dict[str, Any]:
    """Settings of a problem on samples, without the options that are None.

    Parameters
    ----------
    samples : int or None
        N.
    seed : int or numpy Generator
    options : mapping or dataclass
        How it is trained.

    Returns
    -------
    dict
    """
    fields = options if isinstance(options, Mapping) else dataclasses.asdict(options)
    stated = {"samples": samples, "seed": seed if isinstance(seed, int) else "generator"}
    return {name: value for name, value in (stated | dict(fields)).items() if value is not None}


class SampledProblem(CompiledProblem):
    """A compiled problem on samples, trained on all of them or on mini-batches.

    Parameters
    ----------
    module : dynamics.codegen.CompiledModule
    data : NamedTuple
        What the kernels need beside the state, with all samples in its field ``batch``.
    layout : Layout
    minibatches : MiniBatches
        Which samples every step is on.
    """

    def __init__(self, module: Any, data: Any, layout: Layout, minibatches: MiniBatches) -> None:
        self.minibatches = minibatches
        self.autonomous = minibatches.size is None
        super().__init__(module, data, layout)

    @abstractmethod
    def random_numbers(self) -> Iterable[np.ndarray]:
        """Every array of random numbers that the problem is made of."""

    @property
    def identity(self) -> Mapping[str, Any]:
        """What a resumed run must find again: the settings, the code and the random numbers."""
        arrays = [*self.random_numbers()]
        if not self.autonomous:
            arrays.append(np.array([self.minibatches.seed]))
        return {**super().identity, "random_numbers": fingerprint(arrays)}

    def batch(self, members: NDArray[np.int64], number: int) -> Any:
        """The field ``batch`` of the data of a step.

        Parameters
        ----------
        members : int array, shape (B,)
            Its samples.
        number : int
            The step.

        Returns
        -------
        NamedTuple
            A `Batch` of equal weights; what the kernels of a system take in its place.
        """
        return Batch(number, members, np.full(members.size, 1.0 / members.size))

    def _with_batch(self, batch: Any) -> AddressedModel:
        """The compiled functions on the samples of a step."""
        return self.addressed.with_data(self._data._replace(batch=batch))

    def advance(
        self, state: FloatArray, eta: FloatArray, first: int, last: int, buffers: tuple[Any, ...]
    ) -> int:
        """Steps first, ..., last - 1 in place; see `dynamics.codegen.kernels.advance`.

        Parameters
        ----------
        state, eta : float arrays, shape (n,)
        first, last : int
        buffers : (tracked, record_steps, records)

        Returns
        -------
        int
            ``last``, or the step whose successor is not finite.
        """
        if self.autonomous:
            return super().advance(state, eta, first, last, buffers)
        tracked, record_steps, records = buffers
        for step, members in enumerate(self.minibatches.members(first, last), first):
            row = int(np.searchsorted(record_steps, step))
            model = self._with_batch(self.batch(members, step))
            rest = (tracked[step - first :], record_steps[row:], records[row:])
            if loops.advance(model, state, eta, (step, step + 1), False, rest) == step:
                return step
        return last
