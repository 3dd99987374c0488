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
"""Smallest and largest width of a figure, in cm."""
LOWEST, HIGHEST = 0.75, 1.3
"""Limits of the factor by which the height of a single panel changes with the width."""
LEAST_COLUMN = 2.0
"""Least width of a panel in a row of panels, in inches."""
AROUND = 0.7
"""Part of the height of a figure of images that is independent of the width, in inches."""


@dataclass
class Look:
    """Choices for one figure.

    `width`: in cm; `linear`: whether time axes are linear; `timed`: whether a time axis was drawn;
    `needed`: width required by panels in a row, in inches, 0 if it fits.
    """

    width: float | None = None
    linear: bool = False
    timed: bool = False
    needed: float = 0.0


_LOOK: ContextVar[Look] = ContextVar("look", default=Look())  # noqa: B039


@contextmanager
def look(width: float | None = None, linear: bool = False) -> Iterator[Look]:
    """Context for figures of another width, or with linear time axes.

    Parameters
    ----------
    width : float, optional
        Width of every figure in cm, such as 8.6 for one column and 17.8 for two.
    linear : bool
        Whether time axes are linear.

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
    """Width and height of a figure in inches, scaled from default values to the chosen width.

    `width`, `height`: defaults in inches; `rows`: of panels; with several rows the height is fixed;
    `columns`: of panels, which need a least width unless they are images; `images`: whether panels
    keep their aspect ratio.
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
    """The chosen width, or a default, in inches."""
    asked = _LOOK.get().width
    return usual if asked is None else asked / INCH


def linear() -> bool:
    """Whether time axes are linear."""
    return _LOOK.get().linear


def shown(time: FloatArray) -> Any:
    """Mask of the times that a time axis can show; on a logarithmic axis the positive ones."""
    return time >= 0 if linear() else time > 0


def scale(axes: Any, first: float, last: float) -> None:
    """Set scale and limits of a time axis.

    `first`, `last`: least positive and last time.
    """
    _LOOK.get().timed = True
    if linear():
        axes.set_xscale("linear")
        axes.set_xlim(0.0, last)
    else:
        axes.set_xscale("log")
        axes.set_xlim(first / 1.1, last * 1.1)


def share(time: Any, first: float, last: float) -> Any:
    """Position of times on a time axis, from 0 to 1.

    `first`, `last`: least positive and last time of the axis.
    """
    if linear():
        return np.asarray(time) / last
    if not last > first:
        return np.zeros(np.shape(time))
    return np.log(np.asarray(time) / first) / np.log(last / first)


def at_share(place: Any, first: float, last: float) -> Any:
    """Times at positions of a time axis; inverse of `share`.

    `first`, `last`: least positive and last time of the axis.
    """
    return np.asarray(place) * last if linear() else first * (last / first) ** np.asarray(place)
