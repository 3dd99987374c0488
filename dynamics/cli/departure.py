"""When runs on samples leave the reduced one, as lines of text and as plain values."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dynamics.problem import FloatArray
from dynamics.results.comparison import DEPARTURE_SHARES, Comparison

if TYPE_CHECKING:
    from dynamics.system import System

SYMMETRIC = "symmetric"


def applies(result: Any) -> bool:
    """Whether a result compares runs on samples, and scalars that they report themselves."""
    sampled = isinstance(result, Comparison) and "samples" in result.full.settings
    return sampled and bool(result.relative_deviations)


def document(result: Comparison) -> dict[str, Any]:
    """Share -> state -> time of each seed, None for never; and relative deviations at the end.

    Parameters
    ----------
    result : Comparison
    """
    ends = {name: rows[:, -1] for name, rows in result.relative_deviations.items()}
    return {
        "departures": {f"{share:g}": result.departures(share) for share in DEPARTURE_SHARES},
        "relative_deviation": ends,
    }


def lines(system: System, result: Comparison) -> list[str]:
    """A line for every state: when it leaves by each share, and where it ends.

    Parameters
    ----------
    system : System
    result : Comparison
    """
    times = [result.departures(share) for share in DEPARTURE_SHARES]
    ends = {name: rows[:, -1] for name, rows in result.relative_deviations.items()}
    heads = "".join(f"{f'{100 * share:g} %':<26}" for share in DEPARTURE_SHARES)
    text = ["", f"{'away for good by':<20}{heads}at the end (of the reduced value)"]
    for name, end in ends.items():
        row = "".join(f"{_times(left[name]):<26}" for left in times)
        text.append(f"{name:<20}{row}{_range(100 * end)} %")
    count = len(result.fulls)
    meaning = "time from which on a run stays away by that share of the reduced value"
    text.append(f"{'':<20}{meaning}{f', over {count} seeds' if count > 1 else ''}")
    option = system.empirical_options.get("start", "")
    apart = any(rows[:, 0].any() for rows in result.relative_deviations.values())
    if apart and SYMMETRIC in option:
        text.append(f"{'':<20}with --start {SYMMETRIC} all begin alike: samples alone part them")
    return text


def _times(times: FloatArray) -> str:
    """Departures of all seeds in words."""
    left = times[np.isfinite(times)]
    if not left.size:
        return "not to the end"
    some = "" if left.size == times.size else f" ({left.size} of {times.size})"
    return f"{_range(left)}{some}"


def _range(values: FloatArray) -> str:
    """Least to greatest."""
    low, high = (f"{edge:.3g}" for edge in (values.min(), values.max()))
    return low if low == high else f"{low} to {high}"
