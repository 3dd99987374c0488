"""Functions printed from sympy expressions, as the text of Python that numba compiles.

- `tabulate`: ``name(state, constants, latents, out)`` fills ``out[k, i, j, ...]`` with block k at
  every combination of the values of the latents that the blocks have;
- `evaluate`: ``name(state, rates, constants, out)`` fills ``out[k]`` with expression k.
"""

from __future__ import annotations

import textwrap
from collections.abc import Iterable, Sequence
from functools import cache
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import sympy

    from theory.reduction import ReducedSystem


def evaluate(name: str, outputs: Sequence[sympy.Expr], system: ReducedSystem) -> str:
    """Source of a function that evaluates expressions of state, rates and definitions.

    Parameters
    ----------
    name : str
        Name of the function.
    outputs : sequence of sympy.Expr
        What ``out[0], out[1], ...`` are.
    system : ReducedSystem
        Supplies the order of state and constants, and the definitions.
    """
    lines = _arguments(system, [f"d_{s.name}" for s in system.state])
    lines += _assignments(needed_definitions(outputs, system))
    temporaries, results = common_parts(outputs, "t")
    lines += _assignments(temporaries)
    lines += [f"out[{k}] = {_print(result)}" for k, result in enumerate(results)]
    return _function(f"{name}(state, rates, constants, out)", lines)


def tabulate(
    name: str, blocks: Sequence[str], system: ReducedSystem, together: int | None = None
) -> str:
    """Source of a function that tabulates blocks over all combinations of their latents' values.

    Latents that no block has are not among its arguments. What does not depend on the latents is
    computed once, before the loops.

    Parameters
    ----------
    name : str
        Name of the function.
    blocks : sequence of str
        Names of blocks of the system, in the order of ``out``.
    system : ReducedSystem
        The derivation.
    together : int, optional
        So many blocks have loops of their own; all have the same without it. Loops that fill few
        arrays become vector instructions.
    """
    outputs = [system.blocks[block] for block in blocks]
    latents = [s for s in system.latents if any(s in output.free_symbols for output in outputs)]
    arrays = [f"{latent.name}_values" for latent in latents]
    lines = _arguments(system, [])
    lines += _assignments(needed_definitions(outputs, system))
    lines.append(f"{', '.join(arrays)} = latents")
    for first in range(0, len(outputs), together or len(outputs)):
        group = outputs[first : first + (together or len(outputs))]
        temporaries, results = common_parts(group, "t")
        outer, inner = _hoisted(temporaries, {latent.name for latent in latents})
        lines += _assignments(outer)
        indices, indent = [], ""
        for latent, array in zip(latents, arrays, strict=True):
            index = f"i_{latent.name}"
            indices.append(index)
            lines.append(f"{indent}for {index} in range({array}.size):")
            indent += "    "
            lines.append(f"{indent}{latent.name} = {array}[{index}]")
        lines += [indent + line for line in _assignments(inner)]
        position = ", ".join(indices)
        lines += [
            f"{indent}out[{first + k}, {position}] = {_print(r)}" for k, r in enumerate(results)
        ]
    return _function(f"{name}(state, constants, latents, out)", lines)


def _function(signature: str, lines: Sequence[str]) -> str:
    return f"@kernel\ndef {signature}:\n" + textwrap.indent("\n".join(lines), "    ") + "\n"


def _arguments(system: ReducedSystem, rates: Sequence[str]) -> list[str]:
    lines = [f"{s.name} = state[{k}]" for k, s in enumerate(system.state)]
    lines += [f"{s.name} = constants[{k}]" for k, s in enumerate(system.parameters)]
    return lines + [f"{rate} = rates[{k}]" for k, rate in enumerate(rates)]


def needed_definitions(
    outputs: Sequence[sympy.Expr], system: ReducedSystem
) -> list[tuple[sympy.Symbol, sympy.Expr]]:
    """The definitions that the outputs use, shared parts named, exponents shifted.

    Parameters
    ----------
    outputs : sequence of sympy.Expr
    system : ReducedSystem
        Supplies the definitions.
    """
    used: set[Any] = set().union(*[output.free_symbols for output in outputs])
    names = []
    for symbol in reversed(list(system.definitions)):
        if symbol in used:
            names.append(symbol)
            used |= system.definitions[symbol].free_symbols
    names.reverse()
    values = tuple(system.definitions[symbol] for symbol in names)
    shared, rest = _shifted(values, tuple(system.shift_invariant))
    return [*shared, *zip(names, rest, strict=True)]


@cache
def _shifted(values: tuple[Any, ...], together: tuple[Any, ...]) -> tuple[list[Any], list[Any]]:
    """Definitions with exponents shifted: what they share, then the rest.

    Most functions of a file use the same, and so do files that differ in p.
    """
    import sympy

    shift = sympy.Symbol("shift", real=True)
    shared: list[Any] = []
    moved = {s: s - shift for s in together}
    if moved and any(set(moved) & value.free_symbols for value in values):
        shared.append((shift, sympy.Max(*together)))
        values = tuple(value.subs(moved, simultaneous=True) for value in values)
    temporaries, rest = common_parts(values, "c")
    return shared + temporaries, rest


def _hoisted(
    temporaries: Sequence[tuple[Any, Any]], moving: set[str]
) -> tuple[list[tuple[Any, Any]], list[tuple[Any, Any]]]:
    """Temporaries that can be computed before a loop, and those that change within it.

    ``moving`` are the names that change within the loop.
    """
    moving = set(moving)
    inner: list[tuple[Any, Any]] = []
    outer: list[tuple[Any, Any]] = []
    for symbol, value in temporaries:
        depends = {s.name for s in value.free_symbols} & moving
        (inner if depends else outer).append((symbol, value))
        if depends:
            moving.add(symbol.name)
    return outer, inner


def common_parts(
    expressions: Sequence[sympy.Expr], prefix: str
) -> tuple[list[tuple[sympy.Symbol, sympy.Expr]], list[sympy.Expr]]:
    """What several expressions share, as symbols with a prefix and their values; and the rest.

    Parameters
    ----------
    expressions : sequence of sympy.Expr
    prefix : str
    """
    import sympy

    names = sympy.numbered_symbols(prefix, real=True)
    return sympy.cse(list(expressions), symbols=names, optimizations="basic", order="none")


def _assignments(pairs: Iterable[tuple[sympy.Symbol, sympy.Expr]]) -> list[str]:
    return [f"{symbol.name} = {_print(value)}" for symbol, value in pairs]


def _print(expression: sympy.Expr) -> str:
    """Python text of an expression; x**-n as a quotient, which gives infinity at 0 and no error."""
    from sympy.printing.pycode import PythonCodePrinter

    class Printer(PythonCodePrinter):  # type: ignore[misc]
        def _print_Pow(self, power: Any, rational: bool = False) -> str:  # noqa: N802
            if power.exp.is_Integer and power.exp < -1:
                return f"(1.0/({self._print(power.base**-power.exp)}))"
            return str(super()._print_Pow(power, rational))

    settings = {"fully_qualified_modules": False, "allow_unknown_functions": True}
    return str(Printer(settings).doprint(expression))
