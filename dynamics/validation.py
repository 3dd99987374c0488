"""Validation of single values: numbers, paths, seeds, learning rates.

A message is one line with the parameter, its value, the allowed values, and the nearest valid
value. `dynamics.parameter_fields` makes field types from these checks.
"""

from __future__ import annotations

import math
import os
import re
from bisect import bisect_right
from collections.abc import Callable, Sequence
from difflib import SequenceMatcher
from math import log10
from numbers import Integral, Real
from pathlib import Path
from typing import TYPE_CHECKING, NoReturn

if TYPE_CHECKING:
    from numpy.random import Generator

BRIEF = 60
"""Maximum number of characters of a name in a message; a longer name is cut."""
SHOWN = 100
"""Maximum number of characters of a value in a message; a longer value loses its middle."""
LONGEST = 290
"""Maximum number of characters of a message, so that a printed line has at most 300."""
NEAR = 0.55
"""Minimum similarity (0 to 1) for the suggestion of a known flag or file for an unknown one."""
SYNONYMS = {
    "eta": ("lr", "rate", "learning_rate", "step_size", "stepsize"),
    "samples": ("n", "num_samples", "n_samples", "size"),
    "seed": ("seeds", "random_state", "rng"),
    "steps": ("epochs", "iterations", "iters", "num_steps", "n_steps"),
    "time": ("t", "tau", "horizon", "t_max"),
    "out": ("output", "o", "file", "dir"),
    "q": ("prob", "probability"),
    "batch": ("batch_size", "minibatch"),
    "rtol": ("tol",),
}
"""Name -> alternative names in other programs, for suggestions."""


class InvalidRequest(ValueError):
    """An invalid request; the message is one line of at most `LONGEST` characters."""

    def __init__(self, message: object) -> None:
        super().__init__(one_line(str(message)))


def brief(text: str) -> str:
    """A text, truncated to `BRIEF` characters."""
    return text if len(text) <= BRIEF else f"{text[: BRIEF - 4]} ..."


def one_line(text: str, longest: int = LONGEST) -> str:
    """Join a text to one line of at most `longest` characters by omitting its middle.

    The middle of a long line or word is omitted because the end states the remedy.
    """
    line = " ".join(text.split("\n"))
    if len(line) <= longest:
        return line
    if longest > SHOWN:
        line = re.sub(rf"\S{{{SHOWN + 1},}}", lambda word: one_line(word[0], SHOWN), line)
    last = longest // 3
    short = f"{line[: longest - last - 5].rstrip()} ... {line[-last:].lstrip()}"
    return line if len(line) <= longest else short


def nearest_name(name: object, names: Sequence[str], at_least: float = 0.0) -> str:
    """Return the one of `names` closest to `name`: by synonym, by number, or by letters.

    Names of flags include their dashes. Without a similar name the first of `names` is returned,
    or "" if every similarity (0 to 1) is below `at_least`.

    Examples
    --------
    >>> nearest_name("mix", ["any", "mixed"]), nearest_name("exakt", ["auto", "exact"])
    ('mixed', 'exact')
    >>> nearest_name("--learning-rate", ["--eta", "--q"]), nearest_name("fig7", ["2", "4", "phase"])
    ('--eta', '4')
    """
    bare = str(name)[:BRIEF].lstrip("-").lower().replace("-", "_")
    folded = {other.lstrip("-").lower(): other for other in names}
    for word in (bare, *(known for known, others in SYNONYMS.items() if bare in others)):
        if word in folded:
            return folded[word]
    number = re.search(r"\d{1,9}", bare)
    numbered = {o: int(m[0]) for o in folded if (m := re.match(r"\d{1,9}", o))}
    if number and numbered:
        return folded[min(numbered, key=lambda other: abs(numbered[other] - int(number[0])))]

    def likeness(other: str) -> tuple[bool, float]:
        return bool(bare) and other.startswith(bare), SequenceMatcher(None, bare, other).ratio()

    near = max(folded, key=likeness)
    begins, ratio = likeness(near)
    return folded[near] if begins or ratio >= at_least else ""


def refuse(parameter: str, value: object, problem: str, allowed: str, nearest: object) -> NoReturn:
    """Raise `InvalidRequest` with parameter, value, problem, allowed and nearest values.

    An empty `nearest` omits the last part of the message.
    """
    name, choice = brief(parameter), one_line(_written(nearest), SHOWN)
    front = f"{name}={shown(value)} {problem}; {name} can be "
    rest = f"; nearest: {choice}" if choice else ""
    room = LONGEST - len(front) - len(rest)
    listed = allowed if len(allowed) <= room else f"{allowed[: max(0, room - 4)]} ..."
    raise InvalidRequest(front + listed + rest)


def written(count: int) -> str:
    """Write a count in digits, or from 10^15 on as a power of ten."""
    return f"{count:,}" if count < 10**15 else f"10^{int(log10(count))}"


def check_cost(
    parameter: str,
    value: int,
    cost: Callable[[int], float],
    most: float,
    unit: str,
    sizes: Sequence[int] = (),
) -> None:
    """Refuse a size whose cost exceeds `most`, and suggest the largest affordable size.

    The function `cost` must increase with the size. The unit of `cost` and `most` is named `unit`.
    If `sizes` (ascending) are given, the suggestion is one of them.
    """
    if cost(value) <= most:
        return
    sizes = sizes or range(1, value)
    fit = bisect_right(sizes, most, key=cost)
    near = sizes[fit - 1] if fit else "none at these other parameters"
    problem = f"needs about {cost(value):.2g} {unit}"
    refuse(parameter, value, problem, f"a size that needs at most {most:.2g}", near)


def known_word(
    parameter: str, value: object, choices: Sequence[str], problem: str = "is unknown"
) -> str:
    """Return a value that is one of `choices`; else raise InvalidRequest with the nearest one.

    The text `problem` follows ``name=value`` in the message.
    """
    if value not in choices:
        near = nearest_name(value, choices) if choices else "none"
        refuse(parameter, value, problem, ", ".join(choices), near)
    return str(value)


def _written(value: object) -> str:
    try:
        return str(value)
    except ValueError:  # an integer with more digits than Python prints
        return type(value).__name__


def shown(value: object) -> str:
    """Text of a value for a message, truncated to `SHOWN` characters."""
    text = _written(value) if not isinstance(value, str) else value
    return repr(one_line(text, SHOWN)) if isinstance(value, str) else one_line(text, SHOWN)


def unknown(kind: str, name: str, names: Sequence[str]) -> InvalidRequest:
    """InvalidRequest for an unknown name of a `kind`, with the known and the nearest `names`."""
    front = f"{kind} {brief(name)!r} is unknown; known are "
    near = nearest_name(name, names, NEAR if kind == "flag" else 0.0) if names else ""
    rest = f"; nearest: {near}" if near else ""
    listed, room = ", ".join(names) or "none", LONGEST - len(front) - len(rest)
    if len(listed) > room:
        listed = f"{listed[: room - 5].rpartition(',')[0]}, ..."
    return InvalidRequest(front + listed + rest)


NEGATIVE = -(2**31)
"""Lower bound of integers that are otherwise unbounded; messages do not mention it."""


def integer(
    parameter: str, value: object, at_least: int, at_most: int = 10**6, odd: bool = False
) -> int:
    """Return an integer (16.0 is accepted) within inclusive bounds, odd if required.

    Raises InvalidRequest for any other value.
    """
    allowed = whole_words(at_least, odd)
    allowed += "" if at_most == 10**6 else f" and at most {at_most:,}"
    if isinstance(value, bool) or not isinstance(value, Real):
        refuse(parameter, value, "is not a number", allowed, max(at_least, 0))
    if not isinstance(value, Integral) and not math.isfinite(_float(value)):
        refuse(parameter, value, "is not finite", allowed, max(at_least, 0))
    rounded = int(value) if isinstance(value, Integral) else round(float(value))
    near = max(at_least, rounded + (1 if odd and rounded % 2 == 0 else 0))
    if value != rounded:
        refuse(parameter, value, "is not a whole number", allowed, near)
    if rounded < at_least:
        refuse(parameter, value, "is too small", allowed, near)
    if rounded > at_most:
        largest = at_most - (1 if odd and at_most % 2 == 0 else 0)
        refuse(parameter, value, "is too large", f"at most {at_most:,}", largest)
    if odd and rounded % 2 == 0:
        refuse(parameter, value, "is even", allowed, near)
    return rounded


def whole_words(at_least: int, odd: bool) -> str:
    """Text of the integers that are allowed; ``at_least=NEGATIVE`` means no lower bound."""
    kind = "an odd number" if odd else "a whole number"
    return f"{kind} of at least {at_least}" if at_least > NEGATIVE else kind


def real_words(
    above: float | None = None, at_least: float | None = None, at_most: float | None = None
) -> str:
    """Text of the allowed numbers: `above` is exclusive, `at_least` and `at_most` are inclusive."""
    bounds = [("above", above), ("at least", at_least), ("at most", at_most)]
    words = [f"{word} {bound:g}" for word, bound in bounds if bound is not None]
    return "a finite number" + (" " + " and ".join(words) if words else "")


def real(
    parameter: str,
    value: object,
    above: float | None = None,
    at_least: float | None = None,
    at_most: float | None = None,
) -> float:
    """Return a finite number as float: above an exclusive bound, within inclusive bounds.

    Raises InvalidRequest for any other value.
    """
    inside: object = 1e-6 if above is not None else at_least or 0.0
    inside = inside if at_most is None else at_most
    wrong, number = "", 0.0
    if isinstance(value, bool) or not isinstance(value, Real):
        wrong = "is not a number"
    elif not math.isfinite(number := _float(value)):
        wrong = "is not finite"
    elif above is not None and number <= above:
        wrong, inside = "is too small", above + 1e-6
    elif at_least is not None and number < at_least:
        wrong, inside = "is too small", f"{at_least:g}"
    elif at_most is not None and number > at_most:
        wrong, inside = "is too large", f"{at_most:g}"
    if wrong:
        refuse(parameter, value, wrong, real_words(above, at_least, at_most), inside)
    return number


def _float(value: Real) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf


def path_of(parameter: str, value: object) -> Path:
    """Convert a value to a path, and expand a leading ``~``.

    Raises InvalidRequest if the value is not a path, contains a null character, or begins with
    ``~`` and an unknown user.
    """
    if not isinstance(value, (str, os.PathLike)):
        refuse(parameter, value, "is not a path", "a path", "'results'")
    path = Path(value)
    if "\0" in str(path):
        refuse(parameter, str(path), "holds a null character", "a path without one", "'results'")
    try:
        return path.expanduser()
    except RuntimeError:
        user, near = path.parts[0], repr(f"./{path}")
        refuse(parameter, str(path), f"begins with {user}, an unknown user", "a path", near)


def random_stream(seed: object, name: str = "seed") -> Generator:
    """Random generator of a seed (an integer of at least 0); a Generator is returned unchanged.

    Raises InvalidRequest, with the parameter called `name`, for any other seed.
    """
    import numpy as np

    if isinstance(seed, np.random.Generator):
        return seed
    return np.random.default_rng(integer(name, seed, at_least=0, at_most=2**62))


def learning_rate(value: object, groups: tuple[str, ...] | None) -> tuple[float, ...]:
    """Check learning rates: one positive number, or one for each parameter group (0 freezes it).

    With ``groups=None`` any number of rates is accepted. Raises InvalidRequest for a wrong number
    of rates or an invalid rate.
    """
    import numpy as np

    try:
        single = np.ndim(value) == 0  # type: ignore[arg-type]
    except ValueError:
        refuse("eta", value, "is ragged", "one number, or a list of them", 1e-2)
    if single:
        rate = real("eta", value.item() if isinstance(value, np.ndarray) else value, above=0.0)
        return (rate,) * (1 if groups is None else len(groups))
    many = list(value)  # type: ignore[call-overload]
    if groups is not None and len(many) != len(groups):
        allowed = f"one number, or one for each of {', '.join(groups)}"
        refuse("eta", value, f"has {len(many)} entries", allowed, many[0] if many else 1e-2)
    rates = tuple(real("eta", number, at_least=0.0) for number in many)
    real("eta", max(rates, default=0.0), above=0.0)
    return rates
