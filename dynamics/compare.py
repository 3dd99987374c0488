"""Reduced against full: the same gradient descent twice, laid side by side.

The reduction is exact for the population problem, so the deviation measures rounding (or a wrong
derivation), and the events fall on the same steps.
"""

from __future__ import annotations

import os
from collections.abc import Mapping
from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from dynamics.checkpoint import Checkpoint
from dynamics.descend import descend
from dynamics.flow import flow
from dynamics.interruption import interruption
from dynamics.outcome import INTERRUPTED, Outcome
from dynamics.problem import FloatArray, FullProblem, Problem
from dynamics.trajectory import Event, Trajectory
from dynamics.validation import InvalidRequest


@dataclass(frozen=True)
class Comparison:
    """A reduced and a full run at the same steps.

    Attributes
    ----------
    reduced, full : Trajectory
    deviations : mapping
        Reduced state -> largest absolute distance, over the entries it stands for, at each record
        of `time`; shape (records,).
    """

    reduced: Trajectory
    full: Trajectory
    deviations: Mapping[str, FloatArray]

    @property
    def time(self) -> FloatArray:
        """Time of the records that both runs have."""
        return self.reduced.time[: len(next(iter(self.deviations.values())))]

    @property
    def deviation(self) -> dict[str, float]:
        """Reduced state -> largest absolute deviation over all records and entries."""
        return {name: float(series.max()) for name, series in self.deviations.items()}

    @property
    def events(self) -> dict[str, Mapping[str, Event | None]]:
        """Events of the two runs, under ``"reduced"`` and ``"full"``."""
        return {"reduced": self.reduced.events, "full": self.full.events}

    @property
    def outcome(self) -> Outcome:
        """The worse of the two: failed, else interrupted, else the reduced run's."""
        ends = (self.full.outcome, self.reduced.outcome)
        failed = [end for end in ends if end.failed]
        stopped = [end for end in ends if end.kind == INTERRUPTED]
        return (failed or stopped or [self.reduced.outcome])[0]

    @property
    def interrupted(self) -> bool:
        """Whether one of the two was."""
        return INTERRUPTED in (self.reduced.outcome.kind, self.full.outcome.kind)


def compare(
    reduced: Problem,
    full: FullProblem,
    eta: float | ArrayLike | None = None,
    steps: int | None = None,
    record: int | str | ArrayLike | None = None,
    time: float | None = None,
    rtol: float = 1e-8,
    checkpoint: str | os.PathLike[str] | Checkpoint | None = None,
) -> Comparison:
    """Run both problems and measure how far they are apart.

    Parameters
    ----------
    reduced : Problem
        Few scalars.
    full : FullProblem
        Every entry, with ``orbit_values``.
    eta, steps, record
        As for `dynamics.descend`, the same for both.
    time, rtol
        As for `dynamics.flow`: with a time, the gradient flows are compared instead.
    checkpoint : path-like, optional
        As for `dynamics.descend`; the two runs have theirs in ``<checkpoint>.reduced`` and
        ``<checkpoint>.full``.

    Raises
    ------
    InvalidRequest
        If eta, steps, record, time or rtol is not valid, or neither steps nor a time is given.
    ValueError
        If the two problems differ in a parameter.
    """
    if not hasattr(full, "orbit_values") or hasattr(reduced, "orbit_values"):
        raise InvalidRequest("compare takes the reduced problem first and the full one second")
    if reduced.parameters != full.parameters:
        raise ValueError("the reduced and the full problem have different parameters")
    store = None if checkpoint is None else Checkpoint.at(checkpoint)
    of_reduced, of_full = (None, None) if store is None else parts(store)
    with interruption():
        if time is not None:
            if eta is not None or steps is not None:
                raise InvalidRequest("eta and steps are of gradient descent, time of the flow")
            first = flow(reduced, time, rtol)
            second = flow(full, min(time, float(first.time[-1])), rtol, record=first.time)
        elif eta is None or steps is None:
            raise InvalidRequest("compare takes eta and steps, or a time")
        else:
            first = descend(reduced, eta, steps, record, checkpoint=of_reduced)
            second = descend(full, eta, steps, record, checkpoint=of_full)
    common = min(len(first.time), len(second.time))
    agree = first.time[:common] == second.time[:common]
    common = common if agree.all() else int(np.argmin(agree))
    values = full.orbit_values(second.states[:common])
    deviations = {}
    for name in first.layout.names:
        distance = np.abs(values[name] - first[name][:common, None])
        deviations[name] = distance.max(axis=1)
    result = Comparison(first, second, deviations)
    if store is not None and not (store.keep or result.interrupted):
        for part in parts(store):
            part.discard()
    return result


def parts(checkpoint: Checkpoint) -> tuple[Checkpoint, Checkpoint]:
    """The checkpoints of the reduced and of the full run."""
    return checkpoint.part("reduced"), checkpoint.part("full")
