r"""Arithmetic written as text: ``m/(D-C)``, ``round(D/8)``, ``log2(D)**2``.

Python's parser reads the text, which may contain numbers, names, + - * / // % \*\*, parentheses and
the `FUNCTIONS`. All other syntax (attributes, indices, comparisons, strings, other calls) is
refused. Untrusted text is safe to evaluate, as the sizes of text and integer powers are bounded
too. Numbers behave as in Python: integers stay integers, ``/`` gives floats, ``round``, ``floor``
and ``ceil`` give integers. Arrays are evaluated entry by entry. An undefined operation, such as
division by zero, gives NaN in an array, and an error for a single number.
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
"""Maximum number of characters of an expression; a longer one is refused."""
BITS = 1024
"""Maximum number of bits of an integer power; a larger power exceeds the range of a float."""


def _power(base: Any, exponent: Any) -> Any:
    if type(base) is int and type(exponent) is int and base.bit_length() * exponent > BITS:
        raise OverflowError("a power is too large")
    power = base**exponent
    if isinstance(power, complex):
        raise ValueError("a fractional power of a negative number is not real")
    return power


def _extreme(rule: Callable[..., Any]) -> Callable[..., Any]:
    """Wrap ``min`` or ``max`` so that the result is NaN if any value is NaN."""
    return lambda *values: math.nan if any(v != v for v in values) else rule(values)


OPERATORS: dict[type, Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.FloorDiv: operator.floordiv,
    ast.Mod: operator.mod,
    ast.Pow: _power,
}
SIGNS: dict[type, Callable[[Any], Any]] = {ast.UAdd: operator.pos, ast.USub: operator.neg}
FUNCTIONS: dict[str, Callable[..., Any]] = {
    **{name: getattr(math, name) for name in ("log", "log2", "log10", "exp", "sqrt")},
    **{"abs": abs, "round": round, "floor": math.floor, "ceil": math.ceil},
    **{"min": _extreme(min), "max": _extreme(max)},
}
SEVERAL = ("min", "max")
ALLOWED = f"numbers, names, + - * / // % **, parentheses and {', '.join(FUNCTIONS)}"


@dataclass(frozen=True)
class Expression:
    """A formula in names, parsed from text of at most 300 characters.

    `parameter` is the name of the computed value in error messages; `names` are the names in the
    formula, in order of appearance. Raises InvalidRequest if the text is not a formula.
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
                warnings.simplefilter("ignore")  # Python warns about "2if D"; it is refused below
                tree = ast.parse(self.text.strip(), mode="eval").body
        except (SyntaxError, ValueError, RecursionError, MemoryError):
            self._refuse("cannot be read", "the formula with its signs and parentheses in pairs")
        names: dict[str, None] = {}
        self._check(tree, names)
        object.__setattr__(self, "names", tuple(names))
        object.__setattr__(self, "_tree", tree)

    def value(self, mapping: Mapping[str, Any]) -> Any:
        """Evaluate the formula for values of its names: integers, floats, or arrays that broadcast.

        Extra names are ignored. Raises InvalidRequest if a name is missing, or a number is
        undefined or too large.
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
        if any(isinstance(value, np.ndarray) for value in values.values()):
            arrays = np.broadcast_arrays(*values.values())
            entries = zip(*(array.ravel().tolist() for array in arrays), strict=True)
            found = [self._entry(dict(zip(values, entry, strict=True))) for entry in entries]
            return np.array(found, dtype=np.float64).reshape(arrays[0].shape)
        try:
            result = self._evaluate(self._tree, values)
            finite = math.isfinite(result)
        except (ArithmeticError, ValueError) as error:
            self._refuse(f"has no value{_at(values)}: {error}", "other values of its names")
        if not finite and all(map(math.isfinite, values.values())):
            self._refuse(f"is {result}{_at(values)}", "other values of its names")
        return result

    def _entry(self, values: Mapping[str, Any]) -> float:
        """Value of the formula for one entry of each array, or NaN if undefined."""
        try:
            return float(self._evaluate(self._tree, values))
        except (ArithmeticError, ValueError):
            return math.nan

    def __str__(self) -> str:
        return self.text

    def _refuse(self, problem: str, nearest: object) -> NoReturn:
        refuse(self.parameter, self.text, problem, f"a formula of {ALLOWED}", nearest)

    def _check(self, node: ast.expr, names: dict[str, None]) -> None:
        """Raise InvalidRequest for a node that is not arithmetic; add its names to `names`."""
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

    def _evaluate(self, node: ast.AST, values: Mapping[str, Any]) -> Any:
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


def _number(value: Any) -> Any:
    """Convert a value to a Python number or an array."""
    array = np.asarray(value)
    if array.dtype.kind not in "biuf":
        refuse("value", value, "is not a number", "a number or an array of them", 1)
    if array.ndim:
        return array
    return int(array) if array.dtype.kind in "biu" else float(array)


def _at(values: Mapping[str, Any]) -> str:
    numbers = ", ".join(f"{name}={v:g}" for name, v in values.items())
    return f" at {numbers}" if numbers else ""
