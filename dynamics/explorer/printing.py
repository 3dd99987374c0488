"""Text of JavaScript from expressions and kernels of generated files."""

from __future__ import annotations

import json
from collections.abc import Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import Any

import sympy

from dynamics.explorer.javascript import Kernels
from dynamics.explorer.kinds import Kind

HERE = Path(__file__).parent
NATIVE = {
    "exponentials": """function exponentials(values) {
  for (let k = 0; k < values.length; k += 1) values[k] = Math.exp(values[k]);
}"""
}
"""Kernels that do by hand what a browser does itself."""
FUNCTIONS = {"factorial": "factorial"}


@cache
def asset(name: str) -> str:
    """Text of a file beside this one, in ``assets``."""
    return (HERE / "assets" / name).read_text(encoding="utf-8")


def expression(value: Any) -> str:
    """An expression of sympy in JavaScript.

    Examples
    --------
    >>> x = sympy.Symbol("x")
    >>> expression(sympy.exp(x) / 3)
    '(1/3)*Math.exp(x)'
    """
    return str(sympy.jscode(sympy.sympify(value), user_functions=FUNCTIONS))


def function_of(arguments: Sequence[str], values: Sequence[Any]) -> str:
    """A function of an object with these properties that gives a list of expressions.

    Parameters
    ----------
    arguments : sequence of str
        Properties of the object.
    values : sequence of sympy.Expr
    """
    listed = ", ".join(map(expression, values))
    return f"({{ {', '.join(arguments)} }}) => [{listed}]"


def closure(
    source: str, functions: Mapping[str, Sequence[Kind]], native: Mapping[str, str] = NATIVE
) -> str:
    """Functions of a generated file as one object of JavaScript, which hides what they call.

    Parameters
    ----------
    source : str
        Text of the generated file.
    functions : mapping
        Name -> kinds of the arguments.
    native : mapping
        Kernels that have a text of their own.
    """
    kernels = Kernels(source, native)
    names = [f"{name}: {kernels.function(name, kinds)}" for name, kinds in functions.items()]
    return f"(() => {{\n{kernels.text()}\n\nreturn {{ {', '.join(names)} }};\n}})()"


def script(value: Any) -> str:
    """A value as JSON that may stand in a script of a page."""
    return json.dumps(value).replace("</", "<\\/")
