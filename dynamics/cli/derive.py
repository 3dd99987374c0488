"""``attdyn derive``: print what sympy derives."""

from __future__ import annotations

import dataclasses
import json
import re
from typing import TYPE_CHECKING, Any

from dynamics.cli import arguments, report
from dynamics.validation import InvalidRequest

if TYPE_CHECKING:
    from dynamics.cli.command_request import Asked
    from dynamics.registry import System

FORMS = ("text", "latex", "source")


def flags(parser: arguments.Parser, command: str, system: System) -> None:
    """Flags beside the parameters."""
    parser.add_argument("--as", metavar="FORM", help=f"{', '.join(FORMS)} (default text)")
    if system.model is None:
        parser.add_argument("--prove", action="store_true", help="check the lemmas by computation")
        return
    parser.add_argument("--prove", action="store_true", help="the closure at 50 digits")
    number: dict[str, Any] = {"type": arguments.value, "metavar": "X"}
    parser.add_argument("--eta", **number, help="of the run along which the closure is looked at")
    parser.add_argument("--steps", **number, help="of that run")
    parser.add_argument(
        "--sizes", metavar="LIST", help='multiplicities as polynomials over sizes: "D=4:10:4,C=2"'
    )
    parser.add_argument("--json", action="store_true", help="the closure as one JSON document")


def execute(asked: Asked) -> int:
    """Print the derivations, of the parameters where any are given; returns the exit code."""
    form = asked.flags.get("as", "text")
    if form not in FORMS:
        arguments.unknown("form", str(form), FORMS)
    parameters = asked.parameters()
    if asked.system.model is not None:
        return _own(asked, form, parameters)
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


def _own(asked: Asked, form: str, parameters: Any) -> int:
    """The page of a model of one's own."""
    from dynamics.models.engine import derivation
    from dynamics.models.engine.symbolic import prove

    if form == "source":
        raise InvalidRequest(
            "a model of one's own has no generated source; as can be text or latex"
        )
    given, definition = asked.flags, asked.system.ReducedPopulation.definition
    walk = definition.walk(given.get("eta"), given.get("steps"))
    sizes = None
    if "sizes" in given:
        grids = size_grids(str(given["sizes"]), asked.system)
        usual = {n: v for n, v in dataclasses.asdict(parameters).items() if n not in grids}
        sizes = derivation.size_table(definition, grids, usual, walk)
    page = derivation.page(definition, parameters, walk)
    if sizes is not None:
        page = dataclasses.replace(page, sections=(*page.sections, sizes))
    made = definition.realization(parameters)
    closure = made.closure(walk)
    if given.get("prove"):
        closure = dataclasses.replace(closure, proof=prove(made, closure))
    if given.get("json"):
        print(json.dumps(report.finite(closure.document()), indent=2, allow_nan=False))
        return 0
    print(page.as_text() if form == "text" else page.as_latex())
    if closure.proof is not None:
        print(closure.proof["text"])
    return 0


def size_grids(text: str, system: System) -> dict[str, list[int]]:
    """``"D=4:10:4,C=2,3"`` as values of whole constants.

    Raises
    ------
    InvalidRequest
        If a name is no whole constant, or a value no whole number.
    """
    from dynamics.sweep.axes import Axis, parsed

    known = [f.name for f in dataclasses.fields(system.Parameters) if isinstance(f.default, int)]
    found: dict[str, list[int]] = {}
    for part in re.findall(r"\w+\s*=[^=]*(?=,\s*\w+\s*=|$)", text) or [text]:
        name, _, values = part.partition("=")
        name = name.strip()
        if name not in known:
            arguments.unknown("whole constant", name, known or ["none"])
        entry = parsed(name, values.strip().rstrip(","))
        numbers = entry.values if isinstance(entry, Axis) else (entry,)
        if not all(isinstance(number, int) for number in numbers):
            raise InvalidRequest(f"sizes: {name}={values} can be whole numbers, as {name}=4:10:4")
        found[name] = [int(number) for number in numbers]  # type: ignore[arg-type]
    return found
