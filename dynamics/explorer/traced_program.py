"""A traced program as a function of JavaScript.

What `jax.make_jaxpr` lists of a function, in double precision, is printed as loops over
``Float64Array`` with constant shapes and strides: `traced_steps` cleans the list, `loop_nests`
writes loops, `traced_primitives` and `traced_indexing` know the primitives. The text is a maker: it
takes the inputs that stay and returns a function of those that change, which allocates nothing.

>>> import jax
>>> with jax.enable_x64(True):
...     program = jax.make_jaxpr(lambda x, a: a * x**2)(1.0, 1.0)
>>> print(javascript(program, 1, Tables()))
(tables, in1) => {
  return (in0, out) => {
    const t1 = (in0[0] * in0[0]);
    const t2 = (in1[0] * t1);
    out[0] = t2;
  };
}
"""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import replace
from typing import TYPE_CHECKING

import numpy as np

from dynamics.explorer.loop_nests import Value, View, counting, indented, strides_of, varies
from dynamics.explorer.tables import Tables
from dynamics.explorer.traced_arrays import Arrays
from dynamics.explorer.traced_indexing import PRINTERS
from dynamics.explorer.traced_steps import Body, Operand, Step, kind_of, steps_of
from theory.tracing import UntracedPrimitive

if TYPE_CHECKING:
    from jax.extend.core import ClosedJaxpr

LONGEST = 40
"""Operations of one expression, at most."""
LONGEST_FUNCTION = 24_000
"""Characters of a function; browsers do not optimize much longer ones, which are cut."""


def javascript(closed_jaxpr: ClosedJaxpr, called: int, tables: Tables) -> str:
    """A traced program as the text of a maker of a function.

    Parameters
    ----------
    closed_jaxpr : jax.extend.core.ClosedJaxpr
        From ``jax.make_jaxpr(f)(*args)`` under ``jax.enable_x64(True)``.
    called : int
        Inputs, the first ones, that are arguments of every call.
    tables : Tables
        Gets the constant arrays of the program.

    Returns
    -------
    str
        ``(tables, in1, ...) => (in0, out) => ...``: every input is a ``Float64Array`` of its
        entries, row-major, and the outputs are written into ``out`` one after another.

    Raises
    ------
    UntracedPrimitive
        If a primitive has no rule, or no rule for these arguments; the message names it.
    """
    body = steps_of(closed_jaxpr)
    printer = _Printer(tables)
    for k, (number, variable) in enumerate(
        zip(body.inputs, closed_jaxpr.jaxpr.invars, strict=True)
    ):
        shape = kind_of(variable.aval, "input", ("float32",)).shape
        printer.values[number] = View(f"in{k}", shape, strides_of(shape), varies=k < called)
    first = 0
    for value in printer.run(body):
        part = View("out", value.shape, strides_of(value.shape), first)
        printer.arrays.assign(part, value)
        first += value.size
    names = [f"in{k}" for k in range(len(body.inputs))]
    return _maker(names[:called], names[called:], printer.arrays)


def _maker(called: list[str], fixed: list[str], arrays: Arrays) -> str:
    arguments = ", ".join([*called, "out"])
    made, statements, parts = list(arrays.made), arrays.called, _cut(arrays.called)
    if len(parts) > 1:  # what one part declares, another may read
        declared = [text for text in statements if text.startswith(("const ", "let "))]
        made += [f"let {', '.join(text.split()[1] for text in declared)};"] if declared else []
        for k, part in enumerate(parts):
            assigned = [text.removeprefix("const ").removeprefix("let ") for text in part]
            made.append(f"function part{k}({arguments}) {{\n{indented(assigned)}\n}}")
        statements = [f"part{k}({arguments});" for k in range(len(parts))]
    function = f"return ({arguments}) => {{\n{indented(statements)}\n}};"
    return f"({', '.join(['tables', *fixed])}) => {{\n{indented([*made, function])}\n}}"


def _cut(statements: list[str]) -> list[list[str]]:
    """Statements in parts that browsers optimize."""
    parts: list[list[str]] = [[]]
    length = 0
    for statement in statements:
        if length + len(statement) > LONGEST_FUNCTION and parts[-1]:
            parts.append([])
            length = 0
        parts[-1].append(statement)
        length += len(statement)
    return parts


class _Printer:
    """Prints one program.

    Parameters
    ----------
    tables : Tables
    """

    def __init__(self, tables: Tables) -> None:
        self.arrays = Arrays(tables)
        self.values: dict[int, Value] = {}

    def value(self, operand: Operand) -> Value:
        """The value of a variable or of a constant."""
        if isinstance(operand, np.ndarray):
            return self.arrays.constant(operand)
        return self.values[operand]

    def run(self, body: Body) -> list[Value]:
        """Write the steps of a body; returns its outputs."""
        uses = body.reads()
        for step in body.steps:
            for number, value in zip(step.results, self._step(step), strict=True):
                self.values[number] = self._stored(value, uses[number])
        return [self.value(operand) for operand in body.outputs]

    def _stored(self, value: Value, uses: int) -> Value:
        """A value, computed unless only one loop reads it, which then computes it too."""
        if isinstance(value, View):
            return value
        if value.shape == () and uses > 0:
            return self.arrays.scalar(value)
        lasting = varies(value) or self.arrays.inside
        waits = uses <= 1 and value.cost <= LONGEST and lasting
        return value if waits else self.arrays.stored(value)

    def _step(self, step: Step) -> list[Value]:
        if step.primitive in LOOPS:
            return LOOPS[step.primitive](self, step)
        if step.primitive not in PRINTERS:
            raise UntracedPrimitive(step.primitive)
        values = [self.value(operand) for operand in step.operands]
        result = PRINTERS[step.primitive](self.arrays, step, *values)
        return result if isinstance(result, list) else [result]

    def _carried(self, step: Step, first: int, count: int) -> list[View]:
        """New arrays with what a loop starts from; they change, and so does all that reads them."""
        result = []
        for operand in step.operands[first : first + count]:
            value = self.value(operand)
            array = self.arrays.array(value.shape)
            self.arrays.assign(array, value)
            result.append(array)
        return result

    def _carry(self, state: list[View], values: list[Value]) -> None:
        """Assign the next state of a loop; all of it is computed before any is overwritten."""
        copies = [self.arrays.copied(value) for value in values]
        for array, value in zip(state, copies, strict=True):
            self.arrays.assign(array, value)

    def conditional(self, step: Step) -> list[Value]:
        """One branch of a conditional."""
        arrays = self.arrays
        which = arrays.scalar(self.value(step.operands[0])).name
        results = [arrays.array(kind.shape) for kind in step.kinds]
        last = len(step.bodies) - 1
        for k, body in enumerate(step.bodies):
            sign = "<=" if k == 0 else ">=" if k == last else "==="
            with arrays.block(f"if ({which} {sign} {k})"):
                for array, value in zip(results, self.run(body), strict=True):
                    arrays.assign(array, value)
        return list(results)

    def while_loop(self, step: Step) -> list[Value]:
        """A loop as long as its condition holds."""
        arrays, (test, body) = self.arrays, step.bodies
        first = step.params["cond_nconsts"] + step.params["body_nconsts"]
        state = self._carried(step, first, len(step.operands) - first)
        with arrays.block("for (;;)"):
            self.values |= dict(zip(test.inputs, state, strict=True))
            (goes_on,) = self.run(test)
            arrays.write(f"if (!{arrays.scalar(goes_on).name}) break;")
            self.values |= dict(zip(body.inputs, state, strict=True))
            self._carry(state, self.run(body))
        return list(state)

    def scan(self, step: Step) -> list[Value]:
        """A loop over the first axis of some inputs."""
        arrays, params, (body,) = self.arrays, step.params, step.bodies
        fixed, carried, length = params["num_consts"], params["num_carry"], int(params["length"])
        state = self._carried(step, fixed, carried)
        inputs = [arrays.stored(self.value(k)) for k in step.operands[fixed + carried :]]
        results = [arrays.array(kind.shape) for kind in step.kinds[carried:]]
        k = arrays.name("k")
        with arrays.block(counting(k, length, params["reverse"])):
            turn = [*state, *(_turn(view, k) for view in inputs)]
            self.values |= dict(zip(body.inputs, turn, strict=True))
            values = self.run(body)
            for array, value in zip(results, values[carried:], strict=True):
                arrays.assign(_turn(array, k), value)
            self._carry(state, values[:carried])
        return [*state, *results]


def _turn(view: View, k: str) -> View:
    """Part k of an array, where k is computed."""
    if view.strides is None:
        return replace(view, shape=view.shape[1:])
    moving = " + ".join(filter(None, [view.moving, f"{view.strides[0]}*{k}"]))
    return replace(view, shape=view.shape[1:], strides=view.strides[1:], moving=moving, varies=True)


LOOPS: dict[str, Callable[[_Printer, Step], list[Value]]] = {
    "cond": _Printer.conditional,
    "while": _Printer.while_loop,
    "scan": _Printer.scan,
}
