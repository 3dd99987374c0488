"""Symbols, observables and events of a model file.

A symbol without a field in the docstring (`theory.documentation`) is explained by the code: a
constant by the functions that use it, a scalar by the entries it represents, an observable by the
line of Python that computes it.
"""

from __future__ import annotations

import ast
import inspect
import textwrap
from collections.abc import Callable, Iterator, Sequence
from typing import TYPE_CHECKING, Any

import numpy as np

from dynamics.description.page import KINDS, RATE, Definition, Symbol, sought
from theory.model import HELD_OUT
from theory.notation import latex_of

if TYPE_CHECKING:
    from theory.events import EventRule
    from theory.model import Model

_, ARRAY, SCALAR, OTHER = KINDS
LISTED = 24
"""Maximum number of scalars with separate rows; above it, unnamed ones share rows by array."""
OUTSIDE = r"\mathrm{outside}"
LETTERS = (
    Symbol("eta", r"\eta", OTHER, "learning rate"),
    Symbol("time", r"\tau", OTHER, "time, eta times steps"),
    RATE,
    Symbol("outside", OUTSIDE, OTHER, "largest distance of a full run from the closed space"),
)
"""Symbols common to all model files."""


def symbols(model: Model, problem: Any) -> Iterator[Symbol]:
    """Symbols of trained arrays, untrained arrays, scalars, and named entries that never move."""
    realization, documented = problem.realization, model.documented
    moving = problem.closure.classes.labels
    for name, shape in realization.shapes.items():
        entries = realization.entry_number(name, *(0,) * len(shape))
        size = int(np.prod(shape, dtype=int))
        still = int((moving[entries : entries + size] < 0).sum())
        words = documented.meaning(name) or "trained array"
        words += f" ({_shape(shape)})"
        words += f"; {still} of {size} entries never move" if still else ""
        yield Symbol(name, latex_of(name), ARRAY, words)
    for name, array in model.fixed_arrays(realization.constants).items():
        words = documented.meaning(name) or "array"
        yield Symbol(
            name, latex_of(name), ARRAY, f"{words} ({_shape(np.shape(array))}, not trained)"
        )
    yield from _scalars(model, problem)
    for name, entry in realization.named_entries().items():
        if moving[entry] < 0:
            what = f"value of entry {realization.entry_name(entry)}, which never moves"
            words = "; ".join(filter(None, [documented.meaning(name), what]))
            yield Symbol(name, latex_of(name), OTHER, words)
    yield from LETTERS


def _scalars(model: Model, problem: Any) -> Iterator[Symbol]:
    """Symbols of the scalars; many unnamed scalars of one array share a row."""
    closure, realization = problem.closure, problem.realization
    named = set(model.table("names", realization.constants))
    listed = closure.scalars <= LISTED
    groups: dict[str, list[str]] = {}
    for number, name in enumerate(closure.names):
        first = int(closure.classes.first[number])
        if listed or name in named:
            words = model.documented.meaning(name)
            entries = _stands_for(realization.entry_name(first), closure.sizes[number])
            yield Symbol(name, latex_of(name), SCALAR, f"{words}; {entries}" if words else entries)
        else:
            groups.setdefault(realization.entry_position(first)[0], []).append(name)
    for array, names in groups.items():
        some = f"{names[0]}, ..., {names[-1]}" if len(names) > 1 else names[0]
        letters = rf"{latex_of(names[0])}, \dots, {latex_of(names[-1])}"
        words = f"{len(names)} scalars, each named by its first entry in {array}"
        yield Symbol(some, letters, SCALAR, words)


def _stands_for(entry: str, count: int) -> str:
    if count == 1:
        return f"value of entry {entry}"
    return f"common value of {entry} and {count - 1} equal entr{'y' if count == 2 else 'ies'}"


def _shape(shape: tuple[int, ...]) -> str:
    return " x ".join(map(str, shape)) or "a number"


def observables(model: Model, problem: Any) -> Iterator[Definition]:
    """Definitions of the model's observables, with the Python that computes them."""
    latex = r"R"
    how = "in closed form" if model.risk is not None else "mean of the loss over the law"
    yield Definition("risk", latex, f"population risk, {how}")
    codes = {}
    for role in ("observables", "observe"):
        function = getattr(model, role)
        if function is not None:
            codes[role] = returned(function)
    for name in problem.realization.observable_names:
        role = next((role for key in (name, "") for role in codes if key in codes[role]), "")
        if name.startswith(HELD_OUT):
            role = ""
        words = model.meaning(name) or "observable"
        mean = ", averaged over the law" if role == "observe" else ""
        code = codes[role].get(name, codes[role].get("", "")) if role else ""
        yield Definition(name, latex_of(name), words + mean, code=code)


def events(model: Model, rules: Sequence[EventRule]) -> Iterator[Definition]:
    """Definitions of the events, each with its rule in the file."""
    for rule in rules:
        meaning = model.documented.meaning(rule.name)
        words = f"{meaning}; {sought(rule)}" if meaning else sought(rule)
        yield Definition(rule.name, "", words, code=rule.meaning, note=rule.note)


def returned(function: Callable[..., Any]) -> dict[str, str]:
    """Python source of each value of a returned dict, by key; other returns have the key "".

    The mapping is empty if the source of the function is missing.

    Examples
    --------
    >>> import statistics
    >>> returned(statistics.mean) != {}
    True
    """
    try:
        (definition,) = ast.parse(textwrap.dedent(inspect.getsource(function))).body
    except (OSError, TypeError, SyntaxError, ValueError):
        return {}
    *before, last = getattr(definition, "body", [None])
    if not isinstance(last, ast.Return):
        return {}
    local = [ast.unparse(line) for line in before if isinstance(line, ast.Assign)]
    where = f", where {', '.join(local)}" if local else ""
    value = last.value
    if isinstance(value, ast.Dict) and all(isinstance(key, ast.Constant) for key in value.keys):
        pairs = zip(value.keys, value.values, strict=True)
        return {str(key.value): ast.unparse(part) + where for key, part in pairs}  # type: ignore[union-attr]
    return {"": "" if value is None else ast.unparse(value) + where}
