"""What is wrong with a model, as one line with the line of the user's file."""

from __future__ import annotations

import traceback
from pathlib import Path
from typing import Any


class ModelError(ValueError):
    """A model that cannot be used; the message is one line."""


class Blamed:
    """Turns an error of a user's function into a `ModelError` with the line where it rose."""

    def __init__(self, role: str, path: Path | None) -> None:
        self.role, self.path = role, path

    def __enter__(self) -> None:
        return None

    def __exit__(self, kind: Any, error: BaseException | None, trace: Any) -> None:
        if error is None or isinstance(error, (ModelError, MemoryError)):
            return
        if isinstance(error, Exception):
            place = line_of(error, self.path)
            raise ModelError(f"{self.role} raises {told_error(error)}{place}") from error


def told_error(error: BaseException) -> str:
    """The kind of an error and the first line of what it says."""
    said = error.msg if isinstance(error, SyntaxError) else str(error)
    lines = said.strip().splitlines()
    return type(error).__name__ + (f": {lines[0][:160]}" if lines else "")


def line_of(error: BaseException, path: Path | None) -> str:
    """`` (my.py, line 7)``: the last line of the model's file that an error went through."""
    if path is None:
        return ""
    frames = traceback.extract_tb(error.__traceback__)
    lines = [frame.lineno for frame in frames if frame.filename == str(path)]
    if isinstance(error, SyntaxError) and error.lineno:
        lines.append(error.lineno)
    return f" ({path.name}, line {lines[-1]})" if lines else f" ({path.name})"
