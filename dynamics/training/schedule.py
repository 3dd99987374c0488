"""How many steps a run has, and at which of them its state is recorded."""

from __future__ import annotations

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynamics.validation import integer, refuse

RECORDS = 400
MOST_RECORDED = 2**30
"""Numbers that the records of a run may hold: 8 GiB."""


def check_steps(steps: object) -> int:
    """A number of steps that can be counted."""
    return integer("steps", steps, at_least=1, at_most=10**12)


def record_schedule(steps: int, record: int | str | ArrayLike | None) -> NDArray[np.int64]:
    """Steps at which the state is recorded, ascending, 0 and ``steps`` among them.

    Raises
    ------
    InvalidRequest
        If ``record`` is neither a positive whole number, nor "log", nor steps within the run.
    """
    if record is None or isinstance(record, str):
        if record not in (None, "log"):
            refuse("record", record, "is unknown", "a whole number or 'log'", "log")
        spaced = np.rint(np.geomspace(1, steps, RECORDS)).astype(np.int64)
    elif np.ndim(record) == 0:
        spaced = np.arange(0, steps, integer("record", record, at_least=1))
    else:
        spaced = np.asarray(record) if np.size(record) else np.empty(0, dtype=np.int64)
        if spaced.ndim != 1 or spaced.dtype.kind not in "iu" or (spaced < 0).any():
            refuse("record", record, "is not a list of steps", f"whole numbers in 0..{steps}", 0)
        if spaced.size and spaced.max() > steps:
            refuse("record", spaced.max(), "is after the last step", f"0..{steps}", steps)
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
        As it was asked for.
    """
    if schedule.size * size <= MOST_RECORDED:
        return
    memory = schedule.size * size * 8 / 2**30
    problem = f"keeps {schedule.size:,} states of {size:,} numbers, {memory:,.3g} GiB"
    few = max(1, MOST_RECORDED // size - 2)
    allowed = f"every so many steps, with at most {MOST_RECORDED * 8 / 2**30:g} GiB of states"
    shown = "log" if record is None else record
    refuse("record", shown, problem, allowed, -(-int(schedule[-1]) // few))
