"""Reduced against full: the same gradient descent, laid side by side.

The reduction is exact for the population problem, so the deviation measures rounding (or a wrong
derivation), and the events fall on the same steps. For the empirical problem, whose samples and
start are random, it measures how realistic the idealised dynamics is; several seeds give a band.
"""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
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
        Reduced state -> largest absolute distance, over what stands beside it in the full runs
        (every entry, or the mean of an orbit), at each record of `time`; shape (records,).
    others : tuple of Trajectory
        More runs of the full problem, of other seeds.
    """

    reduced: Trajectory
    full: Trajectory
    deviations: Mapping[str, FloatArray]
    others: tuple[Trajectory, ...] = ()

    @property
    def fulls(self) -> tuple[Trajectory, ...]:
        """All runs of the full problem."""
        return (self.full, *self.others)

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
        """The worst of all: failed, else interrupted, else the reduced run's."""
        ends = (*(run.outcome for run in self.fulls), self.reduced.outcome)
        failed = [end for end in ends if end.failed]
        stopped = [end for end in ends if end.kind == INTERRUPTED]
        return (failed or stopped or [self.reduced.outcome])[0]

    @property
    def interrupted(self) -> bool:
        """Whether one of the runs was."""
        return any(run.outcome.kind == INTERRUPTED for run in (self.reduced, *self.fulls))


def compare(
    reduced: Problem,
    full: FullProblem | Sequence[FullProblem],
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
    full : FullProblem or sequence of them
        Every entry, with ``orbit_values``; several are seeds of one problem.
    eta, steps, record
        As for `dynamics.descend`, the same for both.
    time, rtol
        As for `dynamics.flow`: with a time, the gradient flows are compared instead.
    checkpoint : path-like, optional
        As for `dynamics.descend`; the runs have theirs in ``<checkpoint>.reduced``,
        ``<checkpoint>.full``, ``<checkpoint>.full_1``, ...

    Raises
    ------
    InvalidRequest
        If eta, steps, record, time or rtol is not valid, or neither steps nor a time is given.
    ValueError
        If the two problems differ in a parameter.
    """
    fulls = list(full) if isinstance(full, Sequence) else [full]
    beside = fulls and all(hasattr(problem, "orbit_values") for problem in fulls)
    if not beside or hasattr(reduced, "orbit_values"):
        raise InvalidRequest("compare takes the reduced problem first and the full one second")
    if any(reduced.parameters != problem.parameters for problem in fulls):
        raise ValueError("the reduced and the full problem have different parameters")
    store = None if checkpoint is None else Checkpoint.at(checkpoint)
    places = [None] * (1 + len(fulls)) if store is None else parts(store, len(fulls))
    with interruption():
        if time is not None:
            if eta is not None or steps is not None:
                raise InvalidRequest("eta and steps are of gradient descent, time of the flow")
            first = flow(reduced, time, rtol)
            end = min(time, float(first.time[-1]))
            runs = [flow(problem, end, rtol, record=first.time) for problem in fulls]
        elif eta is None or steps is None:
            raise InvalidRequest("compare takes eta and steps, or a time")
        else:
            first = descend(reduced, eta, steps, record, checkpoint=places[0])
            runs = [
                descend(problem, eta, steps, record, checkpoint=place)
                for problem, place in zip(fulls, places[1:], strict=True)
            ]
    common = min(_common(first, run) for run in runs)
    deviations = {name: np.zeros(common) for name in first.layout.names}
    for problem, run in zip(fulls, runs, strict=True):
        values = problem.orbit_values(run.states[:common])
        for name, largest in deviations.items():
            # A scalar stands beside many entries, a part with a shape beside its like.
            alone = first[name][:common].reshape(common, -1)
            distance = np.abs(values[name].reshape(common, -1) - alone)
            np.maximum(largest, distance.max(axis=1), out=largest)
    result = Comparison(first, runs[0], deviations, tuple(runs[1:]))
    if store is not None and not (store.keep or result.interrupted):
        for part in parts(store, len(fulls)):
            part.discard()
    return result


def parts(checkpoint: Checkpoint, fulls: int = 1) -> list[Checkpoint]:
    """The checkpoints of the reduced run and of the full ones."""
    names = ["reduced", "full", *(f"full_{k}" for k in range(1, fulls))]
    return [checkpoint.part(name) for name in names]


def _common(one: Trajectory, two: Trajectory) -> int:
    """How many first records of two runs are of the same times."""
    common = min(len(one.time), len(two.time))
    agree = one.time[:common] == two.time[:common]
    return common if agree.all() else int(np.argmin(agree))
