"""Values as expressions of sympy: whole, or with their common parts named once."""

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
"""Operations from which a common part gets a name."""
SHORT_PAGE = 80
"""Operations of all expressions up to which nothing gets a name."""
SIMPLIFIED = 120
"""Operations up to which an expression is simplified, which takes a second at most."""
LONG = 400
"""Operations from which expressions are built as they stand, without sympy's evaluation."""
Parts = list[tuple[sympy.Symbol, sympy.Expr]]


def number(value: Fraction | float) -> sympy.Expr:
    """A fraction, inf or NaN as a number of sympy."""
    if isinstance(value, Fraction):
        return sympy.Rational(value.numerator, value.denominator)
    return sympy.Float(value)


def decimal(value: Fraction | float) -> sympy.Expr:
    """Number for a reader: a float that no simple fraction rounds to is decimal."""
    if isinstance(value, Fraction) and (below := value.denominator) > MAX_DENOMINATOR:
        return number(value) if below & (below - 1) else sympy.Float(float(value))
    return number(value)


def _indicator(relation: Any) -> sympy.Expr:
    return sympy.Piecewise((1, relation), (0, True))


def _select(condition: Any, yes: Any, no: Any) -> sympy.Expr:
    """The first where a condition, an indicator, is not 0; a relu as a maximum."""
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
"""Operations on expressions, which sympy evaluates unless it is told not to."""


def size(expression: sympy.Expr, most: int) -> int:
    """Operations of an expression, each as often as it occurs; counted to a little over a limit.

    `expression`: its parts may be shared: as a tree it may be very large.
    """
    total, rest = 0, [sympy.sympify(expression)]
    while rest and total <= most:
        part = rest.pop()
        if part.args and not part.is_Number:
            total += max(1, len(part.args) - 1)
            rest += part.args
    return total


def operations(values: Values, roots: Iterable[int], given: Iterable[int]) -> int:
    """Terms of sums, and other operations, of some values, each counted once."""
    rows = [v for v in order(values, roots, given) if not values.constant[v]]
    wide = ("sum", "logsumexp", "largest")
    return sum(values.row(v)[0].size if values.operation(v) in wide else 1 for v in rows)


def expressions(
    values: Values,
    roots: Sequence[int],
    given: Mapping[int, sympy.Expr],
    read: Callable[[Any], sympy.Expr] = number,
) -> list[sympy.Expr]:
    """Whole expressions; long ones share their parts in memory, and are not evaluated.

    `given`: input -> expression; `read`: a fraction, inf or NaN as a number: `number`, or
    `decimal`.

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
    """Values that occur more than once by name, and the expressions in these names.

    `given`: input -> expression; `taken`: names that no part gets; `read`: as for `expressions`.
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
        within = isinstance(result, sympy.log)  # of a softmax: its sum is what shares are over
        parts.append((next(names), result.args[0] if within else result))
        return sympy.log(parts[-1][0]) if within else parts[-1][0]

    known = run(values, roots, given, ARITHMETIC, read, named)
    return parts, [sympy.sympify(known[int(root)]) for root in roots]


def _names(taken: Iterable[str]) -> Iterator[sympy.Symbol]:
    """Symbols t0, t1, ..., but for names that are taken."""
    used = set(taken)
    names = (f"t{k}" for k in count())
    return (sympy.Symbol(name, real=True) for name in names if name not in used)


def common_parts(
    expressions: Sequence[sympy.Expr], taken: Iterable[str]
) -> tuple[Parts, list[sympy.Expr]]:
    """Named common parts of expressions; a short page has none.

    `taken`: names that no part gets.
    """
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
    """A short expression simplified by sympy, where that is shorter."""
    if size(expression, SIMPLIFIED) > SIMPLIFIED or expression.has(sympy.Piecewise, sympy.Max):
        return expression
    found = sympy.simplify(expression)
    return found if sympy.count_ops(found) < sympy.count_ops(expression) else expression
