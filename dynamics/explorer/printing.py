"""JavaScript text: files of ``assets``, expressions, functions, values."""

from __future__ import annotations

import json
from collections.abc import Sequence
from functools import cache
from pathlib import Path
from typing import Any

import sympy

FOLDER = Path(__file__).parent / "assets"


@cache
def asset(name: str) -> str:
    """Text of a file in the folder ``assets`` of this package."""
    return (FOLDER / name).read_text(encoding="utf-8")


def expression(value: Any) -> str:
    """JavaScript of a sympy expression.

    Examples
    --------
    >>> x = sympy.Symbol("x")
    >>> expression(sympy.exp(x) / 3)
    '(1/3)*Math.exp(x)'
    """
    return str(sympy.jscode(sympy.sympify(value)))


def function_of(arguments: Sequence[str], text: str) -> str:
    """JavaScript function of an object's properties `arguments` that returns `text`.

    Examples
    --------
    >>> function_of(["q", "p"], "q < p"), function_of([], "1")
    ('({ q, p }) => q < p', '() => 1')
    """
    names = f"{{ {', '.join(arguments)} }}" if arguments else ""
    return f"({names}) => {text}"


def script(value: Any) -> str:
    """JSON of a value, safe inside a script of a page."""
    return json.dumps(value).replace("</", "<\\/")
