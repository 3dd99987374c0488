"""Reduced against full: the same gradient descent, laid side by side.

The reduction is exact for the population problem, so the deviation measures rounding (or a wrong
derivation), and the events fall on the same steps. For the empirical problem, whose samples and
start are random, it measures how realistic the idealised dynamics is; several seeds give a band.
Where the reduced problem draws its start, every seed has a reduced run of its own.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dynamics.problem import FloatArray, Problem
from dynamics.results.comparison import Comparison
from dynamics.results.trajectory import Trajectory
from dynamics.training.checkpoint import Checkpoint
from dynamics.training.flow import flow
from dynamics.training.gradient_descent import descend
from dynamics.training.progress import interruption
from dynamics.validation import InvalidRequest


def compare(
    reduced: Problem | Sequence[Problem],
    full: Problem | Sequence[Problem],
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
    reduced : Problem or sequence of them
        Few scalars; one for all full problems, or one for each.
    full : Problem or sequence of them
        Every entry, with ``orbit_values``; several are seeds of one problem.
    eta, steps, record
        As for `dynamics.descend`, the same for both.
    time, rtol
        As for `dynamics.flow`: with a time, the gradient flows are compared instead.
    checkpoint : path-like, optional
        As for `dynamics.descend`; the runs have theirs in ``<checkpoint>.reduced``,
        ``<checkpoint>.full``, ``<checkpoint>.full_1``, ..., ``<checkpoint>.reduced_1``, ...

    Raises
    ------
    InvalidRequest
        If there are neither one nor as many reduced problems as full ones.
        If eta, steps, record, time or rtol is not valid, or neither steps nor a time is given.
    ValueError
        If the two problems differ in a parameter.
    """
    fulls = list(full) if isinstance(full, Sequence) else [full]
    firsts = list(reduced) if isinstance(reduced, Sequence) else [reduced]
    beside = fulls and all(hasattr(problem, "orbit_values") for problem in fulls)
    if not beside or any(hasattr(problem, "orbit_values") for problem in firsts):
        raise InvalidRequest("compare takes the reduced problem first and the full one second")
    if len(firsts) not in (1, len(fulls)):
        raise InvalidRequest(
            f"{len(firsts)} reduced problems beside {len(fulls)} full ones; there can be 1, or "
            f"{len(fulls)}"
        )
    parameters = firsts[0].parameters
    if any(parameters != problem.parameters for problem in (*firsts, *fulls)):
        raise ValueError("the reduced and the full problem have different parameters")
    problems = [*firsts, *fulls]
    store = None if checkpoint is None else Checkpoint.at(checkpoint)
    places: list[Checkpoint | None] = [None] * len(problems)
    if store is not None:
        files = parts(store, len(fulls), len(firsts))
        cut = 1 + len(fulls)
        places = [files[0], *files[cut:], *files[1:cut]]
    with interruption():
        if time is not None:
            if eta is not None or steps is not None:
                raise InvalidRequest("eta and steps are of gradient descent, time of the flow")
            first = flow(firsts[0], time, rtol)
            end = min(time, float(first.time[-1]))
            runs = [first, *(flow(each, end, rtol, record=first.time) for each in problems[1:])]
        elif eta is None or steps is None:
            raise InvalidRequest("compare takes eta and steps, or a time")
        else:
            runs = [
                descend(problem, eta, steps, record, checkpoint=place)
                for problem, place in zip(problems, places, strict=True)
            ]
    alone, whole = runs[: len(firsts)], runs[len(firsts) :]
    result = Comparison(
        alone[0], whole[0], _deviations(alone, whole, fulls), tuple(whole[1:]), tuple(alone[1:])
    )
    if store is not None and not (store.keep or result.interrupted):
        for part in parts(store, len(fulls), len(firsts)):
            part.discard()
    return result


def _deviations(
    alone: list[Trajectory], whole: list[Trajectory], fulls: list[Any]
) -> dict[str, FloatArray]:
    """The largest over all pairs; of one reduced run, each full one is paired with it."""
    pairs = list(zip(alone if len(alone) > 1 else alone * len(whole), whole, strict=True))
    common = min(_common(alone[0], run) for pair in pairs for run in pair)
    deviations = {name: np.zeros(common) for name in alone[0].layout.names}
    for problem, (first, run) in zip(fulls, pairs, strict=True):
        values = problem.orbit_values(run.states[:common])
        for name, largest in deviations.items():
            # A scalar stands beside many entries, a part with a shape beside its like.
            one = first[name][:common].reshape(common, -1)
            distance = np.abs(values[name].reshape(common, -1) - one)
            np.maximum(largest, distance.max(axis=1), out=largest)
    return deviations


def parts(checkpoint: Checkpoint, fulls: int = 1, reduced: int = 1) -> list[Checkpoint]:
    """The checkpoints of the first reduced run, of the full ones, of the other reduced ones."""
    names = ["reduced", "full", *(f"full_{k}" for k in range(1, fulls))]
    names += [f"reduced_{k}" for k in range(1, reduced)]
    return [checkpoint.part(name) for name in names]


def _common(one: Trajectory, two: Trajectory) -> int:
    """How many first records of two runs are of the same times."""
    common = min(len(one.time), len(two.time))
    agree = one.time[:common] == two.time[:common]
    return common if agree.all() else int(np.argmin(agree))
