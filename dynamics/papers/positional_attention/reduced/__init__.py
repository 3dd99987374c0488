"""The three scalars, and the ways to take their expectation over the types of the random sets.

`configurations` lists weighted configurations, all of them or sampled ones, and `weighted_sum`
makes the expectation from them: an exact sum, as a reduced program of the model file, or the mean
over samples, with a standard error. `fast` is exact to a tolerance at any size: the spectral sum of
`dynamics.expectations`. `population` is the problem, which makes one of them by its name, or for
``"auto"`` by predicted cost. This file has what they share.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from dynamics.codegen import AddressedModel, loops
from dynamics.problem import FloatArray
from theory.papers.positional_attention import recursion
from theory.papers.positional_attention.notation import ORDER_PARAMETERS

if TYPE_CHECKING:
    from dynamics.papers.positional_attention.parameters import Parameters


FLOOR = 1e-290
"""Errors up to which nothing is known, as numbers underflow."""


class Expectation(ABC):
    """Base of every way to take the expectation: gradient, order parameters, steps of descent.

    Attributes
    ----------
    settings : mapping
        How it was made, stored with every run.
    source : str
        Text that its gradients are computed from.
    program : str or None
        Equal for expectations that may be taken `side_by_side`; None of one that cannot.
    """

    settings: Mapping[str, Any]
    source: str
    program: str | None = None

    @property
    def addressed(self) -> Any:
        """Gradient, Hessian and order parameters for the compiled loops; None without them."""
        return None

    def side_by_side(self, others: Sequence[Any]) -> AddressedModel:
        """Compiled functions on a state of each of several expectations of one program."""
        raise TypeError(f"{type(self).__name__} has no program")

    def gradient(self, state: FloatArray) -> FloatArray:
        """Per-entry gradient at a state, shape (3,)."""
        return loops.gradient(self.addressed, state)

    def order_parameters(self, state: FloatArray, slope: FloatArray) -> FloatArray:
        """Order parameters at a state with its gradient, in the order of their names."""
        slope = np.ascontiguousarray(slope, dtype=np.float64)
        return loops.order_parameters(self.addressed, state, slope, len(ORDER_PARAMETERS))

    def jacobian(self, state: FloatArray) -> FloatArray:
        """Derivative of the gradient by the state, shape (3, 3)."""
        return loops.hessian(self.addressed, state)

    def advance(
        self, state: FloatArray, eta: FloatArray, first: int, last: int, buffers: tuple[Any, ...]
    ) -> int:
        """Steps first, ..., last - 1 in place; see `dynamics.codegen.kernels.advance`."""
        return loops.advance(self.addressed, state, eta, (first, last), True, buffers)

    @abstractmethod
    def risk(self, state: FloatArray) -> float:
        """Risk at a state."""

    @abstractmethod
    def observe(self, states: FloatArray) -> tuple[FloatArray, dict[str, FloatArray]]:
        """Per-entry gradients at states, both (n, 3), and what else is known at each.

        That is risk, error, error_estimate, by name; shape (n,) each.
        """

    @abstractmethod
    def error_estimate(self, state: FloatArray) -> dict[str, FloatArray]:
        """Value, gross and error at a state: see `ReducedPopulation.error_estimate`."""

    def failure(self, state: FloatArray) -> str:
        """Why the gradient at a state is not a number, where that is known; else empty."""
        return ""


def relative_error(error: FloatArray, gross: FloatArray) -> float:
    """Largest error of a component of the gradient, in its gross; none where both underflow.

    Parameters
    ----------
    error, gross : float arrays, shape (at least 3,)
    """
    with np.errstate(all="ignore"):
        known = np.where(error[:3] > 2 * FLOOR, error[:3] / gross[:3], 0.0)
    return float(known.max())


def shares_of(parameters: Parameters) -> FloatArray:
    """One over the number of entries of each state, shape (3,).

    Parameters
    ----------
    parameters : Parameters
    """
    return np.array([1 / count for count in _entries(parameters.D, parameters.C)])


@lru_cache(maxsize=256)
def _entries(D: int, C: int) -> tuple[float, ...]:
    """Number of entries that share each state."""
    counts, sizes = recursion.multiplicity(), {"D": D, "C": C}
    ordered = (counts[state] for state in recursion.STATE)
    return tuple(float(n.subs({s: sizes[s.name] for s in n.free_symbols})) for n in ordered)
