"""The arithmetic of sympy: a traced program as expressions that a reader of a paper would write.

Every variable of a traced program is real and finite, and so is every symbol here while the
program is read: plain symbols of the inputs are exchanged for real ones and put back at the end.
A symbolic entry is assumed finite, so that a guard such as ``isfinite(x)`` is passed.

A maximum over an axis is written only if the result depends on it. It enters as a symbol M, and
``exp(a - M)`` as ``exp(a) w`` with ``w = exp(-M)``; where a sum has the same power of w in every
term, w is factored out. The w of a softmax cancels in the quotient, and the M of a log-sum-exp in
the sum; any M that is left becomes Max of its arguments again, so that the value is right in any
case.
"""

from __future__ import annotations

import operator
from collections.abc import Callable, Mapping, Sequence
from fractions import Fraction
from typing import Any

import numpy as np
import sympy

from theory.tracing.arithmetic import ELEMENTARY, Arithmetic, UntracedPrimitive

LARGEST_DENOMINATOR = 10**6
LARGEST_INTEGER = 2**53  # beyond it a float64 is not the only one that an integer rounds to

CONNECTIVES = {"and": sympy.And, "or": sympy.Or, "xor": sympy.Xor, "not": sympy.Not}


def _real(function: Callable[..., Any]) -> Callable[..., Any]:
    """A function of real numbers: NaN where a number is not in its domain."""

    def guarded(*arguments: Any) -> Any:
        result = function(*arguments)
        if result.is_number and result.is_extended_real is False:
            return sympy.nan
        return result

    return guarded


def _is_nothing(x: Any) -> bool:
    """Whether it is the number 0; Integer or Float."""
    return bool(x.is_number and x.is_zero)


def _quotient(x: Any, y: Any) -> Any:
    if not _is_nothing(y):
        return x / y
    if _is_nothing(x):
        return sympy.nan
    return x / y if x.is_extended_nonnegative is None else sympy.sign(x) * sympy.oo


def _power(x: Any, y: Any) -> Any:
    return sympy.oo if _is_nothing(x) and y.is_negative else x**y


def _truncated(x: Any) -> Any:
    return sympy.floor(x) if x >= 0 else sympy.ceiling(x)


def _rounded(method: int) -> Callable[[Any], Any]:
    def of_number(x: Any) -> Any:
        if not x.is_number:
            raise UntracedPrimitive("round", "of an expression with symbols")
        half = sympy.Rational(1, 2)
        away = sympy.sign(x) * sympy.floor(abs(x) + half)
        tie = abs(x) - sympy.floor(abs(x)) == half
        return away - sympy.sign(x) if method and tie and away % 2 else away

    return of_number


def _remainder(x: Any, y: Any) -> Any:
    if not (x.is_number and y.is_number):
        raise UntracedPrimitive("rem", "of an expression with symbols")
    return x - y * _truncated(x / y)


def _cube_root(x: Any) -> Any:
    third = sympy.Rational(1, 3)
    return x**third if x.is_nonnegative else sympy.sign(x) * sympy.Abs(x) ** third


FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{name: getattr(sympy, theirs) for name, theirs in ELEMENTARY.items()},
    **{name: _real(getattr(sympy, name)) for name in ("asin", "acos", "acosh", "atanh", "sqrt")},
    "mul": operator.mul,
    "neg": operator.neg,
    "div": _quotient,
    "abs": sympy.Abs,
    "max": sympy.Max,
    "min": sympy.Min,
    "clamp": lambda low, x, high: sympy.Min(sympy.Max(low, x), high),
    "ceil": sympy.ceiling,
    "rem": _remainder,
    "is_finite": lambda x: not x.is_number or bool(x.is_finite),
    "square": lambda x: x**2,
    "rsqrt": _real(lambda x: _power(x, -sympy.Rational(1, 2))),
    "cbrt": _cube_root,
    "pow": _real(_power),
    "lgamma": lambda x: sympy.log(sympy.Abs(sympy.gamma(x))),
}


class Sympy(Arithmetic):
    """Expressions of sympy.

    A float that is the nearest to a rational of denominator up to 10**6 stands for the rational.
    Any other stands for the decimal that prints it. An instance remembers the maxima and symbols
    of what it has read, and serves one evaluation at a time.

    Parameters
    ----------
    digits : int
        Decimal digits that such a decimal carries.
    """

    def __init__(self, digits: int = 30) -> None:
        self.digits = digits
        self._real: dict[sympy.Basic, sympy.Basic] = {}  # symbol of an input -> real symbol
        self._maxima: dict[frozenset[sympy.Expr], sympy.Dummy] = {}
        self._arguments: dict[sympy.Basic, frozenset[sympy.Expr]] = {}  # M -> its arguments
        self._weights: dict[sympy.Basic, sympy.Basic] = {}  # M -> w
        self._shifts: dict[sympy.Basic, sympy.Basic] = {}  # w -> M
        self._finished: dict[sympy.Basic, sympy.Basic] = {}

    def number(self, value: Any) -> sympy.Expr:
        """An expression in real symbols, a rational or a decimal."""
        if isinstance(value, float | np.floating):
            return self._decimal(value)
        expression = sympy.sympify(value.item() if isinstance(value, np.generic) else value)
        for symbol in expression.atoms(sympy.Symbol) - self._real.keys():
            if symbol.is_real is None:
                assumptions = {**symbol.assumptions0, "real": True}
                real = sympy.Dummy(symbol.name, **assumptions)
                self._real[symbol] = real
                self._finished[real] = symbol
        return expression.xreplace(self._real)

    def _decimal(self, value: Any) -> sympy.Expr:
        if not np.isfinite(value):
            return sympy.nan if np.isnan(value) else sympy.oo * int(np.sign(value))
        near = Fraction(float(value)).limit_denominator(LARGEST_DENOMINATOR)
        if type(value)(float(near)) == value and abs(near) <= LARGEST_INTEGER:
            return sympy.Rational(near.numerator, near.denominator)
        return sympy.Float(str(value), self.digits)

    def finish(self, entry: Any) -> Any:
        """The entry without the symbols of this reading, each distinct part rebuilt once."""
        if not isinstance(entry, sympy.Basic):
            return entry
        if entry not in self._finished:
            if entry in self._shifts:
                whole = sympy.exp(-self.finish(self._shifts[entry]))
            elif entry in self._arguments:
                whole = sympy.Max(*(self.finish(part) for part in self._arguments[entry]))
            else:
                parts = [self.finish(part) for part in entry.args]
                changed = any(new is not old for new, old in zip(parts, entry.args, strict=True))
                whole = entry.func(*parts) if changed else entry
            self._finished[entry] = whole
        return self._finished[entry]

    def function(self, name: str, params: Mapping[str, Any]) -> Callable[..., Any] | None:
        """The elementwise primitive `name`."""
        if name == "integer_pow":
            exponent = sympy.Integer(int(params["y"]))
            return lambda x: _power(x, exponent)
        if name == "round":
            return _rounded(int(params["rounding_method"]))
        methods: dict[str, Callable[..., Any]] = {
            **dict.fromkeys(("add", "add_any"), self._sum),
            "sub": lambda x, y: self._sum(x, -y),
            "exp": self._exp,
            "exp2": lambda x: self._exp(x * sympy.log(2)),
            "expm1": lambda x: self._sum(self._exp(x), sympy.Integer(-1)),
            "log": _real(self._log),
            "log1p": _real(lambda x: self._log(self._sum(sympy.Integer(1), x))),
            "logistic": lambda x: 1 / (1 + self._exp(-x)),
            "logaddexp": lambda x, y: self._log(self._sum(self._exp(x), self._exp(y))),
        }
        return methods.get(name) or FUNCTIONS.get(name)

    def _sum(self, *terms: Any) -> Any:
        return self.total(terms)

    def total(self, terms: Sequence[Any]) -> Any:
        """Sum, with a power of w that all terms share factored out."""
        terms = [term for term in terms if term != 0]
        powers = [self._powers(term) for term in terms]
        if not powers or not powers[0] or any(power != powers[0] for power in powers):
            return sympy.Add(*terms)
        common = sympy.Mul(*(w**power for w, power in powers[0].items()))
        return sympy.Mul(common, sympy.Add(*(term / common for term in terms)))

    def _powers(self, term: Any) -> dict[Any, Any]:
        """The power of each w in a product."""
        if not self._shifts:
            return {}
        factors = (factor.as_base_exp() for factor in sympy.Mul.make_args(term))
        return {base: power for base, power in factors if base in self._shifts}

    def _exp(self, x: Any) -> Any:
        rest, factors = [], []
        for term in sympy.Add.make_args(x):
            coefficient, symbol = term.as_coeff_Mul()
            if symbol in self._weights:
                factors.append(self._weights[symbol] ** (-coefficient))
            else:
                rest.append(term)
        return sympy.Mul(sympy.exp(sympy.Add(*rest)), *factors)

    def _log(self, x: Any) -> Any:
        if _is_nothing(x):
            return -sympy.oo
        powers = self._powers(x)
        common = sympy.Mul(*(w**power for w, power in powers.items()))
        shifts = (-power * self._shifts[w] for w, power in powers.items())
        return sympy.Add(sympy.log(x / common), *shifts)

    def largest(self, entries: Sequence[Any]) -> Any:
        """Maximum; a symbol M unless it is decided without the values of the symbols."""
        candidates = frozenset(entry for entry in entries if entry is not -sympy.oo)
        if not candidates:
            return -sympy.oo
        if len(candidates) == 1:
            return next(iter(candidates))
        if all(entry.is_number for entry in candidates):
            return sympy.Max(*candidates)
        if candidates not in self._maxima:
            shift, weight = sympy.Dummy("M", real=True), sympy.Dummy("w", positive=True)
            self._maxima[candidates] = shift
            self._arguments[shift] = candidates
            self._weights[shift] = weight
            self._shifts[weight] = shift
        return self._maxima[candidates]

    def compare(self, relation: str, left: Any, right: Any) -> Any:
        """A bool if it is decided for all values of the symbols, or else a condition."""
        infinite = (sympy.oo, -sympy.oo)
        if right in infinite and not left.is_number:
            left = sympy.Integer(0)  # any finite number compares alike
        if left in infinite and not right.is_number:
            right = sympy.Integer(0)
        if sympy.nan in (left, right):
            return relation == "ne"
        condition = getattr(sympy, relation.capitalize())(left, right)
        return bool(condition) if condition in (sympy.true, sympy.false) else condition

    def integer(self, entry: Any) -> int | None:
        """A number truncated towards zero; None for an expression with symbols."""
        return int(_truncated(entry)) if entry.is_number else None

    def select(self, condition: Any, if_false: Any, if_true: Any) -> Any:
        """One of the two, or a Piecewise of both."""
        if isinstance(condition, bool | np.bool_):
            return if_true if condition else if_false
        if if_false == if_true:
            return if_true
        if isinstance(if_true, sympy.Expr):
            return sympy.Piecewise((if_true, condition), (if_false, True))
        return sympy.ITE(condition, sympy.sympify(if_true), sympy.sympify(if_false))

    def connective(self, name: str) -> Callable[..., Any]:
        """``and``, ``or``, ``xor``, ``not``; a bool if it is decided."""

        def of(*arguments: Any) -> Any:
            plain = (bool(a) if isinstance(a, np.bool_) else a for a in arguments)
            result = CONNECTIVES[name](*map(sympy.sympify, plain))
            return bool(result) if result in (sympy.true, sympy.false) else result

        return of
