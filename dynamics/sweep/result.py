"""The doors of the package: making a sweep, reading one, looking at one under way."""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dynamics.outcome import FAILURES, INVALID, KILLED, PENDING, POINT_KINDS
from dynamics.sweep import stored
from dynamics.sweep.cluster import Cluster, address
from dynamics.sweep.crew import Crew, Here, Workers
from dynamics.sweep.plan import Plan, planned, restored
from dynamics.sweep.run import Progress, run
from dynamics.sweep.store import SweepStore
from dynamics.systems import System, load_system
from dynamics.validation import InvalidRequest, integer

if TYPE_CHECKING:
    import xarray


@dataclass(frozen=True)
class Sweep:
    """A sweep, done or under way.

    Attributes
    ----------
    dataset : xarray.Dataset
        One variable for each quantity over the swept dimensions; NaN where a point has none.
        ``outcome`` is an index into the attribute ``kinds``, -1 where a point was not run yet and
        -2 where it cannot be. Also the manifest ``done``, one entry for each block.
    plan : Plan
        What was asked.
    reasons : mapping
        Index of a point -> why it cannot be run.
    interrupted : bool
        Whether this call ended early; the same call goes on.
    """

    dataset: xarray.Dataset
    plan: Plan
    reasons: Mapping[tuple[int, ...], str] = field(default_factory=dict)
    interrupted: bool = False

    @property
    def outcomes(self) -> dict[str, int]:
        """Outcome -> number of points; ``"invalid"`` and ``"not run"`` among them."""
        return counted(self.dataset)

    @property
    def complete(self) -> bool:
        """Whether every block is done."""
        return bool((self.dataset[stored.DONE].values != 0).all())


def counted(dataset: xarray.Dataset) -> dict[str, int]:
    """Outcome -> number of points."""
    if "outcome" not in dataset:
        size = int(np.prod([dataset.sizes[name] for name in _dims(dataset)]))
        return {"not run": size}
    return _named(Counter(dataset["outcome"].values.ravel().tolist()))


def _named(codes: Mapping[int, int]) -> dict[str, int]:
    names = {PENDING: "not run", INVALID: "invalid"} | dict(enumerate(POINT_KINDS))
    return {names[code]: codes[code] for code in sorted(codes, reverse=True) if codes[code]}


def _dims(dataset: xarray.Dataset) -> list[str]:
    return [str(name) for name in dataset.sizes if name not in (stored.BLOCK, stored.RECORD)]


def sweep(
    system: System | str,
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
    system : System or str
    given : mapping
        Name -> number, values, or text: ``"a:b:n"``, ``"a:b:n:log"``, a formula of other names.
        Names are parameters, settings of the run (``time`` for the flow, ``eta`` and ``steps`` for
        gradient descent, ``rtol``, ``tolerance``, ``samples``, ``seed``), ``full`` and
        ``expectation`` with a word, options of the empirical problem, and free letters that
        formulas use. Without a ``time``, ``eta`` or ``steps``: the flow, for as long as ``attdyn
        run`` goes; with ``full``, gradient descent.
    out : path-like, optional
        The zarr store. If it holds a part of the same sweep, that part is not run again. Without
        one, nothing is kept on disk.
    paired : bool
        Walk all axes together instead of crossing them.
    strict : bool
        Refuse a grid with points that cannot be run, instead of leaving them out.
    trajectory : int
        Also keep so many records of each run, at logarithmically spaced times.
    workers : int, optional
        Processes; one for each core by default, 0 for this process itself.
    scheduler : str, optional
        Address of a dask scheduler whose workers are used instead.

    Returns
    -------
    Sweep

    Raises
    ------
    InvalidRequest
        If the request is wrong, all points are, or the store is another sweep's.
    dynamics.sweep.place.StoreError
        If the store cannot be written.
    """
    chosen = load_system(system) if isinstance(system, str) else system
    plan = planned(chosen, given, paired, trajectory)
    told = plan.objections
    if strict and told:
        raise InvalidRequest(f"{len(told)} points cannot be run: {next(iter(told.values()))}")
    plan.check()
    staff = _staff(workers, scheduler, len(plan.blocks))
    try:
        if out is None:
            with tempfile.TemporaryDirectory(prefix="attdyn-sweep-") as folder:
                return _swept(plan, Path(folder) / "sweep.zarr", staff)
        return _swept(plan, Path(out), staff)
    finally:
        staff.close()


def _swept(plan: Plan, path: Path, staff: Workers) -> Sweep:
    kept, told = SweepStore(path, plan), Progress()
    with kept.open():
        bad = stored.damaged(path, plan)
        if bad:
            raise InvalidRequest(damage(path, bad))
        if kept.pending():
            told = run(plan, kept, staff)
        found = stored.dataset(path)
    return Sweep(found, plan, {**plan.objections, **told.reasons}, told.interrupted)


def _staff(workers: int | None, scheduler: str | None, blocks: int) -> Workers:
    """Those who do the work; processes are not started before there is any."""
    if workers is not None and scheduler is not None:
        raise InvalidRequest("workers are processes here and scheduler has its own; give one")
    place = address(scheduler) if workers is None else None
    if place is not None:
        return Cluster(place)
    size = cores() if workers is None else integer("workers", workers, at_least=0, at_most=4096)
    return Crew(min(size, blocks)) if size else Here()


def cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def damage(path: Path, bad: Mapping[int, str]) -> str:
    """What is wrong with a store, and what to do, in one line."""
    number, why = next(iter(bad.items()))
    return (
        f"{str(path)!r} is damaged in {len(bad)} of its blocks (block {number}: {why}); "
        "attdyn sweep ... --repair runs those again"
    )


def load(path: str | os.PathLike[str]) -> Sweep:
    """Read a sweep, also one that is not complete.

    Raises
    ------
    InvalidRequest
        If there is none, it is of another format, or damaged.
    """
    plan = restored(stored.described(Path(path)))
    bad = stored.damaged(Path(path), plan)
    if bad:
        raise InvalidRequest(damage(Path(path), bad))
    return Sweep(stored.dataset(Path(path)), plan, plan.objections)


def repaired(path: str | os.PathLike[str]) -> int:
    """Take the damaged blocks of a sweep as not done; returns how many there were."""
    plan = restored(stored.described(Path(path)))
    kept = SweepStore(Path(path), plan)
    with kept.open():
        bad = stored.damaged(Path(path), plan)
        kept.forget(list(bad))
    return len(bad)


def status(path: str | os.PathLike[str]) -> dict[str, Any]:
    """How far a sweep is: blocks, done, points, diverged, outcomes, damaged, and its request.

    Raises
    ------
    InvalidRequest
        If there is no sweep, or one of another format.
    """
    request = stored.described(Path(path))
    plan = restored(request)
    bad = stored.damaged(Path(path), plan)
    marks = stored.marks(Path(path))
    found = _named(stored.outcomes(Path(path), plan, bad))
    return {
        "system": request["system"],
        "points": plan.grid.size,
        "blocks": len(marks),
        "done": int((marks != 0).sum()) - len(bad),
        "diverged": sum(found.get(kind, 0) for kind in (*FAILURES, KILLED)),
        "outcomes": found,
        "damaged": {str(number): why for number, why in bad.items()},
        "request": request,
    }
