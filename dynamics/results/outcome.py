"""Outcome of a run: how it ended, at which step, and the remedy."""

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
"""Outcomes of a point of a sweep. Stores hold indices into this tuple, so new kinds are appended.
"""
PENDING, INVALID = -1, -2
"""Stored codes of a point that has not run yet, and of a point with invalid parameters."""


class TrainingWarning(UserWarning):
    """Warning about a limitation of a finished run; the text is kept in ``Trajectory.remarks``.

    Examples
    --------
    >>> import warnings, dynamics
    >>> with warnings.catch_warnings():
    ...     warnings.simplefilter("error", dynamics.TrainingWarning)  # a run that may warn
    """


SMALLER = "parameters or a start of smaller size"
"""Remedy for a run whose risk at the start is not finite."""


@dataclass(frozen=True)
class Outcome:
    """End of a run: one of `KINDS`, its step and time, and a remedy.

    The `step` of a flow is None. If gradient descent oscillates, `step` is the first step of the
    oscillation. If a step gives a non-finite state, `step` is the step before; if only a recorded
    risk is not finite, the step of the first such record. In other cases `step` is the last step.
    The `remedy` suggests a change, with numbers, or names the observables that are not finite.
    """

    kind: str
    step: int | None
    time: float
    remedy: str = ""

    @property
    def failed(self) -> bool:
        """Whether the run failed (exit code 1 on the command line)."""
        return self.kind in FAILURES

    def __str__(self) -> str:
        when = f"at time {self.time:.6g}" if self.step is None else f"at step {self.step}"
        return f"{self.kind} {when}" + (f"; {self.remedy}" if self.remedy else "")
