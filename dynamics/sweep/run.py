"""Running a sweep: points to workers, blocks to the store, until everything is done.

Only this process writes. Points whose worker died are tried again one by one, and a point that
takes down two workers is recorded as that.
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
"""Workers that a single point may take down."""
TOGETHER = 32
"""Points of a block that a worker is given at once, at most."""
AT_ONCE = 16
"""Blocks that are looked at between two looks for results."""
POLL = 0.2
"""Seconds between looks for an interruption."""
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
    """Run every point of a grid.

    Parameters
    ----------
    system : System, str, path-like or Model
        As of `dynamics.load_system`.
    given : mapping
        Name -> number, values, or text: ``"a:b:n"``, ``"a:b:n:log"``, a formula of other names.
        Names are parameters, flags of ``attdyn sweep``, and free letters that formulas use; a
        parameter that is a list takes one, and is not an axis. Without a ``time``, ``eta``,
        ``steps`` or rule: the flow, for as long as ``attdyn run`` goes; with ``full``, or of a
        model file with a rule, step by step.
    out : path-like, optional
        The zarr store. If it holds a part of the same sweep, that part is not run again, except
        for blocks that are damaged. Without one, nothing stays on disk.
    paired : bool
        Walk all axes together instead of crossing them.
    strict : bool
        Refuse a grid with points that cannot be run, instead of leaving them out.
    trajectory : int
        Also store so many records of each run, at logarithmically spaced times.
    workers : int, optional
        Processes; one for each core by default, 0 for this process itself. A model that is in no
        file, or a system that was changed in memory, runs in this process only.
    scheduler : str, optional
        Address of a dask scheduler whose workers are used instead.

    Returns
    -------
    Sweep

    Raises
    ------
    InvalidRequest
        If the request is wrong, all points are, the store is another sweep's, or the model file is
        changed while the sweep goes on.
    dynamics.sweep.store.StoreError
        If the store cannot be written.
    dynamics.sweep.cluster.SchedulerGone
        If the scheduler is lost while the sweep goes on; what was done is kept.

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
    _ = plan.first_valid  # refused before any process is started
    tasks = max(len(plan.blocks), ceil(plan.grid.size / TOGETHER))
    with closing(workers_for(loaded, workers, scheduler, tasks)) as pool:
        import xarray  # noqa: F401 (half a second, while the workers load and not at the end)

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
    """Points of a block, and how often a worker was given them."""

    block: int
    indices: tuple[Index, ...]
    attempt: int = 1


class _BlockQueue:
    """Tasks that wait and that are under way, and the results of blocks that are not complete."""

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
        """Whether anything is still to be run."""
        return bool(self.unopened or self.waiting or self.running)

    def _open(self, block: int) -> None:
        """Queue the points of a block that can be run; a block without any is empty."""
        valid = tuple(i for i in self.plan.indices(block) if not self.plan.invalid_reason(i))
        if valid:
            parts = range(0, len(valid), TOGETHER)
            self.waiting.extend(_Task(block, valid[k : k + TOGETHER]) for k in parts)
            self.results[block], self.sizes[block] = {}, len(valid)
        else:
            self.empty.append(block)

    def submit(self) -> None:
        """Start as many tasks as the workers take, of a few blocks that are looked at now."""
        for _ in range(AT_ONCE):
            while self.waiting and len(self.running) < self.workers.size:
                task = self.waiting.popleft()
                points = [self.plan.grid.at(index) for index in task.indices]
                self.running[self.workers.submit(measure_points, self.plan.runner, points)] = task
            if len(self.running) >= self.workers.size or not self.unopened:
                return
            self._open(self.unopened.popleft())

    def collect(self, task: _Task, future: Future[list[Measured]]) -> dict[Index, Measured]:
        """The results of a task; none if its points are to be tried again one by one."""
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
    """Run the blocks that are not done, and write each when it is complete.

    `store`: open; `pending`: numbers of the blocks. Returns (dict, bool): points whose problem
    could not be made -> why, and whether it was interrupted.
    """
    refusals: dict[Index, str] = {}
    done, failed = plan.grid.size - sum(map(plan.size, pending)), 0
    with (
        interruption() as interrupted,
        progress.bar("sweep", plan.grid.size, done, "points") as bar,
    ):
        # Sizes mostly ascend: a sweep does not end with its longest runs.
        blocks = _BlockQueue(plan, workers, pending[::-1])
        while blocks.left and not interrupted.is_set():
            blocks.submit()
            idle = blocks.unopened and len(blocks.running) < workers.size
            for future in workers.wait(blocks.running, 0.0 if idle else POLL):
                # A signal during a point in this process cuts that point short: it is no result.
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
    """Arrays over the box of a block from the results of its points."""
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
            values[np.isnan(values)] = np.nan  # one NaN of many: equal values are equal bytes
    return block


def cores() -> int:
    """Number of cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def workers_for(system: System, workers: int | None, scheduler: str | None, tasks: int) -> Workers:
    """Where to run a sweep, as requested; processes begin to load what they need."""
    if not can_be_loaded_again(system):
        for name, value in {"workers": workers or None, "scheduler": scheduler}.items():
            if value is not None:
                raise InvalidRequest(
                    f"{name}={value!r} needs a system that other processes can load, and "
                    f"{system.name!r} is in this one only; {name} can be left out, or the model "
                    "put into a file"
                )
        return InProcess()
    if workers is not None and scheduler is not None:
        raise InvalidRequest("workers are processes here and scheduler has its own; give one")
    address = os.environ.get(ADDRESS) or None if scheduler is None else scheduler
    if workers is None and address is not None:
        return Cluster(address)
    size = cores() if workers is None else integer("workers", workers, at_least=0, at_most=4096)
    return WorkerPool(min(size, tasks), system.reference, system.digests) if size else InProcess()
