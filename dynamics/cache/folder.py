"""Folder of compiled code, protected against other users.

numba unpickles and runs files of this folder, so a folder is used only if it belongs to the current
user and no other user can write into it.
"""

from __future__ import annotations

import getpass
import os
import stat
import sys
import tempfile
from pathlib import Path

FALLBACKS = 100
"""Number of folder names tried under the temporary directory; other users may own some folders."""

_reported: set[str] = set()


def replace_file(path: Path, content: str | bytes) -> None:
    """Write a file atomically: other processes read either the old or the new content."""
    descriptor, temporary = tempfile.mkstemp(dir=path.parent, suffix=".partial")
    with os.fdopen(descriptor, "wb") as stream:
        stream.write(content.encode() if isinstance(content, str) else content)
    os.replace(temporary, path)


def cache_directory() -> Path:
    """Folder of compiled code: ``ATTDYN_CACHE_DIR``, else the user's cache directory.

    A private folder under the temporary directory is returned if the preferred folder is not
    writable, or if other users can write into it (reported on stderr). Raises OSError if no folder
    can be used.
    """
    import platformdirs

    given = os.environ.get("ATTDYN_CACHE_DIR") or platformdirs.user_cache_dir("attdyn")
    preferred = os.path.expanduser(given)  # keeps "~" if the user has no home directory
    if not preferred.startswith("~") and _writable(Path(preferred)):
        problem = _danger(Path(preferred).resolve(), stat.S_IWGRP | stat.S_IWOTH)
        if not problem:
            return Path(preferred)
        folder = _private()
        report(f"{preferred!r} {problem}; compiled code is in {str(folder)!r} instead")
        return folder
    return _private()


def _private() -> Path:
    """Folder under the temporary directory that only this user can access."""
    try:
        user = getpass.getuser()
    except (KeyError, OSError, ImportError):  # users in containers may have no name
        user = str(os.getuid())
    name = Path(tempfile.gettempdir()) / f"attdyn-{user}"
    for folder in (name, *(Path(f"{name}-{number}") for number in range(1, FALLBACKS))):
        if _writable(folder) and not _danger(folder, stat.S_IRWXG | stat.S_IRWXO):
            return folder
    raise OSError(f"no writable directory for compiled code; set ATTDYN_CACHE_DIR (tried {name})")


def _writable(folder: Path) -> bool:
    """Whether this user can write into a folder; a missing folder is created."""
    try:
        folder.mkdir(mode=0o700, parents=True, exist_ok=True)
    except OSError:
        return False
    return os.access(folder, os.W_OK)


def _danger(folder: Path, closed: int) -> str:
    """Reason why other users could have modified a folder; empty if they could not."""
    entry = folder.lstat()
    if not stat.S_ISDIR(entry.st_mode):
        return "is a link"
    if hasattr(os, "geteuid") and entry.st_uid != os.geteuid():
        return "belongs to another user"
    if os.name == "posix" and entry.st_mode & closed:
        return "can be written by other users (chmod go-w)"
    return ""


def report(line: str) -> None:
    """Write a line to stderr, once per process."""
    if line not in _reported:
        _reported.add(line)
        print(f"attdyn: {line}", file=sys.stderr)


def say_compiling() -> None:
    """Report on a terminal, once per process, that code is compiled at its first use."""
    if sys.stderr.isatty():
        report("compiling, once; later commands reuse the compiled code")
