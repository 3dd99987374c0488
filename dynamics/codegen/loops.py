"""The loops over steps, compiled once for all models: training, flows, and what is read off them.

One generated file holds the loop of gradient descent and the integrator of flows. They call the
gradient of a model by its address (`dynamics.codegen.addresses`), so a new model compiles its own
functions alone.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynamics import codegen
from dynamics.codegen.addresses import (
    DATA,
    GRADIENT,
    HESSIAN,
    ORDER_PARAMETERS,
    SUMMARY,
    AddressedModel,
)
from dynamics.codegen.kernels import advance as descent
from dynamics.codegen.kernels import carried_gradient, collocation, path_values
from dynamics.codegen.kernels.collocation import Path
from dynamics.codegen.kernels.collocation_equations import Control, Room, new_room
from dynamics.codegen.kernels.collocation_table import Table, table

__all__ = [
    "Path",
    "advance",
    "along",
    "carry_gradient",
    "compiled_loop",
    "gradient",
    "hessian",
    "order_along",
    "order_parameters",
    "order_rows",
    "summary",
]

FloatArray = NDArray[np.float64]

BY_ADDRESS = f"""
from dynamics.codegen.calls import call
from dynamics.codegen.kernels.collocation import Path
from dynamics.codegen.kernels.collocation_equations import Control, Room
from dynamics.codegen.kernels.collocation_table import Table


@exact_kernel
def gradient(state, model, out):
    call(model[{GRADIENT}], state, out, model[{DATA}], out)


@exact_kernel
def hessian(state, model, out):
    call(model[{HESSIAN}], state, state, model[{DATA}], out)


@exact_kernel
def has_hessian(model):
    return model[{HESSIAN}] != 0


@exact_kernel
def order_parameters(state, slope, model, out):
    call(model[{ORDER_PARAMETERS}], state, slope, model[{DATA}], out)


@exact_kernel
def summary(state, model, out):
    call(model[{SUMMARY}], state, out, model[{DATA}], out)
"""
"""The functions that the loops call; ``model`` is the table of an `AddressedModel`."""


@cache
def _module() -> codegen.CompiledModule:
    functions = (
        descent.advance,
        carried_gradient.carry_gradient,
        collocation.integrate,
        path_values.order_along,
        path_values.order_rows,
    )
    source = codegen.kernel_source(*functions, data=(Table, Control, Path, Room))
    return codegen.build("Loops over steps of any model.", (), [BY_ADDRESS, source], False)


@cache
def compiled_loop(name: str) -> Callable[..., Any]:
    """A loop, compiled for the arrays that it is always given."""
    one, two, three = np.zeros(1), np.zeros((1, 1)), np.zeros((1, 1, 1))
    addresses, steps = np.zeros((2, 1), dtype=np.int64)
    control, path = Control(one, 0.0, one, one), Path(one, one, three)
    buffers = (addresses, one, one, one, True, two, steps, two)
    arguments: dict[str, tuple[Any, ...]] = {
        "gradient": (one, addresses, one),
        "hessian": (one, addresses, two),
        "summary": (one, addresses, one),
        "order_parameters": (one, one, addresses, one),
        "advance": (one, one, 0, 1, buffers),
        "integrate": (one, addresses, table(), control, path, new_room(1)),
        "along": (one, *path, two, two),
        "carry_gradient": (one, *path, addresses, two),
        "order_along": (one, *path, addresses, two),
        "order_rows": (two, addresses, True, two),
    }
    return _module().entry_point(name, *arguments[name])


def _floats(values: FloatArray) -> FloatArray:
    """Values as compiled code takes them, which looks at no type."""
    return np.ascontiguousarray(values, dtype=np.float64)


def gradient(model: AddressedModel, state: FloatArray) -> FloatArray:
    """Gradient of a model at a state, shape (n,).

    Parameters
    ----------
    model : AddressedModel
    state : float array, shape (n,)
    """
    out = np.empty(state.size)
    compiled_loop("gradient")(_floats(state), model.table("gradient"), out)
    return out


def hessian(model: AddressedModel, state: FloatArray) -> FloatArray:
    """Jacobian of the gradient of a model that has one, shape (n, n).

    Parameters
    ----------
    model : AddressedModel
    state : float array, shape (n,)
    """
    out = np.empty((state.size, state.size))
    compiled_loop("hessian")(_floats(state), model.table("hessian"), out)
    return out


def summary(model: AddressedModel, state: FloatArray, count: int = 2) -> FloatArray:
    """Risk and error of a model at a state, after a gradient there, and what else it reports.

    Parameters
    ----------
    model : AddressedModel
    state : float array, shape (n,)
    count : int
        How many numbers.
    """
    out = np.empty(count)
    compiled_loop("summary")(_floats(state), model.table("summary"), out)
    return out


def order_parameters(
    model: AddressedModel, state: FloatArray, slope: FloatArray, count: int
) -> FloatArray:
    """So many order parameters at a state with its gradient.

    Parameters
    ----------
    model : AddressedModel
    state, slope : float arrays, shape (n,)
    count : int
    """
    out = np.empty(count)
    table = model.table("order_parameters")
    compiled_loop("order_parameters")(_floats(state), _floats(slope), table, out)
    return out


def order_rows(
    model: AddressedModel, states: FloatArray, with_gradient: bool, count: int
) -> FloatArray:
    """Order parameters of many states, shape (rows, count).

    Parameters
    ----------
    model : AddressedModel
    states : float array, shape (rows, n)
    with_gradient : bool
        Whether the gradient is computed; it is 0 otherwise.
    count : int
    """
    out = np.empty((len(states), count))
    table = model.table("gradient", "order_parameters")
    compiled_loop("order_rows")(_floats(states), table, with_gradient, out)
    return out


def advance(
    model: AddressedModel,
    state: FloatArray,
    eta: FloatArray,
    span: tuple[int, int],
    alike: bool,
    buffers: tuple[FloatArray, NDArray[np.int64], FloatArray],
) -> int:
    """Take the steps of gradient descent in place; see `dynamics.codegen.kernels.advance`.

    Parameters
    ----------
    model : AddressedModel
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
    if not all(each.flags.c_contiguous and each.dtype == np.float64 for each in (state, eta)):
        raise TypeError("state and eta are contiguous arrays of 64-bit floats")
    table = model.table("gradient", "order_parameters")
    unit = np.full(eta.size, eta.max(initial=0.0))
    work = (np.empty(state.size), np.empty(state.size), unit, alike)
    return int(compiled_loop("advance")(state, eta, *span, (table, *work, *buffers)))


def along(path: Path, times: FloatArray) -> tuple[FloatArray, FloatArray]:
    """States at times of a path, shape (T, n), and their derivatives by the time.

    Parameters
    ----------
    path : Path
    times : float array, shape (T,)
    """
    states, rates = np.empty((2, times.size, path.coefficients.shape[2]))
    compiled_loop("along")(_floats(times), *path, states, rates)
    return states, rates


def carry_gradient(
    model: AddressedModel, path: Path, times: FloatArray, slope: FloatArray
) -> FloatArray:
    """Gradients at times of a path from that at the first of them, shape (T, n).

    Parameters
    ----------
    model : AddressedModel
        With a Hessian.
    path : Path
    times : float array, shape (T,)
        Ascending; see `dynamics.codegen.kernels.carried_gradient`.
    slope : float array, shape (n,)
        The gradient at the first.
    """
    slopes = np.empty((times.size, slope.size))
    slopes[0] = slope
    compiled_loop("carry_gradient")(_floats(times), *path, model.table("hessian"), slopes)
    return slopes


def order_along(model: AddressedModel, path: Path, times: FloatArray, count: int) -> FloatArray:
    """So many order parameters at times of a path, with the derivatives of the path as rates.

    Parameters
    ----------
    model : AddressedModel
    path : Path
    times : float array, shape (T,)
    count : int
    """
    out = np.empty((times.size, count))
    compiled_loop("order_along")(_floats(times), *path, model.table("order_parameters"), out)
    return out
