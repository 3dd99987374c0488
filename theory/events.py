"""Rules of training events: named conditions on a run.

A rule is an expression in *order parameters*: time, the scalars of the reduction, observables,
``risk``, constants, and rates. A rate such as ``d_alpha`` is minus the gradient per entry, the
change per unit of time, where time is eta times steps. The same rule applies to every run of a
system. Gradient descent evaluates a rule at every step; the event is the first step that satisfies
the rule.

- `Crossing`: an expression becomes non-negative.
- `ExceedsRunMaximum`: a quantity exceeds the maximum of another quantity over the *whole* run. An
  `ExceedsRunMaximum` event depends on the horizon (length of the run), stored with it.
- `RisesAgain`: a quantity falls, then rises again; this event also depends on the horizon.

`event_rules` parses rules as text:

========================================  =====================================================
``"G >= D/2"``, also ``> <= <``           first step at which the comparison holds (`Crossing`)
``"gamma >= 1 while alpha > 0"``          first step at which both comparisons hold
``"v stops growing"``                     first step at which the rate of v is at most 0
``"v starts growing"``                    first step at which the rate of v is positive
``"alpha rises again"``                   the minimum before a rise that lasts (`RisesAgain`)
``"gamma exceeds the maximum of rho"``    over the whole run (`ExceedsRunMaximum`)
``"... after T0"``                        the search begins at the time of the event T0
========================================  =====================================================

At rest, the sign of a rate is only rounding. The rules ``stops growing`` and ``starts growing``
therefore ignore rates below `RESOLUTION`; a rate of exactly 0 counts if the state moved before.
"""

from __future__ import annotations

import ast
import math
import operator
import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field, fields
from difflib import get_close_matches
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, ClassVar

from theory.law import ModelError
from theory.notation import latex_of

if TYPE_CHECKING:
    import sympy

LARGEST_POWER = 1024
LISTED = 6
"""Maximum number of known names in a message on an unknown name, besides the nearest one."""


def _always() -> sympy.Expr:
    import sympy  # imported here, because a stored rule is read without SymPy

    return sympy.Integer(1)


@dataclass(frozen=True)
class EventRule:
    """Fields common to all rules.

    `name` is the key of the event in results, `meaning` its description in one line, and `latex`
    the condition for plots and tables. The search begins at the time of the event `after`. `note`
    is a remark if the time of the event can mislead, else "".
    """

    whole_run: ClassVar[bool] = False
    """Whether the rule needs the whole run, so that the event depends on its length."""

    name: str
    meaning: str
    latex: str
    after: str | None = field(default=None, kw_only=True)
    note: str = field(default="", kw_only=True)

    @cached_property
    def expressions(self) -> tuple[sympy.Expr, ...]:
        """Expressions of order parameters in the rule."""
        values = (getattr(self, field.name) for field in fields(self))
        return tuple(value for value in values if hasattr(value, "free_symbols"))


@dataclass(frozen=True)
class Crossing(EventRule):
    """First time with ``expression >= 0`` while ``guard > 0``; upward crossings only.

    Attributes
    ----------
    expression, guard : sympy.Expr
        In symbols named like the order parameters; the default guard always holds.
    strict : bool
        If True, the condition is ``expression > 0``.
    resolution : float
        Smallest absolute value of an expression of rates whose sign counts, relative to its largest
        absolute value in the run. An exact 0 after motion counts.
    guard_strict : bool
        If False, the guard is ``guard >= 0``.
    """

    expression: sympy.Expr
    guard: sympy.Expr = field(default_factory=_always)
    strict: bool = False
    resolution: float = 0.0
    guard_strict: bool = True


@dataclass(frozen=True)
class ExceedsRunMaximum(EventRule):
    """First time at which ``quantity`` exceeds the maximum of ``bound`` over the whole run.

    Attributes
    ----------
    quantity, bound : sympy.Expr
        In symbols named like the order parameters.
    """

    whole_run: ClassVar[bool] = True

    quantity: sympy.Expr
    bound: sympy.Expr


@dataclass(frozen=True)
class RisesAgain(EventRule):
    """Minimum from which ``quantity`` rises above its value at the beginning of the search.

    The search begins at the event ``after``, where the quantity has the value q0. The quantity must
    fall below q0, exceed q0 + `relative` * abs(q0) later, and be above q0 at the end of the run.
    The event is at the least value between the fall and the rise.

    Attributes
    ----------
    quantity : sympy.Expr
        In symbols named like the order parameters.
    relative : float
        Smallest rise r, relative to q0.
    """

    whole_run: ClassVar[bool] = True

    quantity: sympy.Expr
    relative: float


RISE = 0.05
"""Minimum rise of "rises again", relative to the value at the beginning of the search."""
RESOLUTION = 1e-12
"""Minimum size of a rate whose sign counts, relative to the largest size of the rate in the run."""
FORMS = (
    "'G >= D/2', 'v stops growing', 'v starts growing', 'alpha rises again', "
    "'gamma exceeds the maximum of rho', each with 'after NAME' where needed"
)
FUNCTIONS = {"sqrt": 1, "log": 1, "exp": 1, "Abs": 1, "tanh": 1, "Min": 2, "Max": 2}
"""Number of arguments of each function allowed in a rule (Min and Max accept more)."""
SPELLED = {"abs": "Abs", "min": "Min", "max": "Max"}


Letters = Callable[[str], Any]
"""Function from a name in a rule to its symbol; raises ModelError for an unknown name."""


def event_rules(
    texts: Mapping[str, Any], names: Sequence[str], equal: Mapping[str, str] | None = None
) -> tuple[EventRule, ...]:
    """Parse the rules of a model; ``after`` must refer to earlier rules.

    `texts` maps the name of each event to its rule; `names` are the names allowed in rules. `equal`
    maps a name to the order parameter that replaces it: a name that always has the same value or,
    after ``-``, the opposite value. Raises ModelError if a rule has none of the forms, or contains
    an unknown name.
    """
    rules: list[EventRule] = []
    for name, text in texts.items():
        if not isinstance(name, str) or not name.isidentifier():
            raise ModelError(f"events: {name!r} is not a word such as T1 or half_attended")
        if not isinstance(text, str):
            raise ModelError(f"event {name}: {text!r} is not a rule; rules are text: {FORMS}")
        rule = event_rule(name, text, names, equal)
        if rule.after is not None and rule.after not in [earlier.name for earlier in rules]:
            raise ModelError(f"event {name}: no event {rule.after!r} is defined before it")
        rules.append(rule)
    return tuple(rules)


def event_rule(
    name: str, text: str, names: Sequence[str], equal: Mapping[str, str] | None = None
) -> EventRule:
    """Parse one rule in one of the forms listed in the module docstring; see `event_rules`.

    Raises ModelError if the text has none of the forms, or contains an unknown name.
    """
    try:
        return _rule(name, text, partial(_symbol, names=names, equal=equal or {}))
    except ModelError as error:
        raise ModelError(f"event {name}: {error}") from None


def _symbol(letter: str, names: Sequence[str], equal: Mapping[str, str]) -> sympy.Expr:
    import sympy

    if letter in names:
        return sympy.Symbol(letter, real=True)
    rate = "d_" if letter.startswith("d_") else ""
    if other := equal.get(letter.removeprefix(rate)):
        used = sympy.Symbol(rate + other.removeprefix("-"), real=True)
        return -used if other.startswith("-") else used
    near = get_close_matches(letter, names, 1, 0.0)
    others = [name for name in names if name not in near and not name.startswith("d_")]
    also = f"; others: {', '.join(others[:LISTED])}" if others else ""
    more = ", ..." if len(others) > LISTED else ""
    raise ModelError(f"{letter!r} is unknown; nearest: {near[0] if near else 'none'}{also}{more}")


def _rule(name: str, text: str, symbol: Letters) -> EventRule:
    import sympy

    body, after = text.strip(), None
    match = re.fullmatch(r"(.*)\s+after\s+(\w+)", body)
    if match:
        body, after = match[1].strip(), match[2]
    guard: sympy.Expr = sympy.Integer(1)
    condition, guarded = "", True
    match = re.fullmatch(r"(.*)\s+while\s+(.*)", body)
    if match:
        body = match[1].strip()
        guard, guarded, latex = _difference(match[2], symbol)
        condition = rf" \text{{ while }} {latex}"
    if growing := re.fullmatch(r"(\w+)\s+(stops|starts) growing", body):
        starts = growing[2] == "starts"
        growth = _expression(f"d_{growing[1]}", symbol)
        rate, latex = (growth, f"{_latex(growth)} > 0") if starts else (
            -growth, rf"{_latex(growth)} \leq 0"
        )  # fmt: skip
        latex += condition
        return Crossing(name, text, latex, rate, guard, starts, RESOLUTION, guarded, after=after)
    if rising := re.fullmatch(r"(.+)\s+rises again", body):
        quantity = _expression(rising[1], symbol)
        latex = rf"{_latex(quantity)} \text{{ rises again}}"
        return RisesAgain(name, text, latex, quantity, RISE, after=after)
    if exceeding := re.fullmatch(r"(.+)\s+exceeds the maximum of\s+(.+)", body):
        quantity, bound = (_expression(part, symbol) for part in exceeding.groups())
        latex = rf"{_latex(quantity)} \text{{ exceeds the maximum of }} {_latex(bound)}"
        return ExceedsRunMaximum(name, text, latex, quantity, bound, after=after)
    difference, strict, latex = _difference(body, symbol)
    latex, resolution = latex + condition, _resolution(difference)
    return Crossing(name, text, latex, difference, guard, strict, resolution, guarded, after=after)


def _resolution(expression: sympy.Expr) -> float:
    """`RESOLUTION` if an expression contains rates and is 0 where they are all 0, else 0."""
    rates = {symbol: 0 for symbol in expression.free_symbols if symbol.name.startswith("d_")}
    return RESOLUTION if rates and expression.subs(rates) == 0 else 0.0


SIGNS = {">": ">", ">=": r"\geq", "<": "<", "<=": r"\leq"}


def _latex(expression: sympy.Expr) -> str:
    import sympy

    letters = {
        one: rf"\dot{{{latex_of(one.name[2:])}}}"
        if one.name.startswith("d_")
        else latex_of(one.name)
        for one in expression.free_symbols
    }
    return str(sympy.latex(expression, symbol_names=letters))


def _difference(text: str, symbol: Letters) -> tuple[sympy.Expr, bool, str]:
    """Parse a comparison into (expression, strict, LaTeX).

    The comparison holds if the expression is positive, or at least 0 if not strict.
    """
    match = re.fullmatch(r"(.*?)(>=|<=|>|<)(.*)", text)
    if not match or re.search(r"[<>=]", match[3]):
        raise ModelError(f"{text!r} is not a rule; rules are {FORMS}")
    left, right = (_expression(part, symbol) for part in (match[1], match[3]))
    above = match[2].startswith(">")
    latex = f"{_latex(left)} {SIGNS[match[2]]} {_latex(right)}"
    return (left - right if above else right - left), "=" not in match[2], latex


def _expression(text: str, symbol: Letters) -> sympy.Expr:
    """Parse an arithmetic expression of names."""
    try:
        tree = ast.parse(text.strip(), mode="eval").body
    except (SyntaxError, ValueError, RecursionError, MemoryError):
        raise ModelError(f"{text!r} cannot be read; rules are {FORMS}") from None
    result = _read(tree, symbol)
    never = result.is_finite is not True and not result.free_symbols
    if never or result.is_real is False:
        raise ModelError(f"{text.strip()!r} is not a finite number")
    return result


OPERATORS: Mapping[type[ast.operator], Callable[[Any, Any], Any]] = {
    ast.Add: operator.add,
    ast.Sub: operator.sub,
    ast.Mult: operator.mul,
    ast.Div: operator.truediv,
    ast.Pow: operator.pow,
}


def _read(node: ast.AST, symbol: Letters) -> Any:
    import sympy

    match node:
        case ast.Constant(value=int() | float() as value) if not isinstance(value, bool):
            return _held(node, sympy.nsimplify(value, rational=True))
        case ast.Name(id=letter):
            return symbol(letter)
        case ast.UnaryOp(op=ast.USub(), operand=operand):
            return -_read(operand, symbol)
        case ast.BinOp(left=left, op=sign, right=right) if type(sign) in OPERATORS:
            sides = _read(left, symbol), _read(right, symbol)
            power = isinstance(sign, ast.Pow) and sides[1].is_real and sides[1].is_number
            if power and abs(sides[1]) > LARGEST_POWER:
                raise ModelError(
                    f"{ast.unparse(right)!r} is not a power of at most {LARGEST_POWER}"
                )
            return _held(node, OPERATORS[type(sign)](*sides))
        case ast.Call(func=ast.Name(id=function), args=arguments, keywords=[]):
            spelled = SPELLED.get(function, function)
            required = FUNCTIONS.get(spelled, 0)
            if required == len(arguments) or (required == 2 < len(arguments)):
                values = [_read(a, symbol) for a in arguments]
                return _held(node, getattr(sympy, spelled)(*values))
    raise ModelError(f"{ast.unparse(node)!r} is not arithmetic of names")


def _held(node: ast.AST, value: Any) -> Any:
    """Value of a node, a float if it has integers beyond 2^53; ModelError beyond floats."""
    import sympy

    if not value.is_number or value.is_real is not True:
        return value  # `_expression` raises an error for values that are not real numbers
    try:
        number = float(value)
    except (TypeError, ValueError, OverflowError):
        number = math.inf
    if not math.isfinite(number) or (number == 0) is not (value == 0):
        raise ModelError(f"{ast.unparse(node)[:60]!r} is not a finite number that a float can hold")
    if value.is_Rational and max(abs(value.p), value.q) > 2**53:
        return sympy.Float(number)
    return value
