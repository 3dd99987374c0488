"""Interface of training problems, and problems whose risk is computed by an `Expectation`."""

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
    """Training problem: reduced or full, population or empirical.

    A problem supplies ``initial_state``, ``gradient``, ``risk``, ``observables``,
    ``order_parameters``, ``advance`` and ``identity``. A full problem may have
    ``orbit_values(states)``, a mapping from each reduced scalar to its entries, shape (records,
    entries). Any problem may have three more methods: ``gradient_error(state)``;
    ``gradient_failure(state)``, the reason why a state has no gradient; and ``remarks(final)``, a
    mapping from event to remark, from the observables at the end of a run.

    `view` is the kind of the problem, such as ``"reduced population"``. The rules of `events` are
    written in the order parameters `order_names`. `rates` names the order parameters that are
    computed from the gradient; a run oscillates if the first rate changes its sign at every step.
    `settings` are stored with every run. `flows` says whether a gradient flow exists (False if
    training stays at kinks of the loss), `autonomous` whether every step uses the same data.
    `sampling_options` names the options ``samples`` and ``seed`` if the start is random or the risk
    is a mean over drawn samples; `options` describes further options of a problem on samples.
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
        """Store the arguments, from which copies and pickles rebuild the problem."""
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
        """Settings that determine the gradients, apart from `parameters`."""

    @property
    @abstractmethod
    def initial_state(self) -> FloatArray:
        """Flat state at step 0, shape (n,)."""

    def gradient(self, state: ArrayLike) -> FloatArray:
        """Gradient per entry, shape (n,): the change of a descent step divided by -eta."""
        raise TypeError(f"{type(self).__name__} has no gradient")

    @abstractmethod
    def risk(self, state: ArrayLike) -> float:
        """Risk at a state."""

    @abstractmethod
    def observables(self, state: ArrayLike) -> dict[str, float]:
        """Observables at a state, by name."""

    def observables_along(self, states: FloatArray) -> dict[str, FloatArray]:
        """Map each observable to its values, shape (records,), at `states`, shape (records, n)."""
        return columns_of([self.observables(state) for state in states])

    @abstractmethod
    def order_parameters(self, state: ArrayLike, gradient: FloatArray | None = None) -> FloatArray:
        """Order parameters at a state, in the order of `order_names`."""

    @abstractmethod
    def advance(
        self, state: FloatArray, updates: Updates, first: int, last: int, buffers: tuple[Any, ...]
    ) -> int:
        """Take steps first, ..., last - 1 on `state`; see `dynamics.loops.kernels.advance`."""

    def under(self, regime: Regime) -> Self:
        """Problem with the closure of a regime of update rules; unchanged unless overridden."""
        return self

    def own_rule(self) -> UpdateRule | None:
        """Update rule ``step`` of the problem's model, or None without a ``step``."""
        return None

    def entries_of(self, name: str) -> NDArray[np.bool_]:
        """Mask, shape (n,), of the entries in the part or parameter group `name` of a state.

        Raises InvalidRequest for an unknown name.
        """
        layout = self.layout
        known = dict.fromkeys((*layout.names, *filter(None, layout.groups)))
        known_word("stages", name, tuple(known))
        sizes = [prod(shape) for shape in layout.shapes]
        parts = zip(layout.names, layout.groups, strict=True)
        return np.repeat([name in pair for pair in parts], sizes)

    @property
    def multiplicities(self) -> FloatArray:
        """Number of trained entries that each number of a state stands for, shape (n,)."""
        return np.ones(self.layout.size)

    def moving(self, start: FloatArray) -> NDArray[np.bool_]:
        """Mask of the numbers of a state that training from a start can change, shape (n,)."""
        return np.ones(self.layout.size, dtype=bool)

    @property
    def loop_data(self) -> Any:
        """Named tuple of arguments of compiled loops, or None without compiled functions."""
        return None

    @property
    def state_names(self) -> tuple[str, ...]:
        """Names of the parts of the state, in order."""
        return self.layout.names

    @property
    def notation(self) -> Notation:
        """Notation table of `presentation`."""
        return self.presentation.notation

    @property
    def has_jacobian(self) -> bool:
        """Whether the Jacobian of the gradient is exact, not computed from finite differences."""
        return False

    def jacobian(self, state: ArrayLike) -> FloatArray:
        """Jacobian of the gradient, shape (n, n), from central differences."""
        return central_differences(self.gradient, self.layout.flatten(state))

    def curvature(self, state: ArrayLike, shares: FloatArray | float = 1.0) -> float:
        """Largest eigenvalue of the Jacobian of the gradient at a state, or NaN if not finite.

        `shares`, by which the gradient is multiplied, holds the learning rate of each entry divided
        by the largest learning rate. For more than `SMALL` entries and no exact Jacobian, the
        largest eigenvalue is found by power iteration on differences of gradients.
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
    """Problem with gradient, order parameters and risk from an `Expectation`."""

    expectation: Expectation
    autonomous = True

    @property
    def source(self) -> str:
        """Source code of the functions that compute the gradient."""
        return self.expectation.source

    @property
    def identity(self) -> Mapping[str, Any]:
        """Settings of the problem, and a hash of its `source`."""
        code = hashlib.sha256(self.source.encode()).hexdigest()[:12]
        return {**self.settings, "code": code}

    @property
    def loop_data(self) -> Any:
        """Arguments of compiled loops: the data of the problem's expectation."""
        return self.expectation.data

    def gradient(self, state: ArrayLike) -> FloatArray:
        """Gradient per entry, shape (n,): the change of a descent step divided by -eta."""
        return self.expectation.gradient(self.layout.flatten(state))

    def order_parameters(self, state: ArrayLike, gradient: FloatArray | None = None) -> FloatArray:
        """Order parameters at a state, in the order of `order_names`."""
        flat = self.layout.flatten(state)
        slope = self.gradient(flat) if gradient is None else np.ascontiguousarray(gradient, float)
        return self.expectation.order_parameters(flat, slope, len(self.order_names))

    @property
    def has_jacobian(self) -> bool:
        """Whether the expectation has a Hessian."""
        return self.expectation.has_hessian

    def jacobian(self, state: ArrayLike) -> FloatArray:
        """Jacobian of the gradient, shape (n, n); from differences if the risk has no Hessian.

        On a reduced problem, row i of the Jacobian is row i of the Hessian of the risk divided by
        the number of entries of scalar i.
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
        """Take steps first, ..., last - 1 on `state`; see `dynamics.loops.kernels.advance`."""
        return self.expectation.advance(state, updates, first, last, buffers)

    def gradient_failure(self, state: ArrayLike) -> str:
        """Reason why a state has no gradient; "" if it has one."""
        return self.expectation.failure(self.layout.flatten(state))


def _unspent(argument: Any) -> Any:
    """Copy of a random generator, to protect it from later draws; other arguments unchanged."""
    return copy.deepcopy(argument) if isinstance(argument, np.random.Generator) else argument


def _made_again(kind: type[Any], arguments: tuple[Any, ...], options: Mapping[str, Any]) -> Any:
    """Problem rebuilt from its stored arguments; pickles refer to this function."""
    return kind(*map(_unspent, arguments), **{n: _unspent(value) for n, value in options.items()})


def check_problem(problem: object) -> None:
    """Raise InvalidRequest for an object that is not a problem, with a hint."""
    if hasattr(problem, "layout") and hasattr(problem, "order_names"):
        return  # a caller's own class need not inherit from `Problem`
    kind = type(problem).__name__
    hint = "make a problem: system.ReducedPopulation(system.Parameters(...))"
    if kind == "Parameters":
        hint = "make a problem of it: system.ReducedPopulation(parameters)"
    elif kind == "System":
        hint = "make a problem of it: system.ReducedPopulation(system.Parameters(...))"
    raise InvalidRequest(f"problem={shown(problem)} is a {kind}, not a problem; {hint}")


def gradient_failure(problem: Problem, state: FloatArray) -> str:
    """Reason why a problem has no gradient at a state; "" if it has one or cannot tell."""
    method = getattr(problem, "gradient_failure", None)
    return "" if method is None else str(method(state))


def columns_of(rows: Sequence[Mapping[str, float]]) -> dict[str, FloatArray]:
    """Map each observable to its values over the records, with NaN in records that lack it."""
    names = [*dict.fromkeys(name for row in rows for name in row)]
    return {name: np.array([row.get(name, np.nan) for row in rows], float) for name in names}


def record_of(columns: Mapping[str, FloatArray], record: int) -> dict[str, float]:
    """Observables of one record, name -> value."""
    return {name: float(values[record]) for name, values in columns.items()}
