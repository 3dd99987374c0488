"""Functions printed from sympy expressions that numpy evaluates on whole arrays, uncompiled."""

from __future__ import annotations

import textwrap
from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

from dynamics.codegen.printing import common_parts, needed_definitions

if TYPE_CHECKING:
    import sympy

    from theory.reduction import ReducedSystem


def array_source(names: Sequence[str], outputs: Sequence[sympy.Expr], system: ReducedSystem) -> str:
    """Source of a function of arrays that broadcast; it returns the list of the outputs.

    Parameters
    ----------
    names : sequence of str
        Of its arguments, the symbols that outputs and definitions may have.
    outputs : sequence of sympy.Expr
    system : ReducedSystem
        Supplies the definitions.
    """
    from sympy.printing.numpy import NumPyPrinter

    definitions = needed_definitions(outputs, system)
    temporaries, results = common_parts(outputs, "t")
    text = NumPyPrinter().doprint
    lines = [f"{symbol.name} = {text(value)}" for symbol, value in [*definitions, *temporaries]]
    lines.append(f"return [{', '.join(map(text, results))}]")
    body = textwrap.indent("\n".join(lines), "    ")
    return f"import functools\n\nimport numpy\n\n\ndef evaluate({', '.join(names)}):\n{body}\n"


def array_function(source: str) -> Callable[..., list[Any]]:
    """The function that `array_source` has printed.

    Parameters
    ----------
    source : str
    """
    namespace: dict[str, Any] = {}
    exec(source, namespace)
    function: Callable[..., list[Any]] = namespace["evaluate"]
    return function
