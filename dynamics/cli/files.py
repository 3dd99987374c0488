"""Output of commands: a file is whole or not there, and numbers go before pictures.

What cannot be drawn or written is one line on stderr and costs nothing else.
"""

from __future__ import annotations

import json
import math
import os
import sys
import tempfile
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager, redirect_stdout, suppress
from pathlib import Path
from typing import Any

import numpy as np

from dynamics.results.storage import SCRATCH
from dynamics.validation import InvalidRequest, one_line

PICTURES = (".png", ".svg", ".pdf")
"""Endings of pictures."""
LONGEST = 120
"""Letters of a reason that are printed."""


def json_text(document: Any) -> str:
    """A document as JSON; infinity and NaN, which JSON does not know, become null."""
    return json.dumps(_finite(document), indent=2, allow_nan=False, default=str)


def _finite(content: Any) -> Any:
    if isinstance(content, np.ndarray | np.generic):
        content = content.tolist()
    if isinstance(content, list | tuple):
        return [_finite(entry) for entry in content]
    if isinstance(content, Mapping):
        return {key: _finite(entry) for key, entry in content.items()}
    return None if isinstance(content, float) and not math.isfinite(content) else content


def print_result(flags: Mapping[str, Any], document: Any, text: str) -> None:
    """Print a result: one JSON document with ``--json``, else its text.

    `flags`: of the command; `document`: plain values.
    """
    result = json_text(document) if flags.get("json") else text
    if _HELD:
        _HELD[-1].append(result)
    else:
        print(result)


_HELD: list[list[str]] = []
"""Results that wait for the end of `only_results`."""


@contextmanager
def only_results() -> Iterator[None]:
    """Send what is printed within to stderr, as by a model file; results are printed at the end."""
    _HELD.append([])
    with suppress(OSError, AttributeError):  # a shell may have closed stdout
        sys.stdout.flush()
    saved = None
    try:
        with suppress(OSError):
            saved = os.dup(1)
            os.dup2(2, 1)  # also of what other programs print
        with redirect_stdout(sys.stderr):
            yield
    finally:
        if saved is not None:
            os.dup2(saved, 1)
            os.close(saved)
        for result in _HELD.pop():
            print(result)


def writable(path: Any, endings: tuple[str, ...]) -> Path:
    """A file that can be written, checked before anything is computed.

    `endings`: those that its name may have. Raises InvalidRequest if the path has another ending,
    is a folder, or cannot be written.
    """
    target = Path(str(path))
    if target.suffix.lower() not in endings:
        raise InvalidRequest(
            f"{str(path)!r} can end in {', '.join(endings)}; nearest: {endings[0]}"
        )
    try:
        if target.is_dir():
            raise InvalidRequest(f"{str(path)!r} is a folder; it can be a file")
        parent = next(folder for folder in target.absolute().parents if folder.exists())
        with tempfile.TemporaryDirectory(dir=parent) as folder:
            (Path(folder) / target.name).touch()
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise InvalidRequest(
            f"{str(path)!r} cannot be written ({reason}); it can be a new file in a folder of yours"
        ) from None
    return target


def table_path(
    flags: Mapping[str, Any], name: str = "csv", endings: tuple[str, ...] = (".csv",)
) -> Path | None:
    """The file of a table, checked before anything is computed; None where no flag names one.

    `flags`: of the command; ``force`` or ``resume`` allow a file that is there; `name`: of the
    flag. Raises InvalidRequest if it cannot be written, or is there.
    """
    if name not in flags:
        return None
    target = writable(flags[name], endings)
    if os.path.lexists(target) and not (flags.get("force") or flags.get("resume")):
        raise InvalidRequest(
            f"{name}={str(target)!r} exists; --force replaces it, or --{name} can be another file"
        )
    return target


def write_whole(path: Path, write: Callable[[Path], Any]) -> list[Path]:
    """Write a file, and its caption if it gets one, whole or not at all; returns the files.

    `write`: writes to the path that it is given, which has the same name.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=SCRATCH) as folder:
        write(Path(folder) / path.name)
        made = sorted(Path(folder).iterdir(), key=lambda file: file.name != path.name)
        return [file.replace(path.with_name(file.name)) for file in made]


def complain(path: Path, error: Exception, rest: str = "") -> None:
    """Say on stderr, in one line, that a file or folder cannot be written.

    `error`: why not; `rest`: what follows from it.
    """
    reason = one_line(f"{type(error).__name__}: {error}", LONGEST)
    if isinstance(error, OSError) and error.strerror:
        reason = error.strerror.lower()
    print(f"attdyn: {str(path)!r} cannot be written ({reason}){rest}", file=sys.stderr)


def attempt(path: Path, write: Callable[[Path], Any]) -> list[Path]:
    """Do as `write_whole`; a failure is one line on stderr, and no file.

    `write`: its `InvalidRequest` is raised, everything else is a failure.
    """
    try:
        return write_whole(path, write)
    except InvalidRequest:
        raise
    except Exception as error:
        complain(path, error)
        return []


def attempt_picture(path: Path, draw: Callable[[], Any]) -> list[Path]:
    """Write a picture, and its caption where it has one, as `attempt` does.

    `draw`: returns axes.
    """
    from dynamics import plotting

    return attempt(path, lambda target: plotting.write(draw(), target))


def write_files(
    picture: Path,
    draw: Callable[[], Any],
    tables: Mapping[Path, Callable[[Path], Any]],
) -> tuple[list[str], int]:
    """Write tables and a picture, each whole or not at all; what fails is one line on stderr.

    `draw`: returns axes; `tables`: file -> what writes to the path that it is given. Returns names,
    list of str: of the files that were written. Returns code, int: exit code: 1 if one of them
    could not be written.
    """
    written = [attempt(path, write) for path, write in tables.items()]
    written.insert(0, attempt_picture(picture, draw))
    return [str(file) for files in written for file in files], int(not all(written))


def picture_line(path: Path) -> str:
    """The line that names a picture or a caption that was written."""
    return f"{'caption' if path.suffix == '.txt' else 'picture'}  {path}"
