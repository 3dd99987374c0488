"""Words beside marks and lines, placed where they cover nothing.

Places are in units of the axes, (0, 0) to (1, 1).
"""

from __future__ import annotations

import re

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patheffects import withStroke

from dynamics.problem import FloatArray

DIRECTIONS = 16
DISTANCES = (0.012, 0.03, 0.06, 0.1)
"""From the mark to the nearest side of the word."""
WIDE, HIGH = 0.0011, 0.0019
"""Half of a letter, for each point of its size, on axes of about 4 inches."""
ENOUGH = 0.025
"""More room than this is no better."""


class Words:
    """Words still to be written on axes, and what they may not cover.

    Parameters
    ----------
    axes : Axes
    obstacles : float array, shape (points, 2)
        Lines that are drawn, as points.
    """

    def __init__(self, axes: Axes, obstacles: FloatArray) -> None:
        self.axes = axes
        self._taken = [obstacles]
        self._waiting: list[tuple[str, FloatArray, str, float]] = []

    def add(self, text: str, spot: FloatArray, colour: str, size: float) -> None:
        """A word for a mark at a spot; the mark is not covered by others either."""
        self._taken.append(np.asarray(spot)[None, :])
        self._waiting.append((text, np.asarray(spot), colour, size))

    def write(self) -> None:
        """Write all of them, in the order in which they came."""
        for text, spot, colour, size in self._waiting:
            place = self._room(spot, len(plain(text)), size)
            self.axes.text(
                float(place[0]), float(place[1]), text, transform=self.axes.transAxes,
                color=colour, fontsize=size, ha="center", va="center", zorder=6,
                path_effects=[withStroke(linewidth=2.2, foreground="white")],
            )  # fmt: skip
        self._waiting = []

    def _room(self, spot: FloatArray, letters: int, size: float) -> FloatArray:
        """The centre of a word where it has most room, near its mark."""
        half = np.array([WIDE * letters, HIGH]) * size
        angles = 2 * np.pi * np.arange(DIRECTIONS) / DIRECTIONS
        directions = np.stack([np.cos(angles), np.sin(angles)], axis=1)
        across = np.linspace(-1, 1, max(5, 2 * letters))
        spread = np.array([(x, y) for x in across for y in (-1, 0, 1)]) * half
        taken = np.concatenate(self._taken)
        best, place = -np.inf, spot
        for distance in DISTANCES:
            for direction in directions:
                centre = spot + direction * (half + distance)
                covered = centre + spread
                gaps = np.hypot(*(covered[:, None, :] - taken[None, :, :]).transpose(2, 0, 1))
                room = min(float(gaps.min()), ENOUGH) - distance / 6
                room -= 1.0 * bool((covered < 0.005).any() or (covered > 0.995).any())
                if room > best:
                    best, place = room, centre
        self._taken.append(place + spread)
        return place


def plain(text: str) -> str:
    """A text as it is seen, about: commands are one letter, and dots above are none."""
    return re.sub(r"[${}_^\\ ]", "", re.sub(r"\\[a-z]+", "x", text.replace(r"\dot", "")))
