"""Numbers as the reasons of findings write them: shares with their intervals, lists."""

from __future__ import annotations

from collections.abc import Iterable
from math import isnan


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
