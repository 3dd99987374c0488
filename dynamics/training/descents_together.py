"""Descents of one program at several states at a time, side by side in its short vectors.

States, real constants and learning rates differ. Every run keeps its own records, events and end,
and each of its steps is the same to the last bit as alone, whatever is beside it.
"""

from __future__ import annotations

import time
from bisect import bisect_left
from collections.abc import Callable, Sequence
from itertools import groupby

import numpy as np

from dynamics.codegen import loops
from dynamics.codegen.kernels.vectors import WIDTH
from dynamics.training.descent_run import Run

FEWEST = 5
"""Runs that take less time side by side than one by one."""
SHORT = 10_000
"""Steps below which a run is over before the functions for several are compiled."""


def advance_together(runs: Sequence[Run], proceed: Callable[[], bool]) -> None:
    """Advance those runs of which several have the same program, as far as that saves time.

    Parameters
    ----------
    runs : sequence of Run
        At their starts, of problems with a program.
    proceed : callable
        Whether to go on, asked between chunks.
    """

    def common(run: Run) -> tuple[str | None, bytes]:
        return run.problem.program, run.schedule.tobytes()

    able = [run for run in runs if run.schedule[-1] >= SHORT]
    for _, same in groupby(sorted(able, key=common), common):
        members = list(same)
        for k in range(0, len(members), WIDTH):
            group, steps = members[k : k + WIDTH], int(members[0].schedule[-1])
            while len(group) >= FEWEST and group[0].step < steps and proceed():
                group = _chunk(group, steps)


def _chunk(runs: list[Run], steps: int) -> list[Run]:
    """Advance runs at the same step by one chunk; those that neither diverge nor rest then."""
    last = min(run.next_look(steps) for run in runs)
    chunks, clock = [run.chunk(last) for run in runs], time.perf_counter()
    (first, end), (tracked, due, records) = chunks[0].span, chunks[0].buffers
    lanes = [*runs, *[runs[-1]] * (WIDTH - len(runs))]
    model = runs[0].problem.side_by_side([run.problem for run in lanes])
    states = np.stack([run.now for run in lanes], axis=1)
    rates = np.stack([run.eta for run in lanes], axis=1)
    rows, kept = (np.empty((len(each), each.shape[1] * WIDTH)) for each in (tracked, records))
    reached = loops.advance(model, states, rates, (first, end), True, (rows, due, kept))
    seconds = time.perf_counter() - clock
    moving = []
    for lane, (run, chunk) in enumerate(zip(runs, chunks, strict=True)):
        tracked, _, records = chunk.buffers
        tracked[:], records[:] = rows[:, lane::WIDTH], kept[:, lane::WIDTH]
        run.now[:] = states[:, lane]
        own, done = reached, bisect_left(due, reached)
        if reached < end:  # the next state of one is not finite there: each by itself from then on
            rest = tracked[reached - first :], due[done:], records[done:]
            own = run.problem.advance(run.now, run.eta, reached, end, rest)
        run.take(chunk, own, seconds)
        if not run.diverged and (run.now != chunk.before).any():
            moving.append(run)
    return moving
