"""Flows that are being integrated by compiled code, and threads for several."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynamics.loops.compiler import compiled
from dynamics.loops.kernels.collocation import DONE, FULL, STUCK, Path, integrate
from dynamics.loops.kernels.collocation_equations import Control, new_room
from dynamics.loops.kernels.collocation_table import STAGES, table

__all__ = ["DONE", "FULL", "STUCK", "Integration", "in_threads"]

FloatArray = NDArray[np.float64]

FIRST_STEPS, MOST_STEPS = 8, 256
"""Steps of an integration from one call of compiled code to the next: in the first, and later."""


class Integration:
    """A flow that is being integrated.

    Parameters
    ----------
    data : NamedTuple
        Of the problem.
    start : float array, shape (n,)
    span : (float, float)
        First and last time.
    relative : float
        Error that a step may make, over the size of an entry.
    floor : float array, shape (n,)
        Error that it may make in any case.

    Attributes
    ----------
    end : float
        Last time.
    state : float array, shape (n,)
        Where it is.
    outcome : int
        `FULL` until it has ended, then `DONE` or `STUCK`.
    steps : int
        Steps so far.
    """

    def __init__(
        self,
        data: Any,
        start: FloatArray,
        span: tuple[float, float],
        relative: float,
        floor: FloatArray,
    ) -> None:
        self.data, self.end, self.state = data, span[1], np.array(start, dtype=np.float64)
        now = np.array([*span, 0.0, 0.0, 0.0, 0.0, 0.0])
        self.control = Control(
            now,
            relative,
            np.ascontiguousarray(floor, dtype=np.float64),
            np.full(start.size, np.nan),
        )
        self.outcome, self.steps = FULL, 0
        self._room = new_room(start.size)
        self._parts: list[Path] = []

    @property
    def time(self) -> float:
        """How far it has come."""
        return float(self.control.now[0])

    def proceed(self) -> None:
        """Go on for some steps; other threads of Python run meanwhile."""
        size = self.state.size
        most = min(MOST_STEPS, max(FIRST_STEPS, self.steps))
        path = Path(np.empty(most + 1), np.empty(most), np.empty((most, STAGES + 1, size)))
        work = (self.data, table(), self.control, path, self._room)
        self._add(path, compiled(integrate, self.data)(self.state, *work))

    def _add(self, path: Path, end: tuple[int, int]) -> None:
        steps, self.outcome = int(end[0]), int(end[1])
        self.steps += steps
        if steps:
            parts = path.nodes[: steps + 1], path.scales[:steps], path.coefficients[:steps]
            self._parts.append(Path(*parts))

    def path(self) -> Path:
        """Times of all steps, and their polynomials."""
        nodes = [part.nodes[1:] for part in self._parts]
        first = self._parts[0].nodes[:1]
        scales, coefficients = zip(*(part[1:] for part in self._parts), strict=True)
        return Path(
            np.concatenate([first, *nodes]), np.concatenate(scales), np.concatenate(coefficients)
        )


def in_threads(function: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
    """Results of a function of several items, in as many threads as numba has.

    Parameters
    ----------
    function : callable
    items : sequence
    """
    import numba

    threads = min(numba.get_num_threads(), len(items))
    if threads <= 1:
        return [function(item) for item in items]
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(function, items))
