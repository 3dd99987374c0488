"""Sliders of a model of one's own: where constants end, and its limits as JavaScript."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import numpy as np
import sympy

from dynamics.explorer.page_model import Slider
from dynamics.explorer.printing import expression, script
from dynamics.explorer.real_constants import Reading
from dynamics.models.engine.definition import SIGN, WORDS, Limit, parse_limits
from theory.model import Model

FAR = 1e6
"""Times its size, or 1: a constant that may go so far has no end."""
RANGE = 10.0
"""Factor to either side of a constant without an end."""
DIGITS = 9


def limits_of(model: Model) -> tuple[Limit, ...]:
    """What the constants of a model must fulfil."""
    return parse_limits(model.limits or (), model.constants)


def words_of(name: str, limits: Sequence[Limit]) -> tuple[str, ...]:
    """The words that a constant may be; none where the model does not list them.

    Parameters
    ----------
    name : str
    limits : sequence of Limit
    """
    for limit in limits:
        stated = WORDS.fullmatch(limit.text)
        if stated and stated[1] == name:
            return tuple(word.strip() for word in stated[2].split(","))
    return ()


def real_slider(
    name: str, constants: Mapping[str, Any], limits: Sequence[Limit], weights: Reading, ends: str
) -> Slider:
    """The slider of a real constant, between its exact ends.

    Parameters
    ----------
    name : str
    constants : mapping
        Values of all.
    limits : sequence of Limit
    weights : Reading
        Probabilities of the samples, which are not negative.
    ends : str
        What the reader should know of it.
    """
    value = float(constants[name])
    reals = {other for other, v in constants.items() if isinstance(v, float)}
    own = [limit for limit in limits if reals & set(limit.names) == {name}]

    def allowed(x: float) -> bool:
        there = {**constants, name: x}
        if not all(limit.holds(there) for limit in own):
            return False
        chances = weights.at(there) if not weights.constant else np.zeros(1)
        return bool((chances >= -1e-15).all())

    size = abs(value) or 1.0
    low, high = _end(allowed, value, -size), _end(allowed, value, size)
    least = low if low is not None else value / RANGE if value > 0 else value - RANGE * size
    most = high if high is not None else RANGE * value if value > 0 else value + RANGE * size
    opened = low is not None and not allowed(low)
    if high is None and opened and least == 0.0:
        least, opened = value / RANGE**2, False
    positive = least > 0 and most / least >= RANGE**2
    return Slider(name, least, most, opened, logarithmic=positive, ends=ends)


def _end(allowed: Callable[[float], bool], value: float, step: float) -> float | None:
    """Where a constant ends in one direction; None if it does not."""
    inside, outside = value, value + step
    while allowed(outside):
        inside, step = outside, 2 * step
        outside = value + step
        if abs(step) > FAR * max(1.0, abs(value)):
            return None
    for _ in range(80):
        middle = (inside + outside) / 2
        inside, outside = (middle, outside) if allowed(middle) else (inside, middle)
    return float(f"{inside:.{DIGITS}g}") if abs(inside) > 1e-15 else 0.0


def chosen_slider(name: str, values: Sequence[Any], command: str) -> Slider:
    """The slider over the values of a constant that a page holds.

    Parameters
    ----------
    name : str
    values : sequence
        Numbers or words.
    command : str
        That writes a page with another value.
    """
    ordered = tuple(values) if isinstance(values[0], str) else tuple(sorted(values))
    word = isinstance(ordered[0], str)
    ends = f"{command} --{name} ... writes a page with another"
    if word:
        return Slider(name, values=ordered, ends=ends)
    return Slider(name, float(ordered[0]), float(ordered[-1]), values=ordered, ends=ends)


def idle_slider(name: str, value: Any) -> Slider:
    """The slider of a constant that changes nothing.

    Parameters
    ----------
    name : str
    value : int or str
    """
    ends = "changes nothing at these values of the others"
    if isinstance(value, str):
        return Slider(name, values=(value,), ends=ends)
    return Slider(name, float(value), float(value), values=(value,), ends=ends)


def printed_limits(limits: Sequence[Limit]) -> str:
    """Limits as a list of JavaScript, each with its text and a function that says if it holds.

    Examples
    --------
    >>> print(printed_limits(parse_limits(["0 < q < p"], ["q", "p"])))
    [{ text: "0 < q < p", names: ["q", "p"], holds: ({ q, p }) => 0 < q && q < p }]
    """
    return "[" + ",\n  ".join(map(_limit, limits)) + "]"


def _limit(limit: Limit) -> str:
    stated = WORDS.fullmatch(limit.text)
    if stated:
        words = [word.strip() for word in stated[2].split(",")]
        test = f"{script(words)}.includes({stated[1]})"
    else:
        parts = SIGN.split(limit.text)
        sides = [_side(part, limit.names) for part in parts[::2]]
        test = " && ".join(
            f"{left} {sign} {right}"
            for left, sign, right in zip(sides, parts[1::2], sides[1:], strict=False)
        )
    names = ", ".join(limit.names)
    return (
        f"{{ text: {script(limit.text)}, names: {script(list(limit.names))}, "
        f"holds: ({{ {names} }}) => {test} }}"
    )


def _side(text: str, names: Sequence[str]) -> str:
    """A side of a limit, which `dynamics.results.expression` has found to be plain arithmetic."""
    known: dict[str, Any] = {name: sympy.Symbol(name, real=True) for name in names}
    known |= {"ceil": sympy.ceiling, "abs": sympy.Abs, "min": sympy.Min, "max": sympy.Max}
    known |= {f"log{k}": lambda x, k=k: sympy.log(x) / sympy.log(k) for k in (2, 10)}
    return expression(sympy.parse_expr(text.strip(), local_dict=known))
