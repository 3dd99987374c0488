"""Output of commands: files are written atomically, and numbers are written before pictures.

A failure to write a picture or file is reported in one line on stderr and does not affect other
output.
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
"""File suffixes that a picture can have."""
LONGEST = 120
"""Maximum number of characters of an error's reason in a message; a longer one is shortened."""


def json_text(document: Any) -> str:
    """JSON of a document; infinite and NaN numbers become null."""
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
    """Print a result: the `document` as JSON with the flag ``--json``, else the `text`."""
    result = json_text(document) if flags.get("json") else text
    if _HELD:
        _HELD[-1].append(result)
    else:
        print(result)


_HELD: list[list[str]] = []
"""Results printed inside `only_results`, held until the end of that context."""


@contextmanager
def only_results() -> Iterator[None]:
    """Context that sends all output except results to stderr, and prints the results at its end."""
    _HELD.append([])
    with suppress(OSError, AttributeError):  # stdout may be closed
        sys.stdout.flush()
    saved = None
    try:
        with suppress(OSError):
            saved = os.dup(1)
            os.dup2(2, 1)  # redirects child processes too
        with redirect_stdout(sys.stderr):
            yield
    finally:
        if saved is not None:
            os.dup2(saved, 1)
            os.close(saved)
        for result in _HELD.pop():
            print(result)


def writable(path: Any, endings: tuple[str, ...]) -> Path:
    """Check that a file can be written, before anything is computed.

    Raises InvalidRequest if the path has none of the suffixes `endings`, is a folder, or cannot be
    written.
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
    """Checked path of the table that the flag `name` requests, or None without the flag.

    Raises InvalidRequest if the file cannot be written, or if it exists and neither ``force`` nor
    ``resume`` is given.
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
    """Write a file, and its caption if any, atomically; return the paths.

    The function `write` receives a temporary path and writes the file there.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    with tempfile.TemporaryDirectory(dir=path.parent, prefix=SCRATCH) as folder:
        write(Path(folder) / path.name)
        made = sorted(Path(folder).iterdir(), key=lambda file: file.name != path.name)
        return [file.replace(path.with_name(file.name)) for file in made]


def complain(path: Path, error: Exception, rest: str = "") -> None:
    """Report in one line on stderr that a path cannot be written; `rest` states the consequence."""
    reason = one_line(f"{type(error).__name__}: {error}", LONGEST)
    if isinstance(error, OSError) and error.strerror:
        reason = error.strerror.lower()
    print(f"attdyn: {str(path)!r} cannot be written ({reason}){rest}", file=sys.stderr)


def attempt(path: Path, write: Callable[[Path], Any]) -> list[Path]:
    """Call `write_whole`; report a failure in one line on stderr, and return no paths.

    An `InvalidRequest` from `write` is raised again; any other exception is a failure.
    """
    try:
        return write_whole(path, write)
    except InvalidRequest:
        raise
    except Exception as error:
        complain(path, error)
        return []


def attempt_picture(path: Path, draw: Callable[[], Any]) -> list[Path]:
    """Write the picture whose axes `draw` returns, and its caption; report failures."""
    from dynamics import plotting

    return attempt(path, lambda target: plotting.write(draw(), target))


def write_files(
    picture: Path,
    draw: Callable[[], Any],
    tables: Mapping[Path, Callable[[Path], Any]],
) -> tuple[list[str], int]:
    """Write tables and a picture, each atomically, and report failures on stderr.

    The function `draw` returns axes; each function of `tables` writes to the path that it receives.
    Returns the names of the written files, and the exit code: 1 after a failure, else 0.
    """
    written = [attempt(path, write) for path, write in tables.items()]
    written.insert(0, attempt_picture(picture, draw))
    return [str(file) for files in written for file in files], int(not all(written))


def picture_line(path: Path) -> str:
    """Line of text that names a written picture or caption."""
    return f"{'caption' if path.suffix == '.txt' else 'picture'}  {path}"
