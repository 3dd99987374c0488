"""Width of figures and scale of time axes, as chosen by the user."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from typing import Any

import numpy as np

from dynamics.problem import FloatArray
from dynamics.validation import real

INCH = 2.54
NARROWEST, WIDEST = 7.0, 60.0
"""Minimum and maximum width of a figure, in cm; any other width is refused."""
LOWEST, HIGHEST = 0.75, 1.3
"""Minimum and maximum factor by which the height of a single panel scales with the figure's
width."""
LEAST_COLUMN = 2.0
"""Minimum width of each of several panels in a row, in inches."""
AROUND = 0.7
"""Part of the height of a figure of images that does not scale with the width, in inches."""


@dataclass
class Look:
    """Choices for one figure, and facts recorded while the figure is drawn."""

    width: float | None = None
    """Chosen width of the figure in cm, or None for its usual width."""
    linear: bool = False
    """Whether time axes are linear instead of logarithmic."""
    timed: bool = False
    """Whether a time axis was drawn."""
    needed: float = 0.0
    """Width in inches that panels in a row need, or 0 if the panels fit."""


_LOOK: ContextVar[Look] = ContextVar("look", default=Look())  # noqa: B039


@contextmanager
def look(width: float | None = None, linear: bool = False) -> Iterator[Look]:
    """Context for figures of another width, or with linear time axes.

    Parameters
    ----------
    width : float, optional
        Width of every figure in cm, such as 8.6 for one column and 17.8 for two columns.
    linear : bool
        Whether time axes are linear instead of logarithmic.

    Raises
    ------
    InvalidRequest
        If the width is not a number from 7 to 60.

    Examples
    --------
    >>> from dynamics import plotting
    >>> closure = {
    ...     "labels": {"W": [1, 1]}, "names": ["a"], "sizes": [2],
    ...     "scalars": 1, "entries": 2, "frozen": 0,
    ... }
    >>> with plotting.look(width=8.6):
    ...     axes = plotting.entry_classes(closure)
    >>> f"{2.54 * axes[0, 0].figure.get_figwidth():.1f} cm"
    '8.6 cm'
    """
    if width is not None:
        width = real("width", width, at_least=NARROWEST, at_most=WIDEST)
    token = _LOOK.set(Look(width, bool(linear)))
    try:
        yield _LOOK.get()
    finally:
        _LOOK.reset(token)


def size(width: float, height: float, rows: int, columns: int, images: bool) -> tuple[float, float]:
    """Scale the usual width and height of a figure (inches) to the chosen width.

    The height is fixed for several `rows` of panels. Panels in a row have a minimum width unless
    they are `images`; images keep their aspect ratio.
    """
    asked = _LOOK.get().width
    if asked is None:
        return width, height
    factor = asked / INCH / width
    if images:
        return asked / INCH, (height - AROUND) * factor + AROUND
    least = min(width, columns * LEAST_COLUMN)
    if asked / INCH < least:
        _LOOK.get().needed, factor = least, least / width
    scale = float(np.clip(factor, LOWEST, HIGHEST)) if rows == 1 else 1.0
    return max(asked / INCH, least), height * scale


def inches(usual: float) -> float:
    """Chosen width of a figure in inches, or the `usual` width."""
    asked = _LOOK.get().width
    return usual if asked is None else asked / INCH


def linear() -> bool:
    """Whether time axes are linear."""
    return _LOOK.get().linear


def shown(time: FloatArray) -> Any:
    """Mask of the times that a time axis can show; a logarithmic axis shows positive times only."""
    return time >= 0 if linear() else time > 0


def scale(axes: Any, first: float, last: float) -> None:
    """Set scale and limits of a time axis from the smallest positive time and the last time."""
    _LOOK.get().timed = True
    if linear():
        axes.set_xscale("linear")
        axes.set_xlim(0.0, last)
    else:
        axes.set_xscale("log")
        axes.set_xlim(first / 1.1, last * 1.1)


def share(time: Any, first: float, last: float) -> Any:
    """Convert times to positions from 0 to 1 on the time axis from `first` to `last`."""
    if linear():
        return np.asarray(time) / last
    if not last > first:
        return np.zeros(np.shape(time))
    return np.log(np.asarray(time) / first) / np.log(last / first)


def at_share(place: Any, first: float, last: float) -> Any:
    """Convert positions from 0 to 1 on the time axis from `first` to `last` to times."""
    return np.asarray(place) * last if linear() else first * (last / first) ** np.asarray(place)
