"""Placement of labels that cover neither each other nor drawn lines."""

from __future__ import annotations

import re

import numpy as np
from matplotlib.axes import Axes
from matplotlib.patheffects import withStroke

from dynamics.problem import FloatArray

DIRECTIONS = 16
DISTANCES = (0.012, 0.03, 0.06, 0.1, 0.16)
"""Distances from a mark to the nearest side of its label, relative to the axes, as tried in
turn."""
ENOUGH = 0.025
"""Labels farther than this from all obstacles, relative to the axes, count as equally free."""


class Words:
    """Labels to be written on axes; they must not cover the `obstacles`, shape (points, 2)."""

    def __init__(self, axes: Axes, obstacles: FloatArray) -> None:
        self.axes = axes
        self._occupied = [obstacles]
        self._waiting: list[tuple[str, FloatArray, str, float]] = []
        self._boxes: list[FloatArray] = []

    def add(self, text: str, spot: FloatArray, colour: str, size: float) -> None:
        """Add a label for the mark at `spot`, relative to the axes; `size` is in points."""
        self._occupied.append(np.asarray(spot)[None, :])
        self._waiting.append((text, np.asarray(spot), colour, size))

    def write(self) -> None:
        """Write all labels in the order of `add`; call it after the layout of the axes."""
        for text, spot, colour, size in self._waiting:
            word = self.axes.text(
                0.5, 0.5, text, transform=self.axes.transAxes, color=colour, fontsize=size,
                ha="center", va="center", zorder=6,
                path_effects=[withStroke(linewidth=2.2, foreground="white")],
            )  # fmt: skip
            extent = word.get_window_extent()
            half = np.array([extent.width, extent.height]) / self.axes.bbox.size / 2
            position = self._room(spot, half, len(plain(text)))
            word.set_position((float(position[0]), float(position[1])))

    def _room(self, spot: FloatArray, half: FloatArray, letters: int) -> FloatArray:
        """Centre of a label of half size `half`, near the mark `spot` and far from obstacles."""
        angles = 2 * np.pi * np.arange(DIRECTIONS) / DIRECTIONS
        directions = np.stack([np.cos(angles), np.sin(angles)], axis=1)
        across = np.linspace(-1, 1, max(5, 2 * letters))
        spread = np.array([(x, y) for x in across for y in (-1, 0, 1)]) * half
        occupied = np.concatenate(self._occupied)
        best, position = -np.inf, spot
        for distance in DISTANCES:
            for direction in directions:
                centre = spot + direction * (half + distance)
                covered = centre + spread
                near = occupied[(np.abs(occupied - centre) <= half + ENOUGH).all(axis=1)]
                gaps = np.hypot(*(covered[:, None, :] - near[None, :, :]).transpose(2, 0, 1))
                room = float(gaps.min(initial=ENOUGH)) - distance / 6
                room -= 1.0 * bool((covered < 0.005).any() or (covered > 0.995).any())
                room -= 1.0 * any((np.abs(centre - c) < half + h).all() for c, h in self._boxes)
                if room > best:
                    best, position = room, centre
        self._boxes.append(np.stack([position, half]))
        self._occupied.append(position + spread)
        return position


def plain(text: str) -> str:
    """Replace LaTeX commands by one character each, to estimate the width of a label."""
    return re.sub(r"[${}_^\\ ]", "", re.sub(r"\\[a-z]+", "x", text.replace(r"\dot", "")))
