"""Traced programs evaluated in another arithmetic: symbols, or fifty digits.

A model that is written as a JAX function says what it computes once. Its jaxpr, the list of
equations that `jax.make_jaxpr` returns, can be evaluated on entries other than float64:

- `to_sympy` gives expressions, as a paper would write them (`theory.tracing.sympy_reading`);
- `to_mpmath` gives numbers of any precision (`theory.tracing.arithmetic`);
- `evaluate` is the interpreter of both, for any `Arithmetic`.

Calls are entered, loops of a known number of turns are unrolled, and equations whose result is not
used are left out. Equations on integers alone are evaluated by JAX itself. A gradient is read by
tracing `jax.grad` of the function. Trace under ``jax.enable_x64(True)``.

>>> import jax, sympy
>>> from theory.tracing import to_sympy
>>> with jax.enable_x64(True):
...     program = jax.make_jaxpr(lambda x: jax.numpy.tanh(x) ** 2)(0.5)
>>> to_sympy(program, [sympy.Symbol("x", real=True)])[0].item()
tanh(x)**2
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np

from theory.tracing.arithmetic import (
    Arithmetic,
    Mpmath,
    UntracedPrimitive,
    Value,
    is_number,
    mapped,
)
from theory.tracing.primitives import MOVEMENTS, RULES
from theory.tracing.sympy_reading import Sympy

if TYPE_CHECKING:
    from jax.extend.core import ClosedJaxpr

__all__ = [
    "Arithmetic",
    "Mpmath",
    "Sympy",
    "UntracedPrimitive",
    "evaluate",
    "to_mpmath",
    "to_sympy",
]

Params = Mapping[str, Any]

CALLS = {
    **dict.fromkeys(("jit", "pjit", "remat", "remat2", "checkpoint", "composite"), "jaxpr"),
    **dict.fromkeys(
        ("closed_call", "core_call", "custom_jvp_call", "custom_vjp_call"), "call_jaxpr"
    ),
}
"""Primitive that is a call -> the parameter that holds what is called."""


def to_sympy(closed_jaxpr: ClosedJaxpr, inputs: Sequence[Any], digits: int = 30) -> list[Value]:
    """The outputs of a traced program as expressions of its inputs.

    Parameters
    ----------
    closed_jaxpr, inputs
        As in `evaluate`.
    digits : int
        Decimal digits of a constant that is not a simple rational.

    Returns
    -------
    list of numpy arrays
    """
    return evaluate(closed_jaxpr, inputs, Sympy(digits))


def to_mpmath(closed_jaxpr: ClosedJaxpr, inputs: Sequence[Any], digits: int = 50) -> list[Value]:
    """The outputs of a traced program to a number of decimal digits.

    Parameters
    ----------
    closed_jaxpr, inputs
        As in `evaluate`.
    digits : int

    Returns
    -------
    list of numpy arrays
    """
    return evaluate(closed_jaxpr, inputs, Mpmath(digits))


def evaluate(
    closed_jaxpr: ClosedJaxpr, inputs: Sequence[Any], arithmetic: Arithmetic
) -> list[Value]:
    """Evaluate a traced program in an arithmetic.

    Parameters
    ----------
    closed_jaxpr : jax.extend.core.ClosedJaxpr
        From ``jax.make_jaxpr(f)(*args)`` under ``jax.enable_x64(True)``.
    inputs : sequence
        One value for each variable of the program, in its order: the leaves of the arguments.
        Arrays (or nested lists) of floats, integers, fractions, or numbers of the arithmetic.
    arithmetic : Arithmetic

    Returns
    -------
    list of numpy arrays
        One for each output: object arrays of numbers of the arithmetic, ordinary arrays for
        integers and decided Booleans, object arrays of conditions for Booleans of symbols.

    Raises
    ------
    UntracedPrimitive
        If a primitive has no rule, or no rule for these arguments.
    ValueError
        If an input has another shape than its variable.
    """
    import jax

    jaxpr = closed_jaxpr.jaxpr
    if len(inputs) != len(jaxpr.invars):
        raise ValueError(f"{len(inputs)} inputs for {len(jaxpr.invars)} variables")
    with jax.enable_x64(True), arithmetic.working():
        reader = _Reader(arithmetic)
        values = [reader.read(v.aval, x) for v, x in zip(jaxpr.invars, inputs, strict=True)]
        results = reader.run(closed_jaxpr, values)
        return [
            mapped(arithmetic.finish, value) if value.dtype == object else value
            for value in results
        ]


def _live(jaxpr: Any, needed_outputs: Sequence[bool]) -> list[tuple[Any, list[bool]]]:
    """The equations that the needed outputs depend on, each with the outputs that are used."""
    from jax.extend.core import Literal

    outputs = zip(jaxpr.outvars, needed_outputs, strict=True)
    needed = {v for v, want in outputs if want and not isinstance(v, Literal)}
    live = []
    for equation in reversed(jaxpr.eqns):
        used = [v in needed for v in equation.outvars]
        if any(used):
            live.append((equation, used))
            needed |= {v for v in equation.invars if not isinstance(v, Literal)}
    return live[::-1]


def _text(jaxpr: Any) -> str:
    """The equations of a jaxpr without the types of its variables."""
    return re.sub(r":\w+\[[^]]*\]", "", str(jaxpr))


@cache
def _log_add_exp() -> str:
    """The equations of ``jax.numpy.logaddexp``, which `jax.nn.softplus` calls too."""
    import jax

    (call,) = jax.make_jaxpr(jax.numpy.logaddexp)(0.0, 0.0).jaxpr.eqns
    return _text(call.params["call_jaxpr"])


def _is_log_add_exp(equation: Any) -> bool:
    if equation.primitive.name != "custom_jvp_call":
        return False
    return _text(equation.params["call_jaxpr"]) == _log_add_exp()


class _Reader:
    """One evaluation in one arithmetic."""

    def __init__(self, arithmetic: Arithmetic) -> None:
        self.arithmetic = arithmetic

    def read(self, aval: Any, value: Any) -> Value:
        """An input or a constant as the value of a variable."""
        numbers = is_number(aval)
        entries = np.asarray(value) if numbers else np.asarray(value, dtype=aval.dtype)
        if entries.shape != aval.shape:
            raise ValueError(f"an input of shape {entries.shape} for a variable of {aval.shape}")
        return mapped(self.arithmetic.number, entries) if numbers else entries

    def run(
        self, program: Any, inputs: Sequence[Value], needed_outputs: Sequence[bool] | None = None
    ) -> list[Any]:
        """The outputs of a jaxpr; None for one that is not needed."""
        from jax.extend.core import Literal

        jaxpr, constants = getattr(program, "jaxpr", program), getattr(program, "consts", ())
        needed_outputs = needed_outputs or [True] * len(jaxpr.outvars)
        held = dict(zip(jaxpr.invars, inputs, strict=True))

        def value(variable: Any) -> Value:
            if isinstance(variable, Literal):
                return self.read(variable.aval, variable.val)
            return held[variable]

        for variable, constant in zip(jaxpr.constvars, constants, strict=True):
            held[variable] = self.read(variable.aval, constant)
        for equation, used in _live(jaxpr, needed_outputs):
            results = self.equation(equation, [value(v) for v in equation.invars], used)
            held |= dict(zip(equation.outvars, results, strict=True))
        return [
            value(v) if want else None
            for v, want in zip(jaxpr.outvars, needed_outputs, strict=True)
        ]

    def equation(self, equation: Any, values: list[Value], used: list[bool]) -> list[Any]:
        """The results of one equation."""
        name, params = equation.primitive.name, equation.params
        if _is_log_add_exp(equation):
            function = self.arithmetic.function("logaddexp", params)
            if function is not None:
                return [mapped(function, *values)]
        if name in CALLS:
            return self.run(params[CALLS[name]], values, used)
        if name in LOOPS:
            return LOOPS[name](self, params, values)
        if name in MOVEMENTS:
            moved = MOVEMENTS[name](params, *values)
            return moved if isinstance(moved, list) else [moved]
        try:
            numbers = [is_number(v.aval) for v in equation.outvars]
        except TypeError as unknown:
            raise UntracedPrimitive(name, str(unknown)) from unknown
        if not any(numbers) and all(v.dtype != object for v in values):
            results = equation.primitive.bind(*values, **params)
            many = equation.primitive.multiple_results
            return [np.asarray(result) for result in (results if many else [results])]
        if name in RULES:
            result = RULES[name](self.arithmetic, equation, *values)
            return result if isinstance(result, list) else [result]
        function = self.arithmetic.function(name, params)
        if function is None or not all(is_number(v.aval) for v in equation.invars):
            raise UntracedPrimitive(name)
        return [mapped(function, *values)]

    def branch(self, params: Params, values: list[Value]) -> list[Any]:
        """One branch of a conditional."""
        which, *operands = values
        return self.run(params["branches"][int(which)], operands)

    def loop(self, params: Params, values: list[Value]) -> list[Any]:
        """A while loop, as long as its condition holds."""
        of_test, of_body = params["cond_nconsts"], params["body_nconsts"]
        test, body = values[:of_test], values[of_test : of_test + of_body]
        state = values[of_test + of_body :]
        while True:
            (goes_on,) = self.run(params["cond_jaxpr"], [*test, *state])
            if goes_on.dtype == object:
                raise UntracedPrimitive("while", "its condition depends on symbols")
            if not goes_on:
                return state
            state = self.run(params["body_jaxpr"], [*body, *state])

    def scan(self, params: Params, values: list[Value]) -> list[Any]:
        """A scan, unrolled."""
        program, length, carried = params["jaxpr"], params["length"], params["num_carry"]
        fixed = params["num_consts"]
        constants, state = values[:fixed], values[fixed : fixed + carried]
        inputs = values[fixed + carried :]
        turns = []
        for k in range(length)[:: -1 if params["reverse"] else 1]:
            results = self.run(program, [*constants, *state, *(x[k, ...] for x in inputs)])
            state = results[:carried]
            turns.append(results[carried:])
        if params["reverse"]:
            turns.reverse()
        if not turns:
            outputs = [variable.aval for variable in program.jaxpr.outvars[carried:]]
            return state + [
                np.empty((0, *aval.shape), object if is_number(aval) else aval.dtype)
                for aval in outputs
            ]
        return state + [np.stack(column) for column in zip(*turns, strict=True)]


LOOPS = {"cond": _Reader.branch, "while": _Reader.loop, "scan": _Reader.scan}
