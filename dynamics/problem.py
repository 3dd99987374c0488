"""What every driver works on: an initial state, a gradient, a risk, observables.

The state is one flat float array. Its `Layout` says which part has which name and shape, so that a
reduced problem (alpha, gamma, rho) and a full one (alpha, A) look the same to a driver.
"""

from __future__ import annotations

import hashlib
from abc import ABC, abstractmethod
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from math import prod
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynamics.codegen import loops
from dynamics.validation import InvalidRequest, one_line, refuse, shown

if TYPE_CHECKING:
    from dynamics.codegen.addresses import AddressedModel
    from dynamics.results.presentation import Presentation
    from theory.events import EventRule
    from theory.notation import Notation

FloatArray = NDArray[np.float64]
IntArray = NDArray[np.int64]

SMALL = 8
"""States of at most so many entries have their Jacobian taken whole."""


@dataclass(frozen=True)
class Layout:
    """Names and shapes of the parts of a flat state.

    Attributes
    ----------
    names : tuple of str
        Parts in order.
    shapes : tuple of tuple of int
        Shape of each; ``()`` is a scalar.
    groups : tuple of str
        Parameter group of each part: parts of one group share a learning rate.
    every_group : tuple of str
        The groups in the order of their learning rates, where that is not the order of the parts,
        or there are groups without a part.
    """

    names: tuple[str, ...]
    shapes: tuple[tuple[int, ...], ...]
    groups: tuple[str, ...]
    every_group: tuple[str, ...] = field(default=(), compare=False)

    @property
    def group_names(self) -> tuple[str, ...]:
        """The parameter groups, each once, in the order of their learning rates."""
        return self.every_group or tuple(dict.fromkeys(self.groups))

    @cached_property
    def size(self) -> int:
        """Number of entries of the flat state."""
        return sum(prod(shape) for shape in self.shapes)

    @property
    def scalars(self) -> list[str]:
        """Names of the parts that are one number each."""
        return [n for n, shape in zip(self.names, self.shapes, strict=True) if shape == ()]

    def slice_of(self, name: str) -> slice:
        """The entries of a part in the flat state."""
        k = self.names.index(name)
        first = sum(prod(shape) for shape in self.shapes[:k])
        return slice(first, first + prod(self.shapes[k]))

    def part(self, states: FloatArray, name: str) -> FloatArray:
        """A part of one flat state (n,) or of many (records, n), in its own shape."""
        shape = self.shapes[self.names.index(name)]
        return states[..., self.slice_of(name)].reshape(states.shape[:-1] + shape)

    def flatten(self, state: ArrayLike | tuple[Any, ...]) -> FloatArray:
        """A flat copy of a state given flat, or as a sequence of its parts.

        Raises
        ------
        InvalidRequest
            If it is neither.
        """
        try:
            if isinstance(state, np.ndarray):
                if state.dtype.kind == "c":
                    raise TypeError
                flat = state.astype(np.float64).reshape(-1)
            else:
                parts = state if isinstance(state, (tuple, list)) else (state,)
                each = [np.asarray(part, dtype=np.float64).ravel() for part in parts]
                flat = np.concatenate(each or [np.empty(0)])
        except (TypeError, ValueError):
            allowed = f"{self.size} numbers ({self._expected})"
            refuse("state", state, "is not of numbers", allowed, "problem.initial_state")
        if flat.size != self.size:
            has = f"a state has {self.size} entries ({self._expected})"
            raise InvalidRequest(f"{has}, not {flat.size}")
        return flat

    @property
    def _expected(self) -> str:
        """The parts of a state and their shapes, in words."""
        return ", ".join(f"{n} {s}" for n, s in zip(self.names, self.shapes, strict=True))

    def per_entry(self, per_group: tuple[float, ...]) -> FloatArray:
        """One value per parameter group, repeated for every entry of it."""
        values = dict(zip(self.group_names, per_group, strict=True))
        sizes = [prod(shape) for shape in self.shapes]
        return np.repeat(np.array([values[group] for group in self.groups]), sizes)


class Problem(ABC):
    """A training problem; see the 2 x 2 square of the architecture.

    A problem supplies ``initial_state``, ``gradient``, ``risk``, ``observables``,
    ``order_parameters``, ``advance`` and ``identity``; the rest follows from these. Some have more:
    a full one ``orbit_values(states)``, reduced state -> every value that it stands for, shape
    (records, entries); one whose gradient has a known error ``gradient_bound(state)``; one that may
    refuse a gradient ``certificate_failure(state)``; one whose events may be due to something else
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
    reads_pass : bool
        Whether order parameters and summary are read off the pass that the gradient has made.
    pass_names : tuple of str
        Observables that the pass of the gradient leaves behind, so that a record of gradient
        descent has them for nothing; only where all steps are alike, and one more may be made.
    costly_passes : float
        Gradients that the costly observables of one state take, those on fresh samples; 0 where
        there are none.
    addressed : AddressedModel or None
        Its compiled functions, for the compiled loops; None where it has none.
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
    reads_pass = False
    pass_names: tuple[str, ...] = ()
    costly_passes = 0.0

    def __repr__(self) -> str:
        state = one_line(", ".join(self.state_names), 64)
        name = f"{type(self).__name__}({shown(self.parameters)}) of {self.system}"
        return f"{name}, size {self.layout.size}: {state}"

    @property
    @abstractmethod
    def identity(self) -> Mapping[str, Any]:
        """What decides its gradients beside the parameters."""

    @property
    @abstractmethod
    def initial_state(self) -> FloatArray:
        """Where training starts, flat, shape (n,)."""

    def gradient(self, state: ArrayLike) -> FloatArray:
        """What one step of gradient descent subtracts, divided by eta; shape (n,)."""
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

    def observables_of_records(
        self, states: FloatArray, noted: FloatArray, costly: NDArray[np.bool_]
    ) -> dict[str, FloatArray]:
        """`observables_along` of the records of gradient descent.

        Parameters
        ----------
        states : float array, shape (records, n)
        noted : float array, shape (records, names)
            Order parameters and `pass_names` there, NaN where they are not known; no columns where
            the problem has no `pass_names`.
        costly : bool array, shape (records,)
            Where the costly observables are computed; they are NaN elsewhere.
        """
        return self.observables_along(states)

    @abstractmethod
    def order_parameters(self, state: ArrayLike, gradient: FloatArray | None = None) -> FloatArray:
        """Order parameters at a state, in the order of `order_names`."""

    @abstractmethod
    def advance(
        self, state: FloatArray, eta: FloatArray, first: int, last: int, buffers: tuple[Any, ...]
    ) -> int:
        """Steps first, ..., last - 1 in place; see `dynamics.codegen.kernels.advance`."""

    @property
    def addressed(self) -> AddressedModel | None:
        """Its compiled functions, for the compiled loops; None where it has none."""
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
        return _differences(self.gradient, self.layout.flatten(state))

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

            size = _power_iteration(slope, flat)
            if size < 0:  # of all, the largest stands as far from the least as any
                size += _power_iteration(slope, flat, size)
            return size
        matrix = np.reshape(shares, (-1, 1)) * self.jacobian(flat)
        if not np.isfinite(matrix).all():
            return float("nan")
        return float(np.linalg.eigvals(matrix).real.max())


class CompiledProblem(Problem):
    """A problem whose gradient, order parameters and summary are in one generated file.

    Parameters
    ----------
    module : dynamics.codegen.CompiledModule
        With ``gradient``, ``order_parameters``, ``summary``, and ``hessian`` if there is one.
    data : tuple or NamedTuple
        What its functions need beside the state.
    layout : Layout
        Parts of the state.
    """

    autonomous = True
    """Whether every step has the same data, so that a step that moves nothing is the last."""

    def __init__(self, module: Any, data: Any, layout: Layout) -> None:
        self.module = module
        self.layout = layout
        self._data = data

    @property
    def source(self) -> str:
        """Text of the generated file."""
        return self.module.source

    @property
    def identity(self) -> Mapping[str, Any]:
        """What decides its gradients beside the parameters: settings, and the generated file."""
        code = hashlib.sha256(self.source.encode()).hexdigest()[:12]
        return {**self.settings, "code": code}

    def gradient(self, state: ArrayLike) -> FloatArray:
        """What one step of gradient descent subtracts, divided by eta.

        Parameters
        ----------
        state : float array, shape (n,), or a sequence of its parts

        Returns
        -------
        float array, shape (n,)
        """
        return loops.gradient(self.addressed, self.layout.flatten(state))

    @cached_property
    def addressed(self) -> AddressedModel:
        """Its compiled functions, for the compiled loops."""
        return self.module.addressed(self._data)

    def order_parameters(self, state: ArrayLike, gradient: FloatArray | None = None) -> FloatArray:
        """Order parameters at a state, in the order of `order_names`.

        Parameters
        ----------
        state : float array, shape (n,)
        gradient : float array, shape (n,), optional
            The gradient there, computed if it is not given.
        """
        flat = self.layout.flatten(state)
        fresh = gradient is None or self.reads_pass
        slope = self.gradient(flat) if fresh else np.ascontiguousarray(gradient, dtype=np.float64)
        return loops.order_parameters(self.addressed, flat, slope, len(self.order_names))

    @property
    def has_jacobian(self) -> bool:
        """Whether the generated file has an analytic Jacobian of the gradient."""
        return hasattr(self.module.functions, "hessian")

    def jacobian(self, state: ArrayLike) -> FloatArray:
        """Derivative of the gradient by the state, shape (n, n).

        On a reduced problem row i is the i-th row of the Hessian of the risk divided by the number
        of entries that share state i. From the generated file where it has it, else from central
        differences.
        """
        flat = self.layout.flatten(state)
        if not self.has_jacobian:
            return _differences(self.gradient, flat)
        return loops.hessian(self.addressed, flat)

    def risk(self, state: ArrayLike) -> float:
        """Risk at a state."""
        return float(self._summary(self.layout.flatten(state))[0])

    def _summary(self, state: FloatArray) -> FloatArray:
        if self.reads_pass:
            self.gradient(state)
        return loops.summary(self.addressed, state)

    def advance(
        self, state: FloatArray, eta: FloatArray, first: int, last: int, buffers: tuple[Any, ...]
    ) -> int:
        """Steps first, ..., last - 1 in place; see `dynamics.codegen.kernels.advance`.

        Parameters
        ----------
        state, eta : float arrays, shape (n,)
        first, last : int
        buffers : (tracked, record_steps, records)
        """
        return loops.advance(self.addressed, state, eta, (first, last), self.autonomous, buffers)


def check_problem(problem: object) -> None:
    """Refuse what is no `Problem`, and say how to make one of it.

    Parameters
    ----------
    problem : object

    Raises
    ------
    InvalidRequest
    """
    if hasattr(problem, "layout") and hasattr(problem, "order_names"):
        return  # one of a caller's own need not be a `Problem`
    kind = type(problem).__name__
    hint = "problem can be made as system.ReducedPopulation(system.Parameters(...))"
    if kind == "Parameters":
        hint = "make a problem of it: system.ReducedPopulation(parameters)"
    elif kind == "System":
        hint = "make a problem of it: system.ReducedPopulation(system.Parameters(...))"
    raise InvalidRequest(f"problem={shown(problem)} is a {kind}, no problem; {hint}")


def certificate_failure(problem: Problem, state: FloatArray) -> str:
    """Why a problem certifies no gradient at a state; empty where it does, or certifies none.

    Parameters
    ----------
    problem : Problem
        Those whose gradient may be refused have a method ``certificate_failure``.
    state : float array, shape (n,)
    """
    method = getattr(problem, "certificate_failure", None)
    return "" if method is None else str(method(state))


def _differences(gradient: Callable[[FloatArray], FloatArray], state: FloatArray) -> FloatArray:
    """Jacobian of a gradient, column by column."""
    columns = []
    for k, width in enumerate(1e-4 * np.maximum(np.abs(state), 1e-2)):
        step = np.zeros_like(state)
        step[k] = width
        columns.append((gradient(state + step) - gradient(state - step)) / (2 * width))
    return np.array(columns).T


def _power_iteration(
    gradient: Callable[[FloatArray], FloatArray], state: FloatArray, shift: float = 0.0
) -> float:
    """Eigenvalue of largest size of the Jacobian of a gradient less a shift, to 1e-6."""
    width = 1e-5 * max(1e-3, float(np.linalg.norm(state)))
    direction, eigenvalue = gradient(state), 0.0
    if not np.isfinite(direction).all():
        return float("nan")
    if not direction.any():
        direction = np.ones_like(state)
    for _ in range(100):
        direction = direction / np.linalg.norm(direction)
        change = gradient(state + width * direction) - gradient(state - width * direction)
        image = change / (2 * width) - shift * direction
        if not np.isfinite(image).all():
            return float("nan")
        before, eigenvalue = eigenvalue, float(direction @ image)
        if abs(eigenvalue - before) <= 1e-6 * abs(eigenvalue) or not image.any():
            break
        direction = image
    return eigenvalue


def columns_of(rows: Sequence[Mapping[str, float]]) -> dict[str, FloatArray]:
    """Observables of every record as arrays; NaN where a record lacks one.

    Parameters
    ----------
    rows : sequence of mapping
        Name -> value, of each record.
    """
    names = [*dict.fromkeys(name for row in rows for name in row)]
    return {name: np.array([row.get(name, np.nan) for row in rows], float) for name in names}


def record_of(columns: Mapping[str, FloatArray], record: int) -> dict[str, float]:
    """Observables of one record.

    Parameters
    ----------
    columns : mapping
        Name -> values of all records.
    record : int
    """
    return {name: float(values[record]) for name, values in columns.items()}
