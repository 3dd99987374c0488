"""``attdyn figure SYSTEM NAME``: a figure of the paper, or one that goes with a verdict."""

from __future__ import annotations

import sys
from typing import TYPE_CHECKING, Any

from dynamics.cli.arguments import CommandRequest, Parser, unknown, value, values
from dynamics.cli.report import PICTURES, json_text, writable
from dynamics.training.progress import interruption
from dynamics.validation import InvalidRequest, integer

if TYPE_CHECKING:
    from dynamics.registry import System


def flags(parser: Parser, command: str, system: System) -> None:
    """Add the flags beside the parameters.

    Parameters
    ----------
    parser : Parser
    command : str
    system : System
    """
    from dynamics.experiments.figure import figures

    known = ", ".join(figures(system))
    parser.add_argument("name", nargs="?", metavar="NAME", help=known)
    parser.add_switches({"thorough": "the full protocol"})
    parser.add_argument(
        "--option", action="append", metavar="NAME=VALUE", help="of the figure, as seeds=3"
    )
    parser.add_flags({"seed": "default 0"}, value)
    out = {"out": "png, svg or pdf (default results/figure-SYSTEM-NAME.png)"}
    parser.add_flags(out, metavar="FILE")


def execute(request: CommandRequest) -> int:
    """Draw and write; returns the exit code."""
    from dynamics import plotting
    from dynamics.experiments.figure import draw, figures

    given, system = request.flags, request.system
    known = list(figures(system))
    if not known:
        raise InvalidRequest(f"{system.name} has no figures")
    name = given.get("name")
    if name is None:
        raise InvalidRequest(f"figure takes a name: {', '.join(known)}")
    if name not in known:
        unknown("figure", str(name), known)
    out = writable(given.get("out", f"results/figure-{system.name}-{name}.png"), PICTURES)
    seed = integer("seed", given.get("seed", 0), at_least=0)
    thorough, options = given.get("thorough", False), _options(given.get("option", []))
    with interruption() as interrupted:
        try:
            drawing = draw(system, name, None, seed, thorough, options, request.given_parameters)
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
        print(json_text(document | {"data": dict(drawing.data)}))
    else:
        print(f"{drawing.caption}\npicture  {out}")
    return 0


def _options(words: list[str]) -> dict[str, Any]:
    """Options of the figure, ``name=value`` each; several values are separated by commas."""
    options: dict[str, Any] = {}
    for word in words:
        name, equals, text = word.partition("=")
        if not equals:
            raise InvalidRequest(f"option={word!r} can be name=value, as samples=250,1000")
        options[name] = values(text)
    return options
