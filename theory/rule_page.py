"""Page section on an update rule: its recursion, and the parts of a closure it conserves."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

import sympy

from theory.closure.regime import Regime
from theory.page import HandWritten, Section
from theory.update_rules import INPUTS, UpdateRule

LETTERS = {"gradient": "g", "entry": "theta", "step": "t", "norm": "norm_g"}
"""Letter of each input of a rule; an input without a letter is printed by name."""
SPELLED = {"weight_decay": r"\mathrm{weight\_decay}", "norm_g": r"\lVert g \rVert"}
"""LaTeX of the letters of rules."""


def rule_section(rule: UpdateRule, by_array: bool = False, gradients: bool = False) -> Section:
    """Section with the recursion of a rule for one entry, and the properties conserved by training.

    With `by_array`, each array has its own learning rate, as in stages. With `gradients`, the page
    has equations for ``g(theta)``.
    """
    names = [*INPUTS, *rule.numbers]
    symbols = {n: sympy.Symbol(LETTERS.get(n, n), real=True) for n in names}
    for k in range(1, rule.memory + 1):
        letter = "m" if rule.memory == 1 else f"m_{k}"
        symbols[f"memory_{k}"] = sympy.Symbol(letter, real=True)
        symbols[f"new_{k}"] = sympy.Symbol(f"{letter}'", real=True)
    kept, change = rule.expressions(symbols)
    theta = symbols["entry"]
    pairs = ((symbols[f"new_{k + 1}"], symbols[f"memory_{k + 1}"]) for k in range(rule.memory))
    updates = [(n, each) for (n, old), each in zip(pairs, kept, strict=True) if each != old]
    equations: list[tuple[Any, Any]] = [*updates, (sympy.Symbol("theta'"), theta + change)]
    words = "of every entry `theta` with gradient `g`, at step `t = 1, 2, ...`"
    text, latex = "dR/dtheta/n(theta)", r"\frac{1}{n(\theta)} \frac{\partial R}{\partial \theta}"
    if gradients:
        text, latex = "g(theta)", r"g(\theta)"
    else:
        words += "; `n(theta)` entries share the scalar `theta`"
    if rule.weight_decay:
        text, latex = f"{text} + weight_decay*theta", rf"{latex} + {SPELLED['weight_decay']} \theta"
    if rule.weight_decay or not gradients:
        equations.insert(0, (HandWritten("g", "g"), HandWritten(text, latex)))
    if updates:
        words += "; memory starts at 0"
    said = (words, *_kept(Regime.of(rule, by_array)))
    return Section(_heading(rule), said, tuple(equations))


def _kept(regime: Regime) -> Iterator[str]:
    """Yield sentences on the part of a closure that holds under a rule."""
    yield "entries that are equal and have equal gradients stay equal"
    if regime.signs:
        yield "the rule is odd: opposite entries with opposite gradients stay opposite"
    else:
        yield "the rule is not odd: opposite entries separate, and the classes have no signs"
    if regime.decay:
        yield "entries without a gradient decay: those that do not start at 0 are scalars"
    if regime.spaces:
        each = ", of each array by itself" if regime.by_array else ""
        kept = "linear spaces and linear laws"
        if regime.decay:
            kept = "linear spaces that contain 0 and linear laws of value 0"
        yield f"{kept} are conserved{each}"
    else:
        yield (
            "linear laws of two entries are conserved if their gradients are equal or opposite in "
            "every state; other linear laws are not"
        )
    if not regime.flow:
        yield "quadratic laws of the flow are not conserved"


def _heading(rule: UpdateRule) -> str:
    options = {n: v for n, v in rule.options.items() if v or n in rule.numbers}
    said = ", ".join(n if v is True else f"{n} = {v:g}" for n, v in options.items())
    return f"Update rule: {rule.name}" + (f" ({said})" if said else "")
