"""Refusing a wrong request in one line: parameter, value, what is allowed, the nearest valid one.

The checks are used as pydantic validators of the fields of every system's ``Parameters``
(`dynamics.validation.fields`), and called directly for what is not a field, as learning rates,
steps, sizes (`dynamics.validation.values`).
"""

from dynamics.validation.fields import (
    STRICT,
    Allowed,
    allowed_values,
    check_parameters,
    divisor,
    number,
    refusing,
    whole,
    word,
)
from dynamics.validation.refusals import (
    LONGEST,
    NEAR,
    InvalidRequest,
    brief,
    check_cost,
    known_word,
    nearest_name,
    one_line,
    refuse,
    shown,
    unknown,
    written,
)
from dynamics.validation.values import (
    NEGATIVE,
    integer,
    learning_rate,
    path_of,
    random_stream,
    real,
)

__all__ = [
    "LONGEST",
    "NEAR",
    "NEGATIVE",
    "STRICT",
    "Allowed",
    "InvalidRequest",
    "allowed_values",
    "brief",
    "check_cost",
    "check_parameters",
    "divisor",
    "integer",
    "known_word",
    "learning_rate",
    "nearest_name",
    "number",
    "one_line",
    "path_of",
    "random_stream",
    "real",
    "refuse",
    "refusing",
    "shown",
    "unknown",
    "whole",
    "word",
    "written",
]
