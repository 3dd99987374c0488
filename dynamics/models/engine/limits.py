"""Limits on the constants of a model, parsed from text.

A limit compares formulas in the constants, as in ``"K >= 2"`` or ``"s + t*(D - 1) > 0"``, or lists
the words allowed for a constant, as in ``"target in staircase, leap"``.
"""

from __future__ import annotations

import operator
import re
from collections.abc import Callable, Iterable, Mapping
from dataclasses import dataclass, field, replace
from itertools import pairwise
from typing import Any

from dynamics.results.expression import Expression
from dynamics.validation import InvalidRequest, shown
from theory.law import ModelError

SIGNS = {"<=": operator.le, ">=": operator.ge, "<": operator.lt, ">": operator.gt}
SIGN = re.compile("(<=|>=|<|>)")
WORDS = re.compile(r"\s*(\w+) in (.+)")


@dataclass(frozen=True)
class Limit:
    """A condition on the constants of a model.

    `names` lists the constants in the `text` of the condition. `defaults` has the integer defaults
    of constants, from which a bisection finds the nearest allowed value for a message.
    """

    text: str
    names: tuple[str, ...]
    holds: Callable[[Mapping[str, Any]], bool]
    defaults: Mapping[str, int] = field(default_factory=dict)

    def check(self, model: str, constants: Mapping[str, Any]) -> None:
        """Raise InvalidRequest if the constants, name -> value, of a model violate the limit."""
        if not self.holds(constants):
            there = " ".join(f"{name}={shown(constants[name])}" for name in self.names)
            raise InvalidRequest(
                f"{there} is outside the limits of {model}: {self.text}{self._near(constants)}"
            )

    def _near(self, constants: Mapping[str, Any]) -> str:
        """Text with the allowed integer nearest to the requested one; "" if not found."""
        for name, inside in self.defaults.items():
            outside = constants[name]
            if type(outside) is not int or not self.holds({**constants, name: inside}):
                continue
            while abs(outside - inside) > 1:
                middle = (inside + outside) // 2
                held = self.holds({**constants, name: middle})
                inside, outside = (middle, outside) if held else (inside, middle)
            return f"; nearest: {name}={inside}"
        return ""


def parse_limits(texts: Iterable[Any], constants: Iterable[str]) -> tuple[Limit, ...]:
    """Parse the limits of a model.

    If `constants` is a mapping to default values, messages suggest an allowed value. Raises
    ModelError if a limit is not a comparison of formulas in the constants, and InvalidRequest if a
    formula cannot be parsed.

    Examples
    --------
    >>> (limit,) = parse_limits(["0 < q < p"], ["q", "p"])
    >>> limit.names, limit.holds({"q": 1, "p": 2}), limit.holds({"q": 3, "p": 2})
    (('q', 'p'), True, False)
    """
    limits, allowed = [], set(constants)
    for text in texts:
        if not isinstance(text, str):
            raise ModelError(f"limits: {text!r} is not text such as 'K >= 2'")
        words = WORDS.fullmatch(text)
        limit = _one_of(text, *words.groups()) if words else _comparison(text)
        if unknown := [name for name in limit.names if name not in allowed]:
            raise ModelError(f"limits: {text!r} contains {unknown[0]}, which is not a constant")
        if isinstance(constants, Mapping):
            whole_ones = {n: constants[n] for n in limit.names if type(constants[n]) is int}
            limit = replace(limit, defaults=whole_ones)
        limits.append(limit)
    return tuple(limits)


def _one_of(text: str, name: str, words: str) -> Limit:
    allowed = re.split(r"\s*,\s*", words.strip())
    return Limit(text, (name,), lambda constants: constants[name] in allowed)


def _comparison(text: str) -> Limit:
    parts = SIGN.split(text)
    if len(parts) < 3 or not all(side.strip() for side in parts[::2]):
        raise ModelError(f"limits: {text!r} is not a comparison such as 'K >= 2'")
    sides = [Expression(part, "limits") for part in parts[::2]]
    signs = [SIGNS[sign] for sign in parts[1::2]]

    def holds(constants: Mapping[str, Any]) -> bool:
        values = pairwise(side.value(constants) for side in sides)
        return all(compare(*pair) for compare, pair in zip(signs, values, strict=True))

    return Limit(text, tuple(dict.fromkeys(name for side in sides for name in side.names)), holds)
