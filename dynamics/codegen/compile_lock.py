"""One process at a time compiles a function; others wait for its machine code.

Processes that compile the same function side by side, as the workers of a first sweep do, lose the
time of one of them, and their code may round differently: how LLVM optimizes is not the same in
every process. So a process locks one byte of a file in the folder of the cache, which stands for
the function. The system gives the byte back when the process ends, however it does.
"""

from __future__ import annotations

import hashlib
import os
import time
from contextlib import suppress
from pathlib import Path
from typing import Final

LONGEST = 120.0
"""Seconds to wait for a process that may have failed to compile and still lives."""
POLL = 0.05
FILE: Final = "compiling.lock"

_files: dict[Path, int] = {}
"""Lock file -> its descriptor. It stays open: closing one would give all bytes of it back."""


def acquire(folder: Path, function: str) -> bool:
    """Lock a function, when no other process compiles it any more; a process may do so twice.

    Parameters
    ----------
    folder : Path
        Of the cache.
    function : str
        What it is known by there.

    Returns
    -------
    bool
        Whether another process had it meanwhile. Where nothing can be locked, it is False.
    """
    waited, last = False, time.monotonic() + LONGEST
    while not acquire_at_once(folder, function):
        if time.monotonic() > last:
            break
        waited = True
        time.sleep(POLL)
    return waited


def acquire_at_once(folder: Path, function: str) -> bool:
    """Lock a function if no other process has it; whether none has.

    Parameters
    ----------
    folder, function
        As of `acquire`.
    """
    with suppress(OSError, ImportError):  # a folder or a system without locks
        import fcntl

        try:
            fcntl.lockf(_opened(folder), fcntl.LOCK_EX | fcntl.LOCK_NB, 1, _byte(function))
        except (BlockingIOError, PermissionError):
            return False
    return True


def release(folder: Path, function: str) -> None:
    """Let other processes go on.

    Parameters
    ----------
    folder, function
        As of `acquire`.
    """
    with suppress(OSError, ImportError):
        import fcntl

        fcntl.lockf(_opened(folder), fcntl.LOCK_UN, 1, _byte(function))


def _opened(folder: Path) -> int:
    path = folder / FILE
    if path not in _files:
        _files[path] = os.open(path, os.O_RDWR | os.O_CREAT, 0o600)
    return _files[path]


def _byte(function: str) -> int:
    return int.from_bytes(hashlib.blake2b(function.encode(), digest_size=7).digest()) >> 1
