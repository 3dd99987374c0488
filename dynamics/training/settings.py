"""Checks of the request for a run: steps, times, records, start."""

from __future__ import annotations

from dataclasses import dataclass
from functools import lru_cache
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynamics.problem import FloatArray, Problem
from dynamics.validation import integer, learning_rate, real, refuse

RECORDS = 400
"""Records of gradient descent where they are spaced logarithmically."""
FEWEST_RECORDS = 64
MOST_BY_DEFAULT = 2**21
"""Numbers that the records hold where none are asked for, 16 MiB, if that is no less than
`FEWEST_RECORDS`: memory that is new takes some per cent of a run of 300 steps at D = 196."""
FLOW_RECORDS = 300
LOOSEST = 1e-8
"""Looser tolerances would put event times off by more than 1e-5."""
MOST_STEPS = 10**12
"""Steps of gradient descent that a run may have."""
MOST_RECORDED = 2**30
"""Numbers that the records of a run may hold: 8 GiB."""


@dataclass(frozen=True)
class DefaultRecords:
    """Records that nobody asked for: spaced logarithmically, costly observables at few of them.

    Attributes
    ----------
    count : int
        Of which those at equal steps are one.
    """

    count: int = RECORDS

    @classmethod
    def of(cls, size: int) -> DefaultRecords:
        """Those of a run whose state has so many entries; of several runs, the largest state.

        Parameters
        ----------
        size : int
        """
        return cls(min(RECORDS, max(FEWEST_RECORDS, MOST_BY_DEFAULT // size)))


def check_steps(steps: object) -> int:
    """A number of steps that can be counted."""
    return integer("steps", steps, at_least=1, at_most=MOST_STEPS)


def record_schedule(steps: int, record: Any) -> NDArray[np.int64]:
    """Steps at which the state is recorded, ascending, 0 and ``steps`` among them.

    Parameters
    ----------
    steps : int
        Steps of the run.
    record : int, "log", int array, DefaultRecords or None
        As that of `dynamics.descend`; None is "log".

    Raises
    ------
    InvalidRequest
        If ``record`` is neither a positive whole number, nor "log", nor steps within the run.
    """
    if isinstance(record, DefaultRecords):
        return _logarithmic(steps, record.count).copy()
    if record is None or isinstance(record, str):
        if record not in (None, "log"):
            refuse("record", record, "is unknown", "a whole number or 'log'", "log")
        return _logarithmic(steps, RECORDS).copy()
    elif np.ndim(record) == 0:
        spaced = np.arange(0, steps, integer("record", record, at_least=1))
    else:
        spaced = np.asarray(record, dtype=None if np.size(record) else np.int64)
        if spaced.ndim != 1 or spaced.dtype.kind not in "iu" or (spaced < 0).any():
            refuse("record", record, "is not a list of steps", f"whole numbers in 0..{steps}", 0)
        if spaced.size and spaced.max() > steps:
            refuse("record", spaced.max(), "is after the last step", f"0..{steps}", steps)
    return _with_ends(spaced, steps)


@lru_cache(maxsize=16)
def _logarithmic(steps: int, count: int) -> NDArray[np.int64]:
    """So many steps that are spaced evenly in their logarithm, equal ones once."""
    return _with_ends(np.rint(np.geomspace(1, steps, count)), steps)


def _with_ends(spaced: NDArray[Any], steps: int) -> NDArray[np.int64]:
    return np.unique(np.concatenate([[0], spaced, [steps]])).astype(np.int64)


def check_memory(schedule: NDArray[np.int64], size: int, record: object) -> None:
    """Refuse records that do not fit, before the first step.

    Parameters
    ----------
    schedule : int array
        Steps that are recorded.
    size : int
        Numbers of a state.
    record : object
        The request, for the message.
    """
    if schedule.size * size <= MOST_RECORDED:
        return
    memory = schedule.size * size * 8 / 2**30
    problem = f"keeps {schedule.size:,} states of {size:,} numbers, {memory:,.3g} GiB"
    few = max(1, MOST_RECORDED // size - 2)
    allowed = f"every so many steps, with at most {MOST_RECORDED * 8 / 2**30:g} GiB of states"
    value = "log" if record is None or isinstance(record, DefaultRecords) else record
    refuse("record", value, problem, allowed, -(-int(schedule[-1]) // few))


def starting_state(problem: Problem, initial: ArrayLike | None) -> FloatArray:
    """The problem's own start, or that of the user, which must be finite.

    Parameters
    ----------
    problem : Problem
    initial : array or None

    Raises
    ------
    InvalidRequest
        If an entry is not finite.
    """
    if initial is None:
        return problem.initial_state
    start = problem.layout.flatten(initial)
    if not np.isfinite(start).all():
        refuse("initial", initial, "is not finite", "a finite state", problem.initial_state)
    return start


def check_settings(eta: Any, steps: Any, record: Any) -> None:
    """Refuse settings that `dynamics.descend` would refuse, before anything is compiled.

    Parameters
    ----------
    eta, steps, record
        As those of `dynamics.descend`.
    """
    learning_rate(eta, None)
    record_schedule(check_steps(steps), record)


def check_flow(time: object, rtol: object, flows: bool = True) -> tuple[float, float]:
    """Time and tolerance as they will be used, of a problem that has a flow.

    Parameters
    ----------
    time : float
        Horizon.
    rtol : float
        Relative tolerance.
    flows : bool
        Whether the problem has a gradient flow.

    Raises
    ------
    InvalidRequest
        If one of them is not valid.
    """
    if not flows:
        problem = "asks for a gradient flow, and this system has none: its loss has kinks"
        refuse("time", time, problem, "left out, with eta and steps instead", "eta and steps")
    checked = real("rtol", rtol, at_least=1e-13, at_most=1e-2)
    return real("time", time, above=0.0), min(checked, LOOSEST)


def record_times(nodes: FloatArray, record: int | ArrayLike | None, horizon: float) -> FloatArray:
    """Times of the records, ascending: 0, then logarithmically spaced; or those of the user, once.

    Parameters
    ----------
    nodes : float array
        Times of the steps that the integrator took.
    record : int, float array or None
        Number of records, or their times.
    horizon : float
        Largest time that may be recorded.
    """
    if record is None or np.ndim(record) == 0:
        count = FLOW_RECORDS if record is None else integer("record", record, at_least=2)
        begun = nodes[-1] > np.finfo(np.float64).tiny  # a flow that could not begin has one record
        first = max(min(nodes[1], 1e-3 * nodes[-1]), 1e-10 * nodes[-1]) if begun else nodes[-1]
        spaced = np.geomspace(first, nodes[-1], count)
        return np.unique(np.concatenate([[0.0], np.minimum(spaced, nodes[-1])]))
    try:
        times = np.unique(np.asarray(record, dtype=np.float64))
    except (TypeError, ValueError):
        times = np.empty(0)
    if not times.size:
        refuse("record", record, "has no times", f"times from 0 to {horizon:g}", FLOW_RECORDS)
    for edge in (times[0], times[-1]):
        real("record", edge, at_least=0.0, at_most=horizon)
    reached = times[times <= nodes[-1]]
    return reached if reached.size else nodes[:1]
