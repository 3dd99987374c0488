"""Equations of a collocation step: stages, Newton iterations, error estimate.

Equations (1), (2) and the letters g, u, w, J, Z are those of `dynamics.loops.kernels.collocation`.
"""

from math import cos, exp, expm1, sqrt
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dynamics.loops.kernels import kernels
from dynamics.loops.kernels.collocation_table import STAGES
from dynamics.loops.kernels.kinds import gradient, has_hessian, hessian
from dynamics.loops.kernels.linear_algebra import all_finite, copy, solve

TIME, HORIZON, SCALE, WIDTH, LAST_WIDTH, LAST_ERROR, GROWTH = 0, 1, 2, 3, 4, 5, 6
"""Indices of the numbers in ``Control.now``."""
FARTHEST = 2.0
"""Maximum extrapolation of the polynomial of the previous step, in widths of that step."""
LEAST_DECAY = 0.03
"""Minimum ratio of consecutive Legendre coefficients that the error estimate assumes."""
OF_RATE = 0.1
"""Minimum size of an entry in the error scale, relative to its change in a step."""
SHAKE, NOISY = 1e-6, 16.0
"""Rounding test: relative perturbation of the state, safety factor on the second difference."""
SMOOTH = 1e-9
"""Minimum of (NOISY * second difference) / (OF_RATE * rate) in the rounding test of an entry."""
LEAST = 2.2250738585072014e-308
"""Minimum absolute error tolerance of an entry: the smallest normal float64."""


class Control(NamedTuple):
    """State and tolerances of an integration."""

    # time; horizon; w (0: not chosen yet); next width in u; last width and its error (0: none);
    # maximum ratio of the next width to the last
    now: NDArray[np.float64]
    relative: float  # error tolerance of a step, relative to the size of an entry
    floor: NDArray[np.float64]  # absolute error tolerance of an entry whose rate is rounding noise
    refused: NDArray[np.float64]  # last state with a gradient or Jacobian that is not finite


class Room(NamedTuple):
    """Work arrays of an integration of n entries, reused by all its steps."""

    stages: NDArray[np.float64]  # Z of (1), (STAGES, n)
    slopes: NDArray[np.float64]  # gradient at every stage of a step, (STAGES, n)
    inner: NDArray[np.float64]  # a state within a step
    jacobians: NDArray[np.float64]  # Jacobians at the start and the end of the step, (2, n, n)
    matrix: NDArray[np.float64]  # matrix of (2), then its LU factors
    pivots: NDArray[np.int64]  # row exchanges of the factors
    change: NDArray[np.float64]  # right-hand side of (2), then its solution
    last: NDArray[np.float64]  # polynomial coefficients of the last step, (STAGES + 1, n)
    floor: NDArray[np.float64]  # absolute error tolerance of each entry
    sizes: NDArray[np.float64]  # sizes of the entries, the units of the unknowns of (2)


def new_room(size: int) -> Room:
    """Work arrays for an integration of n entries."""
    return Room(
        np.zeros((STAGES, size)),
        np.zeros((STAGES, size)),
        np.zeros(size),
        np.zeros((2, size, size)),
        np.zeros((STAGES * size, STAGES * size)),
        np.zeros(STAGES * size, np.int64),
        np.zeros(STAGES * size),
        np.zeros((STAGES + 1, size)),
        np.zeros(size),
        np.ones(size),
    )


def differentiate(state, model, room, which):
    """Fill a Jacobian, by a kernel or by central differences; return whether it is finite."""
    jacobian = room.jacobians[which]
    if has_hessian(model):
        hessian(state, model, jacobian)
    else:
        inner, high, low = room.change[: state.size], room.slopes[0], room.slopes[1]
        largest = 0.0
        for k in range(state.size):
            largest = max(largest, abs(state[k]))
        least = 1e-2 * min(largest, 1.0) if largest > 0.0 else 1e-2
        for k in range(state.size):
            copy(state, inner)
            width = 1e-5 * max(abs(state[k]), least)
            inner[k] = state[k] + width
            gradient(inner, model, high)
            inner[k] = state[k] - width
            gradient(inner, model, low)
            for i in range(state.size):
                jacobian[i, k] = (high[i] - low[i]) / (2.0 * width)
    finite = True
    for i in range(state.size):
        finite = finite and all_finite(jacobian[i])
    return finite


def predict(width, points, last_width, room):
    """Predict ``room.stages`` by the polynomial of the previous step, or by 0 in the first step."""
    for i in range(STAGES):
        ahead = 0.0
        if last_width > 0.0:
            ahead = min(points[i] * width / last_width, FARTHEST)
        for k in range(room.stages.shape[1]):
            value = 0.0
            for power in range(STAGES, 0, -1):
                value = (value + room.last[power, k]) * ahead
            room.stages[i, k] = value


def find_floor(state, width, model, control, room):
    """Fill absolute tolerances: ``control.floor`` for entries at rounding level, else `LEAST`.

    An entry is at rounding level if small perturbations of the state change its rate by a second
    difference above the tolerances of the entry and of its rate. An entry that stays exactly 0 on
    an invariant set has no such difference.
    """
    size, small, largest = state.size, False, 1.0
    for k in range(size):
        room.floor[k] = LEAST
        small = small or control.relative * abs(state[k]) < control.floor[k]
        largest = max(largest, abs(state[k]))
    if not small:
        return
    span = control.now[SCALE] * expm1(width)
    slope, high, low = room.slopes[0], room.slopes[1], room.slopes[2]
    gradient(state, model, slope)
    for row in range(1, 3):
        side = 3.0 - 2.0 * row
        for k in range(size):
            change = min(span * abs(slope[k]), largest)
            # The perturbation depends on the width, since a fixed one may miss rounding errors by
            # chance.
            change = state[k] * cos(k + 1e3 * width) + (change if slope[k] < 0.0 else -change)
            room.inner[k] = state[k] + side * SHAKE * change
        gradient(room.inner, model, room.slopes[row])
    for k in range(size):
        noise = NOISY * span * abs(high[k] - 2.0 * slope[k] + low[k])
        rate = OF_RATE * span * abs(slope[k])
        allowed = control.relative * max(abs(state[k]), rate)
        if allowed < control.floor[k] and noise > max(allowed, SMOOTH * rate):
            room.floor[k] = control.floor[k]


def measure_sizes(state, room):
    """Fill ``room.sizes`` from the state and the predicted state at the end of the step."""
    for k in range(state.size):
        end = abs(state[k] + room.stages[STAGES - 1, k])
        size = max(max(abs(state[k]), end), room.floor[k])
        room.sizes[k] = size if size > LEAST else 1.0


def assemble(width, scale, table, room):
    """Assemble the matrix of (2), for changes relative to the sizes of entries."""
    size = room.stages.shape[1]
    for j in range(STAGES):
        part, weight = table.points[j], width * scale * exp(table.points[j] * width)
        for m in range(size):
            for k in range(size):
                first = room.jacobians[0, m, k]
                entry = weight * (first + part * (room.jacobians[1, m, k] - first))  # (2)
                entry *= room.sizes[k] / room.sizes[m]
                for i in range(STAGES):
                    room.matrix[i * size + m, j * size + k] = table.weights[i, j] * entry
    for i in range(room.matrix.shape[0]):
        room.matrix[i, i] += 1.0


def newton_iteration(state, width, model, table, control, room):
    """Perform one Newton iteration (2); return whether the gradients at all stages are finite."""
    size, scale = state.size, control.now[SCALE]
    for j in range(STAGES):
        for k in range(size):
            room.inner[k] = state[k] + room.stages[j, k]
        gradient(room.inner, model, room.slopes[j])
        if not all_finite(room.slopes[j]):
            copy(room.inner, control.refused)
            return False
        weight = width * scale * exp(table.points[j] * width)
        for k in range(size):
            room.slopes[j, k] *= weight
    for i in range(STAGES):
        for k in range(size):
            total = room.stages[i, k]
            for j in range(STAGES):
                total += table.weights[i, j] * room.slopes[j, k]  # (1)
            room.change[i * size + k] = -total / room.sizes[k]
    solve(room.matrix, room.pivots, room.change)
    for i in range(STAGES):
        for k in range(size):
            room.change[i * size + k] *= room.sizes[k]
            room.stages[i, k] += room.change[i * size + k]
    return True


def moved_and_error(state, ending, control, room):
    """Largest change of an iteration, and error estimate, both relative to the tolerance.

    The tolerance is relative to the state at the end of the step, so that decaying entries keep
    their relative accuracy. The error is the first omitted Legendre coefficient, extrapolated from
    the last three.
    """
    size, moved, error = state.size, 0.0, 0.0
    for k in range(size):
        reached = abs(state[k] + room.stages[STAGES - 1, k])
        reached = max(reached, OF_RATE * abs(room.slopes[STAGES - 1, k]))
        allowed = room.floor[k] + control.relative * reached
        third, second, last = 0.0, 0.0, 0.0
        for i in range(STAGES):
            moved = larger(moved, abs(room.change[i * size + k]) / allowed)
            third += ending[0, i] * room.stages[i, k]
            second += ending[1, i] * room.stages[i, k]
            last += ending[2, i] * room.stages[i, k]
        last, second, third = abs(last), abs(second), abs(third)
        decay = max(last / max(second, 1e-300), sqrt(last / max(third, 1e-300)))
        error = larger(error, last / allowed * min(1.0, max(LEAST_DECAY, decay)))
    return moved, error


def larger(one, other):
    """Larger of two numbers, or NaN if one of them is NaN."""
    return one if one >= other or one != one else other


def fill_polynomial(state, powers, stages, coefficients):
    """Fill the coefficients of the polynomial of a step."""
    for k in range(state.size):
        coefficients[0, k] = state[k] + stages[STAGES - 1, k]
        for power in range(1, STAGES + 1):
            total = 0.0
            for i in range(STAGES):
                total += powers[power, i] * stages[i, k]
            coefficients[power, k] = total


kernels(__name__)
