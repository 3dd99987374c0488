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

FOLDER = Path(__file__).parent / "assets"
NATIVE = {
    "exponentials": """function exponentials(values) {
  for (let k = 0; k < values.length; k += 1) values[k] = Math.exp(values[k]);
}""",
    "logistic_losses": """function logistic_losses(margins, losses) {
  for (let k = 0; k < margins.length; k += 1) {
    losses[k] = Math.log1p(Math.exp(-Math.abs(margins[k]))) + Math.max(-margins[k], 0);
  }
}""",
    "sum_at": """function sum_at(values, places, first, last) {
  let sum = 0;
  for (let m = first; m < last; m += 1) sum += values[places[m]];
  return sum;
}""",
}
"""Kernels that do by hand what a browser does itself."""


@cache
def asset(name: str) -> str:
    """Text of a file beside this one, in ``assets``."""
    return (FOLDER / name).read_text(encoding="utf-8")


def expression(value: Any) -> str:
    """An expression of sympy in JavaScript.

    Examples
    --------
    >>> x = sympy.Symbol("x")
    >>> expression(sympy.exp(x) / 3)
    '(1/3)*Math.exp(x)'
    """
    return str(sympy.jscode(sympy.sympify(value), user_functions={"factorial": "factorial"}))


def function_of(arguments: Sequence[str], text: str) -> str:
    """A function of JavaScript of an object with some properties.

    Parameters
    ----------
    arguments : sequence of str
        Properties of the object.
    text : str
        What the function returns.

    Examples
    --------
    >>> function_of(["q", "p"], "q < p"), function_of([], "1")
    ('({ q, p }) => q < p', '() => 1')
    """
    names = f"{{ {', '.join(arguments)} }}" if arguments else ""
    return f"({names}) => {text}"


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
