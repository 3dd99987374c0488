"""Checks and lock of the folder of a sweep: no foreign files, one writing process.

zarr writes files of two kinds: metadata ``zarr.json`` of the group and of each array, and chunks in
folders ``c``. Each file is written under a name ending in ``.<32 digits>.partial`` and then
renamed, so a killed process may leave a partial file.
"""

from __future__ import annotations

import errno
import os
import re
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from pathlib import Path

from dynamics.validation import InvalidRequest

PARTIAL = re.compile(r"(?:[^/]+/)?(?:zarr|c(?:/\d+)*)\.[0-9a-f]{32}\.partial")
"""Relative paths of partially written files of a store."""
FIRST = re.compile(r"zarr\.[0-9a-f]{32}\.partial")
"""Name of the file in a folder whose sweep was killed at its beginning."""
WHOLE = re.compile(r"(?:[^/]+/)?zarr\.json|[^/]+/c(?:/\d+)*")
"""Relative paths of complete files of a store."""
ALLOWED = "out can be a new folder or an earlier sweep's"


def check_folder(path: Path) -> None:
    """Create the folder of a sweep; refuse a path with foreign files or no write permission."""
    try:
        if path.is_symlink() or (path.exists() and not path.is_dir()):
            raise InvalidRequest(f"out={str(path)!r} is not a folder; {ALLOWED}")
        if path.exists() and not (path / "zarr.json").exists():
            _refuse_others(path, os.listdir(path), FIRST)
        path.mkdir(parents=True, exist_ok=True)
        if not os.access(path, os.W_OK):
            raise OSError(errno.EROFS, "it is not writable")
    except OSError as error:
        why = (error.strerror or str(error)).lower()
        raise InvalidRequest(f"out={str(path)!r} cannot be written ({why}); {ALLOWED}") from None


def refuse_foreign(path: Path) -> None:
    """Refuse a store with files that no sweep has written; empty folders are allowed."""
    _refuse_others(path, _files(path), WHOLE, PARTIAL)


def _refuse_others(path: Path, names: Iterable[str], *allowed: re.Pattern[str]) -> None:
    for name in names:
        if not any(pattern.fullmatch(name) for pattern in allowed):
            raise InvalidRequest(f"out={str(path)!r} holds foreign files ({name}); {ALLOWED}")


def remove_partial(path: Path) -> None:
    """Remove the partially written files of a killed sweep from a store."""
    for name in [name for name in _files(path) if PARTIAL.fullmatch(name)]:
        (path / name).unlink()


def _files(path: Path) -> Iterator[str]:
    """Relative paths of all files and links in a folder; links are not followed."""
    for folder, below, files in os.walk(path, onerror=_raised):
        inside = Path(folder).relative_to(path).as_posix()
        for name in (*files, *(each for each in below if os.path.islink(f"{folder}/{each}"))):
            yield name if inside == "." else f"{inside}/{name}"


def _raised(error: OSError) -> None:
    raise error


@contextmanager
def locked(path: Path) -> Iterator[None]:
    """Context that locks a store against other sweeps, without a lock file.

    Raises InvalidRequest if another sweep has locked the store.
    """
    try:
        import fcntl
    except ImportError:  # this operating system has no fcntl locks
        yield
        return
    handle = os.open(path, os.O_RDONLY)
    try:
        fcntl.flock(handle, fcntl.LOCK_EX | fcntl.LOCK_NB)
        yield
    except BlockingIOError:
        raise InvalidRequest(f"another sweep is writing to {str(path)!r}") from None
    finally:
        os.close(handle)
