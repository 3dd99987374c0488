"""Interface of the drivers: an initial state, a gradient, a risk, observables.

`ExpectedProblem` has all of it from the expectation of a risk over its law.
"""

from __future__ import annotations

import copy
import hashlib
from abc import ABC, abstractmethod
from collections.abc import Mapping, Sequence
from math import prod
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, ClassVar, Self

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynamics.expectations import Expectation
from dynamics.loops import Updates
from dynamics.problem.layout import FloatArray, Layout
from dynamics.problem.numerical_jacobian import SMALL, central_differences, largest_eigenvalue
from dynamics.validation import InvalidRequest, known_word, one_line, shown
from theory.closure.regime import Regime
from theory.update_rules import UpdateRule

if TYPE_CHECKING:
    from dynamics.presentation import Presentation
    from theory.events import EventRule
    from theory.notation import Notation


class Problem(ABC):
    """A training problem; see the 2 x 2 square of the architecture.

    A problem supplies ``initial_state``, ``gradient``, ``risk``, ``observables``,
    ``order_parameters``, ``advance`` and ``identity``; the rest follows from these. Some have more:
    a full one ``orbit_values(states)``, reduced state -> every value that it stands for, shape
    (records, entries); one whose gradient has a known error ``gradient_error(state)``; one that may
    refuse a gradient ``gradient_failure(state)``; one whose events may be due to something else
    ``remarks(final)``, event -> words, from the observables at the end.

    Attributes
    ----------
    system, view : str
        Which system, and how it is seen (``"reduced population"``).
    parameters : Parameters
        Of the system.
    layout : Layout
        Parts of the state.
    presentation : Presentation
        How its results are shown.
    events : tuple of EventRule
        Rules in terms of the order parameters.
    order_names, rates : tuple of str
        Order parameters, and those of them that are read off the gradient; a run oscillates where
        the first of these changes its sign at every step.
    settings : mapping
        How the problem was made, stored with every run.
    flows : bool
        Whether there is a gradient flow: not of a loss with kinks that training stays at.
    autonomous : bool
        Whether every step has the same data.
    sampling_options : tuple of str
        Options of samples that every problem of the system takes, ``samples`` and ``seed`` among
        them: where starts are random, or few samples stand for the population.
    options : mapping
        Options of a problem on samples beside ``samples`` and ``seed`` -> their meaning.
    loop_data : NamedTuple or None
        What compiled loops run it with; None where it has no kernels.
    """

    system: str
    view: str
    parameters: Any
    layout: Layout
    presentation: Presentation
    events: tuple[EventRule, ...]
    order_names: tuple[str, ...]
    rates: tuple[str, ...]
    settings: Mapping[str, Any]
    flows = True
    autonomous = False
    sampling_options: ClassVar[tuple[str, ...]] = ()
    options: ClassVar[Mapping[str, str]] = MappingProxyType({})
    _arguments: tuple[Any, ...]
    _options: dict[str, Any]

    def __new__(cls, *arguments: Any, **options: Any) -> Self:
        """A problem that knows what it is made from, as a copy is made from the same."""
        made = super().__new__(cls)
        made._arguments = tuple(map(_unspent, arguments))
        made._options = {name: _unspent(value) for name, value in options.items()}
        return made

    def __reduce__(self) -> tuple[Any, ...]:
        return _made_again, (type(self), self._arguments, self._options)

    def __deepcopy__(self, memo: dict[int, Any]) -> Self:
        arguments, options = copy.deepcopy((self._arguments, self._options), memo)
        return type(self)(*arguments, **options)

    def __repr__(self) -> str:
        state = one_line(", ".join(self.state_names), 64)
        name = f"{type(self).__name__}({shown(self.parameters)}) of {self.system}"
        return f"{name}, size {self.layout.size}: {state}"

    @property
    @abstractmethod
    def identity(self) -> Mapping[str, Any]:
        """Facts besides the parameters on which its gradients depend."""

    @property
    @abstractmethod
    def initial_state(self) -> FloatArray:
        """Where training starts, flat, shape (n,)."""

    def gradient(self, state: ArrayLike) -> FloatArray:
        """One step of gradient descent, divided by -eta; shape (n,)."""
        raise TypeError(f"{type(self).__name__} has no gradient")

    @abstractmethod
    def risk(self, state: ArrayLike) -> float:
        """Risk at a state."""

    @abstractmethod
    def observables(self, state: ArrayLike) -> dict[str, float]:
        """Numbers that describe a state, by name."""

    def observables_along(self, states: FloatArray) -> dict[str, FloatArray]:
        """`observables` of states, shape (records, n): name -> values, shape (records,)."""
        return columns_of([self.observables(state) for state in states])

    @abstractmethod
    def order_parameters(self, state: ArrayLike, gradient: FloatArray | None = None) -> FloatArray:
        """Order parameters at a state, in the order of `order_names`."""

    @abstractmethod
    def advance(
        self, state: FloatArray, updates: Updates, first: int, last: int, buffers: tuple[Any, ...]
    ) -> int:
        """Steps first, ..., last - 1 in place; see `dynamics.loops.kernels.advance`."""

    def under(self, regime: Regime) -> Self:
        """Same problem for training by a rule of another regime.

        Parameters
        ----------
        regime : Regime
        """
        return self

    def own_rule(self) -> UpdateRule | None:
        """The update rule ``step`` of the model, where it has one."""
        return None

    def entries_of(self, name: str) -> NDArray[np.bool_]:
        """Mask of the entries of a state that belong to a part or a group, shape (n,).

        Raises
        ------
        InvalidRequest
            If there is no such name.
        """
        layout = self.layout
        known = dict.fromkeys((*layout.names, *filter(None, layout.groups)))
        known_word("stages", name, tuple(known))
        sizes = [prod(shape) for shape in layout.shapes]
        parts = zip(layout.names, layout.groups, strict=True)
        return np.repeat([name in pair for pair in parts], sizes)

    @property
    def multiplicities(self) -> FloatArray:
        """Trained entries that each number of a state stands for, shape (n,)."""
        return np.ones(self.layout.size)

    def moving(self, start: FloatArray) -> NDArray[np.bool_]:
        """Numbers of a state that training from a start can change, shape (n,).

        Parameters
        ----------
        start : float array, shape (n,)
        """
        return np.ones(self.layout.size, dtype=bool)

    @property
    def loop_data(self) -> Any:
        """The named tuple with which compiled loops run it; None where it has no kernels."""
        return None

    @property
    def state_names(self) -> tuple[str, ...]:
        """Names of the parts of the state, in order."""
        return self.layout.names

    @property
    def notation(self) -> Notation:
        """The table of letters, of `presentation`."""
        return self.presentation.notation

    @property
    def has_jacobian(self) -> bool:
        """Whether the Jacobian of the gradient is known, not taken from differences."""
        return False

    def jacobian(self, state: ArrayLike) -> FloatArray:
        """Derivative of the gradient by the state, shape (n, n), from central differences."""
        return central_differences(self.gradient, self.layout.flatten(state))

    def curvature(self, state: ArrayLike, shares: FloatArray | float = 1.0) -> float:
        """Largest eigenvalue of the Jacobian of the gradient at a state; NaN if it is not finite.

        Of a large problem without an analytic Jacobian, by power iteration on differences.

        Parameters
        ----------
        state : float array, shape (n,)
        shares : float array, shape (n,), or float
            Factor of each entry of the gradient: its learning rate over the first.
        """
        flat = self.layout.flatten(state)
        if flat.size > SMALL and not self.has_jacobian:

            def slope(at: FloatArray) -> FloatArray:
                return np.asarray(shares * self.gradient(at))

            return largest_eigenvalue(slope, flat)
        matrix = np.reshape(shares, (-1, 1)) * self.jacobian(flat)
        if not np.isfinite(matrix).all():
            return float("nan")
        return float(np.linalg.eigvals(matrix).real.max())


class ExpectedProblem(Problem):
    """A problem that takes gradient, order parameters and risk from an `Expectation`.

    `expectation`: of the risk, with gradients as steps subtract them.
    """

    expectation: Expectation
    autonomous = True

    @property
    def source(self) -> str:
        """Text that the gradients are computed from."""
        return self.expectation.source

    @property
    def identity(self) -> Mapping[str, Any]:
        """Settings, and a hash of the source of the gradients."""
        code = hashlib.sha256(self.source.encode()).hexdigest()[:12]
        return {**self.settings, "code": code}

    @property
    def loop_data(self) -> Any:
        """Those of the expectation; see `Problem`."""
        return self.expectation.data

    def gradient(self, state: ArrayLike) -> FloatArray:
        """Gradient per entry, which one step subtracts times eta.

        `state`, shape (n,), or a sequence of its parts. Returns float array, shape (n,).
        """
        return self.expectation.gradient(self.layout.flatten(state))

    def order_parameters(self, state: ArrayLike, gradient: FloatArray | None = None) -> FloatArray:
        """Order parameters at a state, in the order of `order_names`.

        `state`, shape (n,); `gradient`, shape (n,): the gradient there, computed if it is not
        given.
        """
        flat = self.layout.flatten(state)
        slope = self.gradient(flat) if gradient is None else np.ascontiguousarray(gradient, float)
        return self.expectation.order_parameters(flat, slope, len(self.order_names))

    @property
    def has_jacobian(self) -> bool:
        """Whether the expectation has the Hessian."""
        return self.expectation.has_hessian

    def jacobian(self, state: ArrayLike) -> FloatArray:
        """Derivative of the gradient by the state, shape (n, n).

        On a reduced problem row i is that of the Hessian of the risk over the number of entries
        that share state i. From central differences where the expectation has none.
        """
        if not self.has_jacobian:
            return super().jacobian(state)
        return self.expectation.hessian(self.layout.flatten(state))

    def risk(self, state: ArrayLike) -> float:
        """Risk at a state."""
        return self.expectation.value(self.layout.flatten(state))

    def advance(
        self, state: FloatArray, updates: Updates, first: int, last: int, buffers: tuple[Any, ...]
    ) -> int:
        """Steps first, ..., last - 1 in place; see `dynamics.loops.kernels.advance`.

        `state`, `eta`, shape (n,).
        """
        return self.expectation.advance(state, updates, first, last, buffers)

    def gradient_failure(self, state: ArrayLike) -> str:
        """Reason why a state has no gradient; empty where it has one."""
        return self.expectation.failure(self.layout.flatten(state))


def _unspent(argument: Any) -> Any:
    """An argument as it is before a problem draws from it."""
    return copy.deepcopy(argument) if isinstance(argument, np.random.Generator) else argument


def _made_again(kind: type[Any], arguments: tuple[Any, ...], options: Mapping[str, Any]) -> Any:
    """A problem made from its arguments, for pickle."""
    return kind(*map(_unspent, arguments), **{n: _unspent(value) for n, value in options.items()})


def check_problem(problem: object) -> None:
    """Refuse an object that is not a `Problem`, and say how to make one."""
    if hasattr(problem, "layout") and hasattr(problem, "order_names"):
        return  # one of a caller's own need not be a `Problem`
    kind = type(problem).__name__
    hint = "problem can be made as system.ReducedPopulation(system.Parameters(...))"
    if kind == "Parameters":
        hint = "make a problem of it: system.ReducedPopulation(parameters)"
    elif kind == "System":
        hint = "make a problem of it: system.ReducedPopulation(system.Parameters(...))"
    raise InvalidRequest(f"problem={shown(problem)} is a {kind}, no problem; {hint}")


def gradient_failure(problem: Problem, state: FloatArray) -> str:
    """Reason for which a problem has no gradient at a state; empty where it has one.

    `problem`: those whose gradient may be refused have a method ``gradient_failure``; `state`,
    shape (n,).
    """
    method = getattr(problem, "gradient_failure", None)
    return "" if method is None else str(method(state))


def columns_of(rows: Sequence[Mapping[str, float]]) -> dict[str, FloatArray]:
    """Observables of every record as arrays; NaN where a record lacks one.

    `rows`: name -> value, of each record.
    """
    names = [*dict.fromkeys(name for row in rows for name in row)]
    return {name: np.array([row.get(name, np.nan) for row in rows], float) for name in names}


def record_of(columns: Mapping[str, FloatArray], record: int) -> dict[str, float]:
    """Observables of one record.

    `columns`: name -> values of all records.
    """
    return {name: float(values[record]) for name, values in columns.items()}
