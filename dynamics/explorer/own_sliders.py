"""Sliders of a user's model: ranges of the constants, and limits as JavaScript."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any

import sympy

from dynamics.explorer.page_model import Slider
from dynamics.explorer.printing import expression, function_of, script
from dynamics.models.engine.limits import SIGN, WORDS, Limit
from dynamics.models.engine.real_constants import Reading

FAR = 1e6
"""A constant counts as unbounded if its value may change by this multiple of its size (or of 1)."""
RANGE = 10.0
"""Factor between the initial value of an unbounded constant and each end of its slider."""
DIGITS = 9


def words_of(limit: Limit) -> list[str]:
    """Words that a limit allows for its constant, or an empty list for a numerical limit."""
    listed = WORDS.fullmatch(limit.text)
    return [word.strip() for word in listed[2].split(",")] if listed else []


def real_slider(
    name: str, constants: Mapping[str, Any], limits: Sequence[Limit], weights: Reading, ends: str
) -> Slider:
    """Slider of a real constant over the range that the limits and the weights allow.

    The `weights`, probabilities of the samples, must not become negative. The text `ends` is a
    remark on the range.
    """
    value = float(constants[name])
    reals = {other for other, v in constants.items() if isinstance(v, float)}
    own = [limit for limit in limits if reals & set(limit.names) == {name}]

    def allowed(x: float) -> bool:
        there = {**constants, name: x}
        if not all(limit.holds(there) for limit in own):
            return False
        return weights.constant or bool((weights.at(there) >= -1e-15).all())

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
    """End of the range of a constant in the direction of `step`, or None if unbounded."""
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


def choice(name: str, values: Sequence[Any], ends: str) -> Slider:
    """Slider over the values available on the page; `ends` says why other values are missing."""
    if isinstance(values[0], str):
        return Slider(name, values=tuple(values), ends=ends)
    numbers = tuple(sorted(values))
    return Slider(name, float(numbers[0]), float(numbers[-1]), values=numbers, ends=ends)


def printed_limits(limits: Sequence[Limit]) -> str:
    """Limits as a JavaScript list, each with its text and a function that tests it.

    Examples
    --------
    >>> from dynamics.models.engine.limits import parse_limits
    >>> print(printed_limits(parse_limits(["0 < q < p"], ["q", "p"])))
    [{ text: "0 < q < p", names: ["q", "p"], holds: ({ q, p }) => 0 < q && q < p }]
    """
    return "[" + ",\n  ".join(map(_limit, limits)) + "]"


def _limit(limit: Limit) -> str:
    words = words_of(limit)
    parts = SIGN.split(limit.text)
    test = f"{script(words)}.includes({limit.names[0]})" if words else " && ".join(
        f"{_side(left, limit.names)} {sign} {_side(right, limit.names)}"
        for left, sign, right in zip(parts[::2], parts[1::2], parts[2::2], strict=False)
    )  # fmt: skip
    holds = function_of(limit.names, test)
    return f"{{ text: {script(limit.text)}, names: {script(limit.names)}, holds: {holds} }}"


def _side(text: str, names: Sequence[str]) -> str:
    """Convert one side of a limit, checked by `dynamics.results.expression`, to JavaScript."""
    letters: dict[str, Any] = {name: sympy.Symbol(name, real=True) for name in names}
    letters |= {"ceil": sympy.ceiling, "abs": sympy.Abs, "min": sympy.Min, "max": sympy.Max}
    letters |= {f"log{k}": lambda x, k=k: sympy.log(x) / sympy.log(k) for k in (2, 10)}
    return expression(sympy.parse_expr(text.strip(), local_dict=letters))
