"""From words to a request: values, TOML files, misspelt names; every refusal is one line."""

from __future__ import annotations

import argparse
import tomllib
from collections.abc import Mapping, Sequence
from difflib import get_close_matches
from fractions import Fraction
from pathlib import Path
from typing import Any, NoReturn

from dynamics.validation import InvalidRequest

SUPPRESS = argparse.SUPPRESS
"""Default of flags: those that are not given are left out."""


class Parser(argparse.ArgumentParser):
    """An argument parser whose errors are `InvalidRequest`, and that takes no abbreviations."""

    def __init__(self, **options: Any) -> None:
        super().__init__(allow_abbrev=False, **options)

    def error(self, message: str) -> NoReturn:
        """Refuse, instead of printing the usage and leaving."""
        raise InvalidRequest(message)


def joined(words: Sequence[str]) -> list[str]:
    """``--nu -1e-3`` as ``--nu=-1e-3``: argparse takes some negative numbers for flags."""
    out: list[str] = []
    for word in words:
        negative = (word[:1] == "-" and word[1:2].isdigit()) or not isinstance(value(word), str)
        negative = negative and word.startswith("-")
        if negative and out and out[-1].startswith("--") and "=" not in out[-1]:
            out[-1] += f"={word}"
        else:
            out.append(word)
    return out


def value(text: str) -> Any:
    """A word as a number where it is one: ``16``, ``1e-3``, ``16/196``, ``nan``; else itself."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    try:
        return float(Fraction(text))
    except (ValueError, ZeroDivisionError):
        return text


def values(text: str) -> Any:
    """A word as `value`, or a list of them where it has commas: ``0.02,0.01``."""
    parts = text.split(",")
    return value(text) if len(parts) == 1 else [value(part) for part in parts]


def near(name: str, names: Sequence[str]) -> str:
    """The known name that is most like one given."""
    folded = {known.lower(): known for known in names}
    return folded[get_close_matches(name.lower(), list(folded), 1, 0.0)[0]]


def unknown(kind: str, name: str, names: Sequence[str]) -> NoReturn:
    """Refuse an unknown name, with all that are known and the nearest."""
    known = ", ".join(names)
    raise InvalidRequest(
        f"{kind} {name!r} is unknown; known are {known}; nearest: {near(name, names)}"
    )


def read_toml(path: str, names: Sequence[str]) -> Mapping[str, Any]:
    """Read a flat TOML file of named values.

    Parameters
    ----------
    path : str
    names : sequence of str
        Keys that may occur.

    Raises
    ------
    InvalidRequest
        If the file cannot be read, is not TOML, is not flat, or has a key that is not known.
    """
    try:
        content = tomllib.loads(Path(path).read_text(encoding="utf-8"))
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise InvalidRequest(
            f"config={path!r} cannot be read ({reason}); config can be a readable TOML file"
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidRequest(f"config={path!r} is not TOML: {error}") from None
    for key, entry in content.items():
        if key not in names:
            unknown(f"key of {path}", key, names)
        if isinstance(entry, dict):
            raise InvalidRequest(f"{key} in {path} is a table; parameters are flat: {key} = value")
    return content


def toml_text(values: Mapping[str, Any]) -> str:
    """Values as a flat TOML file that `read_toml` reads back."""
    lines = []
    for key, entry in values.items():
        if entry is not None:
            lines.append(f"{key} = {_toml(entry)}")
    return "\n".join(lines)


def _toml(entry: Any) -> str:
    if isinstance(entry, str):
        return f'"{entry}"'
    if isinstance(entry, (list, tuple)):
        return f"[{', '.join(map(_toml, entry))}]"
    return str(entry).lower() if entry in (True, False) else str(entry)
