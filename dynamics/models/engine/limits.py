"""Limits of a model's constants, as text: ``"K >= 2"``, ``"0 < p1 < 1"``, ``"s + t*(D - 1) > 0"``.

The sides are formulas in the constants (`dynamics.results.expression`). The words that a constant
may be are listed: ``"target in staircase, leap"``.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Mapping
from typing import Any

from dynamics.results.expression import Expression
from dynamics.validation import InvalidRequest, shown
from theory.law import ModelError

SIGNS = {"<=": operator.le, ">=": operator.ge, "<": operator.lt, ">": operator.gt}
SIGN = re.compile("(<=|>=|<|>)")
WORDS = re.compile(r"\s*(\w+) in (.+)")


def check_limits(limits: tuple[str, ...], name: str, constants: Mapping[str, Any]) -> None:
    """Refuse constants that a model does not allow.

    Parameters
    ----------
    limits : tuple of str
    name : str
        Of the model.
    constants : mapping
        Constant -> value.

    Raises
    ------
    InvalidRequest
        With the constants of the first limit that does not hold.
    ModelError
        If a limit is no comparison of formulas in constants.
    """
    for limit in limits:
        names, held = _looked_at(limit, constants)
        if not held:
            there = " ".join(f"{one}={shown(constants[one])}" for one in names)
            raise InvalidRequest(f"{there} is outside the limits of {name}: {limit}")


def _looked_at(limit: Any, constants: Mapping[str, Any]) -> tuple[list[str], bool]:
    """The constants that a limit speaks of, and whether it holds."""
    if not isinstance(limit, str):
        raise ModelError(f"limits: {limit!r} is no text, as 'K >= 2'")
    if words := WORDS.fullmatch(limit):
        names = [words[1]]
        sides = []
    else:
        parts = SIGN.split(limit)
        if len(parts) < 3:
            raise ModelError(f"limits: {limit!r} is no comparison, as 'K >= 2'")
        sides = [Expression(part, "limits") for part in parts[::2]]
        names = [*dict.fromkeys(name for side in sides for name in side.names)]
    if unknown := [name for name in names if name not in constants]:
        raise ModelError(f"limits: {limit!r} speaks of {unknown[0]}, which is no constant")
    if words:
        return names, constants[names[0]] in re.split(r"\s*,\s*", words[2].strip())
    values = [side.value(constants) for side in sides]
    pairs = zip(parts[1::2], values[:-1], values[1:], strict=True)
    return names, all(SIGNS[sign](left, right) for sign, left, right in pairs)
