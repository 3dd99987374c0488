"""Checks of the settings of a run: steps, times, records, start."""

from __future__ import annotations

from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynamics.problem import FloatArray, Problem
from dynamics.validation import integer, learning_rate, real, refuse

RECORDS = 400
"""Default number of logarithmically spaced records of gradient descent."""
FEWEST_RECORDS = 64
MOST_BY_DEFAULT = 2**21
"""Maximum size (records times entries) of the default records, 16 MiB. There are always at least
`FEWEST_RECORDS` records."""
FLOW_RECORDS = 300
LOOSEST = 1e-8
"""Maximum relative tolerance of a flow; above it, errors of event times may exceed 1e-5."""
MOST_STEPS = 10**12
"""Maximum number of gradient descent steps in a run."""
MOST_RECORDED = 2**30
"""Maximum size (records times entries) of all records of a run, 8 GiB."""


def check_steps(steps: object) -> int:
    """Check a number of steps and return it as an int."""
    return integer("steps", steps, at_least=1, at_most=MOST_STEPS)


def record_schedule(steps: int, record: Any, size: int = 0) -> NDArray[np.int64]:
    """Ascending steps to record, including 0 and `steps`; `record` is as in `dynamics.descend`.

    The number `size` of entries of a state is 0 if unknown. Raises InvalidRequest if `record` is
    invalid or the records do not fit in memory.
    """
    if record is None or isinstance(record, str):
        if record not in (None, "log"):
            refuse("record", record, "is unknown", "a whole number or 'log'", "log")
        fewer = max(FEWEST_RECORDS, MOST_BY_DEFAULT // max(1, size)) if record is None else RECORDS
        spaced = np.rint(np.geomspace(1, steps, min(RECORDS, fewer)))
    elif np.ndim(record) == 0:
        spaced = np.arange(0, steps, integer("record", record, at_least=1))
    else:
        spaced = np.asarray(record, dtype=None if np.size(record) else np.int64)
        if spaced.ndim != 1 or spaced.dtype.kind not in "iu" or (spaced < 0).any():
            refuse("record", record, "is not a list of steps", f"whole numbers in 0..{steps}", 0)
        if spaced.size and spaced.max() > steps:
            refuse("record", spaced.max(), "is after the last step", f"0..{steps}", steps)
    schedule = np.unique(np.concatenate([[0], spaced, [steps]])).astype(np.int64)
    if schedule.size * size > MOST_RECORDED:
        memory = schedule.size * size * 8 / 2**30
        problem = f"keeps {schedule.size:,} states of {size:,} numbers, {memory:,.3g} GiB"
        allowed = f"an interval in steps, with at most {MOST_RECORDED * 8 / 2**30:g} GiB of states"
        few = max(1, MOST_RECORDED // size - 2)
        refuse("record", "log" if record is None else record, problem, allowed, -(-steps // few))
    return schedule


def starting_state(problem: Problem, initial: ArrayLike | None) -> FloatArray:
    """Initial state: the user's if given, else the problem's own.

    Raises InvalidRequest if an entry is not finite.
    """
    if initial is None:
        return problem.initial_state
    start = problem.layout.flatten(initial)
    if not np.isfinite(start).all():
        refuse("initial", initial, "is not finite", "a finite state", problem.initial_state)
    return start


def check_settings(eta: Any, steps: Any, record: Any) -> None:
    """Raise InvalidRequest, before compiling, for settings that `dynamics.descend` would refuse."""
    learning_rate(eta, None)
    record_schedule(check_steps(steps), record)


def check_flow(time: object, rtol: object, flows: bool = True) -> tuple[float, float]:
    """Check horizon and relative tolerance of a gradient flow, and return both as numbers.

    Raises InvalidRequest if a value is invalid, or the problem has no gradient flow.
    """
    if not flows:
        problem = "asks for a gradient flow, and this system has none: its loss has kinks"
        refuse("time", time, problem, "left out, with eta and steps instead", "eta and steps")
    checked = real("rtol", rtol, at_least=1e-13, at_most=1e-2)
    return real("time", time, above=0.0), min(checked, LOOSEST)


def record_times(nodes: FloatArray, record: int | ArrayLike | None, horizon: float) -> FloatArray:
    """Times of the records, ascending: the user's, or 0 and logarithmically spaced times.

    The `nodes` are the times of the integration steps. No record is later than the `horizon`.
    """
    if record is None or np.ndim(record) == 0:
        count = FLOW_RECORDS if record is None else integer("record", record, at_least=2)
        begun = nodes[-1] > np.finfo(np.float64).tiny  # if no step succeeded, there is one record
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
