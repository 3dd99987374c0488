"""The doors of the package: making a sweep, reading one, looking at one under way."""

from __future__ import annotations

import os
import tempfile
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dynamics.registry import System, can_be_loaded_again, load_system
from dynamics.results.outcome import FAILURES, INVALID, KILLED, PENDING, POINT_KINDS
from dynamics.results.presentation import Presentation
from dynamics.sweep import reader
from dynamics.sweep.cluster import Cluster, address
from dynamics.sweep.description import described, read_head
from dynamics.sweep.plan import Plan, planned, restored
from dynamics.sweep.run import Progress, run
from dynamics.sweep.store import SweepStore
from dynamics.sweep.worker_pool import Crew, Here, Workers
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
    refusals : mapping
        Index of a point -> why it could not be made; of this call.
    interrupted : bool
        Whether this call ended early; the same call goes on.
    """

    dataset: xarray.Dataset
    plan: Plan
    refusals: Mapping[tuple[int, ...], str] = field(default_factory=dict)
    interrupted: bool = False

    @cached_property
    def reasons(self) -> Mapping[tuple[int, ...], str]:
        """Index of a point -> why it cannot be run; needs the system."""
        return {**self.plan.objections, **self.refusals}

    @property
    def presentation(self) -> Presentation:
        """How it is shown; in older stores names are written out."""
        return self.plan.presentation or Presentation.empty(self.plan.work.reference)

    @property
    def outcomes(self) -> dict[str, int]:
        """Outcome -> number of points; ``"invalid"`` and ``"not run"`` among them."""
        return counted(self.dataset)

    @property
    def complete(self) -> bool:
        """Whether every block is done."""
        return bool((self.dataset[reader.DONE].values != 0).all())


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
    return [str(name) for name in dataset.sizes if name not in (reader.BLOCK, reader.RECORD)]


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
        Names are parameters, settings of the run (``time`` for the flow, ``eta`` and ``steps`` for
        gradient descent, ``rtol``, ``tolerance``, ``samples``, ``seed``), ``full`` and
        ``expectation`` with a word, options of the empirical problem, and free letters that
        formulas use; a parameter that is a list takes one, and is no axis. Without a ``time``,
        ``eta`` or ``steps``: the flow, for as long as ``attdyn run`` goes; with ``full``, gradient
        descent.
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
    dynamics.sweep.folder.StoreError
        If the store cannot be written.
    """
    chosen = load_system(system)
    workers = _here(chosen, workers, scheduler)
    plan = planned(chosen, given, paired, trajectory)
    told = plan.objections
    if strict and told:
        raise InvalidRequest(f"{len(told)} points cannot be run: {next(iter(told.values()))}")
    staff = _staff(workers, scheduler, plan)
    try:
        plan.check()
        if out is None:
            with tempfile.TemporaryDirectory(prefix="attdyn-sweep-") as folder:
                return _swept(plan, Path(folder) / "sweep.zarr", staff)
        return _swept(plan, Path(out), staff)
    finally:
        staff.close()


def _swept(plan: Plan, path: Path, staff: Workers) -> Sweep:
    store, told = SweepStore(path, plan), Progress()
    with store.open():
        contents = _whole(path, plan)
        if (contents.done == 0).any():
            told = run(plan, store, staff)
            contents = reader.read(path, plan)
        found = reader.dataset(path, plan, contents)
    return Sweep(found, plan, told.reasons, told.interrupted)


def _whole(path: Path, plan: Plan) -> reader.Contents:
    """What a store holds; refused if something in it is damaged."""
    contents = reader.read(path, plan)
    if contents.damage:
        number, why = next(iter(contents.damage.items()))
        raise InvalidRequest(
            f"{str(path)!r} is damaged in {len(contents.damage)} of its blocks (block {number}: "
            f"{why}); attdyn sweep ... --repair mends it"
        )
    return contents


def _staff(workers: int | None, scheduler: str | None, plan: Plan) -> Workers:
    """Those who do the work; processes of this machine begin to load what they need."""
    if workers is not None and scheduler is not None:
        raise InvalidRequest("workers are processes here and scheduler has its own; give one")
    place = address(scheduler) if workers is None else None
    if place is not None:
        return Cluster(place)
    size = cores() if workers is None else integer("workers", workers, at_least=0, at_most=4096)
    if not size:
        return Here(plan.work.system)
    return Crew(min(size, len(plan.blocks)), plan.work.reference, plan.work.digests)


def _here(system: System, workers: int | None, scheduler: str | None) -> int | None:
    """Workers as given; 0 where no other process could load the system, however many are usual.

    Raises
    ------
    InvalidRequest
        If others are asked for all the same.
    """
    if can_be_loaded_again(system):
        return workers
    asked = {"workers": workers or None, "scheduler": scheduler}
    for name, value in asked.items():
        if value is not None:
            raise InvalidRequest(
                f"{name}={value!r} needs a system that other processes can load, and "
                f"{system.name!r} is in this one only; {name} can be left out, or the model put "
                "into a file"
            )
    return 0


def cores() -> int:
    """Cores that this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1


def load(path: str | os.PathLike[str]) -> Sweep:
    """Read a sweep, also one that is not complete.

    Raises
    ------
    InvalidRequest
        If there is none, it is of another format, or damaged.
    """
    plan = restored(*read_head(Path(path)))
    contents = _whole(Path(path), plan)
    return Sweep(reader.dataset(Path(path), plan, contents), plan)


def repaired(path: str | os.PathLike[str]) -> int:
    """Mend what can be mended; take other damaged blocks as not done. Returns how many those are.

    Raises
    ------
    InvalidRequest
        If there is no sweep, or one of other versions.
    """
    plan = restored(*read_head(Path(path)))
    store = SweepStore(Path(path), plan)
    with store.open():
        for name in reader.read(Path(path), plan).broken:
            store.mend(name)
        bad = reader.read(Path(path), plan).damage
        store.forget(list(bad))
    return len(bad)


def status(path: str | os.PathLike[str]) -> dict[str, Any]:
    """How far a sweep is: blocks, done, points, diverged, outcomes, damaged, and its request.

    Raises
    ------
    InvalidRequest
        If there is no sweep, or one of another format.
    """
    request = described(Path(path))
    plan = restored(request)
    contents = reader.read(Path(path), plan)
    found = _named(contents.outcomes)
    return {
        "system": request["system"],
        "points": plan.grid.size,
        "blocks": len(contents.done),
        "done": int((contents.done != 0).sum()) - len(contents.damage),
        "diverged": sum(found.get(kind, 0) for kind in (*FAILURES, KILLED)),
        "outcomes": found,
        "damaged": {str(number): why for number, why in contents.damage.items()},
        "request": request,
    }
