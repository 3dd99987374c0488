"""Format the reason of a finding: shares with intervals, lists, parameters, sentences of rows."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import isnan
from typing import Any

import numpy as np

MOST_ROWS = 6
"""Maximum number of rows that a reason prints; of more rows it prints the two extreme ones."""


def share_of(count: int, number: int) -> tuple[float, float, float]:
    """Share of `count` successes in independent trials, with its 95 % Clopper-Pearson interval."""
    from scipy.stats import binomtest

    interval = binomtest(count, number).proportion_ci(0.95, "exact")
    return count / number, float(interval.low), float(interval.high)


def in_percent(count: int, number: int) -> str:
    """A share and its 95 % interval in words: ``12 % (95 %: 8 to 17)``."""
    share, low, high = (f"{float(f'{100 * value:.2g}'):g}" for value in share_of(count, number))
    return f"{share} % (95 %: {low} to {high})"


def counted(number: int, what: str) -> str:
    """A number and the noun `what`, which is in the plural unless the number is 1.

    Examples
    --------
    >>> counted(1, "law"), counted(1200, "step")
    ('1 law', '1,200 steps')
    """
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def listed(values: Iterable[float], digits: int = 3) -> str:
    """Numbers with given significant digits, separated by commas; NaN is written "not seen"."""
    return ", ".join("not seen" if isnan(value) else f"{value:.{digits}g}" for value in values)


def points(cases: Sequence[Mapping[str, Any]]) -> str:
    """Parameters of cases as text; every case maps the same names to values.

    Examples
    --------
    >>> points([{"D": 32}, {"D": 64}]), points([{"D": 9, "q": 0.5}, {"D": 9, "q": 0.25}])
    ('D=32, 64', '(D=9, q=0.5), (D=9, q=0.25)')
    """
    if not cases or not cases[0]:
        return ""
    words = [[(name, _plain(value)) for name, value in case.items()] for case in cases]
    if len(words[0]) == 1:
        return f"{words[0][0][0]}={', '.join(pairs[0][1] for pairs in words)}"
    joined = [", ".join(f"{name}={value}" for name, value in pairs) for pairs in words]
    return joined[0] if len(joined) == 1 else ", ".join(f"({one})" for one in joined)


def _plain(value: Any) -> str:
    return f"{value:.4g}" if isinstance(value, float) else str(value)


def sentence(rows: Sequence[Mapping[str, Any]], names: Sequence[str], words: str) -> str:
    """Text that says at which parameters (`names`) a claim holds, with the numbers of the rows.

    `rows`: columns, ``holds`` and ``value`` of each case; `words`: format string with the columns
    of a row.
    """
    held = {n: rows[0][n] for n in names if all(row[n] == rows[0][n] for row in rows)}
    own = [{n: row[n] for n in names if n not in held} for row in rows]
    parts = [f"at {points([held])}"] if held else []
    if len({row["holds"] for row in rows}) > 1:
        for state, word in ((True, "holds at"), (False, "not at"), (None, "not decidable at")):
            there = [name for name, row in zip(own, rows, strict=True) if row["holds"] is state]
            parts += [f"{word} {points(there)}"] if there else []
    told: Sequence[int] = range(len(rows))
    if len(rows) > MOST_ROWS:
        order = np.argsort([row["value"] for row in rows], kind="stable")
        told = sorted({int(order[0]), int(order[-1])})
    for k in told:
        text = rows[k].get("text") or words.format(**rows[k])
        where = points([own[k]])
        parts += [f"{text} ({where})" if where else text] if text else []
    return "; ".join(parts)
