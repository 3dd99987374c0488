"""Execution of a sweep: points are sent to workers, finished blocks are written to the store.

Only the process that started the sweep writes the store. If a worker dies, its points are run again
one by one; a point that then kills two workers is recorded as killed.
"""

from __future__ import annotations

import os
from collections import deque
from collections.abc import Iterable, Mapping
from concurrent.futures import Future
from contextlib import closing
from dataclasses import dataclass
from math import ceil
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynamics.registry import can_be_loaded_again, load_system
from dynamics.results.outcome import FAILURES, INVALID, KILLED, POINT_KINDS
from dynamics.sweep.cluster import Cluster
from dynamics.sweep.plan import Index, Plan, planned
from dynamics.sweep.point_runner import Measured, killed, measure_points
from dynamics.sweep.result import Sweep, dataset
from dynamics.sweep.store import SweepStore
from dynamics.sweep.worker_pool import InProcess, WorkerPool, Workers
from dynamics.system import System
from dynamics.training import progress
from dynamics.training.progress import interruption
from dynamics.validation import InvalidRequest, integer, path_of, refuse

ADDRESS = "DASK_SCHEDULER_ADDRESS"
TRIES = 2
"""Maximum number of workers that a point, run alone, may kill; it is then recorded as killed."""
TOGETHER = 32
"""Maximum number of points of a block that a worker receives at once."""
AT_ONCE = 16
"""Maximum number of blocks that are validated between two checks for results of workers."""
POLL = 0.2
"""Seconds between two checks for an interruption."""
FAILED = [POINT_KINDS.index(kind) for kind in (*FAILURES, KILLED)]


def sweep(
    system: Any,
    given: Mapping[str, Any],
    out: str | os.PathLike[str] | None = None,
    *,
    paired: bool = False,
    strict: bool = False,
    trajectory: int = 0,
    workers: int | None = None,
    scheduler: str | None = None,
) -> Sweep:
    """Run every point of a grid of parameters and settings.

    Parameters
    ----------
    system : System, str, path-like or Model
        As for `dynamics.load_system`.
    given : mapping
        Name -> number, values, or text: ``"a:b:n"``, ``"a:b:n:log"``, a formula of other names.
        Names are parameters, flags of ``attdyn sweep``, and free letters that formulas use. A
        parameter that is a list takes one list and is never an axis. Without ``time``, ``eta``,
        ``steps`` or a rule, points run the flow, or descent with ``full`` or with a model file's
        own rule.
    out : path-like, optional
        The zarr store; default: a temporary store. Finished blocks of the same sweep are not run
        again, unless damaged.
    paired : bool
        Whether to pair the axes instead of crossing them.
    strict : bool
        Whether to refuse a grid with invalid points, instead of skipping these points.
    trajectory : int
        Number of records of each run to store, at logarithmically spaced times.
    workers : int, optional
        Number of processes (default: one for each core), or 0 for the calling process. A model
        without a file, or a system modified in memory, runs only in the calling process.
    scheduler : str, optional
        Address of a dask scheduler whose workers run the points instead of processes.

    Raises
    ------
    InvalidRequest
        If the request or all its points are invalid, the store holds another sweep, or the model
        file changes during the sweep.
    dynamics.sweep.store.StoreError
        If the store cannot be written.
    dynamics.sweep.cluster.SchedulerGone
        If the scheduler is lost during the sweep; finished blocks are kept.

    Examples
    --------
    >>> import dynamics
    >>> grid = {"q": "0.2:0.6:3", "C": "2,4", "D": 8, "time": 100}
    >>> result = dynamics.sweep("positional_attention", grid, workers=0)
    >>> result.outcomes, result.dataset["risk"].dims
    ({'reached horizon': 6}, ('C', 'q'))
    """
    loaded = load_system(system)
    if not isinstance(given, Mapping):
        refuse(
            "given", given, "is not a mapping", "name -> number, values or text", "{'D': '8,16'}"
        )
    store = None if out is None else path_of("out", out)
    plan = planned(loaded, given, paired, trajectory)
    if strict and (invalid := plan.invalid_reasons):
        reason = next(iter(invalid.values()))
        raise InvalidRequest(f"{len(invalid)} points cannot be run: {reason}")
    _ = plan.first_valid  # raises before any process is started if no point is valid
    tasks = max(len(plan.blocks), ceil(plan.grid.size / TOGETHER))
    with closing(workers_for(loaded, workers, scheduler, tasks)) as pool:
        import xarray  # noqa: F401 (takes 0.5 s, while the workers load)

        plan.check()
        with TemporaryDirectory(prefix="attdyn-") as scratch:
            return _swept(plan, SweepStore(store or Path(scratch, "sweep.zarr"), plan), pool)


def _swept(plan: Plan, store: SweepStore, workers: Workers) -> Sweep:
    refusals: dict[Index, str] = {}
    interrupted = False
    with store.open():
        contents = store.read()
        if contents.pending:
            refusals, interrupted = run_blocks(plan, store, workers, contents.pending)
            contents = store.read()
        return Sweep(dataset(plan, contents, store.attributes), plan, refusals, interrupted)


@dataclass(frozen=True)
class _Task:
    """Points of a block for one worker; `attempt` numbers the tries of a single point, from 1."""

    block: int
    indices: tuple[Index, ...]
    attempt: int = 1


class _BlockQueue:
    """Waiting and running tasks, and the results of incomplete blocks."""

    def __init__(self, plan: Plan, workers: Workers, blocks: Iterable[int]) -> None:
        self.plan, self.workers = plan, workers
        self.unopened = deque(blocks)
        self.empty: list[int] = []
        self.waiting: deque[_Task] = deque()
        self.running: dict[Future[list[Measured]], _Task] = {}
        self.results: dict[int, dict[Index, Measured]] = {}
        self.sizes: dict[int, int] = {}

    @property
    def left(self) -> bool:
        """Whether any task is waiting or running."""
        return bool(self.unopened or self.waiting or self.running)

    def _open(self, block: int) -> None:
        """Queue the valid points of a block; a block without valid points is complete at once."""
        valid = tuple(i for i in self.plan.indices(block) if not self.plan.invalid_reason(i))
        if valid:
            parts = range(0, len(valid), TOGETHER)
            self.waiting.extend(_Task(block, valid[k : k + TOGETHER]) for k in parts)
            self.results[block], self.sizes[block] = {}, len(valid)
        else:
            self.empty.append(block)

    def submit(self) -> None:
        """Submit tasks until all workers are busy, but validate at most `AT_ONCE` blocks."""
        for _ in range(AT_ONCE):
            while self.waiting and len(self.running) < self.workers.size:
                task = self.waiting.popleft()
                points = [self.plan.grid.at(index) for index in task.indices]
                self.running[self.workers.submit(measure_points, self.plan.runner, points)] = task
            if len(self.running) >= self.workers.size or not self.unopened:
                return
            self._open(self.unopened.popleft())

    def collect(self, task: _Task, future: Future[list[Measured]]) -> dict[Index, Measured]:
        """Results of a task; empty if the worker died and the points are queued again."""
        try:
            measured = future.result()
        except self.workers.lost:
            alone = len(task.indices) == 1
            if not alone or task.attempt < TRIES:
                attempt = task.attempt + 1 if alone else 1
                self.waiting.extend(_Task(task.block, (i,), attempt) for i in task.indices)
                return {}
            measured = [killed()]
        results = dict(zip(task.indices, measured, strict=True))
        self.results[task.block] |= results
        return results

    def complete(self, block: int) -> bool:
        """Whether all points of a block have results."""
        return len(self.results[block]) == self.sizes[block]


def run_blocks(
    plan: Plan, store: SweepStore, workers: Workers, pending: list[int]
) -> tuple[dict[Index, str], bool]:
    """Run the pending blocks, and write each block to the open store when it is complete.

    Returns a mapping from the index of a point to the reason why its problem could not be
    constructed, and whether the run was interrupted.
    """
    refusals: dict[Index, str] = {}
    done, failed = plan.grid.size - sum(map(plan.size, pending)), 0
    with (
        interruption() as interrupted,
        progress.bar("sweep", plan.grid.size, done, "points") as bar,
    ):
        # Axes mostly ascend in size, so the reversed order starts with the longest runs.
        blocks = _BlockQueue(plan, workers, pending[::-1])
        while blocks.left and not interrupted.is_set():
            blocks.submit()
            idle = blocks.unopened and len(blocks.running) < workers.size
            for future in workers.wait(blocks.running, 0.0 if idle else POLL):
                # A signal ends the current point of this process early, so its result is dropped.
                if interrupted.is_set():
                    break
                task = blocks.running.pop(future)
                blocks.submit()
                results = blocks.collect(task, future)
                for index, (row, _, reason) in results.items():
                    failed += row["outcome"] in FAILED
                    if row["outcome"] == INVALID:
                        refusals[index] = reason
                bar.say(f"{failed} diverged")
                bar.update(len(results))
                if blocks.complete(task.block):
                    store.write(task.block, _block(plan, task.block, blocks.results[task.block]))
                    bar.update(plan.size(task.block) - len(blocks.results.pop(task.block)))
            while blocks.empty:
                number = blocks.empty.pop()
                store.write(number, _block(plan, number, {}))
                bar.update(plan.size(number))
        return refusals, blocks.left


def _block(plan: Plan, number: int, results: Mapping[Index, Measured]) -> dict[str, NDArray[Any]]:
    """Quantity -> values at the points of a block, from the results of these points."""
    box = plan.box(number)
    shape = tuple(part.stop - part.start for part in box)
    corner = tuple(part.start for part in box)
    block: dict[str, NDArray[Any]] = {"outcome": np.full(shape, INVALID, dtype=np.int8)}
    for index, (row, path, _) in results.items():
        inside = tuple(k - c for k, c in zip(index, corner, strict=True))
        measured: dict[str, Any] = {**row, **path}
        for quantity, value in measured.items():
            name = plan.column(quantity)
            if name not in block:
                block[name] = np.full((*shape, *np.shape(value)), np.nan)
            block[name][inside] = value
    for values in block.values():
        if values.dtype.kind == "f":
            values[np.isnan(values)] = np.nan  # gives all NaNs the same bit pattern
    return block


def cores() -> int:
    """Number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def workers_for(system: System, workers: int | None, scheduler: str | None, tasks: int) -> Workers:
    """Requested workers of a sweep; new processes begin at once to load the system."""
    if not can_be_loaded_again(system):
        for name, value in {"workers": workers or None, "scheduler": scheduler}.items():
            if value is not None:
                raise InvalidRequest(
                    f"{name}={value!r} needs a system that other processes can load, but "
                    f"{system.name!r} is in this process only; {name} can be left out, or the "
                    "model put into a file"
                )
        return InProcess()
    if workers is not None and scheduler is not None:
        raise InvalidRequest("workers and scheduler exclude each other")
    address = os.environ.get(ADDRESS) or None if scheduler is None else scheduler
    if workers is None and address is not None:
        return Cluster(address)
    size = cores() if workers is None else integer("workers", workers, at_least=0, at_most=4096)
    return WorkerPool(min(size, tasks), system.reference, system.digests) if size else InProcess()
