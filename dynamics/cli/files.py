"""Files that commands write beside what they print: checked before anything is computed."""

from __future__ import annotations

import os
import tempfile
from pathlib import Path
from typing import Any

from dynamics.validation import InvalidRequest

PICTURES = (".png", ".svg", ".pdf")


def writable(path: Any, endings: tuple[str, ...]) -> Path:
    """A file that can be written; nothing is left behind.

    Raises
    ------
    InvalidRequest
        If the path has another ending, is a folder, or cannot be written.
    """
    target = Path(str(path))
    if target.suffix.lower() not in endings:
        raise InvalidRequest(
            f"{str(path)!r} can end in {', '.join(endings)}; nearest: {endings[0]}"
        )
    if target.is_dir():
        raise InvalidRequest(f"{str(path)!r} is a folder; it can be a file")
    try:
        standing = next(folder for folder in target.absolute().parents if folder.exists())
        with tempfile.TemporaryDirectory(dir=standing) as folder:
            (Path(folder) / _beside(target).name).touch()
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise InvalidRequest(
            f"{str(path)!r} cannot be written ({reason}); it can be a new file in a folder of yours"
        ) from None
    return target


def write_whole(path: Path, write: Any) -> Path:
    """Write a file whole or not at all."""
    path.parent.mkdir(parents=True, exist_ok=True)
    beside = _beside(path)
    try:
        write(beside)
        os.replace(beside, path)
    finally:
        beside.unlink(missing_ok=True)
    return path


def _beside(path: Path) -> Path:
    """Where a file is written before it takes its place; the ending chooses the format."""
    return path.with_name(f".{path.name}.new{path.suffix}")
