"""States on a path of polynomials, and order parameters of many states, in one call."""

from typing import Any

import numpy as np

from dynamics.codegen.kernels import exact

gradient: Any = None  # supplied by the generated file
order_parameters: Any = None  # supplied by the generated file


@exact
def along(times, nodes, coefficients, out):  # type: ignore[no-untyped-def]
    """States at times of a path that `extrapolation.integrate` has made.

    Parameters
    ----------
    times : float array, shape (T,)
        Within the path.
    nodes : float array, shape (steps + 1,)
    coefficients : float array, shape (steps, ROWS + 2, n)
    out : float array, shape (T, n)
    """
    degree, size = coefficients.shape[1] - 1, coefficients.shape[2]
    for row in range(times.size):
        low, high = 0, coefficients.shape[0] - 1
        while low < high:  # the first step that ends at this time or later
            middle = (low + high) // 2
            if nodes[middle + 1] < times[row]:
                low = middle + 1
            else:
                high = middle
        end = nodes[low + 1]
        position = (times[row] - end) / (end - nodes[low])
        for k in range(size):
            value = coefficients[low, degree, k]
            for power in range(degree - 1, -1, -1):
                value = value * position + coefficients[low, power, k]
            out[row, k] = value


@exact
def order_rows(states, model, with_gradient, out):  # type: ignore[no-untyped-def]
    """Order parameters of each state; those read off the gradient only with it.

    Parameters
    ----------
    states : float array, shape (rows, n)
    model
        What gradient and order parameters need beside the state.
    with_gradient : bool
        Whether it is computed; it is 0 otherwise.
    out : float array, shape (rows, order parameters)
    """
    slope = np.zeros(states.shape[1])
    for row in range(states.shape[0]):
        if with_gradient:
            gradient(states[row], model, slope)
        order_parameters(states[row], slope, model, out[row])
