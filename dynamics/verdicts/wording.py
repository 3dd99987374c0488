"""Numbers as the reasons of findings write them: shares with their intervals, lists."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from math import isnan
from typing import Any


def share_of(count: int, number: int) -> tuple[float, float, float]:
    """A share, and its 95 % interval by Clopper and Pearson.

    Parameters
    ----------
    count, number : int
        How many of how many independent trials.
    """
    from scipy.stats import binomtest

    interval = binomtest(count, number).proportion_ci(0.95, "exact")
    return count / number, float(interval.low), float(interval.high)


def in_percent(count: int, number: int) -> str:
    """A share and its interval in words: ``12 % (95 %: 8 to 17)``.

    Parameters
    ----------
    count, number : int
        As of `share_of`.
    """
    share, low, high = (f"{float(f'{100 * value:.2g}'):g}" for value in share_of(count, number))
    return f"{share} % (95 %: {low} to {high})"


def counted(number: int, what: str) -> str:
    """How many there are, in words: ``1 seed``, ``3 seeds``.

    Parameters
    ----------
    number : int
    what : str
        One of them; of several it has an s.

    Examples
    --------
    >>> counted(1, "law"), counted(1200, "step")
    ('1 law', '1,200 steps')
    """
    return f"{number:,} {what}{'' if number == 1 else 's'}"


def listed(values: Iterable[float], digits: int = 3) -> str:
    """Numbers separated by commas, for the reason of a finding.

    Parameters
    ----------
    values : iterable of float
        NaN is written as "not seen".
    digits : int
        Significant digits.
    """
    return ", ".join("not seen" if isnan(value) else f"{value:.{digits}g}" for value in values)


def points(cases: Sequence[Mapping[str, Any]]) -> str:
    """Parameters of cases in words.

    Parameters
    ----------
    cases : sequence of mapping
        Name -> value of each; the same names.

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
