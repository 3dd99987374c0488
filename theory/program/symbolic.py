"""Sympy expressions of values, in full or with names for common parts."""

from __future__ import annotations

from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import count
from typing import Any

import sympy

from theory.program.evaluate import Arithmetic, order, run
from theory.program.field import MAX_DENOMINATOR
from theory.program.numbering import Values

SHORT_PART = 3
"""Minimum number of operations of a common part of expressions that gets a name."""
SHORT_PAGE = 80
"""Expressions get named common parts only if they have more operations than this in total."""
SIMPLIFIED = 120
"""Maximum number of operations of an expression that sympy.simplify gets, so it takes below 1 s."""
LONG = 400
"""Expressions with more operations than this are built without automatic evaluation by sympy."""
Parts = list[tuple[sympy.Symbol, sympy.Expr]]


def number(value: Fraction | float) -> sympy.Expr:
    """Sympy number equal to a fraction, inf or NaN."""
    if isinstance(value, Fraction):
        return sympy.Rational(value.numerator, value.denominator)
    return sympy.Float(value)


def decimal(value: Fraction | float) -> sympy.Expr:
    """Sympy number for display; a decimal if the fraction is the exact value of a binary float."""
    if isinstance(value, Fraction) and (below := value.denominator) > MAX_DENOMINATOR:
        return number(value) if below & (below - 1) else sympy.Float(float(value))
    return number(value)


def _indicator(relation: Any) -> sympy.Expr:
    return sympy.Piecewise((1, relation), (0, True))


def _select(condition: Any, yes: Any, no: Any) -> sympy.Expr:
    """Piecewise expression of a condition that is 0 or 1; a relu becomes a maximum with 0."""
    relation = sympy.Ne(condition, 0)
    if isinstance(condition, sympy.Piecewise) and [a.expr for a in condition.args] == [1, 0]:
        relation = condition.args[0].cond
    if no == 0 and relation in (sympy.Lt(0, yes), sympy.Gt(yes, 0)):
        return sympy.Max(0, yes, evaluate=False)
    return sympy.Piecewise((yes, relation), (no, True))


def _truncated(x: sympy.Expr) -> sympy.Expr:
    return sympy.sign(x) * sympy.floor(sympy.Abs(x))


def _total(terms: Sequence[Any], factors: Sequence[Any]) -> sympy.Expr:
    pairs = zip(terms, factors, strict=True)
    return sympy.Add(*(term if factor == 1 else sympy.Mul(factor, term) for term, factor in pairs))


def _share(x: Any, log_sum: Any) -> sympy.Expr:
    if isinstance(log_sum, sympy.log):
        return sympy.Mul(sympy.exp(x), sympy.Pow(log_sum.args[0], -1))
    return sympy.exp(sympy.Add(x, -log_sum))


ARITHMETIC: Arithmetic = {
    "sum": _total,
    "share": _share,
    "logsumexp": lambda x, c: sympy.log(_total([sympy.exp(v) for v in x], c)),
    "largest": lambda x, c: sympy.Max(*x, evaluate=False),
    "max": lambda a, b: sympy.Max(a, b, evaluate=False),
    "integer_pow": lambda x, c: sympy.Pow(x[0], c[0]),
    "mul": sympy.Mul,
    "div": lambda a, b: sympy.Mul(a, sympy.Pow(b, -1)),
    "pow": sympy.Pow,
    "select": _select,
    "lt": lambda a, b: _indicator(sympy.Lt(a, b)),
    "le": lambda a, b: _indicator(sympy.Le(a, b)),
    "eq": lambda a, b: _indicator(sympy.Eq(a, b)),
    "stop": lambda x: x,
    "log1p": lambda x: sympy.log(1 + x),
    "expm1": lambda x: sympy.exp(x) - 1,
    "sqrt": lambda x: sympy.Pow(x, sympy.Rational(1, 2)),
    "rsqrt": lambda x: sympy.Pow(x, -sympy.Rational(1, 2)),
    "cbrt": lambda x: sympy.sign(x) * sympy.Pow(sympy.Abs(x), sympy.Rational(1, 3)),
    "sigmoid": lambda x: sympy.Pow(1 + sympy.exp(-x), -1),
    "softplus": lambda x: sympy.log(1 + sympy.exp(x)),
    "abs": sympy.Abs,
    "round": lambda x: sympy.floor(x + sympy.Rational(1, 2)),
    "trunc": _truncated,
    "is_finite": lambda x: sympy.Integer(1),
    "rem": lambda a, b: a - b * _truncated(a / b),
    **{name: getattr(sympy, name) for name in (
        "exp", "log", "tanh", "sin", "cos", "tan", "sinh", "cosh", "asin", "acos", "atan", "asinh",
        "acosh", "atanh", "erf", "erfc", "sign", "floor", "atan2",
    )},
}  # fmt: skip
"""Mapping from each operation to a function of sympy expressions."""


def size(expression: sympy.Expr, most: int) -> int:
    """Number of operations of an expression; counting stops above `most`."""
    total, rest = 0, [sympy.sympify(expression)]
    while rest and total <= most:
        part = rest.pop()
        if part.args and not part.is_Number:
            total += max(1, len(part.args) - 1)
            rest += part.args
    return total


def operations(values: Values, roots: Iterable[int], given: Iterable[int]) -> int:
    """Number of operations needed for the roots; each term of a sum or maximum counts as one."""
    rows = [v for v in order(values, roots, given) if not values.constant[v]]
    wide = ("sum", "logsumexp", "largest")
    return sum(values.row(v)[0].size if values.operation(v) in wide else 1 for v in rows)


def expressions(
    values: Values,
    roots: Sequence[int],
    given: Mapping[int, sympy.Expr],
    read: Callable[[Any], sympy.Expr] = number,
) -> list[sympy.Expr]:
    """Sympy expressions of the values `roots`; sympy does not evaluate long ones (see `LONG`).

    `given` holds the expression of each input; `read` converts constants to sympy numbers.

    Examples
    --------
    >>> import numpy as np
    >>> from theory.program import Values
    >>> values, x = Values(), sympy.Symbol("x")
    >>> root = values.inputs(["x"])
    >>> expressions(values, values.power(root, 2), {int(root[0]): x})
    [x**2]
    """
    with sympy.evaluate(operations(values, roots, given) <= LONG):
        known = run(values, roots, given, ARITHMETIC, read)
    return [sympy.sympify(known[int(root)]) for root in roots]


def named_parts(
    values: Values,
    roots: Sequence[int],
    given: Mapping[int, sympy.Expr],
    taken: Iterable[str],
    read: Callable[[Any], sympy.Expr] = number,
) -> tuple[Parts, list[sympy.Expr]]:
    """Common parts of the values `roots`, with names, and expressions of the values in these names.

    `given` holds the expression of each input, and `taken` holds names that parts must not get. As
    in `expressions`, `read` converts constants to sympy numbers.
    """
    uses: Counter[int] = Counter(int(root) for root in roots)
    for value in order(values, roots, given):
        if not values.constant[value]:
            uses.update(values.row(value)[0].tolist())
    parts: Parts = []
    names = _names(taken)

    def named(value: int, result: Any) -> Any:
        if uses[value] < 2 or size(result, SHORT_PART) < SHORT_PART:
            return result
        within = isinstance(result, sympy.log)  # name the argument of the logarithm
        parts.append((next(names), result.args[0] if within else result))
        return sympy.log(parts[-1][0]) if within else parts[-1][0]

    known = run(values, roots, given, ARITHMETIC, read, named)
    return parts, [sympy.sympify(known[int(root)]) for root in roots]


def _names(taken: Iterable[str]) -> Iterator[sympy.Symbol]:
    """Yield the symbols t0, t1, ..., except those whose names are in `taken`."""
    used = set(taken)
    names = (f"t{k}" for k in count())
    return (sympy.Symbol(name, real=True) for name in names if name not in used)


def common_parts(
    expressions: Sequence[sympy.Expr], taken: Iterable[str]
) -> tuple[Parts, list[sympy.Expr]]:
    """Common parts of expressions, with names, and the expressions in terms of these names."""
    if sum(size(e, SHORT_PAGE) for e in expressions) <= SHORT_PAGE:
        return [], list(expressions)
    found, shorts = sympy.cse(list(expressions), list=False, symbols=_numbered())
    shorts = list(shorts) if isinstance(shorts, (list, tuple)) else [shorts]
    inlined: dict[Any, Any] = {}
    parts: Parts = []
    names = _names(taken)
    for symbol, part in found:
        here = part.xreplace(inlined)
        if size(here, SHORT_PART) < SHORT_PART:
            inlined[symbol] = here
        else:
            inlined[symbol] = next(names)
            parts.append((inlined[symbol], here))
    return parts, [short.xreplace(inlined) for short in shorts]


def _numbered() -> Iterator[sympy.Symbol]:
    return (sympy.Dummy(real=True) for _ in count())


def simplified(expression: sympy.Expr) -> sympy.Expr:
    """Result of sympy.simplify if it is shorter than the expression, else the expression."""
    if size(expression, SIMPLIFIED) > SIMPLIFIED or expression.has(sympy.Piecewise, sympy.Max):
        return expression
    found = sympy.simplify(expression)
    return found if sympy.count_ops(found) < sympy.count_ops(expression) else expression
