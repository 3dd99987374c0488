"""Short form of a result for ``print`` and notebooks: a few lines instead of every number."""

from __future__ import annotations

import dataclasses
import html
import itertools
from collections.abc import Mapping, Sequence
from typing import Any, TypeVar

import numpy as np

ROWS, WIDTH = 7, 72
"""Maximum number of lines below the first line of a result, and of characters of a value."""
LINE = 88
"""Maximum number of characters of a result in one line; a longer result is a table."""
ENTRIES = 4
"""Maximum size of an array that is printed in full; a larger one shows shape and range."""
HIDDEN = ("presentation",)
"""Names of fields that describe the plot of a result and are not printed."""

Result = TypeVar("Result", bound=type)


def summarized(cls: Result) -> Result:
    """Give a class of results a short ``repr``, and an HTML table for notebooks.

    The method ``overview`` of the class returns the rows as a mapping from label to value; without
    this method, the fields are the rows.

    Examples
    --------
    >>> @summarized
    ... @dataclasses.dataclass
    ... class Fit:
    ...     name: str
    ...     values: np.ndarray
    ...     source: str = ""
    >>> Fit("short", np.arange(3.0))
    Fit(name=short, values=[0, 1, 2])
    >>> Fit("long", np.linspace(0, 1, 300), "records of a flow, at the times of its events")
    Fit
      name    long
      values  float64 array (300,), 0 to 1
      source  records of a flow, at the times of its events
    """
    cls.__repr__ = _as_text  # type: ignore[assignment]
    cls._repr_html_ = _as_html  # type: ignore[attr-defined]
    return cls


def _rows(result: Any) -> dict[str, str]:
    """Text of each nonempty value by its label; the last row lists the labels left out."""
    if hasattr(result, "overview"):
        content = result.overview()
    else:
        fields = (f.name for f in dataclasses.fields(result) if f.repr and f.name not in HIDDEN)
        content = {name: getattr(result, name) for name in fields}
    texts = {label: _text(value) for label, value in content.items()}
    rows = {label: _cut(text) for label, text in texts.items() if text}
    names = list(rows)
    if len(names) <= ROWS:
        return rows
    more = {"and": _cut(", ".join(names[ROWS - 1 :]))}
    return {name: rows[name] for name in names[: ROWS - 1]} | more


def _as_text(result: Any) -> str:
    name, rows = type(result).__name__, _rows(result)
    line = f"{name}({', '.join(f'{label}={text}' for label, text in rows.items())})"
    if len(line) <= LINE:
        return line
    wide = max(map(len, rows))
    return "\n".join([name, *(f"  {label:<{wide}}  {text}" for label, text in rows.items())])


def _as_html(result: Any) -> str:
    rows = "".join(
        f'<tr><th style="text-align:left">{html.escape(label)}</th>'
        f'<td style="text-align:left">{html.escape(text)}</td></tr>'
        for label, text in _rows(result).items()
    )
    return f"<table><caption>{html.escape(type(result).__name__)}</caption>{rows}</table>"


def _cut(text: str) -> str:
    return text if len(text) <= WIDTH else f"{text[: WIDTH - 3]}..."


def _text(value: Any) -> str:
    """Text of a value in one line."""
    if value is None:
        return ""
    if isinstance(value, np.ndarray):
        return _array(value)
    if isinstance(value, float):
        return f"{value:.6g}"
    if isinstance(value, Mapping):
        texts = ((name, _text(entry)) for name, entry in itertools.islice(value.items(), WIDTH))
        return ", ".join(f"{name}={text}" for name, text in texts if text)
    if isinstance(value, Sequence) and not isinstance(value, str):
        return _sequence(value)
    if hasattr(type(value), "_repr_html_"):
        line = repr(value)
        return type(value).__name__ if "\n" in line else line
    return " ".join(str(getattr(value, "__name__", value)).split())


def _sequence(values: Sequence[Any]) -> str:
    """Comma-separated plain values, or the length and the type of other values."""
    if all(isinstance(value, str | int | float) for value in values):
        return ", ".join(map(_text, values[:WIDTH]))
    return f"{len(values)} {type(values[0]).__name__}"


def _array(values: np.ndarray) -> str:
    """Numbers of a short array; dtype, shape and range of a longer array."""
    if values.size <= ENTRIES and values.dtype.kind in "biufc":
        return "[" + ", ".join(f"{entry:.4g}" for entry in values.ravel()) + "]"
    text = f"{values.dtype} array {values.shape}"
    finite = values[np.isfinite(values)] if values.dtype.kind in "iuf" else values[:0]
    return f"{text}, {finite.min():.4g} to {finite.max():.4g}" if finite.size else text
