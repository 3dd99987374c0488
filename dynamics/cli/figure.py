"""``attdyn figure SYSTEM NAME``: a figure of the paper, or one behind the verdicts."""

from __future__ import annotations

import json
import sys
from dataclasses import fields
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dynamics.cli import arguments, report
from dynamics.training.progress import interruption
from dynamics.validation import InvalidRequest, integer

if TYPE_CHECKING:
    from dynamics.cli.command_request import Asked
    from dynamics.registry import System


def flags(parser: arguments.Parser, command: str, system: System) -> None:
    """Flags beside the parameters."""
    from dynamics.experiments.figure import figures

    known = ", ".join(figures(system))
    parser.add_argument("name", nargs="?", metavar="NAME", help=known)
    parser.add_argument("--thorough", action="store_true", help="the full protocol")
    parser.add_argument(
        "--option", action="append", metavar="NAME=VALUE", help="of the figure, as seeds=3"
    )
    parser.add_argument("--seed", type=arguments.value, metavar="X", help="default 0")
    parser.add_argument(
        "--out", metavar="FILE", help="png, svg or pdf (default results/figure-SYSTEM-NAME.png)"
    )
    parser.add_argument("--json", action="store_true", help="one JSON document on stdout")


def execute(asked: Asked) -> int:
    """Draw and write; returns the exit code."""
    from dynamics import plotting
    from dynamics.experiments.figure import draw, figures

    given, system = asked.flags, asked.system
    known = list(figures(system))
    if not known:
        raise InvalidRequest(f"{system.name} has no figures")
    name = given.get("name")
    if name is None:
        raise InvalidRequest(f"figure takes a name: {', '.join(known)}")
    if name not in known:
        arguments.unknown("figure", str(name), known)
    out = _writable(Path(str(given.get("out", f"results/figure-{system.name}-{name}.png"))))
    parameters = {f.name: given[f.name] for f in fields(system.Parameters) if f.name in given}
    seed = integer("seed", given.get("seed", 0), at_least=0)
    thorough, options = given.get("thorough", False), _options(given.get("option", []))
    with interruption() as interrupted:
        try:
            drawing = draw(system, name, None, seed, thorough, options, parameters)
        except Exception:
            if not interrupted.is_set():
                raise
        if interrupted.is_set():
            print("attdyn: interrupted, nothing is written", file=sys.stderr)
            return 130
    out.parent.mkdir(parents=True, exist_ok=True)
    plotting.write(drawing.axes, out)
    if given.get("json"):
        document = {"figure": name, "caption": drawing.caption, "file": str(out)}
        content = report.finite(document | {"data": dict(drawing.data)})
        print(json.dumps(content, indent=2, allow_nan=False, default=report.plain))
    else:
        print(f"{drawing.caption}\npicture  {out}")
    return 0


def _options(words: list[str]) -> dict[str, Any]:
    """Options of the figure, ``name=value`` each; several values are separated by commas."""
    chosen: dict[str, Any] = {}
    for word in words:
        name, equals, text = word.partition("=")
        if not equals:
            raise InvalidRequest(f"option={word!r} can be name=value, as samples=250,1000")
        chosen[name] = arguments.values(text)
    return chosen


def _writable(path: Path) -> Path:
    """A file that a picture can be written to."""
    endings = (".png", ".svg", ".pdf")
    if path.suffix not in endings:
        raise InvalidRequest(f"out={str(path)!r} can end in {', '.join(endings)}; nearest: .png")
    standing = next(folder for folder in path.absolute().parents if folder.exists())
    import os

    if path.is_dir() or not standing.is_dir() or not os.access(standing, os.W_OK):
        raise InvalidRequest(f"out={str(path)!r} cannot be written; out can be a new file")
    return path
