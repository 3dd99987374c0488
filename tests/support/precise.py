"""Values as numbers of mpmath, at any number of digits."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping
from fractions import Fraction
from typing import Any

from theory.program.evaluate import exact, run
from theory.program.numbering import Values


def number(value: Any) -> Any:
    """A fraction, or another real number, in mpmath."""
    import mpmath

    if isinstance(value, Fraction):
        return mpmath.mpf(value.numerator) / value.denominator
    return mpmath.mpf(value)


def _real(of: Callable[..., Any]) -> Callable[..., Any]:
    """A function of real numbers; NaN outside its domain."""

    def real(*arguments: Any) -> Any:
        import mpmath

        try:
            result = of(*arguments)
        except (ZeroDivisionError, ValueError):
            return mpmath.nan
        return mpmath.nan if isinstance(result, mpmath.mpc) else mpmath.mpf(result)

    return real


def _arithmetic() -> dict[str, Callable[..., Any]]:
    import mpmath as mp

    def total(x: list[Any], c: list[Any]) -> Any:
        return mp.fsum(a * b for a, b in zip(x, c, strict=True))

    def logsumexp(x: list[Any], c: list[Any]) -> Any:
        top = max(x)
        return top + mp.log(mp.fsum(b * mp.exp(a - top) for a, b in zip(x, c, strict=True)))

    def divided(a: Any, b: Any) -> Any:
        return a / b if b else mp.inf * mp.sign(a) if a else mp.nan

    def truncated(x: Any) -> Any:
        return mp.sign(x) * mp.floor(abs(x))

    def logarithm(x: Any) -> Any:
        return mp.log(x) if x else -mp.inf

    plain = {
        "div": divided,
        "pow": mp.power,
        "share": lambda x, log_sum: mp.exp(x - log_sum),
        "log": logarithm,
        "log1p": mp.log1p,
        "rsqrt": lambda x: divided(mp.mpf(1), mp.sqrt(x)),
        "cbrt": lambda x: mp.sign(x) * mp.cbrt(abs(x)),
        "sigmoid": lambda x: 1 / (1 + mp.exp(-x)),
        "softplus": lambda x: max(x, 0) + mp.log1p(mp.exp(-abs(x))),
        "round": mp.nint,
        "trunc": truncated,
        "abs": abs,
        **{name: getattr(mp, name) for name in (
            "exp", "expm1", "sqrt", "tanh", "sin", "cos", "tan", "sinh", "cosh", "asin", "acos",
            "atan", "asinh", "acosh", "atanh", "erf", "erfc", "sign", "floor", "atan2",
        )},
    }  # fmt: skip
    return {name: _real(of) for name, of in plain.items()} | {
        "sum": total,
        "logsumexp": logsumexp,
        "largest": lambda x, c: max(x),
        "integer_pow": _real(lambda x, c: x[0] ** int(c[0])),
        "mul": lambda a, b: a * b,
        "max": max,
        "select": lambda c, a, b: a if c else b,
        "lt": lambda a, b: mp.mpf(a < b),
        "le": lambda a, b: mp.mpf(a <= b),
        "eq": lambda a, b: mp.mpf(a == b),
        "stop": lambda x: x,
        "is_finite": lambda x: mp.mpf(mp.isfinite(x)),
        "rem": _real(lambda a, b: a - b * truncated(a / b)),
    }


def evaluated(
    values: Values, roots: Iterable[int], given: Mapping[int, Any], digits: int = 50
) -> dict[int, Any]:
    """Numbers of some values, and of all that they need.

    Parameters
    ----------
    values : Values
    roots : ints
    given : mapping
        Input -> a real number, which is taken as it is.
    digits : int
    """
    import mpmath

    with mpmath.workdps(digits):
        inputs = {value: number(x) for value, x in given.items()}
        return run(values, roots, inputs, _arithmetic(), number)


def gross(values: Values, numbers: Mapping[int, Any], value: int, digits: int = 50) -> Any:
    """Sum of the sizes of the terms of a value: what its rounding error is measured against.

    Parameters
    ----------
    values : Values
    numbers : mapping
        Of `evaluated`.
    value : int
    digits : int
    """
    import mpmath

    with mpmath.workdps(digits):
        if values.operation(value) != "sum" or value not in numbers:
            return abs(numbers[value])
        terms = zip(*(part.tolist() for part in values.row(value)), strict=True)
        return mpmath.fsum(abs(numbers[v] * number(exact(values, c))) for v, c in terms)
