"""The three scalars, and the ways to take their expectation over the types of the random sets.

`configurations` lists weighted configurations, all of them or sampled ones, and makes the
expectation from them: a sum (`weighted_sum`), of samples with a standard error. `spectral` is exact
to a tolerance at any size: one contour integral and one Fourier transform for each sum of the
random sets. `population` is the problem, which makes one of them by its name, or for ``"auto"`` by
predicted cost. This file has what they share.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from dynamics import codegen
from dynamics.problem import FloatArray
from dynamics.problem.compiled import ThreadData
from theory.papers.positional_attention import recursion


class Expectation(ABC):
    """Base of every way to take the expectation: compiled functions, data, a certificate.

    Parameters
    ----------
    module : CompiledModule
        ``gradient``, ``hessian``, ``order_parameters`` and ``summary``.
    data : NamedTuple
        What its functions need beside the state.
    settings : mapping
        How it was made, stored with every run.
    """

    scratch: Collection[str] = ()

    def __init__(
        self, module: codegen.CompiledModule, data: Any, settings: Mapping[str, Any]
    ) -> None:
        self.module, self.settings = module, settings
        self.data = data

    @property
    def data(self) -> Any:
        """What the functions need beside the state, in this thread."""
        return self._own.data

    @data.setter
    def data(self, data: Any) -> None:
        self._own = ThreadData(self.module, data, self.scratch)

    @property
    def addressed(self) -> codegen.AddressedModel:
        """Gradient, Hessian and order parameters on the data, for the compiled loops."""
        return self._own.addressed

    @abstractmethod
    def observe(self, states: FloatArray) -> tuple[FloatArray, dict[str, FloatArray]]:
        """Per-entry gradients at states, both (n, 3), and what else is known at each.

        That is risk, error, certificate, by name; shape (n,) each.
        """

    @abstractmethod
    def certify(self, state: FloatArray) -> dict[str, FloatArray]:
        """Value, gross and known error at a state: see `ReducedPopulation.error_bound`."""

    def failure(self, state: FloatArray) -> str:
        """Why the gradient at a state is not a number, where that is known; else empty."""
        return ""


def compiled(
    degree: int,
    kernels: Sequence[Callable[..., Any]],
    data: Collection[type],
    parallel: Collection[Callable[..., Any]] = (),
) -> codegen.CompiledModule:
    """The generated file of the reduced problem for one p.

    Parameters
    ----------
    degree : int
        p.
    kernels : sequence of callable
        ``gradient``, ``hessian``, ``order_parameters`` and ``summary``.
    data : collection of type
        Their named tuples.
    parallel : collection of callable
        Kernels whose loops run in threads.
    """
    printed = codegen.printed_source(_printed, degree)
    parts = [printed, codegen.kernel_source(*kernels, parallel=parallel, data=data)]
    title = f"Positional attention, reduced population problem, p = {degree}."
    return codegen.build(title, [s.name for s in recursion.STATE], parts)


def _printed(degree: int) -> str:
    """Functions printed from the derivation: blocks, order parameters."""
    reduction = recursion.derive(degree)
    first = [name for name in reduction.blocks if name.startswith("share")]
    second = [name for name in reduction.blocks if name.startswith("patch")]
    parts = [
        codegen.tabulate("share_table", first, reduction, len(recursion.PARTS)),
        codegen.tabulate("curvature_table", second, reduction),
        codegen.evaluate("order", list(reduction.order_parameters.values()), reduction),
    ]
    return "\n\n".join(parts)
