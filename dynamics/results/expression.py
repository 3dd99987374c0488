r"""Arithmetic written as text: ``m/(D-C)``, ``round(D/8)``, ``log2(D)**2``.

An `Expression` is a formula in numbers and names with + - * / // % \*\*, parentheses and the
functions `FUNCTIONS`. It is read by Python's own parser and evaluated node by node; anything else
(attributes, indices, comparisons, strings, other calls) is refused, so text from a file or a
command line is safe to evaluate. Text, whole powers and so the time of an evaluation are bounded.

Numbers behave as in Python: whole numbers stay whole, ``/`` makes floats, ``round``, ``floor`` and
``ceil`` give whole numbers. Arrays are taken entry by entry and broadcast; there, what is not
defined (a division by zero, the logarithm of a negative number) is inf or NaN in that entry, while
a number is refused.
"""

from __future__ import annotations

import ast
import math
import operator
import warnings
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from typing import Any, NoReturn

import numpy as np

from dynamics.validation import refuse

LONGEST = 300
"""Characters of an expression."""
BITS = 1024
"""Size of a whole power: what is larger is no float either."""
WHOLE = 2.0**62
"""From this size on whole numbers in arrays become floats, because 64 bits would wrap round."""

Value = Any
"""An int, a float, or an array of them."""


def _arrays(*values: Value) -> list[np.ndarray]:
    """Values as arrays of 64-bit ints or floats."""
    safe = [float(v) if type(v) is int and abs(v) >= WHOLE else v for v in values]
    arrays = [np.asarray(value) for value in safe]
    return [a.astype(np.int64 if a.dtype.kind in "iub" else np.float64) for a in arrays]


def _any_array(*values: Value) -> bool:
    return any(isinstance(value, np.ndarray) for value in values)


def _apply(rule: Callable[..., Any], left: Value, right: Value) -> Value:
    """An operator on two values, whole where both are whole and 64 bits can hold it."""
    if not _any_array(left, right):
        return rule(left, right)
    first, second = _arrays(left, right)
    real = np.asarray(rule(first.astype(np.float64), second.astype(np.float64)))
    if rule is operator.truediv or "f" in (first.dtype.kind, second.dtype.kind):
        return real
    exact = bool(np.isfinite(real).all()) and float(np.abs(real).max(initial=0.0)) < WHOLE
    if not exact or (rule is operator.pow and bool((second < 0).any())):
        return real
    return rule(first, second)


def _power(base: Value, exponent: Value) -> Value:
    if type(base) is int and type(exponent) is int and base.bit_length() * exponent > BITS:
        raise OverflowError("a power is too large")
    power = _apply(operator.pow, base, exponent)
    if isinstance(power, complex):
        raise ValueError("a broken power of a negative number is not real")
    return power


def _real(number: Callable[[float], float], array: Callable[..., Any]) -> Callable[..., Value]:
    """A function of one real number, for numbers and for arrays."""
    return lambda x: array(*_arrays(x)) if _any_array(x) else number(x)


def _whole(number: Callable[[float], int], array: Callable[..., Any]) -> Callable[..., Value]:
    """A rounding: whole numbers, in arrays too where every entry can be one."""

    def rounded(x: Value) -> Value:
        if not _any_array(x):
            return number(x)
        result = np.asarray(array(*_arrays(x)))
        fits = bool(np.isfinite(result).all()) and float(np.abs(result).max(initial=0.0)) < WHOLE
        return result.astype(np.int64) if fits else result

    return rounded


def _extreme(number: Callable[..., Any], array: Callable[..., Any]) -> Callable[..., Value]:
    """The least or the greatest of several values; NaN if one of them is."""

    def extreme(*values: Value) -> Value:
        if not _any_array(*values):
            return math.nan if any(value != value for value in values) else number(values)
        result, *others = _arrays(*values)
        for value in others:
            result = array(result, value)
        return result

    return extreme


OPERATORS: dict[type, Callable[[Value, Value], Value]] = {
    ast.Add: lambda a, b: _apply(operator.add, a, b),
    ast.Sub: lambda a, b: _apply(operator.sub, a, b),
    ast.Mult: lambda a, b: _apply(operator.mul, a, b),
    ast.Div: lambda a, b: _apply(operator.truediv, a, b),
    ast.FloorDiv: lambda a, b: _apply(operator.floordiv, a, b),
    ast.Mod: lambda a, b: _apply(operator.mod, a, b),
    ast.Pow: _power,
}
SIGNS: dict[type, Callable[[Value], Value]] = {ast.UAdd: operator.pos, ast.USub: operator.neg}
FUNCTIONS: dict[str, Callable[..., Value]] = {
    "log": _real(math.log, np.log),
    "log2": _real(math.log2, np.log2),
    "log10": _real(math.log10, np.log10),
    "exp": _real(math.exp, np.exp),
    "sqrt": _real(math.sqrt, np.sqrt),
    "abs": _real(abs, np.abs),
    "round": _whole(round, np.rint),
    "floor": _whole(math.floor, np.floor),
    "ceil": _whole(math.ceil, np.ceil),
    "min": _extreme(min, np.minimum),
    "max": _extreme(max, np.maximum),
}
SEVERAL = ("min", "max")
ALLOWED = f"numbers, names, + - * / // % **, parentheses and {', '.join(FUNCTIONS)}"


@dataclass(frozen=True)
class Expression:
    """A formula in names.

    Parameters
    ----------
    text : str
        The formula, at most 300 characters.
    parameter : str
        What it is the formula of, for messages.

    Attributes
    ----------
    names : tuple of str
        The names in it, each once, in the order in which they appear.

    Raises
    ------
    InvalidRequest
        If the text is not such a formula.
    """

    text: str
    parameter: str = "expression"
    names: tuple[str, ...] = field(init=False, repr=False, compare=False)
    _tree: ast.expr = field(init=False, repr=False, compare=False)

    def __post_init__(self) -> None:
        if not isinstance(self.text, str) or not self.text.strip():
            self._refuse("is not a formula", "1")
        if len(self.text) > LONGEST:
            self._refuse(f"has more than {LONGEST} characters", "a shorter one")
        try:
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")  # "2if D": what it warns of is refused below
                tree = ast.parse(self.text.strip(), mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            self._refuse("cannot be read", "the formula with its signs and parentheses in pairs")
        names: dict[str, None] = {}
        self._check(tree, names)
        object.__setattr__(self, "names", tuple(names))
        object.__setattr__(self, "_tree", tree)

    def value(self, mapping: Mapping[str, Any]) -> Any:
        """The value where names have values.

        Parameters
        ----------
        mapping : mapping
            Name -> int, float, or array; arrays broadcast. Other names may be in it.

        Returns
        -------
        int, float, or array
            An int where Python's rules give one, an array where a name in it stands for one.

        Raises
        ------
        InvalidRequest
            If a name is missing, or a number is not defined or too large.
        """
        missing = [name for name in self.names if name not in mapping]
        if missing:
            allowed = ", ".join(map(str, mapping)) or "no name"
            near = get_close_matches(missing[0], list(map(str, mapping)), 1, 0.0)
            refuse(
                self.parameter, self.text, f"needs {', '.join(missing)}",
                f"a formula in {allowed}", near[0] if near else "a number",
            )  # fmt: skip
        values = {name: _number(mapping[name]) for name in self.names}
        try:
            with np.errstate(all="ignore"):
                result = self._evaluate(self._tree, values)
        except (ArithmeticError, ValueError) as error:
            self._refuse(f"has no value{_at(values)}: {error}", "other values of its names")
        if isinstance(result, complex) or (
            isinstance(result, float)
            and not math.isfinite(result)
            and all(isinstance(v, int) or np.isfinite(v).all() for v in values.values())
        ):
            self._refuse(f"is {result}{_at(values)}", "other values of its names")
        return result

    def __str__(self) -> str:
        return self.text

    def _refuse(self, problem: str, nearest: object) -> NoReturn:
        refuse(self.parameter, self.text, problem, f"a formula of {ALLOWED}", nearest)

    def _check(self, node: ast.expr, names: dict[str, None]) -> None:
        """Refuse what is not arithmetic; collect the names."""
        match node:
            case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
                if not math.isfinite(value):
                    self._refuse(f"holds a number that is {value}", "a smaller one")
            case ast.Name(id=name):
                if name in FUNCTIONS:
                    self._refuse(f"uses the function {name} as a name", f"{name}(...)")
                names[name] = None
            case ast.UnaryOp(op=sign, operand=operand) if type(sign) in SIGNS:
                self._check(operand, names)
            case ast.BinOp(left=left, op=operator_, right=right) if type(operator_) in OPERATORS:
                self._check(left, names)
                self._check(right, names)
            case ast.Call(func=ast.Name(id=name), args=arguments, keywords=[]):
                if name not in FUNCTIONS:
                    near = get_close_matches(name, list(FUNCTIONS), 1, 0.0)
                    self._refuse(f"calls {name}", f"{near[0]}(...)")
                if not (len(arguments) == 1 or (name in SEVERAL and len(arguments) > 1)):
                    self._refuse(f"gives {len(arguments)} values to {name}", f"{name}(...) of one")
                for argument in arguments:
                    self._check(argument, names)
            case _:
                self._refuse(f"holds {ast.unparse(node)}", "the formula without it")

    def _evaluate(self, node: ast.AST, values: Mapping[str, Value]) -> Value:
        match node:
            case ast.Constant(value=value):
                return value
            case ast.Name(id=name):
                return values[name]
            case ast.UnaryOp(op=sign, operand=operand):
                return SIGNS[type(sign)](self._evaluate(operand, values))
            case ast.BinOp(left=left, op=rule, right=right):
                sides = self._evaluate(left, values), self._evaluate(right, values)
                return OPERATORS[type(rule)](*sides)
            case ast.Call(func=ast.Name(id=name), args=arguments):
                return FUNCTIONS[name](*(self._evaluate(each, values) for each in arguments))
        raise TypeError(f"{node} was not checked")


def _number(value: Any) -> Value:
    """A value as a Python number or an array."""
    array = np.asarray(value)
    if array.dtype.kind not in "biuf":
        refuse("value", value, "is not a number", "a number or an array of them", 1)
    if array.ndim:
        return array
    return int(array) if array.dtype.kind in "biu" else float(array)


def _at(values: Mapping[str, Value]) -> str:
    numbers = [f"{name}={v:g}" for name, v in values.items() if not isinstance(v, np.ndarray)]
    return f" at {', '.join(numbers)}" if numbers else ""
