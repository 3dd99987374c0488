"""Globals that one function of a model sets and another reads.

The functions of a model are called in no order that its author knows, and some once for many
constants: a loss is traced once, with what a global was by then. So a global that ``start`` sets
and ``risk`` reads may be that of other constants, and is refused.
"""

from __future__ import annotations

import dis
import functools
import inspect
from collections.abc import Iterator
from contextlib import suppress
from types import CodeType, FunctionType
from typing import Any, NamedTuple

from theory.law import ModelError
from theory.model import Model

IN_ORDER = ("start", "fixed", "law", "sample")
"""Functions that are called in this order, one after the other, for all constants."""

Name = tuple[int, str]
"""Identity of the globals of a file, and a name there."""


class _Use(NamedTuple):
    """Globals that a function, or what it calls of its file, sets (by whom) and reads."""

    sets: dict[Name, set[FunctionType]]
    reads: set[Name]

    def from_outside(self, other: _Use) -> list[str]:
        """Globals that this one reads, and the other sets in a function that this one lacks."""
        return sorted(
            name[1]
            for name, setters in other.sets.items()
            if name in self.reads and setters - self.sets.get(name, set())
        )


def check_globals(model: Model) -> None:
    """Refuse a model in which a global is set by one function and read by another.

    Both may call one function that sets it, as a table that is made when it is first needed: each
    finds it made. What is changed in place, such as an entry of a dict, is not seen.

    Parameters
    ----------
    model : Model

    Raises
    ------
    ModelError
    """
    uses = {role: _use_of(function) for role, function in model.functions.items()}
    for reader, reading in uses.items():
        for writer, writing in uses.items():
            shared = reading.from_outside(writing) if writer != reader else []
            known = {writer, reader} <= {*IN_ORDER}
            if shared and not (known and IN_ORDER.index(writer) < IN_ORDER.index(reader)):
                raise ModelError(
                    f"{writer} sets the global {shared[0]}, which {reader} reads, maybe at other "
                    "constants; arrays can be given by fixed, constants by keyword, and what is "
                    f"the same for all at the top of the file, or by a function that {reader} "
                    "calls too"
                )


def _use_of(role: Any) -> _Use:
    use, pending, seen = _Use({}, set()), [_function(role)], set[Any]()
    while pending:
        function = pending.pop()
        if function is None or function in seen:
            continue
        seen.add(function)
        names = function.__globals__
        for operation, name in _globals_of(function.__code__):
            if operation in ("STORE_GLOBAL", "DELETE_GLOBAL"):
                use.sets.setdefault((id(names), name), set()).add(function)
            else:
                use.reads.add((id(names), name))
                called = _function(names.get(name))
                pending += [called] if called and called.__globals__ is names else []
    return use


def _function(value: Any) -> FunctionType | None:
    """The function behind what is called; None where there is none to look into."""
    while isinstance(value, functools.partial):
        value = value.func
    with suppress(Exception):  # an object may answer, or refuse, whatever it is asked for
        plain = inspect.unwrap(value) if callable(value) else None
        return plain if isinstance(plain, FunctionType) else None
    return None


def _globals_of(code: CodeType) -> Iterator[tuple[str, str]]:
    """Operations on globals, and their names; those of inner functions too."""
    for instruction in dis.get_instructions(code):
        if instruction.opname in ("STORE_GLOBAL", "DELETE_GLOBAL", "LOAD_GLOBAL"):
            yield instruction.opname, instruction.argval
    for constant in code.co_consts:
        if isinstance(constant, CodeType):
            yield from _globals_of(constant)
