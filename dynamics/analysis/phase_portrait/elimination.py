"""The scalars that a plane does not show: held, followed along a run, or slaved.

- *slow*: the scalar relaxes fast and sits on the attracting branch of its slow manifold that the
  main run is on, followed from there.
- *run*: it takes the value that it had on the main run when one scalar of the plane was there, on
  the part of the run from its start on which that scalar is monotone; beyond it, the last value.
- *held*: a number.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping
from dataclasses import dataclass

import numpy as np

from dynamics.analysis.phase_portrait.slow_manifold import (
    Graded,
    SlowManifold,
    own,
    settle,
    slope,
    within,
)
from dynamics.analysis.phase_portrait.slow_manifold import followed as branch
from dynamics.problem import FloatArray
from dynamics.results.trajectory import Trajectory
from dynamics.validation import InvalidRequest, real, refuse

SLOW, RUN, HELD = "slow", "run", "held"
FAST = 1e-2
"""A scalar is fast if it stays nearer to its rest than this part of the range that it covers."""
REACH = 10.0
"""How far a rest may be, in the scalar's largest value along the run."""

ROUNDING = 1e-9
"""Changes below this part of the range are no turn."""
BEYOND = 0.2
"""How far a rest may be from a Newton step, as a part of the step, at first."""

Box = tuple[tuple[float, float], tuple[float, float]]
Given = Callable[[float, float], float]


@dataclass(frozen=True)
class Treatment:
    """How a scalar that a plane does not show is treated.

    Attributes
    ----------
    kind : str
        ``"slow"``, ``"run"`` or ``"held"``.
    value : float
        Of a held one, else NaN.
    along : str
        For ``"run"``: the scalar of the plane that it is a function of.
    until : float
        For ``"run"``: the time up to which the run is followed.
    """

    kind: str
    value: float = math.nan
    along: str = ""
    until: float = math.nan


def fast(problem: Graded, run: Trajectory, name: str) -> bool:
    """Whether a scalar sits near its rest over the last two thirds of a run's records."""
    values = run[name]
    place = problem.layout.names.index(name)
    span = float(np.ptp(values))
    gaps = []
    for k in np.linspace(len(values) // 3, len(values) - 1, 9).astype(int):
        state = run.states[k]
        at = dict(zip(problem.layout.names, map(float, state), strict=True))
        rate = slope(own(problem, name, at), float(values[k]), span)
        gaps.append(abs(problem.gradient(state)[place] / rate) if rate > 0 else math.inf)
    return bool(np.median(gaps) < FAST * span)


def treatments(
    problem: Graded, run: Trajectory, plane: tuple[str, str], asked: object
) -> dict[str, Treatment]:
    """What is done with every scalar that is not in the plane.

    Parameters
    ----------
    problem : Problem
    run : Trajectory
        The main run.
    plane : (str, str)
    asked : None, str, float or mapping
        For all of them, or by their names; None slaves what is fast, and lets others follow.

    Raises
    ------
    InvalidRequest
        For an unknown treatment or name, or two slaved scalars.
    """
    names = [name for name in problem.layout.names if name not in plane]
    given = dict(asked) if isinstance(asked, Mapping) else dict.fromkeys(names, asked)
    for name in given:
        if name not in names:
            refuse("hidden", name, "is not hidden", ", ".join(names) or "nothing", names[:1])
    made: dict[str, Treatment] = {}
    for name in names:
        kind = given.get(name)
        if kind is None:
            taken = any(other.kind == SLOW for other in made.values())
            kind = SLOW if not taken and fast(problem, run, name) else RUN
        if kind == SLOW:
            made[name] = Treatment(SLOW)
        elif kind == RUN:
            along, last = _monotone(run, plane)
            made[name] = Treatment(RUN, along=along, until=float(run.time[last - 1]))
        elif isinstance(kind, str):
            refuse("hidden", kind, "is unknown", "'slow', 'run' or a number", SLOW)
        else:
            made[name] = Treatment(HELD, value=real("hidden", kind))
    if sum(treatment.kind == SLOW for treatment in made.values()) > 1:
        raise InvalidRequest(f"hidden={asked!r} slaves {', '.join(made)}; one scalar can be slow")
    return made


def _monotone(run: Trajectory, plane: tuple[str, str]) -> tuple[str, int]:
    """The scalar of the plane that is monotone for longest, and the number of records it is."""
    lasts = {}
    for name in plane:
        changes = np.diff(run[name])
        steps = np.sign(changes) * (np.abs(changes) > ROUNDING * np.ptp(run[name]))
        first = steps[np.flatnonzero(steps)[0]] if steps.any() else 1.0
        turned = np.flatnonzero(steps == -first)
        lasts[name] = int(turned[0]) + 1 if turned.size else len(run.time)
    along = max(lasts, key=lambda name: lasts[name])
    return along, lasts[along]


def followed(run: Trajectory, name: str, plane: tuple[str, str], treatment: Treatment) -> Given:
    """A scalar as a function of the plane: as along the run, and held outside of it."""
    from scipy.interpolate import PchipInterpolator

    kept = run.time <= treatment.until
    places, first = np.unique(run[treatment.along][kept], return_index=True)
    values = run[name][kept][first]
    if len(places) < 2:
        return lambda x, y: float(values[0])
    curve = PchipInterpolator(places, values)
    axis = plane.index(treatment.along)
    low, high = float(places[0]), float(places[-1])
    return lambda x, y: float(curve(min(max((x, y)[axis], low), high)))


class Slaved:
    """A scalar on one attracting branch of its slow manifold, as a function of the plane.

    Parameters
    ----------
    problem : Problem
    name : str
    plane : (str, str)
    box : Box
    others : mapping
        Name -> function of the plane, for every further scalar.
    run : Trajectory
        Its last state in the box says which branch, and how far to look.
    grid : int
        Cells along each side of the table from which values are continued.

    Raises
    ------
    InvalidRequest
        If there is no attracting branch where the run ends.
    """

    def __init__(
        self,
        problem: Graded,
        name: str,
        plane: tuple[str, str],
        box: Box,
        others: Mapping[str, Given],
        run: Trajectory,
        grid: int,
    ) -> None:
        self.problem, self.name, self.plane, self.others = problem, name, plane, others
        self.axes = tuple(np.linspace(low, high, grid + 1) for low, high in box)
        x, y = np.meshgrid(*self.axes, indexing="ij")
        at: dict[str, FloatArray] = {plane[0]: x, plane[1]: y}
        for other, given in others.items():
            at[other] = np.vectorize(given, otypes=[float])(x, y)
        largest = REACH * float(np.abs(run[name]).max())
        self.bounds = (-largest, largest)
        k, index = self._end(run, box)
        self.manifold: SlowManifold = branch(
            problem, name, at, (index, float(run[name][k])), self.bounds
        )
        if not len(self.manifold.values):
            refuse(
                "hidden", SLOW, f"finds no attracting {name} on the run", "'run' or a number", RUN
            )
        self.table, self.slopes = self.manifold.values[0], self.manifold.slopes[0]

    def _end(self, run: Trajectory, box: Box) -> tuple[int, tuple[int, int]]:
        """The last record in the box, and the point of the table nearest to it."""
        inside = [
            (run[name] >= low) & (run[name] <= high)
            for name, (low, high) in zip(self.plane, box, strict=True)
        ]
        k = int(np.flatnonzero(inside[0] & inside[1])[-1]) if (inside[0] & inside[1]).any() else -1
        nearest = [
            int(np.abs(axis - run[name][k]).argmin())
            for axis, name in zip(self.axes, self.plane, strict=True)
        ]
        return k, (nearest[0], nearest[1])

    def __call__(self, x: float, y: float) -> float:
        """The value on the branch; NaN where the branch is not."""
        places = [
            min(max((v - axis[0]) / (axis[1] - axis[0]), 0.0), len(axis) - 1.0)
            for v, axis in zip((x, y), self.axes, strict=True)
        ]
        i, j = (min(int(p), len(axis) - 2) for p, axis in zip(places, self.axes, strict=True))
        s, t = places[0] - i, places[1] - j
        weights = np.outer([1 - s, s], [1 - t, t])
        corners, rises = self.table[i : i + 2, j : j + 2], self.slopes[i : i + 2, j : j + 2]
        known = np.isfinite(corners)
        if not known.any():
            return math.nan
        weights = np.where(known, weights + 1e-12, 0.0) / (weights + 1e-12)[known].sum()
        guess = float((weights * np.where(known, corners, 0.0)).sum())
        rise = float((weights * np.where(known, rises, 0.0)).sum())
        at = {self.plane[0]: x, self.plane[1]: y}
        at |= {other: given(x, y) for other, given in self.others.items()}
        component = own(self.problem, self.name, at)
        step = component(guess) / rise
        low, high = within(guess, self.bounds)
        if not low < guess - step < high:
            return math.nan
        rest = settle(component, guess - step, BEYOND * abs(step), (low, high))
        return math.nan if rest is None or rest[1] <= 0 else rest[0]
