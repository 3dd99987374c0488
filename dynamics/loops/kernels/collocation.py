r"""Gradient flow by collocation at the Radau points, in logarithmic time.

Training slows down: at time :math:`\tau` the state :math:`\theta` changes on a time scale of order
:math:`\tau`. The flow of the gradient g is therefore integrated in :math:`u = \log w`, :math:`w =
\tau + \tau_*`, as :math:`d\theta/du = -w\,g(\theta)`, where :math:`\tau_*` is the time scale at the
start. With the s points c and the weights a of `dynamics.loops.kernels.collocation_table`, a step
of width D in u from :math:`\theta_0` at :math:`w_0` has the stages :math:`\theta_0 + Z_i` with

.. math:: Z_i + D \sum_j a_{ij} w_j\, g(\theta_0 + Z_j) = 0, \qquad w_j = w_0 e^{c_j D}.        (1)

The extrapolated polynomial of the previous step predicts the :math:`Z_i`; the Newton iterations

.. math:: \Delta Z_i + D \sum_j a_{ij} w_j J_j\, \Delta Z_j = -(\text{left side of (1)}),
    \qquad J_j = J_0 + c_j (J_1 - J_0),                                                          (2)

with the Jacobians :math:`J_0` of g at the start of the step and :math:`J_1` at its predicted end,
need two or three gradients per stage. The error in a step and at its end is estimated from the
decay of the last Legendre coefficients of its polynomial; the order at its end is 2 s - 1.

Sources: E. Hairer and G. Wanner, Solving Ordinary Differential Equations II, sections IV.5 and IV.8
(Radau IIA and its implementation); K. Gustafsson, Control-theoretic techniques for stepsize
selection in implicit Runge-Kutta methods, ACM TOMS 20 (1994); J. P. Boyd, Chebyshev and Fourier
Spectral Methods, section 2.12 (errors from the last coefficients).
"""

from math import expm1, isfinite, log1p
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from dynamics.loops.kernels import kernels
from dynamics.loops.kernels.collocation_equations import (
    GROWTH,
    HORIZON,
    LAST_ERROR,
    LAST_WIDTH,
    SCALE,
    TIME,
    WIDTH,
    assemble,
    differentiate,
    fill_polynomial,
    find_floor,
    measure_sizes,
    moved_and_error,
    newton_iteration,
    predict,
)
from dynamics.loops.kernels.collocation_table import STAGES
from dynamics.loops.kernels.kinds import gradient
from dynamics.loops.kernels.linear_algebra import all_finite, copy, factorize, largest_sum

DONE, FULL, STUCK = 0, 1, 2
"""Results of `integrate`: horizon reached, output buffers full, or no step possible."""
FIRST_MOVE = 0.2
"""Product of the time scale of the start and the norm of the Jacobian at the start."""
MOST_ITERATIONS = 9
CONVERGED, STALLED = 0.02, 0.1
"""Limits of (change in a Newton iteration / tolerance). A step with a ratio up to CONVERGED has
converged; with a ratio up to STALLED, it is accepted once rounding stalls the iterations."""
SAFETY, SHRINK, GROW, CAREFUL = 0.8, 0.2, 4.0, 1.2
"""Step-width control: safety factor, minimum and maximum ratio of consecutive widths, maximum ratio
after a failed step."""
HOPELESS = 8.0
"""An unconverged step is rejected early if (error estimate / tolerance) is above this value."""
QUIET = 1e-3
"""The width control ignores the trend of errors if (estimate / tolerance) is at most this."""
SPACING = 1e-15
"""Minimum time span of a step, relative to the time reached; below it, `integrate` is stuck."""


class Path(NamedTuple):
    """Output arrays of an integration: times of the steps and polynomials between them."""

    nodes: NDArray[np.float64]  # times, (steps + 1,); the first is the beginning of the flow
    scales: NDArray[np.float64]  # w at the beginning of each step
    coefficients: NDArray[np.float64]  # (steps, STAGES + 1, n): powers of (position in [0, 1]) - 1


def integrate(state, model, table, control, path, room):
    """Integrate to the horizon or until the path is full; return number of steps and result."""
    now, steps = control.now, 0
    path.nodes[0] = now[TIME]
    if now[SCALE] <= 0.0 and not begin(state, model, control, room):
        return steps, STUCK
    while now[TIME] < now[HORIZON]:
        if steps == path.coefficients.shape[0]:
            return steps, FULL
        left = log1p((now[HORIZON] - now[TIME]) / now[SCALE])
        width = now[WIDTH]
        if width > 0.9 * left:
            width = left
        elif width > 0.55 * left:
            width = 0.5 * left
        span = now[SCALE] * expm1(width)
        if not span > SPACING * now[TIME] or span < 1e-300:
            return steps, STUCK
        if not try_step(state, width, model, table, control, room):
            continue
        fill_polynomial(state, table.powers, room.stages, path.coefficients[steps])
        for power in range(STAGES + 1):
            copy(path.coefficients[steps, power], room.last[power])
        copy(path.coefficients[steps, 0], state)
        path.scales[steps] = now[SCALE]
        now[TIME] = now[HORIZON] if width == left else now[TIME] + span
        now[SCALE] += span
        steps += 1
        path.nodes[steps] = now[TIME]
    return steps, DONE


def begin(state, model, control, room):
    """Choose time scale and width of the first step; return whether derivatives are finite."""
    now = control.now
    gradient(state, model, room.slopes[0])
    if not (all_finite(room.slopes[0]) and differentiate(state, model, room, 0)):
        copy(state, control.refused)
        return False
    horizon = now[HORIZON] - now[TIME]
    size = largest_sum(room.jacobians[0])
    now[SCALE] = min(horizon, FIRST_MOVE / size) if size > 0.0 else horizon
    now[WIDTH], now[GROWTH] = log1p(1.0), GROW  # w, the shifted time, doubles in step 1
    return True


def try_step(state, width, model, table, control, room):
    """Try a step, choose the next width; return whether ``room.stages`` are accepted as stages."""
    now = control.now
    find_floor(state, width, model, control, room)
    predict(width, table.points, now[LAST_WIDTH], room)
    for k in range(state.size):
        room.inner[k] = state[k] + room.stages[STAGES - 1, k]
    if not differentiate(room.inner, model, room, 1):
        copy(room.inner, control.refused)
        return reject(0.25 * width, now)
    measure_sizes(state, room)
    assemble(width, now[SCALE], table, room)
    if not factorize(room.matrix, room.pivots):
        return reject(0.5 * width, now)
    last, error = 0.0, 0.0
    for iteration in range(1, MOST_ITERATIONS + 1):
        if not newton_iteration(state, width, model, table, control, room):
            return reject(0.25 * width, now)
        moved, error = moved_and_error(state, table.ending, control, room)
        rate = moved / last if last > 0.0 else 1.0
        if not isfinite(moved + error):
            return reject(0.25 * width, now)
        stalls = iteration > 2 and rate >= 1.0
        if iteration > 1 and moved * min(1.0, rate / max(1.0 - rate, 1e-300)) <= CONVERGED:
            break
        if stalls and moved <= STALLED:
            break
        after = MOST_ITERATIONS - iteration
        if stalls or (iteration > 2 and moved * rate**after / (1.0 - rate) > CONVERGED):
            # The Jacobian at the start comes from the predicted end of the last step: recompute it.
            if not differentiate(state, model, room, 0):
                copy(state, control.refused)
            return reject(0.5 * width, now)
        if error > HOPELESS and error > 3.0 * moved * (rate if iteration > 1 else 0.3):
            return reject(max(SHRINK, 0.9 * width_factor(error)) * width, now)
        last = moved
    factor = width_factor(error)
    if error > 1.0:
        return reject(min(0.9, max(SHRINK, factor)) * width, now)
    plan_next_width(width, factor, error, iteration, now)
    for i in range(state.size):
        copy(room.jacobians[1, i], room.jacobians[0, i])
    return True


def width_factor(error):
    """Ratio of the next step width to the present one, from the error alone."""
    return SAFETY * (1.0 / max(error, 1e-12)) ** (1.0 / (STAGES + 2.0))


def reject(width, now):
    """Record a failed step and the width of the next attempt; return False."""
    now[WIDTH], now[GROWTH] = width, CAREFUL
    return False


def plan_next_width(width, factor, error, iterations, now):
    """Choose the next step width from the errors of this step and the previous one."""
    if now[LAST_ERROR] > 0.0 and error > QUIET:
        trend = (now[LAST_ERROR] / error) ** (1.0 / (STAGES + 2.0))
        factor = min(factor, factor * width / now[LAST_WIDTH] * trend)
    growth = GROW
    if iterations > 3:
        growth = 2.0 if iterations == 4 else 1.4 if iterations == 5 else 1.1
    if iterations > 6:
        growth = 0.9 if iterations == 7 else 0.7
    now[WIDTH] = width * min(min(growth, now[GROWTH]), max(SHRINK, factor))
    now[LAST_WIDTH], now[LAST_ERROR], now[GROWTH] = width, max(error, QUIET), GROW


kernels(__name__)
