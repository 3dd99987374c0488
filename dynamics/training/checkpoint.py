"""Checkpoints: the state of an interrupted run in a file, from which the run is resumed.

A checkpoint is one ``.npz`` file without pickles that holds the *request* and the *state* of a run.
The request consists of system, view, parameters, settings, eta, steps, records, start and versions.
A checkpoint is refused if its request differs from the run's request. Writing is atomic, so a
killed process loses only the steps since the last checkpoint. On the same processor a resumed run
ends bitwise like an uninterrupted run.
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
"""Minimum wall time between two checkpoints, in seconds."""
SHARE = 20.0
"""Minimum wall time between two checkpoints, divided by the time of writing one checkpoint."""
TEXT, ARRAY = "checkpoint", "__array__"
LOG = logging.getLogger(__name__)


@dataclass
class Checkpoint:
    """The checkpoint file of one run; with `keep` the file remains after the run has finished."""

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
        """Convert a path to a Checkpoint; a Checkpoint is returned unchanged."""
        return path if isinstance(path, Checkpoint) else cls(path_of("checkpoint", path))

    def part(self, name: str) -> Checkpoint:
        """Checkpoint of one of several runs, in a separate file that the caller must discard."""
        return Checkpoint(self.path.with_name(f"{self.path.name}.{name}"), keep=True)

    @property
    def partial(self) -> Path:
        """Path of the temporary file. As the name is fixed, killed writers leave one file."""
        return self.path.with_name(f"{self.path.name}.partial")

    def exists(self) -> bool:
        """Whether the checkpoint file exists."""
        return self.path.exists()

    def due(self) -> bool:
        """Whether enough wall time has passed to write the next checkpoint."""
        return time.monotonic() >= self._next

    def write(self, request: Mapping[str, Any], state: Any) -> None:
        """Replace the file atomically by a new `state` of the run with the `request`.

        A failed write (full disk) is logged once, and the run continues.
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
                LOG.warning(
                    "%s is not written, the run continues without it: %s", _named(self.path), reason
                )
            self._refused = True
        now = time.monotonic()
        self._next = now + max(SECONDS, SHARE * (now - began))

    def read(self, request: Mapping[str, Any]) -> Any:
        """Read the state of the requested run, or None if the file is missing.

        Raises InvalidRequest if the file is not a checkpoint, cannot be read, or has a request
        other than `request`.
        """
        self._next = time.monotonic() + SECONDS
        if not self.exists():
            return None
        packed, arrays = self._load()
        if changes := different(packed["request"], request):
            raise InvalidRequest(
                f"{_named(self.path)} holds another run ({changes}); request that run, or remove "
                "the file"
            )
        return _unpacked(packed["state"], arrays)

    def check(self) -> None:
        """Raise InvalidRequest unless the file can be written and replaces only a checkpoint."""
        try:
            if self.exists():
                self._load()
            self.partial.exists()  # raises OSError if the path is too long
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
        """Remove the checkpoint and the temporary file of a killed writer."""
        for path in (self.path, self.partial):
            path.unlink(missing_ok=True)

    def _load(self) -> tuple[dict[str, Any], dict[str, NDArray[Any]]]:
        try:
            with self.path.open("rb") as file, np.load(file, allow_pickle=False) as stored:
                # Every member of the file is read, because each has its own checksum.
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
            f"{_named(self.path)} cannot be read ({reason}); remove the file and start anew"
        )


def request_of(
    problem: Problem, start: FloatArray, records: NDArray[np.int64], **settings: Any
) -> dict[str, Any]:
    """JSON-ready mapping of all values that determine a run; `records` holds the steps to record.

    The `settings` of the run are, for example, eta and steps.
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
    """Convert nested values to JSON; arrays are appended to `arrays`, and floats keep every bit."""
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
