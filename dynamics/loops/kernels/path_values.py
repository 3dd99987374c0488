"""States and order parameters on a path of polynomials, at many times in one call."""

from math import log1p

import numpy as np

from dynamics.loops.kernels import kernels
from dynamics.loops.kernels.kinds import order_parameters


def along(times, nodes, scales, coefficients, states, rates):
    """Fill states, and their time derivatives, at given times of a path made by `integrate`."""
    degree, size = coefficients.shape[1] - 1, coefficients.shape[2]
    for row in range(times.size):
        low, high = 0, coefficients.shape[0] - 1
        while low < high:  # bisect for the first step that ends at this time or later
            middle = (low + high) // 2
            if nodes[middle + 1] < times[row]:
                low = middle + 1
            else:
                high = middle
        # Position in logarithmic time is -1 at the start of the step, 0 at its end.
        width = log1p((nodes[low + 1] - nodes[low]) / scales[low])
        since = times[row] - nodes[low]
        position = log1p(since / scales[low]) / width - 1.0
        pace = 1.0 / (width * (scales[low] + since))
        for k in range(size):
            value, slope = coefficients[low, degree, k], 0.0
            for power in range(degree - 1, -1, -1):
                slope = slope * position + value
                value = value * position + coefficients[low, power, k]
            states[row, k], rates[row, k] = value, slope * pace


def order_along(times, nodes, scales, coefficients, model, out):
    """Fill order parameters along a path, with rates from derivatives of its polynomials.

    A gradient at the interpolated state would amplify the error of quickly relaxing directions.
    """
    shape = (times.size, coefficients.shape[2])
    states, rates = np.empty(shape), np.empty(shape)
    along(times, nodes, scales, coefficients, states, rates)
    for row in range(times.size):
        for k in range(shape[1]):
            rates[row, k] = -rates[row, k]
        order_parameters(states[row], rates[row], model, out[row])


kernels(__name__)
