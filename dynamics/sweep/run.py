"""Running a plan: blocks to workers, answers to the store, until everything is done.

Only this process writes. A block whose worker is lost is tried again point by point, and a point
that takes down two workers is recorded as what it is.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynamics.results.outcome import FAILURES, INVALID, KILLED, POINT_KINDS
from dynamics.sweep.messages import Measured, answer, lost, request_text
from dynamics.sweep.plan import Index, Plan
from dynamics.sweep.store import SweepStore
from dynamics.sweep.worker_pool import Workers
from dynamics.training import progress
from dynamics.training.interruption import interruption

TRIES = 2
"""Workers that a single point may take down."""
LOOK = 0.2
"""Seconds between looks for an interruption."""


@dataclass
class Progress:
    """What has happened so far.

    Attributes
    ----------
    outcomes : Counter
        Outcome -> points of this run.
    reasons : dict
        Points that could not be made -> why.
    interrupted : bool
    """

    outcomes: Counter[str] = field(default_factory=Counter)
    reasons: dict[Index, str] = field(default_factory=dict)
    interrupted: bool = False

    def count(self, measured: Measured) -> None:
        """Take note of a point."""
        code = int(measured[0]["outcome"])
        self.outcomes["invalid" if code == INVALID else POINT_KINDS[code]] += 1

    @property
    def failed(self) -> int:
        """Points that went wrong."""
        return sum(self.outcomes[kind] for kind in (*FAILURES, KILLED))


class _Board:
    """Requests under way, and the blocks that wait for their answers."""

    def __init__(self, plan: Plan, workers: Workers) -> None:
        self.plan, self.workers = plan, workers
        self.under_way: dict[int, tuple[int, list[Index], int]] = {}
        self.found: dict[int, dict[Index, Measured]] = {}
        self.ticket = 0

    def begin(self, number: int) -> bool:
        """Send the points of a block; False if there are none to send."""
        self.found[number] = {}
        valid = [i for i in self.plan.indices(number) if i not in self.plan.objections]
        if valid:
            self.send(number, valid, 1)
        return bool(valid)

    def send(self, number: int, indices: list[Index], attempt: int) -> None:
        points = [self.plan.grid.at(index) for index in indices]
        self.under_way[self.ticket] = (number, indices, attempt)
        self.workers.submit(self.ticket, request_text(self.plan.work, points))
        self.ticket += 1

    def take(self, ticket: int, text: str | None) -> tuple[int, list[Index]]:
        """An answer: its block, and the points that are now known."""
        number, indices, attempt = self.under_way.pop(ticket)
        if text is not None:
            measured = answer(text)
        elif len(indices) == 1 and attempt >= TRIES:
            measured = [lost()]
        else:
            again = attempt + 1 if len(indices) == 1 else 1
            for index in indices:
                self.send(number, [index], again)
            return number, []
        self.found[number] |= dict(zip(indices, measured, strict=True))
        return number, indices

    def complete(self, number: int) -> bool:
        return all(block != number for block, _, _ in self.under_way.values())


def run(plan: Plan, store: SweepStore, workers: Workers) -> Progress:
    """Do the blocks that are not done, and write each as it comes.

    Parameters
    ----------
    plan : Plan
    store : SweepStore
        Open.
    workers : Workers

    Returns
    -------
    Progress
    """
    told, board = Progress(), _Board(plan, workers)
    pending = store.pending()
    sizes = {n: len(list(plan.indices(n))) for n in pending}
    done = plan.grid.size - sum(sizes.values())
    with (
        interruption() as interrupted,
        progress.bar("sweep", plan.grid.size, done, "points") as bar,
    ):
        for number in plan.order(pending):
            if not board.begin(number):
                store.write(number, _block(plan, number, {}))
                bar.update(sizes[number])
        while board.under_way and not interrupted.is_set():
            came = workers.wait(LOOK)
            # A signal during a point in this process cuts that point short: it is not a result.
            if came is None or interrupted.is_set():
                continue
            number, known = board.take(came.ticket, came.text)
            for index in known:
                measured = board.found[number][index]
                told.count(measured)
                if int(measured[0]["outcome"]) == INVALID:
                    told.reasons[index] = measured[2]
            bar.set_postfix_str(f"{told.failed} diverged", refresh=False)
            bar.update(len(known))
            if board.complete(number):
                found = board.found.pop(number)
                store.write(number, _block(plan, number, found))
                bar.update(sizes[number] - len(found))
        told.interrupted = bool(board.under_way)
    return told


def _block(plan: Plan, number: int, found: Mapping[Index, Measured]) -> dict[str, NDArray[Any]]:
    """Arrays over the box of a block from what was measured at its points."""
    box = plan.box(number)
    shape = tuple(part.stop - part.start for part in box)
    corner = tuple(part.start for part in box)
    block: dict[str, NDArray[Any]] = {"outcome": np.full(shape, INVALID, dtype=np.int8)}
    for index, (row, path, _) in found.items():
        place = tuple(k - c for k, c in zip(index, corner, strict=True))
        block["outcome"][place] = int(row["outcome"])
        for name, value in row.items():
            if name != "outcome":
                block.setdefault(name, np.full(shape, np.nan))[place] = value
        for name, series in path.items():
            block.setdefault(name, np.full((*shape, len(series)), np.nan))[place] = series
    for values in block.values():
        if values.dtype.kind == "f":
            values[np.isnan(values)] = np.nan  # one NaN of many: equal values are equal bytes
    return block
