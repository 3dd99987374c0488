"""The whole state of a run on disk, so that an interrupted run goes on as if it had not been.

A checkpoint is one ``.npz`` file without pickles: a JSON text with everything that is not an array,
and the arrays. It holds the *request* (system, view, parameters, settings of the problem, eta,
steps, records, start, versions) and the *state* of the run; a run of another request is refused. It
is written to a temporary name in the same folder, synced, and renamed at once, so that the
file is always whole: a killed process loses the steps since the last one, and no more. On one
kind of machine, the end of a resumed run is bitwise that of a run that was never interrupted.
"""

from __future__ import annotations

import hashlib
import json
import logging
import os
import time
import zipfile
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynamics.problem import FloatArray, Problem
from dynamics.results.storage import different, versions
from dynamics.validation import InvalidRequest, path_of, refuse

FORMAT = 7
SECONDS = 5.0
"""Wall time from one checkpoint to the next."""
SHARE = 20.0
"""A checkpoint that takes long to write is written more rarely: 1/20 of the time at most."""
TEXT, ARRAY = "checkpoint", "__array__"
LOG = logging.getLogger(__name__)


@dataclass
class Checkpoint:
    """The file that holds the state of one run.

    `keep`: leave the file when the run has finished: the caller discards it once the result is
    safe.
    """

    path: Path
    keep: bool = False
    _next: float = field(default=0.0, repr=False)
    _refused: bool = field(default=False, repr=False)

    def __post_init__(self) -> None:
        if not self.path.name:
            place = str(self.path)
            refuse("checkpoint", place, "is a folder", "the path of a file", "'run.checkpoint'")

    @classmethod
    def at(cls, path: str | os.PathLike[str] | Checkpoint) -> Checkpoint:
        """A path as a checkpoint; a checkpoint as itself."""
        return path if isinstance(path, Checkpoint) else cls(path_of("checkpoint", path))

    def part(self, name: str) -> Checkpoint:
        """The checkpoint of one of several runs: beside this one, and left to the caller."""
        return Checkpoint(self.path.with_name(f"{self.path.name}.{name}"), keep=True)

    @property
    def partial(self) -> Path:
        """The temporary name; always the same, so that killed writers leave one file at most."""
        return self.path.with_name(f"{self.path.name}.partial")

    def exists(self) -> bool:
        """Whether there is a file."""
        return self.path.exists()

    def due(self) -> bool:
        """Whether it is time to write."""
        return time.monotonic() >= self._next

    def write(self, request: Mapping[str, Any], state: Any) -> None:
        """Write a state over the earlier one, whole or not at all.

        A disk that cannot be written to is reported once, and does not end the run.

        `request`: of `request_of`.
        """
        began = time.monotonic()
        arrays: list[NDArray[Any]] = []
        packed = {"format": FORMAT, "request": request, "state": _packed(state, arrays)}
        members = {f"array_{k}": array for k, array in enumerate(arrays)}
        members[TEXT] = np.frombuffer(json.dumps(packed).encode(), dtype=np.uint8)
        try:
            self.path.parent.mkdir(parents=True, exist_ok=True)
            with self.partial.open("wb") as file:
                np.savez(file, **members)  # type: ignore[arg-type]
                file.flush()
                os.fsync(file.fileno())
            os.replace(self.partial, self.path)
        except OSError as error:
            if not self._refused:
                reason = (error.strerror or str(error)).lower()
                LOG.warning("%s, the run goes on without: %s", _named(self.path), reason)
            self._refused = True
        now = time.monotonic()
        self._next = now + max(SECONDS, SHARE * (now - began))

    def read(self, request: Mapping[str, Any]) -> Any:
        """State of the requested run; None without a file.

        Raises InvalidRequest if the file is not a checkpoint, cannot be read, or is of another
        request.
        """
        self._next = time.monotonic() + SECONDS
        if not self.exists():
            return None
        packed, arrays = self._load()
        if changes := different(packed["request"], request):
            raise InvalidRequest(
                f"{_named(self.path)} holds another run ({changes}); ask for that one, or remove it"
            )
        return _unpacked(packed["state"], arrays)

    def check(self) -> None:
        """Make sure that it can be written and replaces nothing but a checkpoint.

        Raises InvalidRequest: in one line, before anything is computed.
        """
        try:
            if self.exists():
                self._load()
            self.partial.exists()  # an error where a name is too long
            folder = next(p for p in self.path.absolute().parents if p.exists())
            writable = folder.is_dir() and os.access(folder, os.W_OK)
        except OSError:
            writable = False
        if not writable:
            allowed = "a file in a folder that can be written"
            raise InvalidRequest(
                f"{_named(self.path)} cannot be written; checkpoint can be {allowed}"
            )

    def discard(self) -> None:
        """Remove the file, and what a killed writer may have left."""
        for path in (self.path, self.partial):
            path.unlink(missing_ok=True)

    def _load(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        try:
            with self.path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
                # Every member is read: each has a checksum.
                arrays = {name: stored[name] for name in stored.files}
            packed = json.loads(arrays.pop(TEXT).tobytes())
            if packed["format"] != FORMAT:
                raise ValueError(f"format {packed['format']}, this program reads {FORMAT}")
            return packed, arrays
        except KeyError:
            reason = "not a checkpoint"
        except (OSError, EOFError, ValueError, AttributeError, zipfile.BadZipFile) as error:
            reason = str(error).splitlines()[0] if str(error) else type(error).__name__
        raise InvalidRequest(
            f"{_named(self.path)} cannot be read ({reason}); remove it and start anew"
        )


def request_of(
    problem: Problem, start: FloatArray, records: NDArray[np.int64], **settings: Any
) -> dict[str, Any]:
    """Everything that decides what a run will be, as plain values.

    `start`, shape (n,); `records`: recorded steps; `**settings`: of the driver: eta, steps.
    """
    content = {
        "system": problem.system,
        "view": problem.view,
        "parameters": asdict(problem.parameters),
        **settings,
        "record": f"{records.size} states ({_digest(records)})",
        "initial": f"state {_digest(start)}",
        "problem": problem.identity,
        "versions": versions(),
    }
    return dict(json.loads(json.dumps(content, default=str)))


def _digest(array: NDArray[Any]) -> str:
    return hashlib.sha256(np.ascontiguousarray(array).tobytes()).hexdigest()[:8]


def _named(path: Path) -> str:
    return f"checkpoint={str(path)!r}"


def _packed(tree: Any, arrays: list[NDArray[Any]]) -> Any:
    """The tree as JSON, its arrays collected in a list; floats keep every bit."""
    if isinstance(tree, np.ndarray):
        arrays.append(tree)
        return {ARRAY: len(arrays) - 1}
    if isinstance(tree, Mapping):
        return {name: _packed(entry, arrays) for name, entry in tree.items()}
    if isinstance(tree, list | tuple):
        return [_packed(entry, arrays) for entry in tree]
    return tree.item() if isinstance(tree, np.generic) else tree


def _unpacked(tree: Any, arrays: Mapping[str, NDArray[Any]]) -> Any:
    if isinstance(tree, dict):
        if tree.keys() == {ARRAY}:
            return arrays[f"array_{tree[ARRAY]}"]
        return {name: _unpacked(entry, arrays) for name, entry in tree.items()}
    return [_unpacked(entry, arrays) for entry in tree] if isinstance(tree, list) else tree
