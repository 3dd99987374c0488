r"""Time up to which a reduction is stable against perturbations of the start off the closed space.

The closed space consists of the states that the reduction's scalars represent; training from such
a state stays in it. A perturbation of the start grows, to first order, at most by the amplification
:math:`\Phi(\tau)` at the time tau (`dynamics.analysis.transverse_growth`). If each of n entries
starts at most `OFF` away from the closed space, no entry is `LEFT` away from it while

.. math:: \Phi(\tau) < \mathrm{LEFT} / (\mathrm{OFF} \sqrt{n}). \qquad (1)

If (1) fails, full training from `STARTS` perturbed starts decides on stability. For gradient
descent full training always decides, because large steps may repel even if (1) holds. The full flow
uses an explicit integrator, because an implicit one damps perturbations below its tolerance.
"""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import inf, nan
from typing import Any

import numpy as np

from dynamics.analysis.transverse_growth import RECORDS, TransverseGrowth, transverse_growth
from dynamics.problem import FloatArray
from dynamics.results.stability import LEFT, OFF, Stability
from dynamics.results.trajectory import Trajectory
from dynamics.training.descent import descend
from dynamics.training.progress import bar, interruption
from dynamics.validation import InvalidRequest

STARTS = 3
"""Number of full training runs from perturbed starts."""
RTOL, ATOL = 1e-8, 1e-12
"""Relative and absolute tolerance of the full gradient flow."""
MOST_STEPS = 50_000
"""Maximum number of steps of the full gradient flow; each step evaluates twelve gradients."""
FEWEST_STEPS = 400


@dataclass(frozen=True)
class Departure:
    """Full training from a start off the closed space."""

    time: FloatArray
    """Time of each record, shape (records,)."""
    states: FloatArray
    """All entries at each record, shape (records, n)."""
    distance: FloatArray
    """Largest distance of an entry from the closed space at each record, shape (records,)."""
    complete: bool = True
    """Whether training reached the horizon or the requested distance."""

    def reaches(self, distance: float = LEFT) -> float:
        """Time at which the distance from the closed space reaches `distance`.

        The time is infinite if the distance is never reached, and NaN if training stopped early.
        """
        beyond = np.flatnonzero(~(self.distance < distance))
        if not beyond.size:
            return inf if self.complete else nan
        k = int(beyond[0])
        if k == 0 or not np.isfinite(self.distance[k]):
            return float(self.time[k])
        logs = np.log(np.maximum(self.distance[k - 1 : k + 1], np.finfo(np.float64).tiny))
        return float(np.interp(np.log(distance), logs, self.time[k - 1 : k + 1]))


def stability(
    reduced: Any, full: Any, run: Trajectory, starts: int = STARTS, records: int = RECORDS
) -> Stability:
    """Measure the time up to which full runs from perturbed starts stay near the closed space.

    Unless a gradient flow satisfies the growth bound (1), the full problem is trained from `starts`
    perturbed starts. With ``starts=0`` only the growth bound is computed, which ignores the step
    size. The curvature is computed at `records` states of the run.

    Examples
    --------
    >>> import dynamics
    >>> system = dynamics.load_system("deep_linear")
    >>> parameters = system.Parameters(D=2)
    >>> reduced, full = system.ReducedPopulation(parameters), system.FullPopulation(parameters)
    >>> print(stability(reduced, full, dynamics.flow(reduced, time=1.0)))
    the classes hold to time 1: a departure grows 40.8-fold at most
    """
    found = Stability(float(run.time[-1]))
    if np.abs(_across(full, 0)).max(initial=0.0) < OFF:
        return replace(found, growth=1.0, safe=found.horizon)
    if not (run.steps.size and starts):
        found = of_growth(transverse_growth(reduced, full, run, records), full.layout.size)
        if not found.limited:
            return found
    offsets = [off_start(full, seed) for seed in range(starts)]
    return replace(found, left=tuple(departure(full, run, each).reaches() for each in offsets))


def of_growth(growth: TransverseGrowth, entries: int) -> Stability:
    """Stability of `entries` trained entries by criterion (1), from the growth along a run."""
    horizon, along = float(growth.time[-1]), growth.amplification.copy()
    along[-1] = max(along[-1], growth.halved)
    above = np.flatnonzero(along >= LEFT / (OFF * np.sqrt(entries)))
    safe = horizon if not above.size else float(growth.time[max(0, above[0] - 1)])
    return Stability(horizon, float(along[-1]), safe)


def off_start(full: Any, seed: int = 0, off: float = OFF) -> FloatArray:
    """Initial state perturbed in a random direction off the closed space.

    The largest perturbation of an entry is `off`. Raises InvalidRequest if every entry is a scalar,
    because the closed space is then the whole space.
    """
    start, across = full.initial_state, _across(full, seed)
    size = float(np.abs(across).max(initial=0.0))
    if size < OFF:
        raise InvalidRequest("every entry is a scalar: no start lies off the closed space")
    return np.asarray(start + off / size * across)


def _across(full: Any, seed: int) -> FloatArray:
    """Random direction in the space of all entries, orthogonal to the closed space."""
    random = np.random.default_rng(seed).standard_normal(full.layout.size)
    return np.asarray(full.outside(random))


def departure(full: Any, run: Trajectory, start: FloatArray, most: float = LEFT) -> Departure:
    """Train every entry from another start with the settings of a reduced run.

    A gradient flow stops when an entry is farther than `most` from the closed space.
    """
    if run.steps.size:
        again = descend(full, run.settings["eta"], int(run.steps[-1]), initial=start)
        return Departure(again.time, again.states, _distances(full, again.states))
    return _flow(full, start, float(run.time[-1]), most)


def _distances(full: Any, states: FloatArray) -> FloatArray:
    """Largest distance of an entry from the closed space at each of the states."""
    moved = states - full.initial_state
    return np.array([np.abs(full.outside(state)).max(initial=0.0) for state in moved])


def _flow(full: Any, start: FloatArray, end: float, most: float) -> Departure:
    """Full flow by an explicit method, to time `end` or distance `most` from the closed space."""
    from scipy.integrate import DOP853

    how = {"rtol": RTOL, "atol": ATOL, "max_step": end / FEWEST_STEPS}
    solver = DOP853(lambda _, state: -full.gradient(state), 0.0, start, end, **how)
    time, states, far = [0.0], [start], 0.0
    with interruption() as interrupted, bar(f"flow, {full.view}, off its classes") as shown:
        while solver.status == "running" and len(time) <= MOST_STEPS and far <= most:
            if interrupted.is_set():
                break
            solver.step()
            time.append(float(solver.t))
            states.append(solver.y.copy())
            far = float(_distances(full, solver.y[None])[0])
            shown.say(f"time {solver.t:.3g} of {end:g}")
            shown.update()
    along = np.array(states)
    complete = solver.status == "finished" or not far <= most
    return Departure(np.array(time), along, _distances(full, along), complete)
