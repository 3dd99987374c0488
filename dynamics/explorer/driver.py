"""Script of a page's web worker: training loops and events for a model.

Gradient descent and the flow integrator are `assets/loops.js`, a translation of
`dynamics.loops.kernels`. Event rules are printed from `theory.events`, and `assets/events.js`
evaluates the rules like `dynamics.training.flow_events` and `dynamics.training.events`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import sympy

from dynamics.explorer.printing import asset, expression, script
from dynamics.loops.kernels.collocation_table import table
from theory.events import Crossing, EventRule, ExceedsRunMaximum, RisesAgain

SHAPES = {
    Crossing: ("crossing", "strict", "resolution", "guard_strict", "expression", "guard"),
    ExceedsRunMaximum: ("exceeds", "quantity", "bound"),
    RisesAgain: ("rises", "quantity", "relative"),
}
"""Name of each class of event rules in `assets/events.js`, and the fields that are printed."""


@cache
def constants() -> str:
    """Constants of the collocation integrator as a JavaScript object."""
    fields = {name: values.tolist() for name, values in table()._asdict().items()}
    return f"const RADAU = {script(fields)};"


def rules(events: Sequence[EventRule], order_names: Sequence[str], rates: Sequence[str]) -> str:
    """Event rules as a JavaScript list; `rates` names the order parameters that are rates."""

    def text(value: Any) -> str:
        if isinstance(value, bool | float):
            return script(value)
        formula = sympy.sympify(value)
        entries = {name: f"row[{k}]" for k, name in enumerate(order_names)}
        symbols = {
            symbol: sympy.Symbol(entries.get(symbol.name, f"constants.{symbol.name}"))
            for symbol in formula.free_symbols
        }
        return f"(row, constants) => {expression(formula.xreplace(symbols))}"

    printed = []
    for rule in events:
        letters = {symbol.name for value in rule.expressions for symbol in value.free_symbols}
        shape, *fields = SHAPES[type(rule)]
        parts = {
            "name": script(rule.name),
            "after": script(rule.after),
            "rates": script(bool(letters & set(rates))),
            "shape": script(shape),
            **{field: text(getattr(rule, field)) for field in fields},
        }
        if isinstance(rule, RisesAgain):
            rate = f"d_{rule.quantity}"
            parts["rate"] = text(sympy.Symbol(rate)) if rate in rates else "null"
        printed.append(f"  {{ {', '.join(f'{name}: {part}' for name, part in parts.items())} }}")
    return "const RULES = [\n" + "".join(f"{rule},\n" for rule in printed) + "];"


def worker_script(model: str, problem: object) -> str:
    """Script of a worker that trains a problem; the JavaScript `model` defines ``MODEL``."""
    events = rules(problem.events, problem.order_names, problem.rates)  # type: ignore[attr-defined]
    scripts = asset("loops.js"), asset("events.js"), asset("driver.js")
    parts = [constants(), events, model, *scripts]
    return '"use strict";\n\n' + "\n\n".join(parts)
