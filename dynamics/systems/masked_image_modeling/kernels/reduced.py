r"""Kernels of the reduced population problem: one pass over the blocks, and what is read off it.

The pass leaves, for the state it was last made at,

- ``push``: the sum over clusters of E[-dl/dstate], before the factor gamma/K and the class sizes;
- ``mass``: at an Ups, the attention on the patches of its class, masked or not; at a Phi, that on
  the unmasked patches of its areas (A); given that p is masked, summed over clusters;
- ``results``: for each block the loss and the attention A_m on p's own area.

The gradient is per entry of Q. Whatever asks again for the same state reads what is there.
"""

import numpy as np

from dynamics.systems.masked_image_modeling.kernels.contour import contour_block
from dynamics.systems.masked_image_modeling.kernels.counts import counts_block


def evaluate(state, data):  # type: ignore[no-untyped-def]
    """Make the pass at a state, unless it was the last one."""
    table, shape, configurations, latents, law, work = data
    circle = law[0]
    push, mass, results, room, last = work
    same = True
    for i in range(state.size):
        same = same and state[i] == last[i]
    if same:
        return
    push[:] = 0.0
    mass[:] = 0.0
    results[:] = 0.0
    for b in range(table.shape[0]):
        found = (push, mass, results[b])
        if table[b, 1] == 1:
            contour_block(state, table[b], shape, circle, latents, found)
        else:
            counts_block(state, table[b], shape, configurations, latents, room, found)
    last[:] = state


def gradient(state, data, out):  # type: ignore[no-untyped-def]
    """Gradient of the population risk per entry of Q."""
    evaluate(state, data)
    shares, push = data[4][1], data[5][0]
    for i in range(out.size):
        out[i] = -shares[i] * push[i]


def row_numbers(data, out):  # type: ignore[no-untyped-def]
    """Of every row: (L_p - L*_p, own attention given that a mate is unmasked) of the last pass."""
    table, law, results = data[0], data[4], data[5][2]
    factor, floors, mates = law[2], law[3], law[4]
    out[:] = 0.0
    for b in range(table.shape[0]):
        row = table[b, 0]
        out[row, 0] += factor * results[b, 0]
        out[row, 1] += results[b, 1]
    for row in range(out.shape[0]):
        out[row, 0] -= floors[row]
        # Without a mate that could be unmasked this is 0/0, not a number.
        out[row, 1] /= mates[row]


def order_parameters(state, slope, data, out):  # type: ignore[no-untyped-def]
    """Order parameters of the row that stands for the local ones."""
    evaluate(state, data)
    places, rows = data[4][5], data[4][6]
    row_numbers(data, rows)
    read_order(state, slope, places, rows, out)


def read_order(state, slope, places, rows, out):  # type: ignore[no-untyped-def]
    """Fill in the order parameters, in the order of the events.

    Parameters
    ----------
    state, slope : float arrays, shape (n,)
        The gradient is that of the same entries.
    places : (target, remote, local row, global row)
        The local row is -1 where there is none; what is read off it is NaN then.
    rows : float array, shape (rows, 2)
        See `row_numbers`.
    """
    target, remote, row, far = places[0], places[1], places[2], places[3]
    out[:] = np.nan
    out[7] = rows[far, 1]
    out[8] = rows[far, 0]
    if row < 0:
        return
    if slope[target] != 0.0:
        out[0] = abs(slope[remote]) / abs(slope[target])
    out[1] = -slope[target]
    out[2] = -slope[remote]
    out[3] = state[target]
    out[4] = state[remote]
    out[5] = rows[row, 1]
    out[6] = rows[row, 0]


def summary(state, data, out):  # type: ignore[no-untyped-def]
    """Population risk, and its excess over the floor."""
    evaluate(state, data)
    floors, rows, many = data[4][3], data[4][6], data[4][7]
    row_numbers(data, rows)
    out[:] = 0.0
    for row in range(many.size):
        out[0] += many[row] * (rows[row, 0] + floors[row])
        out[1] += many[row] * rows[row, 0]
