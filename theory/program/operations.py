"""Operations of a program: names, numpy functions, and triples of residues of the results."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from theory.program import field
from theory.program.field import Triples

ELEMENTWISE = (
    "mul", "div", "integer_pow", "pow", "max", "select", "lt", "le", "eq", "stop", "exp", "log",
    "log1p", "expm1", "sqrt", "rsqrt", "cbrt", "tanh", "sigmoid", "softplus", "sin", "cos", "tan",
    "sinh", "cosh", "asin", "acos", "atan", "asinh", "acosh", "atanh", "erf", "erfc", "abs", "sign",
    "floor", "round", "trunc", "is_finite", "atan2", "rem",
    "share",
)  # fmt: skip
OPERATIONS = ("input", "constant", "sum", "logsumexp", "largest", *ELEMENTWISE)
CODE = {name: code for code, name in enumerate(OPERATIONS)}

ODD = ("tanh", "sin", "tan", "sinh", "asin", "atan", "asinh", "atanh", "erf", "sign", "round",
       "trunc", "cbrt", "sigmoid")  # fmt: skip
EVEN = ("cos", "cosh", "abs", "eq", "softplus")
HASHES = dict.fromkeys(ODD, field.odd) | dict.fromkeys(EVEN, field.even)
"""Hash functions that preserve the symmetry of odd and even functions. For sigmoid(x), the odd
function sigmoid(x) - 1/2 is hashed; for softplus(x), the even function softplus(x) - x/2."""
KNOWN = {
    "exp": {0: 1}, "cos": {0: 1}, "cosh": {0: 1}, "erfc": {0: 1}, "abs": {0: 0, 1: 1},
    "eq": {0: 1}, "sqrt": {0: 0, 1: 1}, "log": {1: 0}, "log1p": {0: 0}, "expm1": {0: 0},
    "acos": {1: 0}, "is_finite": {0: 1, 1: 1}, "floor": {0: 0, 1: 1},
}  # fmt: skip
"""Mapping from each function to those of its values at the arguments 0 and 1 that are 0 or 1."""
ROWS = ("sum", "logsumexp", "largest", "integer_pow")
"""Operations with coefficients; except ``integer_pow``, they have any number of operands."""


def triple_of(operation: str, arguments: Sequence[Triples]) -> Triples:
    """Triples of an elementwise operation of `ELEMENTWISE` on arguments of shape (n, 3)."""
    a, *rest = arguments
    if operation == "mul":
        return field.multiply(a, rest[0])
    if operation == "div":
        return field.multiply(a, field.inverse(rest[0]))
    if operation == "max":
        size = _hash("abs", _difference(a, rest[0]))
        return field.multiply(field.HALF, field.add(field.add(a, rest[0]), size))
    if operation == "select":  # The arguments are: condition, value if true, value if false.
        yes = field.multiply(a, rest[0])
        return field.add(yes, field.multiply(_difference(_ones(a), a), rest[1]))
    if operation in ("lt", "le", "eq"):
        return _comparison(operation, _difference(a, rest[0]))
    if operation == "sigmoid":
        return field.add(field.HALF, _hash("sigmoid", a))
    if operation == "softplus":
        return field.add(field.multiply(field.HALF, a), _hash("softplus", a))
    if operation == "rsqrt":
        return field.inverse(_hash("sqrt", a))
    return _hash(operation, *arguments)


def _hash(operation: str, *arguments: Triples) -> Triples:
    """Hash of a function's result that preserves odd or even symmetry and the values in `KNOWN`."""
    hashed: Callable[..., Triples] = HASHES.get(operation, field.hashed)
    result = hashed(operation, *arguments)
    for argument, value in KNOWN.get(operation, {}).items():
        there = (arguments[0] == np.uint64(argument)).all(axis=-1)[..., None]
        result = np.where(there, np.uint64(value), result)
    return result


def _ones(a: Triples) -> Triples:
    return np.ones_like(a)


def _difference(a: Triples, b: Triples) -> Triples:
    return field.add(a, field.negative(b))


def _comparison(operation: str, difference: Triples) -> Triples:
    """Triples of a comparison with 0, from hashes of the sign (odd) and of equality (even)."""
    equal = _hash("eq", difference)
    if operation == "eq":
        return equal
    sign = _hash("sign", difference)
    edge = field.negative(equal) if operation == "lt" else equal
    return field.multiply(field.HALF, _difference(field.add(_ones(equal), edge), sign))


def softmax_triples(rows: Triples, counts: Triples) -> tuple[Triples, Triples]:
    """Triples of logsumexp, shape (m, 3), and of each softmax entry, shape (m, k, 3).

    The triples of the softmax depend only on the differences between the entries of a row and their
    mean, so a number added to all entries leaves them unchanged and is added to the logsumexp. The
    sum of the softmax entries times their counts is 1.
    """
    number = _total(counts)
    mean = field.multiply(_total(field.multiply(counts, rows)), field.inverse(number))
    off = _difference(rows, mean[:, None])
    powers = field.hashed("exp of difference", off)
    # Each exponential is hashed with all differences of its row: a softmax entry depends on all.
    kind = _total(field.multiply(counts, field.hashed("kind of row", off)))
    powers = field.hashed("power", powers, np.broadcast_to(kind[:, None], powers.shape))
    total = _total(field.multiply(counts, powers))
    shares = field.multiply(powers, field.inverse(total)[:, None])
    return field.add(mean, field.hashed("logsumexp", kind)), shares


def _total(triples: Triples) -> Triples:
    """Sum along the second axis; a sum of up to 2^32 residues fits in 64 bits."""
    return triples.sum(axis=1) % field.PRIMES


def _special(name: str) -> Callable[..., Any]:
    def of(*arguments: Any) -> Any:
        from scipy import special

        return getattr(special, name)(*arguments)

    return of


FLOATS: dict[str, Callable[..., Any]] = {
    "mul": np.multiply,
    "div": np.divide,
    "pow": np.power,
    "max": np.maximum,
    "select": lambda c, a, b: np.where(c != 0, a, b),
    "lt": np.less,
    "le": np.less_equal,
    "eq": np.equal,
    "stop": lambda x: x,
    "rsqrt": lambda x: 1 / np.sqrt(x),
    "sigmoid": _special("expit"),
    "softplus": lambda x: np.logaddexp(x, 0.0),
    "erf": _special("erf"),
    "erfc": _special("erfc"),
    "asin": np.arcsin, "acos": np.arccos, "atan": np.arctan, "atan2": np.arctan2,
    "asinh": np.arcsinh, "acosh": np.arccosh, "atanh": np.arctanh,
    "is_finite": np.isfinite,
    "rem": np.fmod,
    "share": lambda x, log_sum: np.exp(x - log_sum),
    **{name: getattr(np, name) for name in (
        "exp", "log", "log1p", "expm1", "sqrt", "cbrt", "tanh", "sin", "cos", "tan", "sinh",
        "cosh", "abs", "sign", "floor", "round", "trunc",
    )},
}  # fmt: skip
