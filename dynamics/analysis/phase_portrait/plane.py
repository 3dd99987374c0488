"""Phase portraits: the flow of a reduced problem, seen in the plane of two of its scalars.

The field is minus the gradient of the two scalars. What the plane does not show is treated as
`hidden` says, so arrows, nullclines and fixed points are of the plane; the runs are of the whole
problem, projected onto it.
"""

from __future__ import annotations

import threading
from collections.abc import Mapping
from dataclasses import asdict, dataclass
from itertools import pairwise
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dynamics.analysis.phase_portrait.elimination import (
    HELD,
    RUN,
    SLOW,
    Box,
    Given,
    Slaved,
    Treatment,
    fast,
    followed,
    treatments,
)
from dynamics.analysis.phase_portrait.fixed_points import FixedPoint, fixed_points
from dynamics.analysis.phase_portrait.nullclines import Nullcline, interval, nullcline
from dynamics.analysis.phase_portrait.slow_manifold import Graded, SlowManifold, polished, scalars
from dynamics.problem import FloatArray, Problem
from dynamics.results.presentation import Presentation
from dynamics.results.trajectory import Trajectory
from dynamics.training.flow import flow
from dynamics.training.progress import interruption
from dynamics.validation import integer, refuse

MARGINS = (0.10, 0.14)
"""Below and above the main run's extent, as parts of it."""
RECORDS = 150
"""Of the runs beside the main one."""
ARROWS = 24
BUDGET = 40
"""Places evaluated for a nullcline, beside polishing, over the square of the grid: two looks."""
UNSURE = 1e-2
"""Rates are unknown where their error may be over this part of the median rate of the plane."""
GOLDEN = 1.32471795724474602596
"""The plastic number: its powers fill a square evenly."""


@dataclass(frozen=True)
class Portrait:
    """The plane of two scalars.

    Attributes
    ----------
    system, view : str
    parameters : mapping
    plane : (str, str)
        Names of the scalars along x and y.
    box : two pairs of float
        The rectangle.
    hidden : mapping
        Name -> `Treatment` of every further scalar.
    x, y : float array, shape (points,)
        Where the field is given.
    rates : float array, shape (2, points, points)
        Rate of each scalar by [., row of y, column of x]; NaN where there is none, and where the
        problem's own bound on its error is not small beside the rates of the plane.
    nullclines : mapping
        Name of each of the two -> `Nullcline` of its rate.
    fixed_points : tuple of FixedPoint
    slow : SlowManifold or None
        The followed branch of the slaved scalar over a grid of the plane, indexed [., x, y]; or
        every branch of a fast one of the plane along the other, within the rectangle; None if no
        scalar is fast.
    runs : tuple of Trajectory
        The main run first.
    gradients : int
        Taken for all but the runs.
    presentation : Presentation
        That of the problem.
    """

    system: str
    view: str
    parameters: Mapping[str, Any]
    plane: tuple[str, str]
    box: Box
    hidden: Mapping[str, Treatment]
    x: FloatArray
    y: FloatArray
    rates: FloatArray
    nullclines: Mapping[str, Nullcline]
    fixed_points: tuple[FixedPoint, ...]
    slow: SlowManifold | None
    runs: tuple[Trajectory, ...]
    gradients: int
    presentation: Presentation


class Counted:
    """A problem's gradient, counted; after an interruption there is no further one."""

    def __init__(self, problem: Any, interrupted: threading.Event) -> None:
        self.view, self.layout, self._interrupted = problem.view, problem.layout, interrupted
        self._gradient = problem.gradient
        self._bound = getattr(problem, "gradient_bound", lambda state: None)
        self.taken = 0

    def gradient(self, state: ArrayLike) -> FloatArray:
        """The problem's."""
        if self._interrupted.is_set():
            raise KeyboardInterrupt
        self.taken += 1
        return self._gradient(state)

    def gradient_bound(self, state: ArrayLike) -> FloatArray | None:
        """The problem's."""
        self.taken += 1
        return self._bound(state)


class PlaneField:
    """Rates of two scalars as a function of them, each place taken once.

    Parameters
    ----------
    problem : Problem
    plane : (str, str)
    given : mapping
        Name -> function of the plane, for every further scalar.
    """

    def __init__(self, problem: Graded, plane: tuple[str, str], given: Mapping[str, Given]) -> None:
        names = problem.layout.names
        self.problem = problem
        self._axes = names.index(plane[0]), names.index(plane[1])
        self._given = {names.index(name): function for name, function in given.items()}
        self._known: dict[tuple[float, float], tuple[float, float]] = {}
        self._limits: FloatArray | None = None

    def state(self, x: float, y: float) -> FloatArray:
        """The whole state at a place of the plane."""
        state = np.empty(self.problem.layout.size)
        state[self._axes[0]], state[self._axes[1]] = x, y
        for k, function in self._given.items():
            state[k] = function(x, y)
        return state

    def __call__(self, x: float, y: float) -> tuple[float, float]:
        """Rates of both; NaN where the state or its gradient is not a number."""
        found = self._known.get((x, y))
        if found is None:
            state = self.state(x, y)
            there = np.isfinite(state).all()
            slope = self.problem.gradient(state)[list(self._axes)] if there else np.full(2, np.nan)
            limits = self._limits
            bound = self.problem.gradient_bound(state) if there and limits is not None else None
            if limits is not None and bound is not None:
                slope = np.where(bound[list(self._axes)] > limits, np.nan, slope)
            found = self._known[x, y] = -float(slope[0]), -float(slope[1])
        return found

    def grid(self, x: FloatArray, y: FloatArray) -> FloatArray:
        """Rates at all pairs, shape (2, y, x).

        From then on, rates whose error may be over a part of the medians of these are unknown.
        """
        rates = np.array([[self(u, v) for u in x] for v in y])
        sizes = np.nanmedian(np.abs(rates), axis=(0, 1)) if np.isfinite(rates).any() else 0.0
        self._limits = UNSURE * np.broadcast_to(sizes, (2,))
        self._known = {}
        return np.array([[self(u, v) for u in x] for v in y]).transpose(2, 0, 1)


def portrait(
    problem: Problem,
    time: float,
    plane: tuple[str, str] | None = None,
    box: Box | None = None,
    hidden: str | float | Mapping[str, str | float] | None = None,
    starts: int | ArrayLike = 4,
    grid: int = 32,
) -> Portrait:
    """The phase portrait of a reduced problem in the plane of two of its scalars.

    Parameters
    ----------
    problem : Problem
        Whose state is scalars, at least two.
    time : float
        Horizon of the runs.
    plane : (str, str), optional
        The scalars along x and y; by default the last two.
    box : two pairs of float, optional
        The rectangle; by default around the main run.
    hidden : optional
        ``"slow"``, ``"run"`` or a number, for all other scalars or by their names; see `hidden`.
        By default a fast scalar is slaved and the others follow the main run.
    starts : int or float array, shape (runs, 2)
        Further runs: how many, spread over the rectangle, or their places on the plane.
    grid : int
        Cells along each side at the first look for nullclines. A place costs one gradient, or
        about eight where a scalar is slaved, and one more where the problem bounds its error;
        places are about 20 grid^2.

    Returns
    -------
    Portrait

    Raises
    ------
    InvalidRequest
        If an argument cannot be.
    KeyboardInterrupt
        After Ctrl-C or SIGTERM.
    """
    names = scalars(problem)
    axes = _plane(names, names[-2:] if plane is None else plane)
    grid = integer("grid", grid, at_least=4, at_most=512)
    places = (
        integer("starts", starts, 0, 100) if np.ndim(starts) == 0 else np.asarray(starts, float)
    )
    if not isinstance(places, int) and (places.ndim != 2 or places.shape[1] != 2):
        refuse("starts", starts, "are no places", "a number, or pairs of numbers", 4)
    with interruption() as interrupted:
        main = flow(problem, time)
        counted = Counted(problem, interrupted)
        rectangle = _box(main, axes, box)
        treated = treatments(counted, main, axes, hidden)
        given, manifold = _given(counted, main, axes, rectangle, treated, grid)
        field = PlaneField(counted, axes, given)
        x, y = (_middles(*ends, min(grid, ARROWS)) for ends in rectangle)
        rates = field.grid(x, y)
        budget = BUDGET * grid**2
        lines = {
            axes[0]: nullcline(lambda u, v: field(u, v)[0], *rectangle, grid=grid, budget=budget),
            axes[1]: nullcline(lambda u, v: field(u, v)[1], *rectangle, grid=grid, budget=budget),
        }
        points = fixed_points(field, rectangle, *(lines[name].branches for name in axes))
        if manifold is None:
            manifold = _along(counted, main, rectangle, given, lines)
        spots = _spread(rectangle, places) if isinstance(places, int) else places
        states = [field.state(float(u), float(v)) for u, v in spots]
        begun = [state for state in states if np.isfinite(state).all()]
        runs = [flow(problem, time, initial=state, record=RECORDS) for state in begun]
        if interrupted.is_set():
            raise KeyboardInterrupt
    return Portrait(
        system=problem.system,
        view=problem.view,
        parameters=asdict(problem.parameters),
        plane=axes,
        box=rectangle,
        hidden=treated,
        x=x,
        y=y,
        rates=rates,
        nullclines=lines,
        fixed_points=points,
        slow=manifold,
        runs=(main, *runs),
        gradients=counted.taken,
        presentation=Presentation.of(problem),
    )


def _plane(names: tuple[str, ...], plane: object) -> tuple[str, str]:
    if len(names) < 2:
        refuse("plane", names, "has one scalar only", "two scalars of a state", "none")
    chosen = tuple(plane) if isinstance(plane, (tuple, list)) else (plane,)
    if len(chosen) != 2 or len({*chosen} & {*names}) != 2:
        refuse("plane", plane, "is no plane of the state", f"two of {', '.join(names)}", names[-2:])
    return chosen[0], chosen[1]


def _box(run: Trajectory, plane: tuple[str, str], box: Box | None) -> Box:
    if box is not None:
        return interval("box", box[0]), interval("box", box[1])
    sides = []
    for name in plane:
        low, high = float(run[name].min()), float(run[name].max())
        extent = (high - low) or max(abs(low), 1.0)
        sides.append((low - MARGINS[0] * extent, high + MARGINS[1] * extent))
    return sides[0], sides[1]


def _middles(low: float, high: float, count: int) -> FloatArray:
    return low + (high - low) * (np.arange(count) + 0.5) / count


def _spread(box: Box, count: int) -> FloatArray:
    """Places that fill the rectangle evenly, however many."""
    parts = np.array([[k / GOLDEN, k / GOLDEN**2] for k in range(1, count + 1)]).reshape(-1, 2) % 1
    low, sides = np.array(box)[:, 0], np.ptp(np.array(box), axis=1)
    places: FloatArray = low + (0.06 + 0.88 * parts) * sides
    return places


def _given(
    problem: Graded,
    run: Trajectory,
    plane: tuple[str, str],
    box: Box,
    treated: Mapping[str, Treatment],
    grid: int,
) -> tuple[dict[str, Given], SlowManifold | None]:
    """Every hidden scalar as a function of the plane, and the slow manifold of a slaved one."""
    given: dict[str, Given] = {}
    for name, treatment in treated.items():
        if treatment.kind == RUN:
            given[name] = followed(run, name, plane, treatment)
        elif treatment.kind == HELD:
            given[name] = lambda x, y, value=treatment.value: value  # type: ignore[misc]
    slaved = [name for name, treatment in treated.items() if treatment.kind == SLOW]
    if not slaved:
        return given, None
    own = Slaved(problem, slaved[0], plane, box, dict(given), run, grid)
    return {**given, slaved[0]: own}, own.manifold


def _along(
    problem: Graded,
    run: Trajectory,
    box: Box,
    given: Mapping[str, Given],
    lines: Mapping[str, Nullcline],
) -> SlowManifold | None:
    """The slow manifold of a fast scalar of the plane, its nullcline, along the other one."""
    plane = tuple(lines)
    for k, name in enumerate(plane):
        if not fast(problem, run, name):
            continue
        other = np.linspace(*box[1 - k], 4 * ARROWS + 1)
        middle = sum(box[k]) / 2
        at = {plane[1 - k]: other}
        for hidden, function in given.items():
            places = [(middle, v) if k == 0 else (v, middle) for v in map(float, other)]
            at[hidden] = np.array([function(*place) for place in places])
        return polished(problem, name, at, _levels(lines[name], k, other), box[k])
    return None


def _levels(line: Nullcline, k: int, other: FloatArray) -> list[list[float]]:
    """Where the branches of a nullcline are on lines across the plane: coordinate k on each."""
    found: list[list[float]] = [[] for _ in other]
    for branch in line.branches:
        for start, stop in pairwise(branch):
            low, high = sorted((start[1 - k], stop[1 - k]))
            for j in np.flatnonzero((other >= low) & (other <= high)):
                part = (other[j] - start[1 - k]) / ((stop[1 - k] - start[1 - k]) or 1.0)
                found[j].append(float(start[k] + part * (stop[k] - start[k])))
    return found
