"""A derivation as text or LaTeX, with the letters of the system's notation table."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

import sympy
from sympy.core.function import AppliedUndef

from theory.reduction import ReducedSystem

Equation = tuple[str, str]


def as_text(system: ReducedSystem) -> str:
    """Plain text, one equation a line, code names as they are in the generated source."""
    lines = [system.title, "=" * len(system.title), ""]
    remarks = [sentence.format(*parts) for sentence, parts in system.remarks]
    lines += [*remarks, ""] if remarks else []
    for heading, equations in _sections(system, str, lambda value: _signed(str(value))):
        lines += [heading, *(f"    {left} = {right}" for left, right in equations), ""]
    return "\n".join(lines)


def as_latex(system: ReducedSystem) -> str:
    """LaTeX, one align environment a section, in the paper's letters."""
    names: dict[Any, str] = {s: _spelled(s.name) for s in _unlisted(system)}
    names |= system.notation.latex_names()

    def name(symbol: object) -> str:
        if isinstance(symbol, str):
            return rf"\mathrm{{{symbol}}}".replace("_", r"\_")
        return names.get(symbol, sympy.latex(symbol))

    def applied(function: sympy.Expr) -> sympy.Symbol:
        arguments = ", ".join(map(expression, function.args))
        spelled = _spelled(function.func.__name__)
        return sympy.Symbol(rf"{{{spelled}\left({arguments}\right)}}")

    def expression(value: sympy.Expr) -> str:
        used = {f: applied(f) for f in value.atoms(AppliedUndef) if str(f.func) in system.functions}
        return _signed(str(sympy.latex(value.xreplace(used), symbol_names=names)))

    lines = [rf"% {system.title}"]
    for sentence, parts in system.remarks:
        lines.append(sentence.format(*[f"${expression(part)}$" for part in parts]))
    for heading, equations in _sections(system, name, expression):
        body = " \\\\\n".join(f"  {left} &= {right}" for left, right in equations)
        lines += [rf"\paragraph{{{heading}}}", r"\begin{align*}", body, r"\end{align*}"]
    return "\n".join(lines)


def _signed(text: str) -> str:
    """Sums of matrices with their signs as sums of numbers have them."""
    return text.replace("(-eta)*", "-eta*").replace("+ -", "- ").replace("-  ", "- ")


def _unlisted(system: ReducedSystem) -> list[sympy.Symbol]:
    """Symbols that the notation may not list: latents, and variables of functions."""
    variables = [v for function in system.functions.values() for v in function.variables]
    return [*system.latents, *variables]


def _spelled(name: str) -> str:
    """A code name as LaTeX: base_sub__super, the words upright."""
    front, _, above = name.partition("__")
    base, _, below = front.partition("_")
    below, above = (
        rf"\mathrm{{{part}}}".replace("_", r"\ ") if part else "" for part in (below, above)
    )
    return base + (f"^{{{above}}}" if above else "") + (f"_{{{below}}}" if below else "")


def _sections(
    system: ReducedSystem,
    name: Callable[[object], str],
    expression: Callable[[sympy.Expr], str],
) -> Iterator[tuple[str, list[Equation]]]:
    eta, risk = sympy.Symbol("eta", positive=True), sympy.Function("R")(*system.state)
    defined = system.definitions.items()
    yield "Definitions", [(name(symbol), expression(value)) for symbol, value in defined]
    if system.functions:
        applied = [
            (expression(sympy.Function(title)(*function.variables)), expression(function.expr))
            for title, function in system.functions.items()
        ]
        yield "Functions", applied
    if system.blocks:
        blocks = system.blocks.items()
        yield "Pieces that are compiled", [(name(key), expression(value)) for key, value in blocks]
    if system.risk_integrand is not None:
        yield "Risk", [(expression(risk), f"E[{expression(system.risk_integrand)}]")]
    counts = system.multiplicity.items()
    if system.multiplicity:
        shared = [(f"n({name(s)})", expression(n)) for s, n in counts]
        yield "Entries that share a state", shared
    steps = system.steps or {
        state: state - eta / count * sympy.Derivative(risk, state) for state, count in counts
    }
    updates = [(f"{name(state)}'", expression(step)) for state, step in steps.items()]
    yield "Gradient descent", updates
    if system.observables:
        reported = system.observables.items()
        yield "Reported", [(name(key), expression(value)) for key, value in reported]
    if system.invariants:
        yield "Vanishes always", [("0", expression(value)) for value in system.invariants]
