"""A sweep on disk: a zarr v3 group readable by xarray, one array for each quantity.

The dimensions of an array are the swept names. Each block is stored as one chunk, and every chunk
has a checksum. The array ``done`` is the manifest: 0 for an unfinished block, else a hash of the
block's points and values, written after the values. A partly written block counts as unfinished.
Checksums and hashes reveal damaged or missing chunks. The next sweep runs unfinished and damaged
blocks. Only one process writes. No clock time is stored, so equal sweeps give equal files.
"""

from __future__ import annotations

import json
from collections.abc import Iterator, Mapping
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynamics.presentation import Presentation
from dynamics.results.storage import consolidate
from dynamics.sweep.contents import (
    FORMAT,
    KIND,
    Contents,
    attributes_of,
    block_hash,
    empty,
    filled_names,
    layout,
    number_kind,
    unknown_value,
)
from dynamics.sweep.folder import check_folder, locked, refuse_foreign, remove_partial
from dynamics.sweep.plan import MODEL, Plan, different_entries
from dynamics.validation import InvalidRequest

REQUEST_PARTS = {
    "axes": dict, "fixed": dict, "derived": dict, "paired": bool, "records": int, "block": list,
    "versions": dict,
}  # fmt: skip
"""Name of an entry of a stored request, except ``system`` -> type of the entry."""
DONE, BLOCK = "done", "block"


class StoreError(Exception):
    """Error: a store cannot be written; the message is one line."""


@contextmanager
def store_errors(path: Path) -> Iterator[None]:
    """Context that converts file system errors to `StoreError`."""
    try:
        yield
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        line = f"{str(path)!r} cannot be written ({why}); finished blocks are kept"
        raise StoreError(line) from error


def _reason(error: BaseException) -> str:
    """First line of an error message."""
    return str(error).splitlines()[0] if str(error) else type(error).__name__


def read_request(path: Path) -> tuple[dict[str, Any], Presentation | None]:
    """Request and presentation of a store; the presentation is None if the store has none.

    Raises InvalidRequest if the path does not hold a sweep, or the sweep has another format.
    """
    try:
        attributes = stored_attributes(path)
    except FileNotFoundError:
        raise InvalidRequest(f"{str(path)!r} holds no sweep; attdyn sweep makes one") from None
    except (OSError, ValueError, KeyError, TypeError, RecursionError) as error:
        raise InvalidRequest(f"{str(path)!r} cannot be read ({_reason(error)})") from None
    if attributes.get("kind") != KIND:
        what = f"a {attributes['kind']}" if "kind" in attributes else "something else"
        raise InvalidRequest(f"{str(path)!r} holds {what}, not a sweep")
    if attributes.get("format") != FORMAT:
        stored = attributes.get("format")
        raise InvalidRequest(f"{str(path)!r} has format {stored}; this program reads {FORMAT}")
    try:
        parts = REQUEST_PARTS | ({MODEL: dict} if MODEL in attributes else {})
        request = {name: json.loads(attributes[name]) for name in parts}
        for name, kind in parts.items():
            if not isinstance(request[name], kind):
                raise ValueError(f"its {name} is not a {kind.__name__}")
        presentation = Presentation.from_attributes(attributes)
        return {"system": attributes["system"]} | request, presentation
    except (AttributeError, KeyError, ValueError, TypeError) as error:
        raise InvalidRequest(f"{str(path)!r} cannot be read ({_reason(error)})") from None


def stored_attributes(path: Path) -> dict[str, Any]:
    """Attributes of the group of a store."""
    text = json.loads((path / "zarr.json").read_text(encoding="utf-8"))
    return dict(text["attributes"])


class SweepStore:
    """Store of a sweep on disk, opened for writing by the sweep's plan."""

    def __init__(self, path: Path, plan: Plan) -> None:
        self.path, self.plan = path, plan
        self._root: Any = None
        self._opened: dict[str, Any] = {}

    @contextmanager
    def open(self) -> Iterator[None]:
        """Context that creates or resumes the store, and locks it against other sweeps.

        Raises InvalidRequest if the path holds foreign files or another sweep, or is locked, and
        StoreError if it cannot be written.
        """
        check_folder(self.path)
        with locked(self.path):
            if (self.path / "zarr.json").exists():
                changes = different_entries(read_request(self.path)[0], self.plan.description)
                if changes:
                    raise InvalidRequest(
                        f"{str(self.path)!r} holds another sweep ({'; '.join(changes)})"
                    )
                refuse_foreign(self.path)
            with store_errors(self.path):
                self._write_frame()
                remove_partial(self.path)
            try:
                yield
            finally:
                with suppress(Exception):  # a damaged store cannot be consolidated
                    consolidate(self.path)

    def write(self, number: int, block: Mapping[str, NDArray[Any]]) -> None:
        """Write a block (quantity -> values over the block's box), then its manifest entry."""
        with store_errors(self.path):
            for name in filled_names(block):
                self._quantity(name)[self.plan.box(number)] = block[name]
            self._root[DONE][number] = block_hash(self.plan, number, block)

    def read(self) -> Contents:
        """Contents of the store's intact blocks."""
        return read(self.path, self.plan)

    @property
    def attributes(self) -> Mapping[str, Any]:
        """Attributes of the store's group on disk."""
        return stored_attributes(self.path)

    def _write_frame(self) -> None:
        """Write group, coordinates and derived parameters, and create a missing manifest."""
        import zarr

        plan = self.plan
        self._root = zarr.open_group(
            self.path, mode="a", zarr_format=3, attributes=attributes_of(plan),
            use_consolidated=False,
        )  # fmt: skip
        self._root.update_attributes({})  # drops metadata consolidated by an earlier sweep
        for name, (dims, values) in plan.frame.items():
            fill = 0 if values.dtype.kind == "i" else float("nan")
            array = self._array(name, values.shape, values.shape, dims, values.dtype, fill)
            array[...] = values  # safe: stored values are identical or damaged
        for name in _arrays(self.path, plan)[1]:
            self._quantity(name)
        self._array(DONE, (len(plan.blocks),), (1,), (BLOCK,), np.uint32, 0)

    def _quantity(self, name: str) -> Any:
        """Array of a quantity, created on first use."""
        fill = unknown_value(np.empty(0, number_kind(name)))
        return self._array(name, *layout(self.plan, name), number_kind(name), fill)

    def _array(self, name: str, shape: Any, chunks: Any, dims: Any, dtype: Any, fill: Any) -> Any:
        """Stored array `name` if readable and of this shape, else a new array in its place."""
        from zarr.codecs import Crc32cCodec, ZstdCodec

        if name in self._opened:
            return self._opened[name]
        try:
            self._opened[name] = _open_array(self.path / name, tuple(shape), "r+")
        except Exception:
            (self.path / name / "zarr.json").unlink(missing_ok=True)
            self._opened[name] = self._root.create_array(
                name, shape=shape, chunks=chunks, dtype=dtype, fill_value=fill,
                compressors=(ZstdCodec(), Crc32cCodec()), dimension_names=dims,
                config={"write_empty_chunks": False},
            )  # fmt: skip
        return self._opened[name]


def read(path: Path, plan: Plan) -> Contents:
    """Contents of the intact blocks of a store with this plan, and damage of the other blocks.

    Raises InvalidRequest if the manifest cannot be read.
    """
    arrays, broken = _arrays(path, plan)
    done = _manifest(path, plan)
    finished = [int(number) for number in np.flatnonzero(done)]
    values, damage = {"outcome": empty(plan, "outcome")}, dict[int, str]()
    for name, why in broken.items():
        damage = dict.fromkeys(finished, f"{name} cannot be read ({why})") | damage
    for name, array in arrays.items():
        values[name], unreadable = _values(array, plan, name, finished)
        damage = unreadable | damage  # a damaged block keeps its first reason
    for number in finished:
        if number in damage:
            continue
        block = {name: values[name][plan.box(number)] for name in arrays}
        if block_hash(plan, number, block) != done[number]:
            damage[number] = "its values differ from those that were written for its points"
    contents = Contents(dict(sorted(values.items())), done, damage)
    for number in contents.pending:
        for each in values.values():
            each[plan.box(number)] = unknown_value(each)
    return contents


def _values(
    array: Any, plan: Plan, name: str, blocks: list[int]
) -> tuple[NDArray[Any], dict[int, str]]:
    """Array of a quantity over the grid; number of each unreadable block in `blocks` -> reason."""
    with suppress(Exception):  # reading the whole array is four times as fast as reading chunks
        return np.require(array[...], number_kind(name), "W"), {}
    values, unreadable = empty(plan, name), dict[int, str]()
    for number in blocks:
        box = plan.box(number)
        try:
            values[box] = array[box]
        except Exception as error:
            unreadable[number] = f"{name} cannot be read ({_reason(error)})"
    return values, unreadable


def _open_array(path: Path, shape: tuple[int, ...], mode: Any = "r") -> Any:
    """Open an array of a store; raises an exception if it is unreadable or has another shape."""
    import zarr

    # The metadata are parsed first, because zarr reports their damage in hundreds of lines.
    json.loads((path / "zarr.json").read_text(encoding="utf-8"))
    array = zarr.open_array(path, mode=mode, zarr_format=3)
    if array.shape != shape:
        raise ValueError(f"its shape is {array.shape}")
    return array


def _arrays(path: Path, plan: Plan) -> tuple[dict[str, Any], dict[str, str]]:
    """Quantity -> array; quantity whose array cannot be opened -> reason."""
    names = {entry.name for entry in path.iterdir() if (entry / "zarr.json").exists()}
    arrays: dict[str, Any] = {}
    broken: dict[str, str] = {}
    for name in sorted(names - {DONE, *plan.frame}):
        try:
            arrays[name] = _open_array(path / name, layout(plan, name)[0])
        except Exception as error:
            broken[name] = _reason(error)
    return arrays, broken


def _manifest(path: Path, plan: Plan) -> NDArray[np.uint32]:
    """Read the manifest; unreadable entries become 0, so that their blocks are run again."""
    done = np.zeros(len(plan.blocks), np.uint32)
    try:
        array = _open_array(path / DONE, done.shape)
    except Exception as error:
        raise InvalidRequest(f"{str(path)!r} cannot be read (done: {_reason(error)})") from None
    try:
        return np.asarray(array[...])
    except Exception:
        for number in range(done.size):
            with suppress(Exception):
                done[number] = array[number]
    return done
