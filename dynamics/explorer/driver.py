"""The script of a page's worker: loops and events of training around a model.

The loop of gradient descent and the integrator of the flow are those of `dynamics.codegen.kernels`,
printed; the rules of the events are printed from `theory.events`, and what they mean on a path and
on a run is in `assets/events.js`, beside `dynamics.training.flow_events` and
`dynamics.training.events`.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import Any

import sympy

from dynamics import codegen
from dynamics.codegen.kernels import advance as descent
from dynamics.codegen.kernels import collocation, path_values
from dynamics.codegen.kernels.collocation import DONE, FULL, STUCK, Path
from dynamics.codegen.kernels.collocation_equations import Control, Room
from dynamics.codegen.kernels.collocation_table import STAGES, Table, table
from dynamics.explorer.javascript import Kernels
from dynamics.explorer.kinds import MATRIX, NUMBER, OPAQUE, VECTOR, Array, Kind, Tuple
from dynamics.explorer.printing import asset, expression, script
from theory.events import Crossing, EventRule, ExceedsRunMaximum, RisesAgain

BY_MODEL = {
    "gradient": "function gradient(state, model, out) {\n  model.gradient(state, out);\n}",
    "hessian": "function hessian(state, model, out) {\n  model.jacobian(state, out.data);\n}",
    "has_hessian": "function has_hessian(model) {\n  return model.jacobian !== undefined;\n}",
    "order_parameters": "function order_parameters(state, slope, model, out) {\n"
    "  model.order_parameters(state, slope, out);\n}",
}
"""What the loops call of a model: see MODEL in `assets/driver.js`."""

SHAPES = {
    Crossing: ("crossing", "strict", "resolution", "guard_strict", "expression", "guard"),
    ExceedsRunMaximum: ("exceeds", "quantity", "bound"),
    RisesAgain: ("rises", "quantity", "relative"),
}
"""Rule -> its name in `assets/events.js`, and the fields that are printed."""


@cache
def loops() -> str:
    """The loops as one object of JavaScript."""
    entries = (descent.advance, collocation.integrate, path_values.along)
    kernels = Kernels(codegen.kernel_source(*entries), BY_MODEL)
    steps = Array(1, whole=True)
    buffers = Tuple((OPAQUE, VECTOR, VECTOR, VECTOR, NUMBER, MATRIX, steps, MATRIX))
    control = Tuple((VECTOR, NUMBER, VECTOR, VECTOR), Control._fields)
    path = Tuple((VECTOR, VECTOR, Array(3)), Path._fields)
    constants = Tuple((VECTOR, MATRIX, MATRIX, MATRIX), Table._fields)
    room = Tuple(
        (MATRIX, MATRIX, VECTOR, Array(3), MATRIX, Array(1, whole=True), VECTOR, MATRIX)
        + (VECTOR,) * 2,
        Room._fields,
    )
    arguments: dict[str, Sequence[Kind]] = {
        "advance": (VECTOR, VECTOR, NUMBER, NUMBER, buffers),
        "integrate": (VECTOR, OPAQUE, constants, control, path, room),
        "along": (VECTOR, *path.entries, MATRIX, MATRIX),
    }
    names = [kernels.function(name, kinds) for name, kinds in arguments.items()]
    numbers = f"DONE: {DONE}, FULL: {FULL}, STUCK: {STUCK}, STAGES: {STAGES}, TABLE: {_constants()}"
    result = f"return {{ {', '.join(names)}, {numbers} }};"
    return f"const LOOPS = (() => {{\n{kernels.text()}\n\n{result}\n}})();"


def _constants() -> str:
    """The constants of collocation as an object of JavaScript."""
    fields = []
    for name, values in table()._asdict().items():
        entries = f"Float64Array.of({', '.join(map(repr, values.ravel().tolist()))})"
        shape = list(values.shape)
        matrix = f"{{ data: {entries}, shape: {shape} }}"
        fields.append(f"{name}: {entries if values.ndim == 1 else matrix}")
    return f"{{ {', '.join(fields)} }}"


def rules(events: Sequence[EventRule], order_names: Sequence[str], rates: Sequence[str]) -> str:
    """The rules of events as a list of JavaScript.

    Parameters
    ----------
    events : sequence of EventRule
    order_names, rates : sequence of str
        Order parameters, and those that are read off the gradient.
    """

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
    """The whole script of a worker.

    Parameters
    ----------
    model : str
        JavaScript that defines ``MODEL``.
    problem : Problem
        A reduced problem of the system, for its rules.
    """
    events = rules(problem.events, problem.order_names, problem.rates)  # type: ignore[attr-defined]
    parts = [asset("arrays.js"), loops(), events, model, asset("events.js"), asset("driver.js")]
    return '"use strict";\n\n' + "\n\n".join(parts)
