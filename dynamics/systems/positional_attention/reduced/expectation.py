"""One way to take the expectation over the random sets, made ready for one problem.

Enumeration, truncation, sampling and the spectral transform differ in what they cost and in what
they know of their error; to a problem they look the same: compiled functions, their data, and a
certificate at a state.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

from dynamics.codegen import CompiledModule
from dynamics.problem import FloatArray


@dataclass
class Expectation(ABC):
    """Base of every way to take the expectation.

    Attributes
    ----------
    name : str
        ``"exact"``, ``"truncated"``, ``"spectral"`` or ``"sampled"``.
    module : CompiledModule
        ``gradient``, ``hessian``, ``order_parameters``, ``summary`` and ``advance``.
    data : tuple
        What its functions need beside the state.
    settings : mapping
        How it was made, kept with every run.
    """

    name: str
    module: CompiledModule
    data: tuple[Any, ...]
    settings: Mapping[str, Any]

    @abstractmethod
    def observe(self, state: FloatArray) -> tuple[FloatArray, dict[str, float]]:
        """Per-entry gradient, and what else is known there: risk, error, certificate."""

    @abstractmethod
    def certify(self, state: FloatArray) -> dict[str, FloatArray]:
        """Value, gross and known error at a state: see `ReducedPopulation.error_bound`."""

    def failure(self, state: FloatArray) -> str:
        """Why the gradient at a state is not a number, where that is known; else empty."""
        return ""
