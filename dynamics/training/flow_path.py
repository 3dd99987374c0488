"""A flow that has been integrated: its steps, states between them, and what is read off these."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from dataclasses import dataclass, field

import numpy as np

from dynamics.codegen import AddressedModel, loops
from dynamics.problem import FloatArray, Problem

FIRST_LOOK = 8
"""Points of a path whose order parameters are computed together, doubled from call to call."""


@dataclass(frozen=True)
class Polynomials:
    """States of a path whose steps are polynomials, and rates, which are their derivatives.

    Parameters
    ----------
    path : dynamics.codegen.loops.Path
        As the compiled integrator makes it.
    start : float array, shape (n,)
        The state at its beginning, which a polynomial has up to rounding.
    model : dynamics.codegen.AddressedModel
        Its compiled functions.
    """

    path: loops.Path
    start: FloatArray
    model: AddressedModel

    def __call__(self, time: float) -> FloatArray:
        """The state at a time, shape (n,)."""
        return self.along(np.array([time], dtype=np.float64))[0]

    def along(self, times: FloatArray) -> FloatArray:
        """States at times, shape (T, n)."""
        states = loops.along(self.path, times)[0]
        states[times <= self.path.nodes[0]] = self.start
        return states

    def rate(self, time: float) -> FloatArray:
        """Derivative of the state by the time, shape (n,)."""
        return loops.along(self.path, np.array([time], dtype=np.float64))[1][0]

    def width(self, time: float) -> float:
        """Width of the step around a time."""
        nodes = self.path.nodes
        k = min(max(int(np.searchsorted(nodes, time)), 1), nodes.size - 1)
        return float(nodes[k] - nodes[k - 1])

    def order_rows(self, times: FloatArray, count: int) -> FloatArray:
        """So many order parameters at times, shape (T, count)."""
        return loops.order_along(self.model, self.path, times, count)


@dataclass(frozen=True)
class CarriedRates(Polynomials):
    """States of a path whose steps are polynomials, and rates that are carried along it.

    Parameters
    ----------
    times : float array, shape (T,)
        Ascending, from the beginning of the path.
    slopes : float array, shape (T, n)
        The gradient at each, of a small relative error; see
        `dynamics.codegen.kernels.carried_gradient`.
    known : dict
        Time -> rate that has been computed between them.
    """

    times: FloatArray
    slopes: FloatArray
    known: dict[float, FloatArray] = field(default_factory=dict)

    def rate(self, time: float) -> FloatArray:
        """Derivative of the state by the time, shape (n,)."""
        k = max(int(np.searchsorted(self.times, time, side="right")) - 1, 0)
        if time == self.times[k]:
            return -self.slopes[k]
        if time not in self.known:
            pair = np.array([self.times[k], time])
            slopes = loops.carry_gradient(self.model, self.path, pair, self.slopes[k])
            self.known[time] = -slopes[1]
        return self.known[time]

    def order_rows(self, times: FloatArray, count: int) -> FloatArray:
        """So many order parameters at times, shape (T, count)."""
        rows = [
            loops.order_parameters(self.model, self(time), -self.rate(time), count)
            for time in times
        ]
        return np.array(rows)


@dataclass(frozen=True)
class FlowPath:
    """A flow that has been integrated.

    Attributes
    ----------
    problem : Problem
    nodes : float array
        Times of the accepted steps.
    at : callable
        Time -> state; `Polynomials` where the integrator is compiled.
    error : callable
        State -> what the tolerance allows in one step, by entry; collocation
        is held to less of the state where that is above `dynamics.training.integration.ENOUGH`.
    rtol : float
        Relative tolerance of the path.
    derivatives : bool
        Whether rates are those of `at`; they are gradients at its states otherwise.
    rows : (dict, dict)
        Time -> order parameters that have been computed, without rates and with them; those of many
        times at once are kept only where they cost gradients.
    """

    problem: Problem
    nodes: FloatArray
    at: Callable[[float], FloatArray]
    error: Callable[[FloatArray], FloatArray]
    rtol: float = 0.0
    derivatives: bool = False
    rows: tuple[dict[float, FloatArray], dict[float, FloatArray]] = field(
        default_factory=lambda: ({}, {})
    )

    def states(self, times: FloatArray) -> FloatArray:
        """States at times, shape (T, n)."""
        if isinstance(self.at, Polynomials):
            return self.at.along(times)
        return np.array([self.at(time) for time in times])

    def order(self, time: float, rates: bool) -> FloatArray:
        """Order parameters at a time, as one row; without rates the gradient is not computed."""
        # Rules look at the same points of the path, one after the other.
        known = self.rows[rates]
        if time not in known:
            known[time] = self.order_rows(np.array([time], dtype=np.float64), rates)[0]
        return known[time][None, :]

    def order_rows(self, times: FloatArray, rates: bool) -> FloatArray:
        """Order parameters at ascending times, shape (T, order parameters); see `order`."""
        count = len(self.problem.order_names)
        if rates and self.derivatives:
            assert isinstance(self.at, Polynomials)
            return self.at.order_rows(times, count)
        if times[0] > self.nodes[0] and self._costs_no_gradient(rates):  # the start is exact
            assert isinstance(self.at, Polynomials)
            rows = Polynomials.order_rows(self.at, times, count)
            if np.isfinite(rows).all():
                return rows
        return order_rows(self.problem, self.states(times), rates)

    def _costs_no_gradient(self, rates: bool) -> bool:
        """Whether order parameters cost none: without rates, those of a path of polynomials."""
        return isinstance(self.at, Polynomials) and not rates

    def _known_rows(self, times: FloatArray, rates: bool) -> FloatArray:
        """`order_rows`, of which each is computed once."""
        known, asked = self.rows[rates], times.tolist()
        missing = [time for time in asked if time not in known]
        if missing:
            known.update(zip(missing, self.order_rows(np.array(missing), rates), strict=True))
        return np.array([known[time] for time in asked])

    def order_blocks(
        self, times: FloatArray, rates: bool
    ) -> Iterator[tuple[FloatArray, FloatArray]]:
        """Times and their order parameters, one row each, some at once, as they are needed."""
        done, count = 0, FIRST_LOOK if isinstance(self.at, Polynomials) else 1
        while done < times.size:
            part = times[done : done + count]
            if self._costs_no_gradient(rates):
                yield part, self.order_rows(part, rates)
            else:
                yield part, self._known_rows(part, rates)
            done, count = done + part.size, 2 * count if count > 1 else 1


def order_rows(problem: Problem, states: FloatArray, rates: bool) -> FloatArray:
    """Order parameters of many states, shape (states, order parameters).

    Parameters
    ----------
    problem : Problem
    states : float array, shape (states, n)
    rates : bool
        Whether those that are read off the gradient count.
    """
    none = None if rates else np.zeros_like(states[0])
    if (model := compiled_model(problem)) is None:
        return np.array([problem.order_parameters(state, none) for state in states])
    rows = loops.order_rows(model, states, rates, len(problem.order_names))
    # A compiled gradient may overflow where that of the problem does not.
    for k in np.flatnonzero(~np.isfinite(rows).all(axis=1)):
        rows[k] = problem.order_parameters(states[k], none)
    return rows


def compiled_model(problem: Problem) -> AddressedModel | None:
    """The compiled functions of a problem, if its gradient is that which was compiled.

    A class that computes another one in Python, on top of a compiled class, has none.

    Parameters
    ----------
    problem : Problem
    """
    model: AddressedModel | None = getattr(problem, "addressed", None)
    kinds = type(problem).__mro__
    made = next((k for k, kind in enumerate(kinds) if "addressed" in vars(kind)), len(kinds))
    changed = any({"gradient", "order_parameters"} & vars(kind).keys() for kind in kinds[:made])
    return None if changed else model
