"""Loops over steps and in time, the same for all problems: training, flows, what is read off them.

They are kernels (`dynamics.loops.kernels`) that numba compiles for each kind of problem
(`dynamics.loops.compiler`). The data of a kind are one named tuple; compiled code chooses gradient,
Hessian and order parameters by its type (`dynamics.loops.kernels.kinds`). All model files are one
kind (`dynamics.loops.kernels.program`).
"""

from __future__ import annotations

import inspect
import sys
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynamics.loops.compiler import compiled
from dynamics.loops.kernels import advance as descent
from dynamics.loops.kernels import kinds, path_values
from dynamics.loops.kernels.collocation import Path

__all__ = [
    "Path",
    "advance",
    "along",
    "compiled",
    "gradient",
    "hessian",
    "order_along",
    "order_parameters",
    "order_rows",
    "source",
    "summary",
]

FloatArray = NDArray[np.float64]


def _floats(values: FloatArray) -> FloatArray:
    """Values as compiled code takes them: others would be compiled for once more."""
    flat = np.ascontiguousarray(values, dtype=np.float64)
    return flat if flat.flags.writeable else flat.copy()


def _evaluate(name: str, state: FloatArray, slope: FloatArray, data: Any, size: int) -> FloatArray:
    out, number = np.empty(size), kinds.NAMES.index(name)
    compiled(kinds.evaluate, data)(number, _floats(state), _floats(slope), data, out)
    return out


def gradient(data: Any, state: FloatArray) -> FloatArray:
    """Gradient of a problem at a state, shape (n,).

    Parameters
    ----------
    data : NamedTuple
        Of the problem.
    state : float array, shape (n,)
    """
    return _evaluate("gradient", state, state, data, state.size)


def hessian(data: Any, state: FloatArray) -> FloatArray:
    """Jacobian of the gradient of a problem that has one, shape (n, n).

    Parameters
    ----------
    data : NamedTuple
    state : float array, shape (n,)
    """
    size = state.size
    return _evaluate("hessian", state, state, data, size * size).reshape(size, size)


def summary(data: Any, state: FloatArray, count: int = 2) -> FloatArray:
    """Risk and error of a problem at a state, and what else it reports.

    Parameters
    ----------
    data : NamedTuple
    state : float array, shape (n,)
    count : int
        How many numbers.
    """
    return _evaluate("summary", state, state, data, count)


def order_parameters(data: Any, state: FloatArray, slope: FloatArray, count: int) -> FloatArray:
    """Order parameters at a state with its gradient, shape (count,).

    Parameters
    ----------
    data : NamedTuple
    state, slope : float arrays, shape (n,)
    count : int
    """
    return _evaluate("order_parameters", state, slope, data, count)


def order_rows(data: Any, states: FloatArray, with_gradient: bool, count: int) -> FloatArray:
    """Order parameters of many states, shape (rows, count).

    Parameters
    ----------
    data : NamedTuple
    states : float array, shape (rows, n)
    with_gradient : bool
        Whether the gradient is computed; it is 0 otherwise.
    count : int
    """
    out = np.empty((len(states), count))
    compiled(path_values.order_rows, data)(_floats(states), data, with_gradient, out)
    return out


def advance(
    data: Any,
    state: FloatArray,
    eta: FloatArray,
    span: tuple[int, int],
    alike: bool,
    buffers: tuple[FloatArray, NDArray[np.int64], FloatArray],
) -> int:
    """Take the steps of gradient descent in place; see `dynamics.loops.kernels.advance`.

    Parameters
    ----------
    data : NamedTuple
    state, eta : contiguous float arrays, shape (n,)
    span : (first, last)
        Steps.
    alike : bool
        Whether every step has the same data.
    buffers : (tracked, record_steps, records)

    Returns
    -------
    int
        ``last``, or the step whose successor is not finite.

    Raises
    ------
    TypeError
        If the state cannot be changed where it is.
    """
    if not (state.flags.c_contiguous and state.dtype == np.float64):
        raise TypeError("the state is a contiguous array of 64-bit floats")
    unit = np.full(eta.size, eta.max(initial=0.0))
    work = (np.empty(state.size), np.empty(state.size), unit, bool(alike))
    first, last = map(int, span)
    function = compiled(descent.advance, data)
    return int(function(state, _floats(eta), first, last, (data, *work, *buffers)))


def along(path: Path, times: FloatArray) -> tuple[FloatArray, FloatArray]:
    """States at times of a path, shape (T, n), and their derivatives by the time.

    Parameters
    ----------
    path : Path
    times : float array, shape (T,)
    """
    states, rates = np.empty((2, times.size, path.coefficients.shape[2]))
    compiled(path_values.along)(_floats(times), *path, states, rates)
    return states, rates


def order_along(data: Any, path: Path, times: FloatArray, count: int) -> FloatArray:
    """Order parameters at times of a path, whose derivatives are the rates; shape (T, count).

    Parameters
    ----------
    data : NamedTuple
    path : Path
    times : float array, shape (T,)
    count : int
    """
    out = np.empty((times.size, count))
    compiled(path_values.order_along, data)(_floats(times), *path, data, out)
    return out


def source(kind: type) -> str:
    """Text of the modules that have the functions of a kind of problem.

    Parameters
    ----------
    kind : type
        Of its data.
    """
    own = kind.__module__
    used = vars(sys.modules[own]).values()
    others = {each.__module__ for each in used if inspect.isfunction(each)} - {own}
    return "\n\n".join(inspect.getsource(sys.modules[name]) for name in (*sorted(others), own))
