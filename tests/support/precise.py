"""Values as numbers of mpmath, at any number of digits."""

from fractions import Fraction

import mpmath as mp

from theory.program.evaluate import exact, run


def number(value):
    """A fraction, or another real number, in mpmath."""
    if isinstance(value, Fraction):
        return mp.mpf(value.numerator) / value.denominator
    return mp.mpf(value)


def _real(of):
    """A function of real numbers; NaN outside its domain."""

    def real(*arguments):
        try:
            result = of(*arguments)
        except (ZeroDivisionError, ValueError):
            return mp.nan
        return mp.nan if isinstance(result, mp.mpc) else mp.mpf(result)

    return real


def _divided(a, b):
    return a / b if b else mp.inf * mp.sign(a) if a else mp.nan


def _truncated(x):
    return mp.sign(x) * mp.floor(abs(x))


def _logsumexp(x, c):
    top = max(x)
    return top + mp.log(mp.fsum(b * mp.exp(a - top) for a, b in zip(x, c, strict=True)))


def _arithmetic():
    plain = {
        "div": _divided,
        "pow": mp.power,
        "share": lambda x, log_sum: mp.exp(x - log_sum),
        "log": lambda x: mp.log(x) if x else -mp.inf,
        "log1p": mp.log1p,
        "rsqrt": lambda x: _divided(mp.mpf(1), mp.sqrt(x)),
        "cbrt": lambda x: mp.sign(x) * mp.cbrt(abs(x)),
        "sigmoid": lambda x: 1 / (1 + mp.exp(-x)),
        "softplus": lambda x: max(x, 0) + mp.log1p(mp.exp(-abs(x))),
        "round": mp.nint,
        "trunc": _truncated,
        "abs": abs,
        "rem": lambda a, b: a - b * _truncated(a / b),
        **{name: getattr(mp, name) for name in (
            "exp", "expm1", "sqrt", "tanh", "sin", "cos", "tan", "sinh", "cosh", "asin", "acos",
            "atan", "asinh", "acosh", "atanh", "erf", "erfc", "sign", "floor", "atan2",
        )},
    }  # fmt: skip
    return {name: _real(of) for name, of in plain.items()} | {
        "sum": lambda x, c: mp.fsum(a * b for a, b in zip(x, c, strict=True)),
        "logsumexp": _logsumexp,
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
    }


def evaluated(values, roots, given, digits=50):
    """Numbers of some values, and of all that they need, with inputs given as real numbers."""
    with mp.workdps(digits):
        inputs = {value: number(x) for value, x in given.items()}
        return run(values, roots, inputs, _arithmetic(), number)


def gross(values, numbers, value, digits=50):
    """Sum of the sizes of the terms of a value: what its rounding error is measured against."""
    with mp.workdps(digits):
        if values.operation(value) != "sum" or value not in numbers:
            return abs(numbers[value])
        terms = zip(*(part.tolist() for part in values.row(value)), strict=True)
        return mp.fsum(abs(numbers[v] * number(exact(values, c))) for v, c in terms)
