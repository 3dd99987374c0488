"""Where a sweep is kept: refusing other places, keeping other sweeps away, tidying up."""

from __future__ import annotations

import errno
import os
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from dynamics.validation import InvalidRequest

PARTIAL = ".partial"
"""Ending of what zarr writes before it takes its place."""


class StoreError(Exception):
    """A store that cannot be written or read; the message is one line."""


@contextmanager
def told(path: Path) -> Iterator[None]:
    """What goes wrong with files, as one line.

    Raises
    ------
    StoreError
    """
    try:
        yield
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        line = f"{str(path)!r} cannot be written ({why}); what was done is kept"
        raise StoreError(line) from error


def reason(error: BaseException) -> str:
    """The first line of what an error says."""
    return str(error).splitlines()[0] if str(error) else type(error).__name__


def check_place(path: Path) -> None:
    """Make the folder of a sweep; refuse a place that holds something else, or is not writable."""
    try:
        _check_entries(path)
        path.mkdir(parents=True, exist_ok=True)
        if not os.access(path, os.W_OK):
            raise OSError(errno.EROFS, "it is not writable")
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        allowed = "a new folder or an earlier sweep's, on a disk that can be written"
        raise InvalidRequest(
            f"out={str(path)!r} cannot be written ({why}); out can be {allowed}"
        ) from None


def _check_entries(path: Path) -> None:
    if path.is_symlink() or (path.exists() and not path.is_dir()):
        raise InvalidRequest(
            f"out={str(path)!r} is not a folder; out can be a new one or a sweep's"
        )
    if not path.exists() or (path / "zarr.json").exists():
        return
    strange = [entry for entry in path.iterdir() if not entry.name.endswith(PARTIAL)]
    if strange:
        raise InvalidRequest(
            f"out={str(path)!r} holds other files ({strange[0].name}); "
            "out can be a new folder or an earlier sweep's"
        )


def tidy(path: Path) -> None:
    """Remove what a killed sweep had begun to write, and folders that hold nothing."""
    for folder, _, files in os.walk(path):
        for name in files:
            if name.endswith(PARTIAL):
                os.unlink(os.path.join(folder, name))
    for folder, _, _ in os.walk(path, topdown=False):
        if Path(folder) != path and not os.listdir(folder):
            os.rmdir(folder)


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Keep other sweeps from a store, without a file of its own."""
    try:
        import fcntl
    except ImportError:  # not on this system: nothing to lock with
        yield
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
    except BlockingIOError:
        os.close(handle)
        raise InvalidRequest(f"another sweep is at work on {str(path)!r}") from None
    try:
        yield
    finally:
        os.close(handle)
