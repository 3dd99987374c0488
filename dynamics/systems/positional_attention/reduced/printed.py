"""Expectations whose functions are kernels in a generated file, with what is printed."""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import Any

from dynamics import codegen
from dynamics.codegen import loops
from dynamics.problem import FloatArray
from dynamics.problem.compiled import ThreadData
from dynamics.systems.positional_attention.reduced import Expectation
from theory.papers.positional_attention import recursion


class PrintedExpectation(Expectation):
    """Base of the expectations with compiled functions on data.

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
        self.module, self.settings, self.source = module, settings, module.source
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

    def risk(self, state: FloatArray) -> float:
        """Risk at a state."""
        return float(loops.summary(self.addressed, state)[0])


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
