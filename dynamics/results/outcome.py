"""How a run ended, as a value: what happened, at which step, and what to do about it."""

from __future__ import annotations

from dataclasses import dataclass

CONVERGED = "converged"
HORIZON = "reached horizon"
OSCILLATING = "oscillating"
DIVERGED = "diverged"
PRECISION_LOST = "precision lost"
INTERRUPTED = "interrupted"
STALLED = "stalled"

KINDS = (CONVERGED, HORIZON, OSCILLATING, DIVERGED, PRECISION_LOST, INTERRUPTED, STALLED)
FAILURES = (OSCILLATING, DIVERGED, PRECISION_LOST, STALLED)

KILLED = "killed its worker"
POINT_KINDS = (*KINDS[:-1], KILLED, STALLED)
"""How a point of a sweep may end; stored as an index into this, so that new ones come last."""
PENDING, INVALID = -1, -2
"""Stored instead for a point that was not run yet, and for one that cannot be."""


class TrainingWarning(UserWarning):
    """A run that was made, and holds less than it seems to; kept in ``Trajectory.remarks``.

    Examples
    --------
    >>> import warnings, dynamics
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", dynamics.TrainingWarning)  # a run that may warn
    """


SMALLER = "parameters or a start of smaller size"
"""Remedy where the start itself has no finite risk."""


@dataclass(frozen=True)
class Outcome:
    """The end of a run.

    `kind`: one of `KINDS`; `step`: where it happened: the last step for a run that ended by itself,
    the first step of the oscillation, the first step whose successor is not finite, the first
    record whose risk or state is not. None on a flow; `time`: the same in units of time; `remedy`:
    what to try, with the numbers that matter, or which observables are not finite at the end; empty
    where nothing is wrong.
    """

    kind: str
    step: int | None
    time: float
    remedy: str = ""

    @property
    def failed(self) -> bool:
        """Whether the run went wrong (exit code 1 on the command line)."""
        return self.kind in FAILURES

    def __str__(self) -> str:
        when = f"at time {self.time:.6g}" if self.step is None else f"at step {self.step}"
        return f"{self.kind} {when}" + (f"; {self.remedy}" if self.remedy else "")
