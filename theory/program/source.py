"""Values as a Python file that needs numpy alone: risk, gradient, one step."""

from __future__ import annotations

import keyword
import re
import textwrap
from collections import Counter
from collections.abc import Callable, Mapping, Sequence
from itertools import count
from typing import NamedTuple

import numpy as np

from theory.program.evaluate import order
from theory.program.numbering import Ids, Values
from theory.program.operations import FLOATS, ROWS
from theory.program.program import Program, build

LONGEST = 88
"""Length in characters above which an expression is assigned to a name."""
OWN = {"np", "math", "state", "eta", "risk", "gradient", "step", "NAMES", "START", "ETA"}
HELPERS = {
    "_sigmoid": """
def _sigmoid(x):
    e = np.exp(-np.abs(x))
    return np.where(x >= 0, 1.0, e) / (1.0 + e)
""",
    "_logsumexp": """
def _logsumexp(counts, *rows):
    rows = np.stack(np.broadcast_arrays(*rows))
    top = rows.max(axis=0)
    return top + np.log(np.tensordot(counts, np.exp(rows - top), axes=1))
""",
    "_erf": """
_erf = np.vectorize(math.erf, otypes=[float])
""",
    "_erfc": """
_erfc = np.vectorize(math.erfc, otypes=[float])
""",
}
"""Definitions of functions that numpy lacks, added to files that call them."""
SUM, PRODUCT, ATOM = 1, 2, 3
POWER = "integer_pow"


class Text(NamedTuple):
    """Expression with its binding level and, if it is one, its comparison or number."""

    text: str
    level: int = ATOM
    comparison: str = ""
    number: float | None = None

    def within(self, level: int) -> str:
        """Text for use in an expression of a binding level, in brackets if needed."""
        return self.text if self.level >= level else f"({self.text})"


def _number(number: float) -> Text:
    if number != number or abs(number) == float("inf"):
        return Text(f"np.{number}".replace("np.-inf", "-np.inf"), SUM, number=number)
    return Text(repr(float(number)), ATOM if number >= 0 else SUM, number=float(number))


def _sum(terms: Sequence[Text], factors: Sequence[Text]) -> Text:
    parts, constant = [], 0.0
    for term, factor in zip(terms, factors, strict=True):
        assert factor.number is not None
        if term.number is not None:
            constant += factor.number * term.number
            continue
        size = abs(factor.number)
        product = term.within(PRODUCT) if size == 1 else f"{size!r} * {term.within(PRODUCT)}"
        parts.append((" - " if factor.number < 0 else " + ") + product)
    if constant:
        parts.append((" - " if constant < 0 else " + ") + repr(abs(constant)))
    text = "".join(parts)
    text = "-" + text[3:] if text.startswith(" - ") else text[3:]
    return Text(text, SUM if len(parts) > 1 or text.startswith("-") else PRODUCT)


def _folded(operation: str, row: Sequence[Text], counts: Sequence[Text]) -> Text | None:
    """Number that an operation on numbers evaluates to; None for other operands."""
    numbers = [text.number for text in row if text.number is not None]
    if len(numbers) < len(row):
        return None
    if operation not in ROWS:
        return _number(float(FLOATS[operation](*numbers)))
    if operation == "sum":
        return _number(sum(float(c.text) * x for c, x in zip(counts, numbers, strict=True) if x))
    return _number(float(numbers[0]) ** float(counts[0].text)) if operation == POWER else None


def _called(name: str) -> Callable[..., Text]:
    return lambda *x: Text(f"{name}({', '.join(a.text for a in x)})")


def _compared(sign: str) -> Callable[..., Text]:
    def of(a: Text, b: Text) -> Text:
        comparison = f"{a.text} {sign} {b.text}"
        return Text(f"1.0 * ({comparison})", PRODUCT, comparison)

    return of


def _largest(rows: Sequence[Text], _: Sequence[Text]) -> Text:
    text = rows[-1].text
    for row in reversed(rows[:-1]):
        text = f"np.maximum({row.text}, {text})"
    return Text(text)


def _logsumexp(rows: Sequence[Text], factors: Sequence[Text]) -> Text:
    counts = ", ".join(f.text for f in factors)
    return Text(f"_logsumexp([{counts}], {', '.join(r.text for r in rows)})")


ARITHMETIC: dict[str, Callable[..., Text]] = {
    "sum": _sum,
    "logsumexp": _logsumexp,
    "largest": _largest,
    "integer_pow": lambda x, c: Text(f"{x[0].within(ATOM)} ** {int(float(c[0].text))}", PRODUCT),
    "mul": lambda a, b: Text(f"{a.within(PRODUCT)} * {b.within(ATOM)}", PRODUCT),
    "div": lambda a, b: Text(f"{a.within(PRODUCT)} / {b.within(ATOM)}", PRODUCT),
    "share": lambda x, log_sum: Text(f"np.exp({x.text} - {log_sum.within(PRODUCT)})"),
    "pow": lambda a, b: Text(f"np.power({a.text}, {b.text})"),
    "select": lambda c, a, b: Text(
        f"np.where({c.comparison or c.text + ' != 0'}, {a.text}, {b.text})"
    ),
    "lt": _compared("<"),
    "le": _compared("<="),
    "eq": _compared("=="),
    "stop": lambda x: x,
    "rsqrt": lambda x: Text(f"1.0 / np.sqrt({x.text})", PRODUCT),
    "softplus": lambda x: Text(f"np.logaddexp({x.text}, 0.0)"),
    "is_finite": lambda x: Text(f"1.0 * np.isfinite({x.text})", PRODUCT),
    "sigmoid": _called("_sigmoid"),
    "erf": _called("_erf"),
    "erfc": _called("_erfc"),
    "max": _called("np.maximum"),
    "rem": _called("np.fmod"),
    "abs": _called("np.abs"),
    **{name: _called(f"np.{name}") for name in (
        "exp", "log", "log1p", "expm1", "sqrt", "cbrt", "tanh", "sin", "cos", "tan", "sinh",
        "cosh", "sign", "floor", "round", "trunc",
    )},
    **{name: _called(f"np.arc{name[1:]}") for name in (
        "asin", "acos", "atan", "asinh", "acosh", "atanh", "atan2",
    )},
}  # fmt: skip


def statements(program: Program, inputs: Sequence[str]) -> tuple[list[str], list[str]]:
    """Assignments to t0, t1, ..., and expressions of the outputs in terms of them.

    `inputs`: text of each input.
    """
    (outputs,) = program.outputs.values()
    uses = Counter([*program.index.tolist(), *outputs.tolist()])
    lines: list[str] = []
    taken = set(inputs)
    names = (name for k in count() if (name := f"t{k}") not in taken)
    numbers = [Text(x) if x.isidentifier() else _number(float(x)) for x in inputs]
    numbers += map(_number, program.constants.tolist())
    for operation, results, index, factors in program.rows():
        for value, operands, own in zip(range(program.size)[results], index, factors, strict=True):
            row = [numbers[k] for k in operands]
            counts = [_number(c) for c in own.tolist()]
            result = _folded(operation, row, counts)
            if result is None:
                result = ARITHMETIC[operation](*((row, counts) if operation in ROWS else row))
            if result.number is None and (uses[value] > 1 or len(result.text) > LONGEST):
                name = next(names)
                lines.append(_assigned(name, result.text))
                result = Text(name, comparison=f"{name} != 0" if result.comparison else "")
            numbers.append(result)
    return lines, [numbers[k].text for k in outputs.tolist()]


def _assigned(name: str, text: str) -> str:
    """Assignment inside a function; a long one is wrapped in brackets."""
    if len(text) <= LONGEST:
        return f"{name} = {text}"
    return f"{name} = (\n{_listed([text])}\n    )"


def function_file(
    values: Values,
    risk: int,
    gradient: Ids,
    inputs: tuple[Mapping[int, str], Mapping[int, str], Mapping[int, float]],
    start: Sequence[float],
    eta: Sequence[float],
    title: str,
) -> str:
    """Module with `risk`, `gradient` and `step` of a state, or of states along the last axis.

    `gradient`: ids of the gradient, of which a step subtracts eta times; `inputs`: scalar -> name,
    real constant -> name, other inputs and real constants -> number; `start`, `eta`: one per
    scalar; `title`: first line of the module's docstring.
    """
    scalars, reals, numbers = inputs
    own = {name: _safe(name) for name in (*scalars.values(), *reals.values())}
    used = set(order(values, [risk, *gradient.tolist()], ()))
    letters = {k: own[name] for k, name in reals.items() if k in used}
    given = {k: own[name] for k, name in scalars.items()} | letters
    given |= {k: repr(float(x)) for k, x in numbers.items() if k not in given}
    options = "".join(f", {name}={float(numbers[k])!r}" for k, name in letters.items())
    passed = "".join(f", {name}" for name in letters.values())
    names = [own[name] for name in scalars.values()]
    bodies = []
    for name, roots in (("risk", np.array([risk])), ("gradient", gradient)):
        program = build(values, list(given), {name: roots})
        lines, found = statements(program, list(given.values()))
        ends = [_assigned("total", found[0]), "return total + 0.0"]
        if name == "gradient":
            ends = ["slope = np.empty(np.shape(state))"]
            ends += [_assigned(f"slope[..., {k}]", text) for k, text in enumerate(found)]
            ends.append("return slope")
        doc = {"risk": "Population risk.", "gradient": "Gradient; a step subtracts eta times it."}
        bodies.append(
            f'\n\n@np.errstate(all="ignore")\ndef {name}(state{options}):\n    """{doc[name]}"""\n'
            f"    (\n{_listed(names)},\n    ) = "
            "np.moveaxis(np.asarray(state, dtype=float), -1, 0)\n"
            + "".join(f"    {line}\n" for line in (*lines, *ends))
        )
    text = "".join(bodies)
    helpers = [code for name, code in HELPERS.items() if re.search(rf"\b{name}\(", text)]
    imports = "import math\n\n" if any("math." in code for code in helpers) else ""
    rates = ", ".join(repr(float(x)) for x in eta)
    return (
        f'"""{title}"""\n\n{imports}import numpy as np\n\n'
        + f"NAMES = (\n{_listed([repr(name) for name in scalars.values()], 4)},\n)\n"
        + f"START = np.array([\n{_listed([repr(float(x)) for x in start], 4)},\n])\n"
        + f"ETA = {rates if len(eta) == 1 else f'np.array([{rates}])'}\n"
        + "".join("\n" + code for code in helpers)
        + text
        + f'\n\ndef step(state, eta=ETA{options}):\n    """One step of gradient descent."""\n'
        + f"    return np.asarray(state) - eta * gradient(state{passed})\n"
    )


def _safe(name: str) -> str:
    """Name with an underscore appended if it is a keyword or defined in the file."""
    return f"{name}_" if keyword.iskeyword(name) or name in OWN else name


def _listed(parts: Sequence[str], indent: int = 8) -> str:
    """Comma-separated parts, on lines of at most 98 characters."""
    space = " " * indent
    return textwrap.fill(
        ", ".join(parts), 98, initial_indent=space, subsequent_indent=space,
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip
