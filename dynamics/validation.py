"""Refusing a wrong request in one line: parameter, value, what is allowed, the nearest valid one.

The checks are used as pydantic validators of the fields of every system's ``Parameters``, and
called directly for what is not a field (learning rates, steps, sizes).
"""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from difflib import SequenceMatcher
from numbers import Integral, Real
from typing import Annotated, Any, NoReturn

from pydantic import BeforeValidator, ConfigDict, ValidationError, ValidationInfo

STRICT = ConfigDict(extra="forbid", validate_default=True)
"""Configuration of every ``Parameters``: misspelt names are refused, defaults are checked."""


class InvalidRequest(ValueError):
    """A request that cannot be served; the message is one line for the user."""


BRIEF = 60
"""Letters of a long list in a message."""


def brief(text: str) -> str:
    """A text, or the begin of a long one."""
    return text if len(text) <= BRIEF else f"{text[: BRIEF - 4]} ..."


def refuse(parameter: str, value: object, problem: str, allowed: str, nearest: object) -> NoReturn:
    """Raise `InvalidRequest` in the one form that every refusal has.

    Parameters
    ----------
    parameter : str
        Name as the user wrote it.
    value : object
        The value that is refused.
    problem : str
        Why it cannot be, to be read after ``name=value``.
    allowed : str
        Every allowed value, to be read after "can be".
    nearest : object
        The nearest valid value.
    """
    written = repr(value) if isinstance(value, str) else str(value)
    raise InvalidRequest(
        f"{parameter}={written} {problem}; {parameter} can be {allowed}; nearest: {nearest}"
    )


def nearest_name(name: object, names: Sequence[str]) -> str:
    """The most similar of some names: one that begins alike, else the longest common parts.

    Parameters
    ----------
    name : object
    names : sequence of str
        At least one; the first where nothing is similar.

    Examples
    --------
    >>> nearest_name("mix", ["any", "mixed"]), nearest_name("exakt", ["auto", "exact"])
    ('mixed', 'exact')
    """
    text = str(name).lower()

    def likeness(other: str) -> tuple[bool, float]:
        alike = SequenceMatcher(None, text, other.lower()).ratio()
        return bool(text) and other.lower().startswith(text), alike

    return max(names, key=likeness)


def known_word(parameter: str, value: object, choices: Sequence[str]) -> str:
    """One of the words that a parameter can be.

    Parameters
    ----------
    parameter : str
        Name as the user wrote it.
    value : object
    choices : sequence of str

    Raises
    ------
    InvalidRequest
        For anything else, with the most similar word.
    """
    if value not in choices:
        allowed = ", ".join(choices)
        refuse(parameter, value, "is unknown", allowed, nearest_name(value, choices))
    return str(value)


def first_problem(error: ValidationError) -> str:
    """The first thing that is wrong with parameters, in one line."""
    problem: Any = error.errors()[0]
    cause = problem.get("ctx", {}).get("error")
    return str(cause or f"{'.'.join(map(str, problem['loc']))}: {problem['msg']}")


def integer(
    parameter: str, value: object, at_least: int, at_most: int = 10**6, odd: bool = False
) -> int:
    """A whole number (16.0 is one) within bounds, odd where required.

    Parameters
    ----------
    parameter : str
        Name as the user wrote it.
    value : object
    at_least, at_most : int
        Bounds, inclusive.
    odd : bool

    Raises
    ------
    InvalidRequest
        For anything else.
    """
    allowed = f"{'an odd' if odd else 'a whole'} number of at least {at_least}"
    allowed += "" if at_most == 10**6 else f" and at most {at_most:,}"
    if isinstance(value, bool) or not isinstance(value, Real):
        refuse(parameter, value, "is not a number", allowed, at_least)
    if not isinstance(value, Integral) and not math.isfinite(value):
        refuse(parameter, value, "is not finite", allowed, at_least)
    rounded = int(value) if isinstance(value, Integral) else round(float(value))
    near = max(at_least, rounded + (1 if odd and rounded % 2 == 0 else 0))
    if value != rounded:
        refuse(parameter, value, "is not a whole number", allowed, near)
    if rounded < at_least:
        refuse(parameter, value, "is too small", allowed, near)
    if rounded > at_most:
        refuse(parameter, value, "is too large", f"at most {at_most:,}", at_most - (odd and 1))
    if odd and rounded % 2 == 0:
        refuse(parameter, value, "is even", allowed, near)
    return rounded


def real(
    parameter: str,
    value: object,
    above: float | None = None,
    at_least: float | None = None,
    at_most: float | None = None,
) -> float:
    """A finite number within bounds.

    Parameters
    ----------
    parameter : str
        Name as the user wrote it.
    value : object
    above : float, optional
        Bound, exclusive.
    at_least, at_most : float, optional
        Bounds, inclusive.

    Raises
    ------
    InvalidRequest
        For anything else.
    """
    bounds = [("above", above), ("at least", at_least), ("at most", at_most)]
    words = [f"{word} {bound:g}" for word, bound in bounds if bound is not None]
    allowed = "a finite number" + (" " + " and ".join(words) if words else "")
    inside = at_most if at_most is not None else 1e-6 if above is not None else at_least or 0.0
    if isinstance(value, bool) or not isinstance(value, Real):
        refuse(parameter, value, "is not a number", allowed, inside)
    try:
        number = float(value)
    except OverflowError:
        number = math.inf
    if not math.isfinite(number):
        refuse(parameter, value, "is not finite", allowed, inside)
    if above is not None and number <= above:
        refuse(parameter, value, "is too small", allowed, above + 1e-6)
    if at_least is not None and number < at_least:
        refuse(parameter, value, "is too small", allowed, f"{at_least:g}")
    if at_most is not None and number > at_most:
        refuse(parameter, value, "is too large", allowed, f"{at_most:g}")
    return number


def learning_rate(value: object, groups: tuple[str, ...] | None) -> tuple[float, ...]:
    """Learning rates: one for each parameter group.

    Parameters
    ----------
    value : float or sequence of float
        One positive number for all groups, or one for each.
    groups : tuple of str or None
        Without groups, only the numbers are checked.

    Raises
    ------
    InvalidRequest
        For another number of them, or one that is not positive.
    """
    import numpy as np

    single = np.ndim(value) == 0  # type: ignore[arg-type]
    many = [value.item() if isinstance(value, np.ndarray) else value] if single else list(value)  # type: ignore[call-overload]
    if single and groups is not None:
        many = many * len(groups)
    if groups is not None and len(many) != len(groups):
        allowed = f"one number, or one for each of {', '.join(groups)}"
        refuse("eta", value, f"has {len(many)} entries", allowed, many[0] if many else 1e-2)
    return tuple(real("eta", number, above=0.0) for number in many)


def _field(check: Callable[..., Any], optional: bool, **bounds: Any) -> BeforeValidator:
    def validate(value: object, info: ValidationInfo) -> Any:
        if value is None and optional:
            return None
        return check(info.field_name, value, **bounds)

    return BeforeValidator(validate)


def whole(at_least: int, odd: bool = False, optional: bool = False) -> Any:
    """Field type: a whole number.

    Parameters
    ----------
    at_least : int
    odd : bool
    optional : bool
        None is allowed, and left to a default set later.
    """
    return Annotated[Any, _field(integer, optional, at_least=at_least, odd=odd)]


def word(*choices: str) -> Any:
    """Field type: one of these words."""
    return Annotated[Any, _field(known_word, False, choices=choices)]


def number(optional: bool = False, **bounds: float) -> Any:
    """Field type: a finite number with the bounds of `real`; optional as in `whole`."""
    return Annotated[Any, _field(real, optional, **bounds)]
