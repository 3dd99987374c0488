"""What is on disk: the request that a store was made by, its manifest, its values, its damage."""

from __future__ import annotations

import json
import zlib
from collections import Counter
from collections.abc import Collection, Mapping
from math import prod
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dynamics.outcome import PENDING
from dynamics.sweep.axes import PAIRED
from dynamics.sweep.place import reason
from dynamics.validation import InvalidRequest

if TYPE_CHECKING:
    import xarray

    from dynamics.sweep.plan import Plan

FORMAT = 1
KIND = "sweep"
DONE, BLOCK, RECORD = "done", "block", "record"

Block = Mapping[str, NDArray[Any]]
"""Name -> values over the box of a block."""


def described(path: Path) -> dict[str, Any]:
    """The request that a store was made by.

    Raises
    ------
    InvalidRequest
        If it is not a sweep, or one of another format.
    """
    try:
        text = json.loads((path / "zarr.json").read_text(encoding="utf-8"))
        found = dict(text["attributes"])
    except FileNotFoundError:
        raise InvalidRequest(f"{str(path)!r} holds no sweep; attdyn sweep makes one") from None
    except (OSError, ValueError, KeyError, TypeError) as error:
        raise InvalidRequest(f"{str(path)!r} cannot be read ({reason(error)})") from None
    if found.get("kind") != KIND:
        what = f"a {found['kind']}" if "kind" in found else "something else"
        raise InvalidRequest(f"{str(path)!r} holds {what}, not a sweep")
    if found.get("format") != FORMAT:
        was = found.get("format")
        raise InvalidRequest(f"{str(path)!r} has format {was}, this program reads {FORMAT}")
    try:
        names = ("axes", "fixed", "derived", "paired", "records", "block", "versions")
        return {"system": found["system"]} | {name: json.loads(found[name]) for name in names}
    except (KeyError, ValueError, TypeError) as error:
        raise InvalidRequest(f"{str(path)!r} cannot be read ({reason(error)})") from None


def differences(stored: Mapping[str, Any], asked: Mapping[str, Any], path: Path) -> None:
    """Refuse to go on with the store of another request.

    Raises
    ------
    InvalidRequest
        With every difference.
    """
    before, now = _flat(stored), _flat(json.loads(json.dumps(asked)))
    told = [
        f"{name}: {_shown(before.get(name))} there, {_shown(now.get(name))} here"
        for name in dict.fromkeys([*before, *now])
        if before.get(name) != now.get(name)
    ]
    if told:
        raise InvalidRequest(f"{str(path)!r} is of another sweep ({'; '.join(told)})")
    if list(stored["axes"]) != list(asked["axes"]):
        orders = " and ".join(",".join(axes) for axes in (stored["axes"], asked["axes"]))
        raise InvalidRequest(f"{str(path)!r} is of another sweep (order of axes: {orders})")


def _flat(description: Mapping[str, Any]) -> dict[str, Any]:
    """One entry for each name; axes, formulas and fixed values by the name of the parameter."""
    found: dict[str, Any] = {}
    for name, value in description.items():
        if name == "versions":
            found |= {f"version of {program}": version for program, version in value.items()}
        else:
            found |= value if isinstance(value, dict) else {name: value}
    return found


def _shown(value: Any) -> str:
    if value is None:
        return "not given"
    if isinstance(value, list) and len(value) > 3:
        return f"{value[0]:g} ... {value[-1]:g} ({len(value)} values)"
    if isinstance(value, list):
        return ",".join(f"{entry:g}" for entry in value)
    return f"{value:g}" if isinstance(value, float) else str(value)


def dataset(path: Path) -> xarray.Dataset:
    """All of a store, in memory.

    Raises
    ------
    InvalidRequest
        If there is none, or a chunk is damaged.
    """
    described(path)
    import xarray

    try:
        stored = xarray.open_zarr(path, consolidated=False, chunks=None, mask_and_scale=False)
        return stored.load()
    except Exception as error:
        raise InvalidRequest(
            f"{str(path)!r} cannot be read ({reason(error)}); attdyn status names what is damaged"
        ) from error


def opened(path: Path) -> Any:
    """The group, to be read.

    Raises
    ------
    InvalidRequest
        If it cannot be.
    """
    import zarr

    try:
        return zarr.open_group(path, mode="r", zarr_format=3)
    except Exception as error:
        raise InvalidRequest(f"{str(path)!r} cannot be read ({reason(error)})") from error


def marks(path: Path) -> NDArray[np.uint32]:
    """The manifest: 0 for every block that is not done."""
    root = opened(path)
    try:
        found: NDArray[np.uint32] = root[DONE][...]
    except Exception as error:
        raise InvalidRequest(f"{str(path)!r} cannot be read ({reason(error)})") from error
    return found


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


def damaged(path: Path, plan: Plan) -> dict[int, str]:
    """Blocks that are marked as done and do not hold what was written -> what is wrong."""
    done, root = marks(path), opened(path)
    try:
        names = sorted(set(root.array_keys()) - _frame_names(plan))
        arrays = {name: root[name] for name in names}
    except Exception as error:
        raise InvalidRequest(f"{str(path)!r} cannot be read ({reason(error)})") from error
    found: dict[int, str] = {}
    for number in np.flatnonzero(done):
        box, block = plan.box(int(number)), {}
        for name, array in arrays.items():
            try:
                block[name] = array[box]
            except Exception as error:
                found[int(number)] = f"{name} cannot be read ({reason(error)})"
                break
        else:
            if checksum(block) != done[number]:
                found[int(number)] = "its values are not those that were written"
    return found


def _frame_names(plan: Plan) -> set[str]:
    grid = plan.grid
    return {DONE, PAIRED, *(axis.name for axis in grid.axes), *grid.derived}


def outcomes(path: Path, plan: Plan, bad: Collection[int]) -> Counter[int]:
    """Outcome -> number of points, block by block, those that are damaged left out."""
    root, found = opened(path), Counter[int]()
    for number, mark in enumerate(marks(path)):
        size = prod(part.stop - part.start for part in plan.box(number))
        if mark and number not in bad:
            found.update(root["outcome"][plan.box(number)].ravel().tolist())
        else:
            found[PENDING] += size
    return found
