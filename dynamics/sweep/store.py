"""A sweep on disk: a zarr v3 group that xarray opens, one array for each quantity.

Dimensions are the swept names; a chunk is a block. The array ``done`` is the manifest: 0 for a
block that is not finished, else a checksum of its values, written after all of them. A sweep that
is killed therefore loses the blocks under way, and when it is started again it writes the same
bytes. Only one process writes; arrays come into being with the first block that has something to
put in them, and no clock reading is stored, so that equal sweeps are equal files.

Every chunk carries a checksum of its own besides, so that other readers notice damage too.
"""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dynamics.results.outcome import PENDING, POINT_KINDS
from dynamics.sweep.axes import PAIRED
from dynamics.sweep.description import FORMAT, KIND, described, differences
from dynamics.sweep.folder import check_place, locked, tidy, told
from dynamics.sweep.reader import BLOCK, DONE, Block, checksum, derived, filled, layout, marks

if TYPE_CHECKING:
    from dynamics.sweep.plan import Plan


class SweepStore:
    """The store of a plan.

    Parameters
    ----------
    path : Path
    plan : Plan
    """

    def __init__(self, path: Path, plan: Plan) -> None:
        self.path, self.plan = path, plan
        self._arrays: dict[str, Any] = {}
        self._root: Any = None

    @contextmanager
    def open(self) -> Iterator[None]:
        """Make the store, or go on with the one that is there, and keep others away.

        Raises
        ------
        InvalidRequest
            If something else is there, it was made by another request, or another sweep is at it.
        StoreError
            If it cannot be written.
        """
        check_place(self.path)
        with locked(self.path):
            if (self.path / "zarr.json").exists():
                differences(described(self.path), self.plan.description, self.path)
            with told(self.path):
                tidy(self.path)
                self._frame()
            yield

    def _frame(self) -> None:
        """Group, coordinates, derived parameters and manifest, the manifest last.

        What is there is written again where it is not what it should be.
        """
        import zarr

        plan, grid = self.plan, self.plan.grid
        self._root = zarr.open_group(
            self.path, mode="a", zarr_format=3, attributes=_attributes(plan)
        )
        for axis in grid.axes:
            own = (PAIRED,) if grid.paired else (axis.name,)
            self._whole(axis.name, np.array(axis.values), own)
        if grid.paired:
            self._whole(PAIRED, np.arange(grid.size), (PAIRED,))
        for name, values in derived(plan).items():
            self._whole(name, values, grid.dims)
        self._made(DONE, (len(plan.blocks),), (1,), (BLOCK,), np.uint32, 0)

    def _whole(self, name: str, values: NDArray[Any], dims: tuple[str, ...]) -> None:
        """An array that is written at once, unless it is there and whole."""
        import zarr

        try:
            json.loads((self.path / name / "zarr.json").read_text(encoding="utf-8"))
            stored = zarr.open_array(self.path / name, mode="r", zarr_format=3)
            if np.array_equal(stored[...], values, equal_nan=values.dtype.kind == "f"):
                return
        except Exception:
            (self.path / name / "zarr.json").unlink(missing_ok=True)
        fill = 0 if values.dtype.kind == "i" else float("nan")
        array = self._made(name, values.shape, values.shape, dims, values.dtype, fill)
        array[...] = values

    def _made(self, name: str, shape: Any, chunks: Any, dims: Any, dtype: Any, fill: Any) -> Any:
        from zarr.codecs import Crc32cCodec, ZstdCodec

        if (self.path / name / "zarr.json").exists():
            return self._root[name]
        return self._root.create_array(
            name, shape=shape, chunks=chunks, dtype=dtype, fill_value=fill,
            compressors=(ZstdCodec(), Crc32cCodec()), dimension_names=dims,
            config={"write_empty_chunks": False},
        )  # fmt: skip

    def _array(self, name: str) -> Any:
        """The array of a quantity, made where it is needed for the first time."""
        if name not in self._arrays:
            outcome = name == "outcome"
            kind, fill = (np.int8, PENDING) if outcome else (np.float64, float("nan"))
            self._arrays[name] = self._made(name, *layout(self.plan, name), kind, fill)
        return self._arrays[name]

    def mend(self, name: str) -> None:
        """Describe an array anew whose description is damaged; its chunks stay."""
        with told(self.path):
            (self.path / name / "zarr.json").unlink(missing_ok=True)
            self._array(name)

    def pending(self) -> list[int]:
        """Numbers of the blocks that are not done."""
        return [int(k) for k in np.flatnonzero(marks(self.path, self.plan) == 0)]

    def forget(self, numbers: list[int]) -> None:
        """Take blocks as not done."""
        with told(self.path):
            for number in numbers:
                self._root[DONE][number] = 0

    def write(self, number: int, block: Block) -> None:
        """Write a block, then its mark in the manifest."""
        box = self.plan.box(number)
        with told(self.path):
            for name in sorted(block):
                if filled(block[name]):
                    self._array(name)[box] = block[name]
            self._root[DONE][number] = checksum(block)


def _attributes(plan: Plan) -> dict[str, Any]:
    described = plan.description
    plain = {"kind": KIND, "format": FORMAT, "system": described.pop("system")}
    return (
        plain
        | {name: json.dumps(value) for name, value in described.items()}
        | {"kinds": json.dumps(list(POINT_KINDS))}
        | ({} if plan.presentation is None else plan.presentation.attributes())
    )
