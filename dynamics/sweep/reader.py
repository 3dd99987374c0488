"""What is in a store: every block that is done and holds what was written, and what is wrong.

Axes and derived parameters follow from the request, which is in the head of the store; values are
taken block by block, and only of blocks whose checksum is that of the manifest. So a block that a
killed sweep had begun to write is not there, and damage is seen and named.
"""

from __future__ import annotations

import json
import zlib
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dynamics.results.outcome import PENDING
from dynamics.sweep.axes import PAIRED
from dynamics.sweep.folder import reason
from dynamics.validation import InvalidRequest

if TYPE_CHECKING:
    import xarray

    from dynamics.sweep.plan import Plan

DONE, BLOCK, RECORD = "done", "block", "record"
PATH, TIME = "path_", "time_"
"""Beginnings of the names of series and of the times of events."""

Block = Mapping[str, NDArray[Any]]
"""Name -> values over the box of a block."""


@dataclass(frozen=True)
class Contents:
    """What a store holds.

    Attributes
    ----------
    values : mapping
        Quantity -> array over the grid; blocks that are not done, or damaged, hold nothing.
    done : uint32 array, shape (blocks,)
        The manifest: 0 for a block that is not done, else the checksum of its values.
    damage : mapping
        Number of a block that is done -> what is wrong with it.
    broken : mapping
        Quantity whose description cannot be read -> why.
    """

    values: Mapping[str, NDArray[Any]]
    done: NDArray[np.uint32]
    damage: Mapping[int, str]
    broken: Mapping[str, str]

    @property
    def outcomes(self) -> Counter[int]:
        """Outcome -> number of points."""
        return Counter(self.values["outcome"].ravel().tolist())


def filled(values: NDArray[Any]) -> bool:
    """Whether a block has anything of a quantity."""
    return values.dtype.kind != "f" or not np.isnan(values).all()


def checksum(block: Block) -> int:
    """Checksum of the values of a block, never 0; quantities that it has not do not count."""
    found = 0
    for name in sorted(name for name in block if filled(block[name])):
        found = zlib.crc32(name.encode(), found)
        found = zlib.crc32(np.ascontiguousarray(block[name]).tobytes(), found)
    return found or 1


def layout(plan: Plan, name: str) -> tuple[tuple[int, ...], tuple[int, ...], tuple[str, ...]]:
    """Shape, chunks and dimensions of a quantity."""
    grid, tail = plan.grid, plan.work.records + 1
    if name.startswith(PATH):
        return (*grid.shape, tail), (*plan.block, tail), (*grid.dims, RECORD)
    return grid.shape, plan.block, grid.dims


def empty(plan: Plan, name: str) -> NDArray[Any]:
    """A quantity of which nothing is known."""
    shape = layout(plan, name)[0]
    return np.full(shape, PENDING, np.int8) if name == "outcome" else np.full(shape, np.nan)


def frame_names(plan: Plan) -> set[str]:
    """Arrays that are not quantities."""
    grid = plan.grid
    return {DONE, PAIRED, *(axis.name for axis in grid.axes), *grid.derived}


def read(path: Path, plan: Plan) -> Contents:
    """Everything that is whole, and what is not.

    Raises
    ------
    InvalidRequest
        If the manifest has another size than the request, so that nothing can be told.
    """
    arrays, broken = _arrays(path, plan)
    done = marks(path, plan)
    pieces = {name: _pieces(array, plan, done) for name, array in arrays.items()}
    values = {name: empty(plan, name) for name in {"outcome", *arrays}}
    damage: dict[int, str] = {}
    for number in map(int, np.flatnonzero(done)):
        block = {name: pieces[name][number] for name in pieces}
        unread = [f"{n} cannot be read ({b})" for n, b in block.items() if isinstance(b, str)]
        unread += [f"{name} cannot be read ({why})" for name, why in broken.items()]
        if unread:
            damage[number] = unread[0]
        elif checksum(block) != done[number]:  # type: ignore[arg-type]
            damage[number] = "its values are not those that were written"
        else:
            for name, part in block.items():
                values[name][plan.box(number)] = part
    return Contents(dict(sorted(values.items())), done, damage, broken)


def _arrays(path: Path, plan: Plan) -> tuple[dict[str, Any], dict[str, str]]:
    """Arrays of quantities, and those that cannot be opened."""
    import zarr

    arrays: dict[str, Any] = {}
    broken: dict[str, str] = {}
    names = {entry.name for entry in path.iterdir() if (entry / "zarr.json").exists()}
    for name in sorted(names - frame_names(plan)):
        try:
            # Read first as what it is: zarr tells of a damaged file in hundreds of lines.
            json.loads((path / name / "zarr.json").read_text(encoding="utf-8"))
            array = zarr.open_array(path / name, mode="r", zarr_format=3)
            if array.shape != layout(plan, name)[0]:
                raise ValueError(f"its shape is {array.shape}")
            arrays[name] = array
        except Exception as error:
            broken[name] = reason(error)
    return arrays, broken


def _pieces(array: Any, plan: Plan, done: NDArray[np.uint32]) -> dict[int, NDArray[Any] | str]:
    """The blocks of an array that are done: values, or why they cannot be read."""
    import zarr

    found: dict[int, NDArray[Any] | str] = {}
    numbers = [int(number) for number in np.flatnonzero(done)]
    # One chunk at a time: of several, one that fails leaves the others to complain at the end.
    with zarr.config.set({"async.concurrency": 1}):
        for number in numbers:
            try:
                found[number] = np.asarray(array[plan.box(number)])
            except Exception as error:
                found[number] = reason(error)
    return found


def marks(path: Path, plan: Plan) -> NDArray[np.uint32]:
    """The manifest; a mark that cannot be read is none, and its block is done again."""
    import zarr

    found = np.zeros(len(plan.blocks), np.uint32)
    try:
        json.loads((path / DONE / "zarr.json").read_text(encoding="utf-8"))
        array = zarr.open_array(path / DONE, mode="r", zarr_format=3)
    except Exception as error:
        raise InvalidRequest(f"{str(path)!r} cannot be read (done: {reason(error)})") from None
    if array.shape != found.shape:
        raise InvalidRequest(f"{str(path)!r} cannot be read (done: its shape is {array.shape})")
    with zarr.config.set({"async.concurrency": 1}):
        for number in range(found.size):
            try:
                found[number] = array[number]
            except Exception:
                found[number] = 0
    return found


def derived(plan: Plan) -> dict[str, NDArray[np.float64]]:
    """Values of the derived parameters over the grid; NaN where they have none."""
    grid = plan.grid
    found = {name: np.full(grid.shape, np.nan) for name in grid.derived}
    for index in grid if found else ():
        try:
            point = grid.at(index)
        except InvalidRequest:
            continue
        for name, values in found.items():
            values[index] = point[name]
    return found


def events(plan: Plan) -> list[str]:
    """Names of the events that a run of the plan looks for.

    Older stores do not name them; those are all of built-in systems, which do.
    """
    return list((plan.presentation or plan.work.system.presentation).event_latex)


def dataset(path: Path, plan: Plan, contents: Contents) -> xarray.Dataset:
    """The contents as xarray has them, with the attributes of the store."""
    import xarray

    grid = plan.grid
    axes = {axis.name: np.array(axis.values) for axis in grid.axes}
    own = {name: ((PAIRED,) if grid.paired else (name,), values) for name, values in axes.items()}
    coordinates: dict[str, Any] = {PAIRED: np.arange(grid.size)} if grid.paired else dict(own)
    variables: dict[str, Any] = dict(own) if grid.paired else {}
    variables |= {name: (grid.dims, values) for name, values in derived(plan).items()}
    # An event that no run has reached is a quantity too.
    times = {f"{TIME}{name}": empty(plan, TIME) for name in events(plan)}
    values = dict(sorted({**times, **contents.values}.items()))
    variables |= {name: (layout(plan, name)[2], array) for name, array in values.items()}
    variables[DONE] = ((BLOCK,), contents.done)
    head = json.loads((path / "zarr.json").read_text(encoding="utf-8"))
    return xarray.Dataset(variables, coordinates, head["attributes"])
