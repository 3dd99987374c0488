"""Checks of single values: numbers, paths, seeds, learning rates."""

from __future__ import annotations

import math
import os
from numbers import Integral, Real
from pathlib import Path
from typing import TYPE_CHECKING

from dynamics.validation.refusals import refuse

if TYPE_CHECKING:
    from numpy.random import Generator

NEGATIVE = -(2**31)
"""Least of the whole numbers that have no bound of their own, and are told none."""


def integer(
    parameter: str, value: object, at_least: int, at_most: int = 10**6, odd: bool = False
) -> int:
    """A whole number (16.0 is one) within bounds, odd where required.

    `parameter`: name as the user wrote it; `at_least`, `at_most`: bounds, inclusive. Raises
    InvalidRequest for anything else.
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
    """Allowed whole numbers in words.

    `at_least`: no bound where it is `NEGATIVE`.
    """
    kind = "an odd number" if odd else "a whole number"
    return f"{kind} of at least {at_least}" if at_least > NEGATIVE else kind


def real_words(
    above: float | None = None, at_least: float | None = None, at_most: float | None = None
) -> str:
    """Allowed numbers in words.

    `above`: bound, exclusive; `at_least`, `at_most`: bounds, inclusive.
    """
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
    """A finite number within bounds.

    `parameter`: name as the user wrote it; `above`: bound, exclusive; `at_least`, `at_most`:
    bounds, inclusive. Raises InvalidRequest for anything else.
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
    """A path, with a ``~`` at its beginning as the folder of the user.

    `parameter`: name as the user wrote it. Raises InvalidRequest if it is neither, holds a null
    character, or begins with a ``~`` of no known user.
    """
    if not isinstance(value, (str, os.PathLike)):
        refuse(parameter, value, "is not a path", "a path", "'results'")
    path = Path(value)
    if "\0" in str(path):
        refuse(parameter, str(path), "holds a null character", "a path without", "'results'")
    try:
        return path.expanduser()
    except RuntimeError:
        user, near = path.parts[0], repr(f"./{path}")
        refuse(parameter, str(path), f"begins with {user}, no known user", "a path", near)


def random_stream(seed: object, name: str = "seed") -> Generator:
    """The random generator of a seed.

    `seed`: a generator is returned as it is; `name`: of the parameter, for the message. Raises
    InvalidRequest if it is neither a generator nor a whole number from 0.
    """
    import numpy as np

    if isinstance(seed, np.random.Generator):
        return seed
    return np.random.default_rng(integer(name, seed, at_least=0, at_most=2**62))


def learning_rate(value: object, groups: tuple[str, ...] | None) -> tuple[float, ...]:
    """Learning rates: one for each parameter group.

    `value`: one positive number for all groups, or one for each; some may be 0, not all; `groups`:
    without groups, only the numbers are checked. Raises InvalidRequest for another number of them,
    or one that cannot be.
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
