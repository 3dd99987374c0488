"""``attdyn derive``: print what sympy derives."""

from __future__ import annotations

import dataclasses
import re
from typing import TYPE_CHECKING, Any

from dynamics.cli import report
from dynamics.cli.arguments import CommandRequest, Parser, unknown, value
from dynamics.validation import InvalidRequest

if TYPE_CHECKING:
    from dynamics.registry import System

FORMS = ("text", "latex", "source")


def flags(parser: Parser, command: str, system: System) -> None:
    """Add the flags beside the parameters.

    Parameters
    ----------
    parser : Parser
    command : str
    system : System
    """
    parser.add_flags({"as": f"{', '.join(FORMS)} (default text)"}, metavar="FORM")
    if system.model is None:
        parser.add_switches({"prove": "check the lemmas by computation"})
        return
    parser.add_switches({"prove": "the closure at 50 digits"})
    run = {"eta": "of the run along which the closure is looked at", "steps": "of that run"}
    parser.add_flags(run, value)
    sizes = {"sizes": 'multiplicities as polynomials over sizes: "D=4:10:4,C=2"'}
    parser.add_flags(sizes, metavar="LIST")


def execute(request: CommandRequest) -> int:
    """Print the derivations, of the parameters if any are given; returns the exit code."""
    form, system = request.flags.get("as", "text"), request.system
    if form not in FORMS:
        unknown("form", str(form), FORMS)
    parameters = request.parameters()
    if system.model is not None:
        return _derive_model(request, form, parameters)
    if form == "source":
        print(system.ReducedPopulation(parameters).source)
    else:
        from theory.rendering import as_latex, as_text

        render = as_text if form == "text" else as_latex
        given = parameters if request.given_parameters else None
        for reduction in system.derivations(given).values():
            print(render(reduction))
    if request.flags.get("prove"):
        print(report.proofs(system.claims))
    return 0


def _derive_model(request: CommandRequest, form: str, parameters: Any) -> int:
    """Print the page of a user's model."""
    from dynamics.models.engine import derivation
    from dynamics.models.engine.symbolic import prove

    if form == "source":
        raise InvalidRequest(
            "a model of one's own has no generated source; as can be text or latex"
        )
    given, definition = request.flags, request.system.ReducedPopulation.definition
    walk = definition.walk(given.get("eta"), given.get("steps"))
    page = derivation.page(definition, parameters, walk)
    if "sizes" in given:
        grids = _size_grids(str(given["sizes"]), request.system)
        fixed = {n: v for n, v in dataclasses.asdict(parameters).items() if n not in grids}
        sizes = derivation.size_table(definition, grids, fixed, walk)
        page = dataclasses.replace(page, sections=(*page.sections, sizes))
    model = definition.realization(parameters)
    closure = model.closure(walk)
    if given.get("prove"):
        closure = dataclasses.replace(closure, proof=prove(model, closure))
    if given.get("json"):
        print(report.json_text(closure.document()))
        return 0
    print(page.as_text() if form == "text" else page.as_latex())
    if closure.proof is not None:
        print(closure.proof["text"])
    return 0


def _size_grids(text: str, system: System) -> dict[str, list[int]]:
    """``"D=4:10:4,C=2,3"`` as values of whole constants."""
    from dynamics.sweep.axes import Axis, parsed

    known = [f.name for f in dataclasses.fields(system.Parameters) if isinstance(f.default, int)]
    grids: dict[str, list[int]] = {}
    for part in re.findall(r"\w+\s*=[^=]*(?=,\s*\w+\s*=|$)", text) or [text]:
        name, _, values = (word.strip() for word in part.partition("="))
        if name not in known:
            unknown("whole constant", name, known or ["none"])
        entry = parsed(name, values.rstrip(","))
        numbers = entry.values if isinstance(entry, Axis) else (entry,)
        grids[name] = [number for number in numbers if isinstance(number, int)]
        if len(grids[name]) < len(numbers):
            raise InvalidRequest(f"sizes: {name}={values} can be whole numbers, as {name}=4:10:4")
    return grids
