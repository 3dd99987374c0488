"""``attdyn derive``: print what sympy derives."""

from __future__ import annotations

from typing import TYPE_CHECKING

from dynamics import report, request

if TYPE_CHECKING:
    from dynamics.commands import Asked
    from dynamics.registry import System

FORMS = ("text", "latex", "source")


def flags(parser: request.Parser, command: str, system: System) -> None:
    """Flags beside the parameters."""
    parser.add_argument("--as", metavar="FORM", help=f"{', '.join(FORMS)} (default text)")
    parser.add_argument("--prove", action="store_true", help="check the lemmas by computation")


def execute(asked: Asked) -> int:
    """Print the derivations, of the parameters where any are given; returns the exit code."""
    form = asked.flags.get("as", "text")
    if form not in FORMS:
        request.unknown("form", str(form), FORMS)
    parameters = asked.parameters()
    if form == "source":
        print(asked.system.ReducedPopulation(parameters).source)
    else:
        from theory.rendering import as_latex, as_text

        render = as_text if form == "text" else as_latex
        of = parameters if asked.names_parameters else None
        for reduction in asked.system.derivations(of).values():
            print(render(reduction))
    if asked.flags.get("prove"):
        print(report.proofs(asked.system.claims))
    return 0
