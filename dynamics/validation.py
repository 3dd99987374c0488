"""Refusing a wrong request in one line: parameter, value, what is allowed, the nearest valid one.

The checks are used as pydantic validators of the fields of every system's ``Parameters``, and
called directly for what is not a field (learning rates, steps, sizes).
"""

from __future__ import annotations

import functools
import math
import os
import re
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from difflib import SequenceMatcher
from numbers import Integral, Real
from pathlib import Path
from typing import TYPE_CHECKING, Annotated, Any, NoReturn, TypeVar, get_args, get_type_hints

from pydantic import BeforeValidator, ConfigDict, ValidationError, ValidationInfo

if TYPE_CHECKING:
    from numpy.random import Generator

STRICT = ConfigDict(extra="forbid", validate_default=True)
"""Configuration of every ``Parameters``: misspelt names are refused, defaults are checked."""


BRIEF = 60
"""Letters of a long list or name."""
SHOWN = 100
"""Letters of a value in a message."""
LONGEST = 290
"""Letters of a message, so that a line of the command line has at most 300."""
PLAIN_KINDS: dict[Any, str] = {bool: "True or False", str: "a word", int: "a whole number"}
"""Types of fields that check nothing else -> what they can be."""
NEGATIVE = -(2**31)
"""Least of the whole numbers that have no bound of their own, and are told none."""
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
"""Name -> what else it is called elsewhere, for suggestions."""


class InvalidRequest(ValueError):
    """A request that cannot be served; the message is one line of at most 290 letters."""

    def __init__(self, message: object) -> None:
        super().__init__(one_line(str(message)))


def brief(text: str) -> str:
    """A text, or the begin of a long one."""
    return text if len(text) <= BRIEF else f"{text[: BRIEF - 4]} ..."


def one_line(text: str, longest: int = LONGEST) -> str:
    """A text in one line; of a long word or line the middle is left out: the end has the remedy.

    Parameters
    ----------
    text : str
    longest : int
        Letters of the line.
    """
    line = " ".join(text.split("\n"))
    if len(line) <= longest:
        return line
    if longest > SHOWN:
        line = re.sub(rf"\S{{{SHOWN + 1},}}", lambda word: one_line(word[0], SHOWN), line)
    last = longest // 3
    short = f"{line[: longest - last - 5].rstrip()} ... {line[-last:].lstrip()}"
    return line if len(line) <= longest else short


def nearest_name(name: object, names: Sequence[str]) -> str:
    """The name that is meant: by another word for it, by its number, or by its letters.

    Parameters
    ----------
    name : object
        Flags with their dashes.
    names : sequence of str
        At least one; the first where nothing is similar.

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

    return folded[max(folded, key=likeness)]


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
    name, choice = brief(parameter), one_line(_written(nearest), SHOWN)
    front, rest = f"{name}={shown(value)} {problem}; {name} can be ", f"; nearest: {choice}"
    room = LONGEST - len(front) - len(rest)
    listed = allowed if len(allowed) <= room else f"{allowed[: max(0, room - 4)]} ..."
    raise InvalidRequest(front + listed + rest)


def known_word(
    parameter: str, value: object, choices: Sequence[str], problem: str = "is unknown"
) -> str:
    """One of the words that a parameter can be.

    Parameters
    ----------
    parameter : str
        Name as the user wrote it.
    value : object
    choices : sequence of str
    problem : str
        Why no other word can be, to be read after ``name=value``.

    Raises
    ------
    InvalidRequest
        For anything else, with the most similar word.
    """
    if value not in choices:
        near = nearest_name(value, choices) if choices else "none"
        refuse(parameter, value, problem, ", ".join(choices), near)
    return str(value)


def _written(value: object) -> str:
    try:
        return str(value)
    except ValueError:  # a whole number of more digits than Python writes
        return type(value).__name__


Made = TypeVar("Made")


def refusing(parameters: type[Made]) -> type[Made]:
    """A pydantic dataclass whose constructor raises `InvalidRequest`, of one line."""
    construct: Callable[..., None] = parameters.__init__

    @functools.wraps(construct)
    def constructor(self: Made, *values: Any, **entries: Any) -> None:
        try:
            construct(self, *values, **entries)
        except ValidationError as error:
            names = list(parameters.__dataclass_fields__)  # type: ignore[attr-defined]
            raise InvalidRequest(_first_problem(error, names)) from None

    parameters.__init__ = constructor  # type: ignore[method-assign,assignment]
    return parameters


def check_parameters(parameters: object, kind: type, of: str = "this system") -> None:
    """Refuse what are not the parameters of a system.

    Parameters
    ----------
    parameters : object
    kind : type
        The ``Parameters`` of the system.
    of : str
        The system, as the message has it.
    """
    if not isinstance(parameters, kind):
        raise InvalidRequest(
            f"parameters={shown(parameters)} ({type(parameters).__name__}) are not of {of}; make "
            "them by system.Parameters(...)"
        )


def _first_problem(error: ValidationError, names: Sequence[str]) -> str:
    """The first thing that is wrong with parameters."""
    problem: Any = error.errors(include_url=False)[0]
    cause = problem.get("ctx", {}).get("error")
    name = ".".join(map(str, problem["loc"]))
    if problem["type"] == "unexpected_keyword_argument":
        return str(unknown("parameter", name, names))
    if problem["type"] == "unexpected_positional_argument":
        return f"parameters are given by name; there are {', '.join(names) or 'none'}"
    return str(cause or f"{name}={shown(problem['input'])}: {problem['msg']}")


def shown(value: object) -> str:
    """A value as a message has it, shortened."""
    text = _written(value) if not isinstance(value, str) else value
    return repr(one_line(text, SHOWN)) if isinstance(value, str) else one_line(text, SHOWN)


def unknown(kind: str, name: str, names: Sequence[str]) -> InvalidRequest:
    """The refusal of an unknown name, with those that are known and the nearest.

    Parameters
    ----------
    kind : str
        What it is a name of.
    name : str
    names : sequence of str
        Those that are known.
    """
    front = f"{kind} {brief(name)!r} is unknown; known are "
    rest = f"; nearest: {nearest_name(name, names)}" if names else ""
    listed, room = ", ".join(names) or "none", LONGEST - len(front) - len(rest)
    if len(listed) > room:
        listed = f"{listed[: room - 5].rpartition(',')[0]}, ..."
    return InvalidRequest(front + listed + rest)


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
    allowed = _whole_words(at_least, odd)
    allowed += "" if at_most == 10**6 else f" and at most {at_most:,}"
    if isinstance(value, bool) or not isinstance(value, Real):
        refuse(parameter, value, "is not a number", allowed, at_least)
    if not isinstance(value, Integral) and not math.isfinite(_float(value)):
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


def _whole_words(at_least: int, odd: bool) -> str:
    """What a whole number can be."""
    kind = "an odd number" if odd else "a whole number"
    return f"{kind} of at least {at_least}" if at_least > NEGATIVE else kind


def _real_words(
    above: float | None = None, at_least: float | None = None, at_most: float | None = None
) -> str:
    """What a number can be."""
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
    allowed = _real_words(above, at_least, at_most)
    inside = at_most if at_most is not None else 1e-6 if above is not None else at_least or 0.0
    if isinstance(value, bool) or not isinstance(value, Real):
        refuse(parameter, value, "is not a number", allowed, inside)
    number = _float(value)
    if not math.isfinite(number):
        refuse(parameter, value, "is not finite", allowed, inside)
    if above is not None and number <= above:
        refuse(parameter, value, "is too small", allowed, above + 1e-6)
    if at_least is not None and number < at_least:
        refuse(parameter, value, "is too small", allowed, f"{at_least:g}")
    if at_most is not None and number > at_most:
        refuse(parameter, value, "is too large", allowed, f"{at_most:g}")
    return number


def _float(value: Real) -> float:
    try:
        return float(value)
    except OverflowError:
        return math.inf


def path_of(parameter: str, value: object) -> Path:
    """A path.

    Parameters
    ----------
    parameter : str
        Name as the user wrote it.
    value : str or path-like

    Raises
    ------
    InvalidRequest
        If it is neither, or holds a null character.
    """
    if not isinstance(value, (str, os.PathLike)):
        refuse(parameter, value, "is no path", "a path", "'results'")
    path = Path(value)
    if "\0" in str(path):
        refuse(parameter, str(path), "holds a null character", "a path without", "'results'")
    return path


def random_stream(seed: object, name: str = "seed") -> Generator:
    """The random generator of a seed.

    Parameters
    ----------
    seed : int or numpy Generator
        A generator is returned as it is.
    name : str
        Of the parameter, for the message.

    Raises
    ------
    InvalidRequest
        If it is neither a generator nor a whole number from 0.
    """
    import numpy as np

    if isinstance(seed, np.random.Generator):
        return seed
    return np.random.default_rng(integer(name, seed, at_least=0, at_most=2**62))


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

    try:
        single = np.ndim(value) == 0  # type: ignore[arg-type]
    except ValueError:
        refuse("eta", value, "is ragged", "one number, or a list of them", 1e-2)
    many = [value.item() if isinstance(value, np.ndarray) else value] if single else list(value)  # type: ignore[call-overload]
    if single and groups is not None:
        many = many * len(groups)
    if groups is not None and len(many) != len(groups):
        allowed = f"one number, or one for each of {', '.join(groups)}"
        refuse("eta", value, f"has {len(many)} entries", allowed, many[0] if many else 1e-2)
    return tuple(real("eta", number, above=0.0) for number in many)


@dataclass(frozen=True)
class Allowed:
    """What a field of ``Parameters`` can be, in words; in the annotation of its type."""

    words: str


def _field(
    check: Callable[..., Any], optional: bool | Callable[[Any], Any], words: str, **bounds: Any
) -> Any:
    """A field type: None where it is optional, else what a check returns, with bounds."""

    def validate(value: object, info: ValidationInfo) -> Any:
        if value is None and callable(optional):
            try:
                return optional(info.data)
            except KeyError as missing:  # a field before it, which is refused
                raise ValueError(f"{info.field_name} follows from {missing}") from None
        if value is None and optional:
            return None
        return check(info.field_name, value, **bounds)

    return Annotated[Any, BeforeValidator(validate), Allowed(words)]


def whole(at_least: int, odd: bool = False, optional: bool | Callable[[Any], Any] = False) -> Any:
    """Field type: a whole number.

    Parameters
    ----------
    at_least : int
    odd : bool
    optional : bool or callable
        None is allowed: it is left to a default set later, or is the value of a function of the
        fields before it, name -> value.
    """
    words = _whole_words(at_least, odd)
    return _field(integer, optional, words, at_least=at_least, odd=odd)


def divisor(of: str) -> Any:
    """Field type: a divisor of the whole number in another field, from 2 to below that number.

    Parameters
    ----------
    of : str
        A field before it.
    """

    def validate(value: object, info: ValidationInfo) -> int:
        name, number = str(info.field_name), integer(str(info.field_name), value, at_least=2)
        if of not in info.data:  # it is refused itself
            return number
        product = info.data[of]
        divisors = [c for c in range(2, product // 2 + 1) if product % c == 0]
        if not divisors:
            problem = f"has no divisor {name} with 2 <= {name} < {of}"
            refuse(of, product, problem, "a composite number", product + 1)
        if number not in divisors:
            verb = "equals" if number == product else "does not divide"
            near = min(divisors, key=lambda c: (abs(c - number), c))
            allowed = ", ".join(map(str, divisors))
            refuse(name, number, f"{verb} {of}={product}", allowed, near)
        return number

    return Annotated[Any, BeforeValidator(validate), Allowed(_whole_words(2, False))]


def word(*choices: str) -> Any:
    """Field type: one of these words."""
    return _field(known_word, False, ", ".join(choices), choices=choices)


def number(optional: bool | Callable[[Any], Any] = False, **bounds: float) -> Any:
    """Field type: a finite number.

    Parameters
    ----------
    optional : bool or callable
        As in `whole`.
    **bounds : float
        Those of `real`.
    """
    return _field(real, optional, _real_words(**bounds), **bounds)


def allowed_values(parameters: type) -> dict[str, str]:
    """Field of a type of parameters -> what it can be, in words; "" where its type says nothing.

    Examples
    --------
    >>> import dynamics
    >>> allowed = allowed_values(dynamics.load_system("positional_attention").Parameters)
    >>> allowed["p"], allowed["q"], allowed["random_sets"]
    ('an odd number of at least 3', 'a finite number above 0 and at most 1', 'any, mixed')
    """
    kinds = get_type_hints(parameters, include_extras=True)
    return {
        name: next(
            (part.words for part in get_args(kinds[name]) if isinstance(part, Allowed)),
            PLAIN_KINDS.get(kinds[name], ""),
        )
        for name in parameters.__dataclass_fields__  # type: ignore[attr-defined]
    }
