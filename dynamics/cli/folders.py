"""Folders of results, and the choice of the folder of a result.

A result is written to the folder of ``--out``. The default is the first of ``NAME``, ``NAME-2``,
... that is free or holds a result of the same request. An earlier result of the same request is
replaced; ``--force`` replaces any result. Numbers are written before pictures are drawn.
"""

from __future__ import annotations

import itertools
import json
import os
import re
import shutil
import tempfile
from collections.abc import Callable, Iterable, Mapping
from contextlib import suppress
from functools import partial
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dynamics.cli.files import attempt_picture, json_text, write_whole
from dynamics.validation import InvalidRequest

if TYPE_CHECKING:
    from dynamics.results.storage import Result

SUMMARY = "summary.json"
Picture = tuple[str, Callable[[], Any]]
"""File name of a picture, and function that draws the picture and returns axes."""


def write_folder(
    out: Path,
    document: dict[str, Any],
    pictures: Iterable[Picture],
    result: Result | None = None,
    texts: Mapping[str, str] | None = None,
    pages: Mapping[str, Callable[[Path], str]] | None = None,
    request: Mapping[str, Any] | None = None,
) -> tuple[Path, dict[str, Any]]:
    """Write a folder with a summary and a result atomically, and then its pictures and pages.

    A picture that cannot be drawn is reported on stderr. The mapping `texts` gives the texts of
    further files; each function in `pages` maps the folder to the text of a page. If `out` holds
    the result of another `request`, a number is appended to the folder's name; without a `request`,
    an earlier result is replaced. Returns the folder's path, and the document with all file names
    as ``files``. Raises OSError if the numbers cannot be written.
    """
    from dynamics.results import storage

    others = dict(texts or {})
    document = document | {"files": list(others)}
    with storage.fresh_folder(out) as fresh:
        if result is not None:
            storage.write_groups(result, fresh / storage.INSIDE)
        for name, text in {**others, SUMMARY: json_text(document) + "\n"}.items():
            _write_text(fresh / name, text)
        folder = storage.put(fresh, out if request is None else vacant(out, request))
    written = [file for name, draw in pictures for file in attempt_picture(folder / name, draw)]
    for name, text_of in (pages or {}).items():
        written += write_whole(folder / name, partial(_write_text, text=text_of(folder)))
    if written:
        document["files"] = [*(file.name for file in written), *others]
        write_whole(folder / SUMMARY, partial(_write_text, text=json_text(document) + "\n"))
    return folder, document


def _write_text(path: Path, text: str) -> None:
    """Write a text in UTF-8, with undecodable bytes of file names as escapes."""
    path.write_text(text, encoding="utf-8", errors="backslashreplace")


def vacant(out: Path, request: Mapping[str, Any]) -> Path:
    """First of ``out``, ``out-2``, ... that is free or holds a result of this request."""
    numbered = (out.with_name(f"{out.name}-{number}") for number in itertools.count(2))
    return next(folder for folder in itertools.chain([out], numbered) if _free(folder, request))


def _free(folder: Path, request: Mapping[str, Any]) -> bool:
    """Whether a path is free, or holds a result of the same request."""
    from dynamics.results import storage

    if not os.path.lexists(folder):
        return True
    with suppress(OSError):
        if folder.is_symlink() or storage.obstacle(folder):
            return False
        return not any(folder.iterdir()) or _stored(folder) == request
    return False


def _stored(folder: Path) -> Any:
    """Stored request of the result in a folder, or None if unknown."""
    with suppress(OSError, ValueError, AttributeError):
        return json.loads((folder / SUMMARY).read_text(encoding="utf-8")).get("request")
    return None


def result_folder(flags: Mapping[str, Any], default: Path, request: Mapping[str, Any]) -> Path:
    """Folder for the result of a request, checked before anything is computed.

    The flags ``out``, ``force`` and ``resume`` select the folder. If ``out`` is missing and the
    folder `default` is occupied, a number is appended to `default`. Raises InvalidRequest if the
    folder cannot be written, or ``out`` holds the result of another request.
    """
    from dynamics.results import storage

    out = storage.check_writable(Path(str(flags["out"]))) if "out" in flags else default
    free = flags.get("force") or _free(out, request)
    if "out" in flags:
        if not free and not flags.get("resume"):
            stored = _stored(out)
            changes = "which is not known"
            if isinstance(stored, dict):
                changes = storage.different(stored, request)
            raise InvalidRequest(
                f"out={str(out)!r} holds the result of another request ({changes}); "
                "--force replaces it, or --out can be another folder"
            )
        return out
    if not free:
        out = vacant(default, request)
        if flags.get("resume") and not any(out.parent.glob(f".{out.name}.checkpoint*")):
            return _interrupted(default)
    return storage.check_writable(out)


def _interrupted(default: Path) -> Path:
    """Folder ``NAME`` or ``NAME-2``, ... of the last interrupted run, or the default folder."""
    name = re.compile(rf"\.({re.escape(default.name)}(-\d+)?)\.checkpoint")
    runs = [
        (file.stat().st_mtime_ns, match[1])
        for file in default.parent.glob(".*.checkpoint*")
        if (match := name.match(file.name))
    ]
    return default.parent / max(runs)[1] if runs else default


def rescue(out: Path, document: dict[str, Any], result: Result) -> Path | None:
    """Write the numbers to a temporary folder instead of `out`; return its path, or None."""
    folder = ""
    try:
        folder = tempfile.mkdtemp(prefix="attdyn-")
        return write_folder(Path(folder) / out.name, document, (), result)[0]
    except OSError:
        shutil.rmtree(folder, ignore_errors=True)
        return None
