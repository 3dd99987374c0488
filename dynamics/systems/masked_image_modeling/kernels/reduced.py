r"""Kernels of the reduced population problem: one pass over the blocks, and what is read off it.

A *block* is one row type in one cluster. Fix a patch p of it that is masked. The other patches of
one *patch class* (those of one class in one area) are alike, so a mask enters by the number h_c of
unmasked patches of every patch class only. With :math:`w^-_c = e^{\Upsilon}` for a masked key and
:math:`w^+_c = e^{\Upsilon + z\Phi}` for an unmasked one, and a for the areas, m that of p,

.. math::
   D = w_p + \sum_c h_c w_c^+ + (n_c - h_c) w_c^-, \quad
   A_a = \sum_{c \in a} h_c w_c^+ / D, \quad
   r = z_m^2 A_m - \sum_a z_a^2 A_a^2 .

`counts.counts_block` takes the expectation over masks as a sum over the counts h,
`contour.contour_block` as a contour integral. Of *merged* areas, nu areas alike of one patch class
each, only the total h is known; given it the counts of the areas are hypergeometric, and
:math:`E \sum_i A_i^2 = \nu (\bar h^2 + \mathrm{var}) (w^+/D)^2`. Every term is linear in that sum,
so nothing is lost.

The gradient is per entry of Q. Order parameters and summary are read off the pass of the gradient,
which is not made again where the state is that of the last one.
"""

from typing import Any, NamedTuple

import numpy as np

from dynamics.codegen.kernels.linear_algebra import copy
from dynamics.systems.masked_image_modeling.kernels.contour import contour_block
from dynamics.systems.masked_image_modeling.kernels.counts import counts_block


class Law(NamedTuple):
    """What the parameters say, as numbers.

    Attributes
    ----------
    others, masked : float
        P - 1, and masked patches among them.
    z, odds : float arrays
        Values of a latent, and their probabilities.
    factor : float
        gamma / K.
    shares : float array, shape (n,)
        The factor over the number of entries that a state stands for.
    floors, mates, patches : float arrays, shape (rows,)
        L*_p; K times the chance that a mate is unmasked, given that p is masked; number of patches.
    own, remote, local, far : int
        Indices of Phi_m and Phi_0 in the state, local and global row type; -1 where there is none.
    """

    others: float
    masked: float
    z: Any
    odds: Any
    factor: float
    shares: Any
    floors: Any
    mates: Any
    patches: Any
    own: int
    remote: int
    local: int
    far: int


class Blocks(NamedTuple):
    """All blocks, as tables.

    Attributes
    ----------
    blocks, areas, patches : structured arrays
        Rows of `reduced.blocks.BLOCK_FIELDS`, ``AREA_FIELDS``, ``PATCH_FIELDS``.
    counts : float array
        Counts of every block that sums over them, patch class by patch class.
    chances : float array
        Chance of each of its configurations.
    """

    blocks: Any
    areas: Any
    patches: Any
    counts: Any
    chances: Any


class Sums(NamedTuple):
    """Sums of a pass, given that p is masked, summed over clusters.

    Attributes
    ----------
    push : float array, shape (n,)
        E[-dl/dstate], before the factor gamma / K and the class sizes.
    mass : float array, shape (n,)
        At an Ups the attention on the patches of its class, masked or not; at a Phi that on the
        unmasked patches of its areas.
    loss, own : float arrays, shape (blocks,)
        Loss, and attention A_m on the own area.
    """

    push: Any
    mass: Any
    loss: Any
    own: Any


class Room(NamedTuple):
    """What the kernels write into.

    Attributes
    ----------
    inverse, rest, squared, weight : float arrays, shape (counts.BLOCK,)
    attention, squares : float arrays, shape (areas, counts.BLOCK)
        A_a, and the sum of A_a^2 over the copies of an area.
    rows : float array, shape (rows, 2)
        Output of `row_numbers`.
    state : float array, shape (n,)
        That of the last pass, NaN before the first. Whoever changes blocks or law in place has to
        set it to NaN.
    """

    inverse: Any
    rest: Any
    squared: Any
    weight: Any
    attention: Any
    squares: Any
    rows: Any
    state: Any


class ReducedData(NamedTuple):
    """What the kernels need beside the state."""

    blocks: Blocks
    law: Law
    sums: Sums
    room: Room


def evaluate(state, data):  # type: ignore[no-untyped-def]
    """Make the pass at a state, unless it was the last one.

    Parameters
    ----------
    state : float array, shape (n,)
    data : ReducedData
    """
    table, law, sums, room = data
    last, blocks = room.state, table.blocks
    same = True
    for i in range(state.size):
        same = same and state[i] == last[i]
    if same:
        return
    sums.push[:] = 0.0
    sums.mass[:] = 0.0
    sums.loss[:] = 0.0
    sums.own[:] = 0.0
    for b in range(blocks.size):
        if blocks[b].contour == 1:
            contour_block(state, b, table, law, sums)
        else:
            counts_block(state, b, table, law, room, sums)
    copy(state, last)


def gradient(state, data, out):  # type: ignore[no-untyped-def]
    """Gradient of the population risk per entry of Q.

    Parameters
    ----------
    state : float array, shape (n,)
    data : ReducedData
    out : float array, shape (n,)
        Filled.
    """
    evaluate(state, data)
    shares, push = data.law.shares, data.sums.push
    for i in range(out.size):
        out[i] = -shares[i] * push[i]


def row_numbers(data, out):  # type: ignore[no-untyped-def]
    """Of every row: (L_p - L*_p, own attention given that a mate is unmasked) of the last pass.

    Parameters
    ----------
    data : ReducedData
    out : float array, shape (rows, 2)
        Filled.
    """
    blocks, loss, own = data.blocks.blocks, data.sums.loss, data.sums.own
    factor, floors, mates = data.law.factor, data.law.floors, data.law.mates
    out[:] = 0.0
    for b in range(blocks.size):
        row = blocks[b].row
        out[row, 0] += factor * loss[b]
        out[row, 1] += own[b]
    for row in range(out.shape[0]):
        out[row, 0] -= floors[row]
        # Without a mate that could be unmasked this is 0/0, not a number.
        out[row, 1] /= mates[row]


def order_parameters(state, slope, data, out):  # type: ignore[no-untyped-def]
    """Order parameters of the row that stands for the local ones, not a number without one.

    Parameters
    ----------
    state, slope : float array, shape (n,)
        State of the last pass, and its gradient.
    data : ReducedData
    out : float array, shape (9,)
        Filled with rho, alpha_m, alpha_0, Phi_m, Phi_0, A_m, gap, A_g, gap_g.
    """
    law, rows = data.law, data.room.rows
    row_numbers(data, rows)
    out[:] = np.nan
    out[7] = rows[law.far, 1]
    out[8] = rows[law.far, 0]
    if law.local < 0:
        return
    if slope[law.own] != 0.0:
        out[0] = abs(slope[law.remote]) / abs(slope[law.own])
    out[1] = -slope[law.own]
    out[2] = -slope[law.remote]
    out[3] = state[law.own]
    out[4] = state[law.remote]
    out[5] = rows[law.local, 1]
    out[6] = rows[law.local, 0]


def summary(state, data, out):  # type: ignore[no-untyped-def]
    """Population risk, and its excess over the floor, of the last pass.

    Parameters
    ----------
    state : float array, shape (n,)
        Not read.
    data : ReducedData
    out : float array, shape (2,)
        Filled.
    """
    law, rows = data.law, data.room.rows
    row_numbers(data, rows)
    out[:] = 0.0
    for row in range(law.patches.size):
        out[0] += law.patches[row] * (rows[row, 0] + law.floors[row])
        out[1] += law.patches[row] * rows[row, 0]
