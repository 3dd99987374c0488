"""Lines between yes and no on a grid, by marching squares.

A line crosses every edge of the grid whose ends differ: of a yes or no, half way; of a share of
seeds, where the share is one half. Cells with a corner at which nothing is known, or which is not
valid, have no line. Where two lines meet in one cell, the yes corners are joined.
"""

from __future__ import annotations

from collections.abc import Mapping

import numpy as np

from dynamics.phase_diagrams.axis import Axis
from dynamics.phase_diagrams.selection import Slice
from dynamics.problem import FloatArray
from dynamics.validation import integer, refuse

HALF = 0.5
Edge = tuple[int, int, int]
"""Row and column of its first node, and its direction: 0 along x, 1 along y."""


def boundary(result: Slice, facet: int = 0) -> tuple[FloatArray, ...]:
    """Lines between yes and no in one panel of a slice.

    Parameters
    ----------
    result : Slice
        Of a yes or no, over two axes.
    facet : int
        Which panel.

    Returns
    -------
    tuple of float arrays, shape (points, 2)
        x and y along each line; a closed line ends where it begins.

    Raises
    ------
    InvalidRequest
        If the quantity is no yes or no, or there is only one axis.
    """
    check_yes_no(result)
    if result.y is None:
        refuse("y", None, "is needed for a boundary", "a second axis", "select(..., y=NAME)")
    panel = integer("facet", facet, 0, at_most=len(result.values) - 1)
    values = result.values[panel]
    return placed(trace(values, crossings(values)), result.x, result.y)


def check_yes_no(result: Slice) -> None:
    """Refuse a quantity that has no boundary."""
    asked = result.quantity
    if not asked.yes_no:
        near = f"{asked.name}<1"
        refuse("quantity", asked.text, "has no boundary", f"a yes or no such as {near}", near)


def crossings(values: FloatArray) -> dict[Edge, float]:
    """Edges whose ends are on two sides of one half -> how far along they are crossed, 0 to 1."""
    found: dict[Edge, float] = {}
    sides = ((values[:, :-1], values[:, 1:]), (values[:-1], values[1:]))
    for direction, (first, second) in enumerate(sides):
        known = np.isfinite(first) & np.isfinite(second)
        for row, column in np.argwhere(known & ((first >= HALF) != (second >= HALF))):
            a, b = first[row, column], second[row, column]
            found[int(row), int(column), direction] = float((HALF - a) / (b - a))
    return found


def trace(values: FloatArray, crossed: Mapping[Edge, float]) -> tuple[FloatArray, ...]:
    """Lines through crossed edges, as fractional indices.

    Parameters
    ----------
    values : float array, shape (rows, columns)
        At the nodes; NaN where nothing is known.
    crossed : mapping
        Of `crossings`, perhaps with better places.

    Returns
    -------
    tuple of float arrays, shape (points, 2)
        Fractional column and row.
    """
    known = np.isfinite(values)
    cells = {
        (row - down, column - left)
        for row, column, direction in crossed
        for down, left in (((0, 0), (1, 0)) if direction == 0 else ((0, 0), (0, 1)))
    }
    joined: dict[Edge, list[Edge]] = {edge: [] for edge in crossed}
    for row, column in sorted(cells):
        inside = 0 <= row < values.shape[0] - 1 and 0 <= column < values.shape[1] - 1
        if not inside or not known[row : row + 2, column : column + 2].all():
            continue
        around = [(row, column, 0), (row, column + 1, 1), (row + 1, column, 0), (row, column, 1)]
        met = [edge for edge in around if edge in crossed]
        if len(met) == 4 and values[row, column] < HALF:
            met = [met[0], met[3], met[1], met[2]]  # the first corner is cut off, not the second
        for one, other in zip(met[::2], met[1::2], strict=True):
            joined[one].append(other)
            joined[other].append(one)
    place = {
        (row, column, way): (column + along * (way == 0), row + along * (way == 1))
        for (row, column, way), along in crossed.items()
    }
    return tuple(np.array([place[edge] for edge in line]) for line in _chains(joined))


def placed(lines: tuple[FloatArray, ...], x: Axis, y: Axis) -> tuple[FloatArray, ...]:
    """Lines in fractional indices as lines in the values of the axes."""
    return tuple(np.column_stack([x.at(line[:, 0]), y.at(line[:, 1])]) for line in lines)


def _chains(joined: dict[Edge, list[Edge]]) -> list[list[Edge]]:
    """Paths along neighbours, open ones from their ends, then closed ones."""
    lines: list[list[Edge]] = []
    left = {edge: list(others) for edge, others in joined.items() if others}
    for start in sorted(left, key=lambda edge: (len(joined[edge]) != 1, edge)):
        line = [start]
        while left[line[-1]]:
            here = line[-1]
            there = left[here].pop(0)
            left[there].remove(here)
            line.append(there)
        if len(line) > 1:
            lines.append(line)
    return lines
