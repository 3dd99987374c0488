"""``attdyn derive``: symbolic derivations as text, LaTeX, Python or a JSON program."""

from __future__ import annotations

import dataclasses
import re
import textwrap
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

from dynamics.cli.arguments import CommandRequest, Parser, values
from dynamics.cli.files import print_result
from dynamics.cli.rules import add_rule_flags, rule_asked_for
from dynamics.validation import InvalidRequest, unknown
from theory.closure import PROVED
from theory.closure.regime import Regime
from theory.update_rules import OPTIONS

if TYPE_CHECKING:
    from dynamics.system import System
    from theory.claims import Claim
    from theory.page import Page

COMMENT = {"text": "", "latex": "% ", "source": "# "}
"""Output format -> prefix that makes a line a comment in this format."""
PAPERS, FILES = ("text", "latex", "source"), ("text", "latex", "python", "json")
"""Output formats of ``attdyn derive`` for a system of a paper, and for a model file."""
PAGE = ("prove", "eliminate", "sizes", "json")
"""Flags that apply only to the derivation page of a model file."""


def add_flags(parser: Parser) -> None:
    """Add the flags except the parameters of the system; a model file has further flags."""
    forms = PAPERS if parser.system.model is None else FILES
    parser.add_flags(
        {"as": f"form of what is printed: {', '.join(forms)} (default text)"}, metavar="FORM"
    )
    parser.add_switches({"standalone": "a whole LaTeX document, not its body alone"})
    add_rule_flags(parser, parser.system.default_runs["run"])
    if parser.system.model is None:
        prove = "also check the lemmas by symbolic computation"
        parser.add_switches({"prove": prove})
        return
    parser.add_switches({
        "prove": "refuse to print unless the closure is proved",
        "eliminate": "put conserved linear combinations into risk and steps",
    })  # fmt: skip
    eta = "learning rate of a step, or one for each group"
    parser.add_flags({"eta": eta}, values)
    sizes = {"sizes": 'multiplicities as polynomials over sizes: "D=4:10:4,C=2"'}
    parser.add_flags(sizes, metavar="LIST")


def execute(request: CommandRequest) -> int:
    """Print the derivations, at the given parameters if any, and return the exit code."""
    flags, system = request.flags, request.system
    standalone = bool(flags.get("standalone"))
    form = flags.get("as", "latex" if standalone else "text")
    forms = PAPERS if system.model is None else FILES
    if form not in forms:
        raise unknown("as", str(form), forms)
    if standalone and form != "latex":
        raise InvalidRequest("standalone needs as=latex")
    parameters = system.Parameters(**request.entries)
    if system.model is not None:
        return _derive_model(request, form, parameters)
    if form == "source":
        if others := [n for n in OPTIONS if n in flags]:
            raise InvalidRequest(f"{others[0]} applies to the derivation page, not to as={form}")
        print(system.ReducedPopulation(parameters).source)
    else:
        rule, _ = rule_asked_for(request)
        page = system.derivation(parameters if request.entries else None, rule=rule)
        print(_written(page, form, standalone))
    if flags.get("prove"):
        print(textwrap.indent(_proofs(system.claims), COMMENT[form]))
    return 0


def _written(page: Page, form: str, standalone: bool) -> str:
    return page.as_text() if form == "text" else page.as_latex(standalone)


def _derive_model(request: CommandRequest, form: str, parameters: Any) -> int:
    """Print the derivation page of a user's model."""
    from dynamics.models.engine import derivation
    from dynamics.models.engine.expressions import Expressions

    options, definition = request.flags, request.system.ReducedPopulation.definition
    rule, by_array = rule_asked_for(request)
    if rule == "step":
        rule = definition.own_rule(dataclasses.asdict(parameters))
    regime = Regime.of(rule, by_array)
    model, closure = definition.reduction(parameters, regime=regime)
    eta = model.rates(options.get("eta"))
    eliminate = bool(options.get("eliminate"))
    if form in ("python", "json"):
        if others := [n for n in (*PAGE, *OPTIONS) if options.get(n)]:
            raise InvalidRequest(f"{others[0]} applies to the derivation page, not to as={form}")
        found = Expressions(model, closure, eta)
        document = {} if form == "python" else found.document()
        print_result({"json": form == "json"}, document, found.as_python())
        return 0
    page = derivation.page(definition, parameters, eta, eliminate, rule, by_array)
    if "sizes" in options:
        grids = _size_grids(str(options["sizes"]), request.system)
        fixed = {n: v for n, v in dataclasses.asdict(parameters).items() if n not in grids}
        sizes = derivation.size_table(definition, grids, fixed, regime)
        page = dataclasses.replace(page, sections=(*page.sections, sizes))
    if options.get("prove") and closure.grade != PROVED:
        raise InvalidRequest(f"prove: {'; '.join((closure.proof, *closure.remarks))}")
    if options.get("json"):
        print_result(options, closure.document(), "")
        return 0
    print(_written(page, form, bool(options.get("standalone"))))
    return 0


def _size_grids(text: str, system: System) -> dict[str, list[int]]:
    """Parse ``"D=4:10:4,C=2,3"`` to values of integer constants."""
    from dynamics.sweep.axes import Axis, parsed

    names = [f.name for f in dataclasses.fields(system.Parameters) if isinstance(f.default, int)]
    grids: dict[str, list[int]] = {}
    for part in re.findall(r"\w+\s*=[^=]*(?=,\s*\w+\s*=|$)", text) or [text]:
        name, _, values = (word.strip() for word in part.partition("="))
        if name not in names:
            raise unknown("whole constant", name, names or ["none"])
        entry = parsed(name, values.rstrip(","))
        numbers = entry.values if isinstance(entry, Axis) else (entry,)
        grids[name] = [number for number in numbers if isinstance(number, int)]
        if len(grids[name]) < len(numbers):
            raise InvalidRequest(f"sizes: {name}={values} can be whole numbers, as {name}=4:10:4")
    return grids


def _proofs(claims: Sequence[Claim]) -> str:
    """Text of the claims that can be checked symbolically, with their verdicts."""
    lines = []
    for claim in claims:
        if claim.proof is not None:
            evidence = claim.proof()
            words = {True: "holds", False: "does not hold", None: "to be measured along a run"}
            verdict = words[evidence.holds]
            lines += [f"{claim.source}: {verdict} ({evidence.case})"]
            lines += [f"    {finding}" for finding in evidence.findings]
    return "\n".join(lines)
