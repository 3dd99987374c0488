"""Python source of the risk, the gradient and a step, which needs only numpy."""

from __future__ import annotations

import keyword
import re
import textwrap
from collections import Counter
from collections.abc import Mapping, Sequence
from functools import reduce
from itertools import count

import numpy as np

from theory.program.evaluate import order
from theory.program.numbering import Ids, Values
from theory.program.program import Program, build

LONGEST = 88
"""Maximum number of characters of an expression; a longer one is assigned to a name."""
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
"""Source of functions that numpy lacks; a file that calls one starts with its definition."""
OPERATORS = {
    "mul": "{} * {}",
    "div": "{} / {}",
    "lt": "1.0 * ({} < {})",
    "le": "1.0 * ({} <= {})",
    "eq": "1.0 * ({} == {})",
    "is_finite": "1.0 * np.isfinite({})",
    "rsqrt": "1.0 / np.sqrt({})",
    "softplus": "np.logaddexp({}, 0.0)",
    "share": "np.exp({} - {})",
    "select": "np.where({} != 0, {}, {})",
    "stop": "{}",
}
"""Template of the Python expression of each operation."""
FUNCTIONS = {
    "sigmoid": "_sigmoid", "erf": "_erf", "erfc": "_erfc", "max": "np.maximum", "pow": "np.power",
    "rem": "np.fmod",
    **{name: f"np.arc{name[1:]}" for name in (
        "asin", "acos", "atan", "asinh", "acosh", "atanh", "atan2",
    )},
}  # fmt: skip
"""Numpy name of each operation that has a different name in numpy."""
Text = tuple[str, bool]
"""Text of an expression, and whether it needs no brackets (a name, a number or a call)."""


def _number(number: float) -> Text:
    text = repr(number) if np.isfinite(number) else f"np.{number}".replace("np.-inf", "-np.inf")
    return text, not text.startswith("-")


def _sum(terms: Sequence[str], counts: Sequence[float]) -> str:
    text = ""
    for term, factor in zip(terms, counts, strict=True):
        size = repr(abs(factor))
        product = size if term == "1.0" else term if abs(factor) == 1 else f"{size} * {term}"
        text += (" - " if factor < 0 else " + ") + product
    return "-" + text[3:] if text.startswith(" - ") else text[3:]


def _written(operation: str, row: Sequence[Text], counts: Sequence[float]) -> Text:
    """Expression of an operation on operands that are expressions."""
    plain = [text for text, _ in row]
    within = [text if single else f"({text})" for text, single in row]
    if operation == "sum":
        return _sum(within, counts), False
    if operation == "integer_pow":
        return f"{within[0]} ** {int(counts[0])}", False
    if operation == "logsumexp":
        return f"_logsumexp({counts}, {', '.join(plain)})", True
    if operation == "largest":
        return reduce(lambda a, b: f"np.maximum({a}, {b})", plain), True
    if operation in OPERATORS:
        return OPERATORS[operation].format(*within), False
    return f"{FUNCTIONS.get(operation, f'np.{operation}')}({', '.join(plain)})", True


def statements(program: Program, inputs: Sequence[str]) -> tuple[list[str], list[str]]:
    """Assignments to names t0, t1, ..., and expressions of the outputs in these names."""
    (outputs,) = program.outputs.values()
    uses = Counter([*program.index.tolist(), *outputs.tolist()])
    lines: list[str] = []
    names = (name for k in count() if (name := f"t{k}") not in inputs)
    texts = [(x, True) if x.isidentifier() else _number(float(x)) for x in inputs]
    texts += map(_number, program.constants.tolist())
    for operation, results, index, counts in program.rows():
        for value, operands, own in zip(range(program.size)[results], index, counts, strict=True):
            text, single = _written(operation, [texts[k] for k in operands], own.tolist())
            if uses[value] > 1 or len(text) > LONGEST:
                name = next(names)
                lines.append(_assigned(name, text))
                text, single = name, True
            texts.append((text, single))
    return lines, [texts[k][0] for k in outputs.tolist()]


def _assigned(name: str, text: str) -> str:
    """Statement that assigns an expression to a name; a long expression is put in brackets."""
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
    """Source of a module with `risk`, `gradient` and `step`; arrays of states have shape (..., n).

    A step subtracts eta times the gradient from the state. The ids of the gradient's values are
    `gradient`. `inputs` holds three mappings from ids: names of the scalars, names of the real
    constants, and numbers of all other inputs. `start` has one number for each scalar, and `eta`
    one number or one for each scalar. `title` is the docstring of the module.
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
    """Name, with an underscore appended if the name is a keyword or is defined in the file."""
    return f"{name}_" if keyword.iskeyword(name) or name in OWN else name


def _listed(parts: Sequence[str], indent: int = 8) -> str:
    """Parts separated by commas, on lines of at most 98 characters."""
    space = " " * indent
    return textwrap.fill(
        ", ".join(parts), 98, initial_indent=space, subsequent_indent=space,
        break_long_words=False, break_on_hyphens=False,
    )  # fmt: skip
