r"""Gradient flow by extrapolation of the linearly implicit Euler method.

A step of width H is made in rows of n = 2, 3, 4, ... substeps of width h = H / n,

.. math:: (1 + h J)\, \Delta_i = -h\, g(\theta_i), \qquad \theta_{i+1} = \theta_i + \Delta_i, (1)

where J is the Jacobian of g at the beginning of the step. The results have an expansion in powers
of h and are extrapolated to h = 0, with a polynomial between the ends
(`dynamics.codegen.kernels.extrapolation_table`). The last two extrapolations of k rows differ by
the estimate of the error, of order H^k; the width and the number of rows are chosen so that work
per time is least. On a slow manifold rows that begin with one substep need smaller steps.

Sources: P. Deuflhard, Recent progress in extrapolation methods for ordinary differential equations,
SIAM Review 27 (1985); E. Hairer and G. Wanner, Solving Ordinary Differential Equations II, sections
IV.9 (method, control of order: SEULEX) and VI.5.
"""

from math import isfinite
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from dynamics.codegen.kernels import exact
from dynamics.codegen.kernels.extrapolation_table import FIRST, ROWS, interpolate, neville
from dynamics.codegen.kernels.linear_algebra import all_finite, copy, factorize, solve

gradient: Any = None  # supplied by the generated file
hessian: Any = None  # supplied by the generated file
has_hessian: Any = None  # supplied by the generated file

FEWEST = 3
"""Rows from which a step may be accepted."""
DONE, FULL, STUCK = 0, 1, 2
"""How `integrate` ended: at the end, at the end of its buffers, or where no step can be made."""
SAFETY, SHRINK, GROW = 0.9, 0.02, 8.0
"""Of the next width: a factor, and its least and greatest change."""
FIRST_MOVE = 1e4
"""How far the first step may move an entry, over its tolerance."""
SPACING = 1e-15
"""Widths below this part of the time are none."""


class Room(NamedTuple):
    """Memory of an integration of n entries.

    Attributes
    ----------
    rate, slope, inner, ending : float arrays, shape (n,)
        The gradient at the beginning and in a substep; the state in a substep and at the end.
    jacobian, factors : float arrays, shape (n, n)
        J, and the LU factors of 1 + h J.
    pivots : int array, shape (n,)
    increments : float array, shape (ROWS, ROWS + FIRST - 1, n)
        Delta of every substep of every row.
    table : float array, shape (2, ROWS, n)
        Two rows of the extrapolation, without the state at the beginning.
    trials : float array, shape (2, ROWS)
        Of each row of a step the width that it would allow, and its work over that width.
    """

    rate: NDArray[np.float64]
    slope: NDArray[np.float64]
    inner: NDArray[np.float64]
    ending: NDArray[np.float64]
    jacobian: NDArray[np.float64]
    factors: NDArray[np.float64]
    pivots: NDArray[np.int64]
    increments: NDArray[np.float64]
    table: NDArray[np.float64]
    trials: NDArray[np.float64]


class Control(NamedTuple):
    """Where an integration is, and what it may err.

    Attributes
    ----------
    now : float array, shape (4,)
        Time, horizon, width of the next step (0: to be chosen), rows of the next step.
    relative : float
        Error that a step may make, over the size of an entry.
    floor : float array, shape (n,)
        Error that a step may make in any case.
    refused : float array, shape (n,)
        The last state that had no gradient.
    """

    now: NDArray[np.float64]
    relative: float
    floor: NDArray[np.float64]
    refused: NDArray[np.float64]


class Path(NamedTuple):
    """What an integration fills.

    Attributes
    ----------
    nodes : float array, shape (steps + 1,)
        Times; the first is that of the beginning.
    coefficients : float array, shape (steps, ROWS + 2, n)
        Of powers of (time - end of step) / width.
    """

    nodes: NDArray[np.float64]
    coefficients: NDArray[np.float64]


@exact
def integrate(state, model, control, path):  # type: ignore[no-untyped-def]
    """Integrate the flow to the horizon, or until the path is full.

    Parameters
    ----------
    state : float array, shape (n,)
        At the time of ``control.now`` on entry; at the last node on exit.
    model
        What gradient and Hessian need beside the state.
    control : Control
    path : Path

    Returns
    -------
    (int, int)
        Number of steps, and one of `DONE`, `FULL`, `STUCK`.
    """
    now, steps, room = control.now, 0, new_room(state.size)
    path.nodes[0] = now[0]
    gradient(state, model, room.rate)
    if not all_finite(room.rate):
        copy(state, control.refused)
        return steps, STUCK
    if now[2] <= 0.0:
        now[2] = first_width(state, control, room)
    fresh = True
    while now[0] < now[1]:
        if steps == path.coefficients.shape[0]:
            return steps, FULL
        if fresh:
            differentiate(state, model, control, room)
        width = min(now[2], now[1] - now[0])
        if 1.1 * width >= now[1] - now[0]:
            width = now[1] - now[0]
        if width <= SPACING * now[0] or width < 1e-300:
            return steps, STUCK
        rows, now[2], now[3] = extrapolated(state, width, model, control, room)
        fresh = rows > 0
        if fresh:
            # A step ends only where the next one can begin.
            gradient(room.ending, model, room.slope)
            fresh = all_finite(room.slope)
            if not fresh:
                copy(room.ending, control.refused)
                now[2] = 0.25 * width
        if fresh:
            interpolate(width, rows, room, path.coefficients[steps])
            copy(room.ending, state)
            copy(room.slope, room.rate)
            steps += 1
            now[0] = now[1] if width == now[1] - now[0] else now[0] + width
            path.nodes[steps] = now[0]
    return steps, DONE


@exact
def new_room(size):  # type: ignore[no-untyped-def]
    """Memory of an integration of so many entries."""
    return Room(
        np.empty(size),
        np.empty(size),
        np.empty(size),
        np.empty(size),
        np.empty((size, size)),
        np.empty((size, size)),
        np.empty(size, np.int64),
        np.empty((ROWS, ROWS + FIRST - 1, size)),
        np.empty((2, ROWS, size)),
        np.empty((2, ROWS)),
    )


@exact
def allowed(state, end, k, control):  # type: ignore[no-untyped-def]
    """Error that a step from one state to another may make in entry k.

    Parameters
    ----------
    state, end : float array and float
        The first state, and entry k of the second.
    k : int
    control : Control
    """
    return control.floor[k] + control.relative * max(abs(state[k]), abs(end))


@exact
def first_width(state, control, room):  # type: ignore[no-untyped-def]
    """A width within which the state hardly moves, so that few rows will do.

    Parameters
    ----------
    state : float array, shape (n,)
    control : Control
    room : Room
        With the gradient at the state.
    """
    largest = 0.0
    for k in range(state.size):
        largest = max(largest, abs(room.rate[k]) / allowed(state, state[k], k, control))
    horizon = control.now[1] - control.now[0]
    return min(horizon, FIRST_MOVE / largest) if largest > 0.0 else horizon


@exact
def differentiate(state, model, control, room):  # type: ignore[no-untyped-def]
    """J at a state, compiled or from central differences.

    Parameters
    ----------
    state : float array, shape (n,)
    model
        What gradient and Hessian need beside the state.
    control : Control
    room : Room
        Its ``jacobian`` is filled.
    """
    if has_hessian(model):
        hessian(state, model, room.jacobian)
        return
    inner = room.inner
    copy(state, inner)
    for k in range(state.size):
        width = 1e-5 * max(abs(state[k]), 1e-2)
        inner[k] = state[k] + width
        gradient(inner, model, room.slope)
        for i in range(state.size):
            room.jacobian[i, k] = room.slope[i]
        inner[k] = state[k] - width
        gradient(inner, model, room.slope)
        for i in range(state.size):
            room.jacobian[i, k] = (room.jacobian[i, k] - room.slope[i]) / (2.0 * width)
        inner[k] = state[k]


@exact
def extrapolated(state, width, model, control, room):  # type: ignore[no-untyped-def]
    """Try a step: on success ``room.ending`` is the new state.

    Parameters
    ----------
    state : float array, shape (n,)
    width : float
        H.
    model, control
        As of `integrate`.
    room : Room

    Returns
    -------
    (int, float, int)
        Rows that were used (0: the step failed), and width and rows of the next attempt.
    """
    target, widths, costs = int(control.now[3]), room.trials[0], room.trials[1]
    work = 1.0
    for row in range(min(target + 1, ROWS)):
        work += row + FIRST - 1.0
        if not substeps(state, width, row, model, control, room):
            return 0, 0.25 * width, max(FEWEST, target - 1)
        neville(row, room.table)
        if row == 0:
            continue
        error = estimated(state, row, control, room.table)
        if not isfinite(error):
            return 0, 0.25 * width, max(FEWEST, target - 1)
        factor = SAFETY * (0.5 / max(error, 1e-30)) ** (1.0 / (row + 1.0))
        widths[row] = min(GROW, max(SHRINK, factor)) * width
        costs[row] = work / widths[row]
        used = row + 1
        if used >= max(FEWEST, target - 1) and error <= 1.0:
            for k in range(state.size):
                room.ending[k] = state[k] + room.table[row % 2, row, k]
            rows = cheapest(used, target, costs)
            if rows <= used:
                return used, widths[rows - 1], rows
            return used, widths[row] * (work + row + FIRST) / work, rows
        # Rows to come lower the error by so much at most.
        if used == target - 1 and error > (target * (target + 1.0)) ** 2:
            break
        if used == target and error > (target + 1.0) ** 2:
            break
    rows = min(target, used)
    if rows > FEWEST and costs[rows - 2] < 0.8 * costs[rows - 1]:
        rows -= 1
    return 0, min(0.8 * width, widths[rows - 1]), rows


@exact
def cheapest(used, target, costs):  # type: ignore[no-untyped-def]
    """Rows for the next step, from work per time of those of this one; at most one more.

    Parameters
    ----------
    used : int
        Rows of this step.
    target : int
        Rows that were expected.
    costs : float array, shape (ROWS,)
        Work of each number of rows over the width that it allows.
    """
    rows = used if used <= target else used - 1
    if rows > FEWEST and costs[rows - 2] < 0.8 * costs[rows - 1]:
        return rows - 1
    if used > target:
        return min(used, ROWS - 1) if costs[used - 1] < 0.9 * costs[rows - 1] else rows
    if rows == FEWEST or costs[rows - 1] < 0.9 * costs[rows - 2]:
        return min(rows + 1, ROWS - 1)
    return rows


@exact
def substeps(state, width, row, model, control, room):  # type: ignore[no-untyped-def]
    """The substeps (1) of a row into ``room.increments``; False where one cannot be made.

    Parameters
    ----------
    state : float array, shape (n,)
        At the beginning of the step.
    width : float
        H.
    row : int
        Has row + FIRST substeps.
    model, control
        As of `integrate`.
    room : Room
    """
    size, count = state.size, row + FIRST
    part = width / count
    for i in range(size):
        for k in range(size):
            room.factors[i, k] = part * room.jacobian[i, k]
        room.factors[i, i] += 1.0
    if not factorize(room.factors, room.pivots):
        return False
    total = room.table[row % 2, 0]
    for k in range(size):
        total[k] = 0.0
    slope = room.rate
    for step in range(count):
        if step > 0:
            for k in range(size):
                room.inner[k] = state[k] + total[k]
            gradient(room.inner, model, room.slope)
            slope = room.slope
        increment = room.increments[row, step]
        for k in range(size):
            increment[k] = -part * slope[k]
        solve(room.factors, room.pivots, increment)
        if not all_finite(increment):
            copy(room.inner, control.refused)
            return False
        if step == 1 and row == 0 and grows(room.increments[0]):
            return False
        for k in range(size):
            total[k] += increment[k]
    return True


@exact
def grows(increments):  # type: ignore[no-untyped-def]
    """Whether the second substep is much larger than the first: (1) is not stable there."""
    first, second = 0.0, 0.0
    for k in range(increments.shape[1]):
        first, second = first + increments[0, k] ** 2, second + increments[1, k] ** 2
    return second > 16.0 * first


@exact
def estimated(state, row, control, table):  # type: ignore[no-untyped-def]
    """The estimate of the error of a row, over what is allowed; the largest of all entries.

    Parameters
    ----------
    state : float array, shape (n,)
        At the beginning of the step.
    row : int
    control : Control
    table : float array, shape (2, ROWS, n)
    """
    new, largest = table[row % 2], 0.0
    for k in range(state.size):
        change = abs(new[row, k] - new[row - 1, k])
        ratio = change / allowed(state, state[k] + new[row, k], k, control)
        if not ratio <= largest:
            largest = ratio
    return largest
