"""Compiled loops shared by all problems: descent, gradient flow, evaluation along paths.

numba compiles the kernels of `dynamics.loops.kernels` once for each kind of problem
(`dynamics.loops.compiler`). The data of a problem are a named tuple, whose type selects gradient,
Hessian and order parameters (`dynamics.loops.kernels.kinds`). Reduced problems of model files have
the type `dynamics.loops.kernels.program.ProgramData`.
"""

from __future__ import annotations

import inspect
import sys
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynamics.loops.compiler import compiled
from dynamics.loops.kernels import advance as descent
from dynamics.loops.kernels import kinds, path_values
from dynamics.loops.kernels.collocation import DONE, FULL, STUCK, Path, integrate
from dynamics.loops.kernels.collocation_equations import Control, new_room
from dynamics.loops.kernels.collocation_table import STAGES, table
from dynamics.loops.updates import Updates

__all__ = [
    "DONE",
    "FULL",
    "STUCK",
    "Integration",
    "Path",
    "Updates",
    "advance",
    "along",
    "compiled",
    "gradient",
    "hessian",
    "in_threads",
    "order_along",
    "order_parameters",
    "source",
    "summary",
]

FloatArray = NDArray[np.float64]

FIRST_STEPS, MOST_STEPS = 8, 256
"""Number of integration steps in the first call of compiled code; maximum in a later call."""


def _floats(values: FloatArray) -> FloatArray:
    """Contiguous writable float64 array, so that numba compiles for one array type only."""
    flat = np.ascontiguousarray(values, dtype=np.float64)
    return flat if flat.flags.writeable else flat.copy()


def _evaluate(name: str, state: FloatArray, slope: FloatArray, data: Any, size: int) -> FloatArray:
    out, number = np.empty(size), kinds.NAMES.index(name)
    compiled(kinds.evaluate, data)(number, _floats(state), _floats(slope), data, out)
    return out


def gradient(data: Any, state: FloatArray) -> FloatArray:
    """Gradient of a problem at a state, shape (n,), from the loop data of the problem."""
    return _evaluate("gradient", state, state, data, state.size)


def hessian(data: Any, state: FloatArray) -> FloatArray:
    """Jacobian of the gradient at a state, shape (n, n), for problems with a Hessian."""
    size = state.size
    return _evaluate("hessian", state, state, data, size * size).reshape(size, size)


def summary(data: Any, state: FloatArray, count: int = 2) -> FloatArray:
    """First `count` numbers of the kernel ``summary`` at a state; the first number is the risk."""
    return _evaluate("summary", state, state, data, count)


def order_parameters(data: Any, state: FloatArray, slope: FloatArray, count: int) -> FloatArray:
    """Order parameters, shape (count,), at a state whose gradient is `slope`."""
    return _evaluate("order_parameters", state, slope, data, count)


def advance(
    data: Any,
    state: FloatArray,
    updates: Updates,
    span: tuple[int, int],
    alike: bool,
    buffers: tuple[FloatArray, NDArray[np.int64], FloatArray],
) -> int:
    """Perform descent steps in place; see `dynamics.loops.kernels.advance`.

    The state has shape (n (1 + memory of the rule),), and `span` holds the first step and the step
    after the last one. `alike` says whether all steps use the same data. `buffers` holds the order
    parameters of each step, the steps to record, and the recorded states. Returns the end of
    the span, or the number of the first step whose result is not finite. Raises TypeError unless
    the state is a contiguous float64 array.
    """
    if not (state.flags.c_contiguous and state.dtype == np.float64):
        raise TypeError("the state must be a contiguous array of 64-bit floats")
    function = compiled(descent.advance, data)
    tracked, due, records = buffers
    work = np.empty(updates.eta.size), np.empty(state.size), bool(alike) and updates.alike
    first, reached = span[0], span[0]
    for low, high, update in updates.parts(*map(int, span)):
        some = slice(*np.searchsorted(due, (low, high)))
        part = tracked[low - first : high - first], due[some], records[some]
        reached = int(function(state, update, low, high, (data, *work, *part)))
        if reached < high:
            break
    return reached


def along(path: Path, times: FloatArray) -> tuple[FloatArray, FloatArray]:
    """States on a path at given times, shape (T, n), and their time derivatives."""
    states, rates = np.empty((2, times.size, path.coefficients.shape[2]))
    compiled(path_values.along)(_floats(times), *path, states, rates)
    return states, rates


def order_along(data: Any, path: Path, times: FloatArray, count: int) -> FloatArray:
    """Order parameters at times on a path, shape (T, count); rates from the path's derivatives."""
    out = np.empty((times.size, count))
    compiled(path_values.order_along, data)(_floats(times), *path, data, out)
    return out


class Integration:
    """Gradient flow integrated in several calls of compiled code.

    The flow runs from `start`, shape (n,), over the times of `span`. `relative` is the error
    tolerance of a step, relative to the size of an entry; `floor`, shape (n,), is the absolute
    tolerance for entries at rounding level. `outcome` is `FULL` during the integration, then `DONE`
    or `STUCK`; `steps` counts all steps so far.
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
        """Time that the integration has reached."""
        return float(self.control.now[0])

    def proceed(self) -> None:
        """Integrate up to `MOST_STEPS` more steps without holding the global interpreter lock."""
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
        """Times of all steps so far, and the polynomials between these times."""
        nodes = [part.nodes[1:] for part in self._parts]
        first = self._parts[0].nodes[:1]
        scales, coefficients = zip(*(part[1:] for part in self._parts), strict=True)
        return Path(
            np.concatenate([first, *nodes]), np.concatenate(scales), np.concatenate(coefficients)
        )


def in_threads(function: Callable[[Any], Any], items: Sequence[Any]) -> list[Any]:
    """Map a function over items, in at most as many threads as numba uses."""
    import numba

    threads = min(numba.get_num_threads(), len(items))
    if threads <= 1:
        return [function(item) for item in items]
    with ThreadPoolExecutor(threads) as pool:
        return list(pool.map(function, items))


def source(kind: type) -> str:
    """Source text of the module of the loop data `kind`, and of the modules of its functions."""
    own = kind.__module__
    used = vars(sys.modules[own]).values()
    others = {each.__module__ for each in used if inspect.isfunction(each)} - {own}
    return "\n\n".join(inspect.getsource(sys.modules[name]) for name in (*sorted(others), own))
