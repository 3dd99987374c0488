"""Entry of a traced function into a table of values, by evaluating its jaxpr on arrays of ids.

Called functions are inlined, and loops with a known number of iterations are unrolled. Primitives
that only move entries add no value to the table. Primitives without a rule, such as sorting, are
evaluated by JAX if their arguments are constants; otherwise they raise `UnreadPrimitive`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from theory.program.movements import MOVEMENTS
from theory.program.numbering import Ids, NoProgram, Values
from theory.program.primitives import CALLS, NAMED, NOT_WHOLE, OF_PAIRS, RULES, Walk


class UnreadPrimitive(NoProgram):
    """Error raised for a primitive without a rule; the message names the primitive and its line."""

    def __init__(self, primitive: str, source: str = "") -> None:
        self.primitive, self.source = primitive, source
        super().__init__(f"no program: '{primitive}' of numbers that are trained or drawn{source}")


def read(values: Values, closed_jaxpr: Any, inputs: Sequence[Ids]) -> list[Ids]:
    """Enter the values of a traced function into a table, and return the ids of its outputs.

    The jaxpr must be traced under ``jax.enable_x64(True)``. `inputs` holds an array of ids for each
    argument, with the shape of this argument. Raises UnreadPrimitive.
    """
    import jax

    with jax.enable_x64(True):
        return Reading(values).run(closed_jaxpr, list(inputs))


def named_function(function: Callable[..., Any], name: str, **options: Any) -> Callable[..., Any]:
    """Jitted function with a name in `NAMED`, so that `read` enters it as one operation."""
    import jax

    def named(*arguments: Any, **keywords: Any) -> Any:
        return function(*arguments, **keywords)

    named.__name__ = named.__qualname__ = name
    return jax.jit(named, **options)


class Reading(Walk):
    """Evaluation of a jaxpr on arrays of ids, as done by `read`."""

    def run(self, program: Any, inputs: list[Ids]) -> list[Ids]:
        """Ids of the outputs of a jaxpr, closed or open."""
        from jax.extend.core import Literal

        jaxpr, constants = getattr(program, "jaxpr", program), getattr(program, "consts", ())
        held = dict(zip(jaxpr.invars, inputs, strict=True))
        held |= {v: self.number(c) for v, c in zip(jaxpr.constvars, constants, strict=True)}

        def value(variable: Any) -> Ids:
            if isinstance(variable, Literal):
                aval: Any = variable.aval
                return self.number(np.asarray(variable.val, aval.dtype))
            return held[variable]

        for equation in _live(jaxpr):
            results = self.equation(equation, [value(v) for v in equation.invars])
            held |= dict(zip(equation.outvars, results, strict=True))
        return [value(v) for v in jaxpr.outvars]

    def equation(self, equation: Any, inputs: list[Ids]) -> list[Ids]:
        """Ids of the results of one equation of a jaxpr."""
        name, params = equation.primitive.name, equation.params
        if name in CALLS:
            called = params["jaxpr" if "jaxpr" in params else "call_jaxpr"]
            jaxpr = getattr(called, "jaxpr", called)
            rule = NAMED.get(jaxpr.debug_info.func_name)
            if rule is not None:
                return [rule(self, jaxpr, *inputs)]
            try:
                return self.run(called, inputs)
            except UnreadPrimitive as error:
                raise UnreadPrimitive(error.primitive, error.source or _source(equation)) from None
        if name in MOVEMENTS:
            moved = MOVEMENTS[name](params, *inputs)
            return moved if isinstance(moved, list) else [moved]
        if name in OF_PAIRS:  # JAX broadcasts axes of length 1
            inputs = list(np.broadcast_arrays(*inputs))
        rule = RULES.get(name)
        whole = any(v.aval.dtype.kind in "iu" for v in equation.invars)
        other = name in NOT_WHOLE and whole and not self.all_known(inputs)
        if rule is not None and not other:
            result = rule(self, equation, *inputs)
            if result is not None:
                return result if isinstance(result, list) else [result]
        if self.all_known(inputs):
            numbers = [self.floats(x, v.aval) for x, v in zip(inputs, equation.invars, strict=True)]
            results = equation.primitive.bind(*numbers, **params)
            many = equation.primitive.multiple_results
            return [self.number(r) for r in (results if many else [results])]
        raise UnreadPrimitive(name, _source(equation))


def _live(jaxpr: Any) -> list[Any]:
    """Equations of a jaxpr that are needed to compute its outputs."""
    from jax.extend.core import Literal

    needed = {v for v in jaxpr.outvars if not isinstance(v, Literal)}
    live = []
    for equation in reversed(jaxpr.eqns):
        if any(v in needed for v in equation.outvars):
            live.append(equation)
            needed |= {v for v in equation.invars if not isinstance(v, Literal)}
    return live[::-1]


def _source(equation: Any) -> str:
    """Line of an equation in the user's file, as `` (my.py, line 7)``, or empty if unknown."""
    try:
        from jax._src.source_info_util import user_frame

        frame = user_frame(equation.source_info.traceback)
    except (ImportError, AttributeError, TypeError):
        return ""
    if frame is None:
        return ""
    return f" ({frame.file_name.rsplit('/', 1)[-1]}, line {frame.start_line})"
