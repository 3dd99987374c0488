"""Field types of ``Parameters``: pydantic validators whose messages state the allowed values."""

from __future__ import annotations

import functools
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Annotated, Any, TypeVar, get_args, get_type_hints

from pydantic import BeforeValidator, ConfigDict, ValidationError, ValidationInfo

from dynamics.validation import (
    InvalidRequest,
    integer,
    known_word,
    real,
    real_words,
    refuse,
    shown,
    unknown,
    whole_words,
)

STRICT = ConfigDict(extra="forbid", validate_default=True)
"""Configuration of every ``Parameters``: unknown names are refused, defaults are validated."""
PLAIN_KINDS: dict[Any, str] = {bool: "True or False", str: "a word", int: "a whole number"}
"""Field type without further validation -> its allowed values as text."""

Made = TypeVar("Made")


def refusing(parameters: type[Made]) -> type[Made]:
    """Decorator: make a pydantic dataclass whose constructor raises a one-line `InvalidRequest`."""
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
    """Raise InvalidRequest unless `parameters` are of the class `kind`; `of` names the system."""
    if not isinstance(parameters, kind):
        raise InvalidRequest(
            f"parameters={shown(parameters)} ({type(parameters).__name__}) are not parameters "
            f"of {of}; make them by system.Parameters(...)"
        )


def _first_problem(error: ValidationError, names: Sequence[str]) -> str:
    """Message on the first invalid parameter of a pydantic error."""
    problem: Any = error.errors(include_url=False)[0]
    cause = problem.get("ctx", {}).get("error")
    name = ".".join(map(str, problem["loc"]))
    if problem["type"] == "unexpected_keyword_argument":
        return str(unknown("parameter", name, names))
    if problem["type"] == "unexpected_positional_argument":
        return f"parameters are given by name; names are {', '.join(names) or 'none'}"
    return str(cause or f"{name}={shown(problem['input'])}: {problem['msg']}")


@dataclass(frozen=True)
class Allowed:
    """Allowed values of a field of ``Parameters`` as text, in the annotation of its type."""

    words: str


def _field(
    check: Callable[..., Any], optional: bool | Callable[[Any], Any], words: str, **bounds: Any
) -> Any:
    """Field type: the result of a check with bounds, or None if optional."""

    def validate(value: object, info: ValidationInfo) -> Any:
        if value is None and callable(optional):
            try:
                return optional(info.data)
            except KeyError as missing:  # an earlier field was refused
                raise ValueError(f"{info.field_name} follows from {missing}") from None
        if value is None and optional:
            return None
        return check(info.field_name, value, **bounds)

    return Annotated[Any, BeforeValidator(validate), Allowed(words)]


def whole(
    at_least: int,
    odd: bool = False,
    optional: bool | Callable[[Any], Any] = False,
    at_most: int = 10**6,
) -> Any:
    """Field type: an integer from `at_least` to `at_most`.

    With ``optional=True`` the value None is allowed. A function as `optional` computes the default
    from the earlier fields (name -> value).
    """
    words = whole_words(at_least, odd)
    return _field(integer, optional, words, at_least=at_least, at_most=at_most, odd=odd)


def divisor(of: str) -> Any:
    """Field type: a divisor of the earlier integer field `of`, at least 2 and below that field."""

    def validate(value: object, info: ValidationInfo) -> int:
        name, number = str(info.field_name), integer(str(info.field_name), value, at_least=2)
        if of not in info.data:  # the other field was refused
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

    return Annotated[Any, BeforeValidator(validate), Allowed(whole_words(2, False))]


def word(*choices: str) -> Any:
    """Field type: one of the words `choices`."""
    return _field(known_word, False, ", ".join(choices), choices=choices)


def number(optional: bool | Callable[[Any], Any] = False, **bounds: float) -> Any:
    """Field type: a finite number within the bounds of `dynamics.validation.real`.

    With ``optional=True`` the value None is allowed. A function as `optional` computes the default
    from the earlier fields (name -> value).
    """
    return _field(real, optional, real_words(**bounds), **bounds)


def allowed_values(parameters: type) -> dict[str, str]:
    """Field of ``Parameters`` -> allowed values as text; "" if its type has no text.

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
