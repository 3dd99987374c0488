"""``attdyn explore``: an HTML page that trains the reduced problem in a browser."""

from __future__ import annotations

from functools import partial

from dynamics.cli.arguments import CommandRequest, Parser, flag_text
from dynamics.cli.files import print_result, writable, write_whole
from dynamics.cli.train import parameters_of


def add_flags(parser: Parser) -> None:
    """Add the flags except the parameters of the system."""
    usual = parser.system.default_runs["compare"].parameters
    if usual:
        parser.epilog = f"Initial positions of the sliders: {flag_text(usual)}."
    parser.add_flags({"out": "file of the page (default explore-NAME.html)"}, metavar="FILE")


def execute(request: CommandRequest) -> int:
    """Write the page of a system, and return the exit code."""
    from dynamics.explorer import write_page

    flags, system = request.flags, request.system
    path = writable(flags.get("out", f"explore-{system.name}.html"), (".html",))
    parameters = parameters_of(request, system.default_runs["compare"])
    write_whole(path, partial(write_page, system, parameters=parameters))
    size = path.stat().st_size
    document = {"system": system.name, "page": str(path), "bytes": size}
    print_result(flags, document, f"page     {path} ({size / 1e3:.0f} kB; opens in a browser)")
    return 0
