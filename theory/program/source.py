"""Values as a file of Python on numpy alone: risk, gradient, one step."""

from __future__ import annotations

import keyword
import re
import textwrap
from collections import Counter
from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from itertools import count
from typing import NamedTuple

from theory.program.evaluate import order, run
from theory.program.numbering import Ids, Values

LONGEST = 60
"""Characters of an expression from which it gets a name."""
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
"""Functions that numpy lacks, for the top of a file that calls them."""
SUM, PRODUCT, ATOM = 1, 2, 3


class Text(NamedTuple):
    """An expression: what binds its parts last, and the comparison that it is, if it is one."""

    text: str
    level: int = ATOM
    comparison: str = ""

    def within(self, level: int) -> str:
        """The text as a part of what binds at a level."""
        return self.text if self.level >= level else f"({self.text})"


def _number(value: Fraction | float) -> Text:
    number = float(value)
    if number != number or abs(number) == float("inf"):
        return Text(f"np.{number}".replace("np.-inf", "-np.inf"), SUM)
    return Text(repr(number), ATOM if number >= 0 else SUM)


def _sum(terms: Sequence[Text], factors: Sequence[Text]) -> Text:
    text = ""
    for term, factor in zip(terms, factors, strict=True):
        minus = factor.text.startswith("-")
        size = factor.text.lstrip("-")
        product = term.within(PRODUCT) if size == "1.0" else f"{size} * {term.within(PRODUCT)}"
        text += (" - " if minus else " + ") + product
    text = "-" + text[3:] if text.startswith(" - ") else text[3:]
    many = len(terms) > 1 or text.startswith("-")
    return Text(text, SUM if many else PRODUCT) if terms else Text("0.0")


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


def statements(
    values: Values, roots: Sequence[int], given: Mapping[int, str]
) -> tuple[list[str], list[str]]:
    """Assignments to t0, t1, ..., and expressions of some values in them.

    Parameters
    ----------
    values : Values
    roots : sequence of int
    given : mapping
        Input -> expression.
    """
    uses: Counter[int] = Counter(roots)
    for value in order(values, roots, given):
        if not values.constant[value]:
            uses.update(values.row(value)[0].tolist())
    lines: list[str] = []
    names = _names(given.values())

    def named(value: int, result: Text) -> Text:
        plain = result.level == ATOM and result.text.isidentifier()
        if plain or (uses[value] < 2 and len(result.text) < LONGEST):
            return result
        lines.append(f"{(name := next(names))} = {result.text}")
        return Text(name, comparison=f"{name} != 0" if result.comparison else "")

    inputs = {
        value: Text(text, ATOM if text.isidentifier() else SUM) for value, text in given.items()
    }
    known = run(values, roots, inputs, ARITHMETIC, _number, named)
    return lines, [known[root].text for root in roots]


def _names(taken: Iterable[str]) -> Iterator[str]:
    used = set(taken)
    return (name for k in count() if (name := f"t{k}") not in used)


def function_file(
    values: Values,
    risk: int,
    gradient: Ids,
    inputs: tuple[Mapping[int, str], Mapping[int, str], Mapping[int, float]],
    start: Sequence[float],
    eta: Sequence[float],
    title: str,
) -> str:
    """A module with `risk`, `gradient` and `step` of a state, or of states along the last axis.

    Parameters
    ----------
    values : Values
    risk : int
    gradient : int array
        What a step subtracts, divided by eta.
    inputs : (mapping, mapping, mapping)
        Scalar -> name; real constant -> name; other inputs, and real constants, -> number.
    start, eta : sequences of float
        For each scalar.
    title : str
        First line of its documentation.
    """
    scalars, reals, numbers = inputs
    own = {name: _safe(name) for name in (*scalars.values(), *reals.values())}
    used = set(order(values, [risk, *gradient], ()))
    letters = {k: own[name] for k, name in reals.items() if k in used}
    given = {k: own[name] for k, name in scalars.items()} | letters
    given |= {k: repr(float(x)) for k, x in numbers.items() if k not in given}
    options = "".join(f", {name}={float(numbers[k])!r}" for k, name in letters.items())
    passed = "".join(f", {name}" for name in letters.values())
    names = [own[name] for name in scalars.values()]
    bodies = []
    for name, roots in (("risk", [risk]), ("gradient", gradient.tolist())):
        lines, found = statements(values, roots, given)
        result = f"{found[0]} + 0.0"
        if name == "gradient":
            result = f"np.stack(np.broadcast_arrays(\n{_listed(found)},\n    ), axis=-1)"
        doc = {"risk": "Population risk.", "gradient": "What a step subtracts, divided by eta."}
        bodies.append(
            f'\n\n@np.errstate(all="ignore")\ndef {name}(state{options}):\n    """{doc[name]}"""\n'
            f"    (\n{_listed(names)},\n    ) = "
            "np.moveaxis(np.asarray(state, dtype=float), -1, 0)\n"
            + "".join(f"    {line}\n" for line in lines)
            + f"    return {result}\n"
        )
    text = "".join(bodies)
    helpers = [code for name, code in HELPERS.items() if re.search(rf"\b{name}\(", text)]
    imports = "import math\n\n" if any("math." in code for code in helpers) else ""
    rates = ", ".join(repr(float(x)) for x in eta)
    return (
        f'"""{title}"""\n\n{imports}import numpy as np\n\n'
        + f"NAMES = (\n{_listed([repr(name) for name in scalars.values()])},\n)\n"
        + f"START = np.array([\n{_listed([repr(float(x)) for x in start])},\n])\n"
        + f"ETA = {rates if len(eta) == 1 else f'np.array([{rates}])'}\n"
        + "".join("\n" + code for code in helpers)
        + text
        + f'\n\ndef step(state, eta=ETA{options}):\n    """One step of gradient descent."""\n'
        + f"    return np.asarray(state) - eta * gradient(state{passed})\n"
    )


def _safe(name: str) -> str:
    """A name that is none of Python, and none of the file."""
    return f"{name}_" if keyword.iskeyword(name) or name in OWN else name


def _listed(parts: Sequence[str]) -> str:
    """Parts between commas, on lines of at most 98 characters where they allow it."""
    if any(" " in part for part in parts):
        return ",\n".join(f"        {part}" for part in parts)
    return textwrap.fill(
        ", ".join(parts), 98, initial_indent="        ", subsequent_indent="        ",
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip
