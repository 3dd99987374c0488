"""Contents of a store: quantities over the grid, and attributes.

A quantity is stored as an array over the swept names, with one chunk for each block. A series (a
value for each record of a point) has a further dimension. An unknown outcome is stored as
`PENDING`, any other unknown value as NaN.
"""

from __future__ import annotations

import hashlib
import json
from collections import Counter
from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynamics.results.outcome import PENDING, POINT_KINDS
from dynamics.sweep.plan import Plan

FORMAT = 1
KIND = "sweep"
LEAST_HASH = 10_000
RECORD = "record"
PATH, TIME = "path_", "time_"
"""Prefix of the names of series, and prefix of the names of event times."""


@dataclass(frozen=True)
class Contents:
    """Quantities and manifest of a store."""

    values: Mapping[str, NDArray[Any]]
    """Quantity -> array over the grid; values of unfinished and damaged blocks are unknown."""
    done: NDArray[np.uint32]
    """Manifest, shape (blocks,): 0 for an unfinished block, else its `block_hash`."""
    damage: Mapping[int, str]
    """Number of a damaged block -> description of the damage."""

    @property
    def pending(self) -> list[int]:
        """Numbers of the blocks that are unfinished or damaged and must be run."""
        return sorted({*map(int, np.flatnonzero(self.done == 0)), *self.damage})

    @property
    def outcomes(self) -> Counter[int]:
        """Outcome code -> number of points."""
        return Counter(self.values["outcome"].ravel().tolist())


def layout(plan: Plan, name: str) -> tuple[tuple[int, ...], tuple[int, ...], tuple[str, ...]]:
    """Shape, shape of a chunk, and dimensions of the array of a quantity."""
    grid, length = plan.grid, plan.runner.records + 1
    if name.startswith(PATH):
        return (*grid.shape, length), (*plan.block, length), (*grid.dims, RECORD)
    return grid.shape, plan.block, grid.dims


def empty(plan: Plan, name: str) -> NDArray[Any]:
    """Array over the grid filled with the unknown value of a quantity."""
    values = np.empty(layout(plan, name)[0], number_kind(name))
    values[...] = unknown_value(values)
    return values


def number_kind(name: str) -> type[np.int8] | type[np.float64]:
    """Number type of a quantity's array."""
    return np.int8 if name == "outcome" else np.float64


def unknown_value(values: NDArray[Any]) -> float:
    """Value that marks an unknown entry in the array of a quantity."""
    return PENDING if values.dtype.kind == "i" else float("nan")


def filled_names(block: Mapping[str, NDArray[Any]]) -> list[str]:
    """Sorted names of the quantities with a known value in `block` (quantity -> values)."""
    return [name for name in sorted(block) if is_filled(block[name])]


def is_filled(values: NDArray[Any]) -> bool:
    """Whether a quantity has a known value in a block."""
    return bool((values != PENDING).any() if values.dtype.kind == "i" else (values == values).any())


def block_hash(plan: Plan, number: int, block: Mapping[str, NDArray[Any]]) -> int:
    """Hash of the points of a block, and of the known quantities in `block` (name -> values)."""
    request, axes, box = plan.description, plan.grid.axes, plan.box(number)
    parts = box * len(axes) if plan.grid.paired else box
    points = {name: request[name] for name in ("system", "fixed", "derived", "paired")}
    pairs = zip(axes, parts, strict=True)
    points |= {"axes": [[axis.name, *axis.values[part]] for axis, part in pairs]}
    digest = hashlib.blake2b(json.dumps(points, sort_keys=True).encode(), digest_size=8)
    for name in filled_names(block):
        values = np.ascontiguousarray(block[name], block[name].dtype.newbyteorder("<"))
        digest.update(name.encode() + b"\0" + values.tobytes())
    return LEAST_HASH + int.from_bytes(digest.digest()) % (2**32 - LEAST_HASH)


def attributes_of(plan: Plan) -> dict[str, Any]:
    """Attributes of the store's group: the request and the presentation, as JSON texts."""
    request = plan.description
    plain = {"kind": KIND, "format": FORMAT, "system": request.pop("system")}
    return (
        plain
        | {name: json.dumps(value) for name, value in request.items()}
        | {"kinds": json.dumps(list(POINT_KINDS))}
        | ({} if plan.presentation is None else plan.presentation.attributes())
    )
