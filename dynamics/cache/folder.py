"""Where compiled code lives, and that no other user can put any there.

It is run: numba unpickles what it finds. So a folder is used only if it belongs to this user and no
other can write into it.
"""

from __future__ import annotations

import getpass
import os
import stat
import sys
import tempfile
from pathlib import Path

FALLBACKS = 100
"""Names for a folder under the temporary directory, of which others may have some."""

_reported: set[str] = set()


def replace_file(path: Path, content: str | bytes) -> None:
    """Write a file so that another process sees the whole of it or none.

    Raises OSError.
    """
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, suffix=".partial")
    with os.fdopen(descriptor, "wb") as stream:
        stream.write(content.encode() if isinstance(content, str) else content)
    os.replace(temporary, path)


def cache_directory() -> Path:
    """Where compiled code lives: ``ATTDYN_CACHE_DIR``, else the user's cache directory.

    A directory that cannot be written falls back to one under the temporary directory that is of
    this user alone; so does, with a line on stderr, one into which other users can write.

    Raises OSError if there is no such directory.
    """
    import platformdirs

    given = os.environ.get("ATTDYN_CACHE_DIR") or platformdirs.user_cache_dir("attdyn")
    preferred = os.path.expanduser(given)  # which leaves "~" where there is no home
    if not preferred.startswith("~") and _writable(Path(preferred)):
        problem = _danger(Path(preferred).resolve(), stat.S_IWGRP | stat.S_IWOTH)
        if not problem:
            return Path(preferred)
        folder = _private()
        report(f"{preferred!r} {problem}; compiled code is in {str(folder)!r} instead")
        return folder
    return _private()


def _private() -> Path:
    """A folder under the temporary directory that is this user's and closed to all others."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError, ImportError):  # a container may have no name for a user
        user = str(os.getuid())
    name = Path(tempfile.gettempdir()) / f"attdyn-{user}"
    for folder in (name, *(Path(f"{name}-{number}") for number in range(1, FALLBACKS))):
        if _writable(folder) and not _danger(folder, stat.S_IRWXG | stat.S_IRWXO):
            return folder
    raise OSError(f"no writable directory for compiled code; set ATTDYN_CACHE_DIR (tried {name})")


def _writable(folder: Path) -> bool:
    """Whether a folder can be written, after it is made where there is none, for this user."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(folder, os.W_OK)


def _danger(folder: Path, closed: int) -> str:
    """Why other users could have put something into a folder; empty if they could not."""
    entry = folder.lstat()
    if not stat.S_ISDIR(entry.st_mode):
        return "is a link"
    if hasattr(os, "geteuid") and entry.st_uid != os.geteuid():
        return "belongs to another user"
    if os.name == "posix" and entry.st_mode & closed:
        return "can be written by other users (chmod go-w)"
    return ""


def report(line: str) -> None:
    """Write a line to stderr, once in a process."""
    if line not in _reported:
        _reported.add(line)
        print(f"attdyn: {line}", file=sys.stderr)


def say_compiling() -> None:
    """Say on a terminal, once in a process, what a first use waits for."""
    if sys.stderr.isatty():
        report("compiling, once; later commands find what was compiled")
