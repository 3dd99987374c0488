"""Flags of the commands that plot runs: picture format, picture width, and linear time axes."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path
from typing import Any

from dynamics.cli.arguments import Parser, value
from dynamics.cli.files import PICTURES
from dynamics.validation import InvalidRequest, known_word

FORMATS = tuple(ending[1:] for ending in PICTURES)


def add_picture_flags(parser: Parser) -> None:
    """Add the flags of picture format, picture width and linear time axes."""
    formats = f"format of the pictures: {', '.join(FORMATS)} (default png)"
    parser.add_flags({"format": formats}, metavar="X", group="pictures")
    width = "width of each picture, such as 8.6 for one column of a page and 17.8 for two"
    parser.add_flags({"width": width}, value, "CM", group="pictures")
    parser.add_switches({"linear": "linear time axes"}, group="pictures")


def picture_name(flags: Mapping[str, Any], name: str) -> str:
    """File name of a picture; the flag ``format``, if given, replaces the suffix."""
    if "format" not in flags:
        return name
    return str(Path(name).with_suffix(f".{known_word('format', flags['format'], FORMATS)}"))


def picture_file(flags: Mapping[str, Any], default: str) -> str:
    """Path of a picture: ``--out``, or the default path with the suffix of ``--format``.

    Raises InvalidRequest if the suffix of ``--out`` differs from ``--format``.
    """
    out = str(flags.get("out", picture_name(flags, default)))
    if "format" in flags and picture_name(flags, out) != out:
        raise InvalidRequest(
            f"format={flags['format']!r} does not fit out={out!r}; "
            f"nearest: --out {picture_name(flags, out)}"
        )
    return out


def picture_look(flags: Mapping[str, Any]) -> Any:
    """Context that applies the flags ``width`` and ``linear`` to the pictures drawn in it."""
    from dynamics.plotting.choices import look

    return look(flags.get("width"), flags.get("linear", False))
