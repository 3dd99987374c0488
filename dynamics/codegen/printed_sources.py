"""Sources printed from derivations, kept on disk: a second process derives nothing.

Deriving a recursion and printing it takes as long as everything else that a warm command does
before its first gradient. What is printed depends on the derivation, the printers and sympy alone,
so a text is kept under a hash of all of these and of what it is of, and a change anywhere prints
anew. A text that is not whole is printed again.
"""

from __future__ import annotations

import hashlib
from collections.abc import Callable
from functools import cache
from importlib.util import find_spec
from pathlib import Path
from typing import Any

from dynamics.codegen.folder import cache_directory, replace_file

SOURCES = ("theory", "dynamics.codegen")
"""Packages that decide what is printed, beside the module that asks."""


def printed_source(write: Callable[..., str], *arguments: Any) -> str:
    """What a function prints from a derivation, from disk where the same code printed it before.

    Parameters
    ----------
    write : callable
        Prints the text; a function of a module.
    *arguments : str, int or float
        What it is called with, by position: all that decides the text beside the code.

    Raises
    ------
    OSError
        If no directory for generated files can be written.
    """
    code = _code_of(write.__module__)
    if not code:
        return write(*arguments)
    subject = f"{code}\n{write.__module__}.{write.__qualname__}{arguments!r}"
    name = hashlib.sha256(subject.encode()).hexdigest()[:16]
    path = cache_directory() / f"attdyn_printed_{name}.txt"
    text = _whole_text(path)
    if text is None:
        text = write(*arguments)
        replace_file(path, f"{_checksum(text)}\n{text}")
    return text


def _whole_text(path: Path) -> str | None:
    """A text on disk; None where there is none, or another than was written."""
    try:
        checksum, _, text = path.read_bytes().decode().partition("\n")
    except (OSError, UnicodeDecodeError):
        return None
    return text if checksum == _checksum(text) else None


def _checksum(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()


@cache
def _code_of(module: str) -> str:
    """A hash of the sources that decide what a module prints; empty where they are in no files."""
    from importlib.metadata import version

    digest = hashlib.sha256(version("sympy").encode())
    for name in (*SOURCES, module):
        origin = _file_of(name)
        if origin is None:
            return ""
        for path in sorted(origin.parent.rglob("*.py")) if name in SOURCES else [origin]:
            digest.update(path.read_bytes())
    return digest.hexdigest()


def _file_of(module: str) -> Path | None:
    """The file that a module was read from."""
    try:
        spec = find_spec(module)
    except (ImportError, ValueError):  # of a script, which no name finds
        return None
    origin = Path(spec.origin) if spec is not None and spec.origin else None
    return origin if origin is not None and origin.is_file() else None
