"""The section of a page on an update rule: its recursion, and what of a closure it keeps."""

from __future__ import annotations

from collections.abc import Iterator

import sympy

from theory.closure.regime import Regime
from theory.page import Section
from theory.update_rules import INPUTS, UpdateRule

LETTERS = {"gradient": "g", "entry": "theta", "step": "t", "norm": "norm_g"}


def rule_section(rule: UpdateRule, by_array: bool = False) -> Section:
    """The recursion of a rule for one entry, and what stays true of training by it.

    Parameters
    ----------
    rule : UpdateRule
    by_array : bool
        Whether arrays have stages of their own.
    """
    names = [*INPUTS, *rule.numbers]
    symbols = {n: sympy.Symbol(LETTERS.get(n, n), real=True) for n in names}
    for k in range(1, rule.memory + 1):
        letter = "m" if rule.memory == 1 else f"m_{k}"
        symbols[f"memory_{k}"] = sympy.Symbol(letter, real=True)
        symbols[f"new_{k}"] = sympy.Symbol(f"{letter}'", real=True)
    kept, change = rule.expressions(symbols)
    new = [symbols[f"new_{k + 1}"] for k in range(rule.memory)]
    theta = symbols["entry"]
    equations = [*zip(new, kept, strict=True), (sympy.Symbol("theta'"), theta + change)]
    if rule.weight_decay:
        decay = sympy.Symbol("weight_decay", real=True)
        equations.insert(0, ("g", sympy.Symbol("dR/dtheta") + decay * theta))
    words = ("of every entry `theta` with gradient `g`, at step `t = 1, 2, ...`",)
    if rule.memory:
        words = (f"{words[0]}; memory starts at 0",)
    said = (*words, *_kept(Regime.of(rule, by_array)))
    return Section(_heading(rule), said, tuple(equations))


def _kept(regime: Regime) -> Iterator[str]:
    """What of a closure holds under a rule, in sentences."""
    yield "entries that are equal and have equal gradients stay equal"
    if regime.signs:
        yield "the rule is odd: opposite entries with opposite gradients stay opposite"
    else:
        yield "the rule is not odd: opposite entries part, and the classes have no signs"
    if regime.decay:
        yield "entries without a gradient decay: those that do not start at 0 are scalars"
    if regime.spaces:
        each = ", of each array by itself" if regime.by_array else ""
        through = " and pass through 0" if regime.decay else ""
        yield f"linear spaces and linear laws{through} are kept{each}"
    else:
        yield (
            "of linear laws only those of two entries are kept, whose gradients are equal or "
            "opposite in every state"
        )
    if not regime.flow:
        yield "quadratic laws of the flow are not kept"


def _heading(rule: UpdateRule) -> str:
    options = ", ".join(f"{n} = {v:g}" for n, v in rule.options.items() if v or n in rule.constants)
    return f"Update rule: {rule.name}" + (f" ({options})" if options else "")
