r"""Kernels of training with every entry of Q: weighted masked images.

A masked patch shows its position alone, so of Q a masked query reads its row :math:`e_p^\top Q`:

.. math::
   \Upsilon_{pq} = e_p^\top Q e_q, \quad \Phi_{pv} = e_p^\top Q v, \quad
   s_q = \Upsilon_{pq} + 1\{q \notin M\} z_q \Phi_{p v(q)}, \quad u = \mathrm{softmax}(s).

With the attention :math:`A_a` on the unmasked patches of every area, and m the area of p, the loss
is :math:`\ell = \frac12 z_m^2 (1 - 2 A_m) + \frac12 \sum_a z_a^2 A_a^2`, and

.. math::
   -\frac{\partial \ell}{\partial s_q} = u_q (b_q - r), \quad
   b_q = 1\{q \notin M\} (z_m^2 1\{q \in m\} - z_q^2 A_{a(q)}), \quad r = \sum_q u_q b_q .

An image costs M P exponentials. Summed in the same pass, patch by patch: the loss, the least
possible loss, the attention on the own area, and the chance that a patch of that area is unmasked.
"""

from typing import Any, NamedTuple

import numpy as np

from dynamics.codegen.kernels.elementary import exponentials
from dynamics.codegen.kernels.linear_algebra import copy
from dynamics.systems.masked_image_modeling.kernels.reduced import write_order_parameters

DEEPEST = -700.0
"""Scores this far below the largest one count as this far."""


class Basis(NamedTuple):
    """Orthonormal rows in which Q is read.

    Attributes
    ----------
    axes : float array, shape (P + features, d)
        e_p of every patch, then v of every feature.
    unit : bool
        Whether they are the first unit vectors.
    feature : int array, shape (K, P)
        Feature of every patch in every cluster.
    """

    axes: Any
    unit: bool
    feature: Any


class Readout(NamedTuple):
    """Where the order parameters are read.

    Attributes
    ----------
    kind : int array, shape (P,)
        Row type of every patch.
    own, remote : int arrays, shape (pairs, 2)
        Pairs (patch, column of the entries) that Phi_m and Phi_0 stand for.
    local, far : int
        Row types that stand for local and for global areas; -1 where there is none.
    rows : float array, shape (rows, 2)
        Output of `row_numbers`.
    """

    kind: Any
    own: Any
    remote: Any
    local: int
    far: int
    rows: Any


class Sums(NamedTuple):
    """Sums of the last pass, by patch.

    Attributes
    ----------
    slopes : float array, shape (P, P + features)
        Derivatives of the risk by Ups and Phi.
    loss, floor, own, mates : float arrays, shape (P,)
        Loss, its least possible value, attention on the own area, and chance that a mate (a patch
        of that area) is unmasked; p is masked in all four.
    """

    slopes: Any
    loss: Any
    floor: Any
    own: Any
    mates: Any


class Room(NamedTuple):
    """What the kernels write into.

    Attributes
    ----------
    queries : float array, shape (P, d)
    entries, moved : float arrays, shape (P, P + features)
        Ups and Phi of a state, and of its gradient.
    state : float array, shape (d * d,)
        That of the last pass, NaN before the first. Whoever changes basis or images in place has to
        set it to NaN.
    batch : int array, shape (1,)
        Number of the batch of the last pass.
    """

    queries: Any
    entries: Any
    moved: Any
    state: Any
    batch: Any


class FullData(NamedTuple):
    """What the kernels need beside the state; ``batch`` is `systems.empirical_problem.Batch`."""

    basis: Basis
    images: Any
    batch: Any
    readout: Readout
    sums: Sums
    room: Room


def read_entries(matrix, basis, queries, out):  # type: ignore[no-untyped-def]
    """Ups and Phi of every patch: e_p^T Q times every axis, shape (P, P + features).

    Parameters
    ----------
    matrix : float array, shape (d, d)
        Q, or its gradient.
    basis : Basis
    queries : float array, shape (P, d)
        Overwritten, unless the axes are unit vectors.
    out : float array, shape (P, P + features)
        Filled.
    """
    axes = basis.axes
    if basis.unit:
        for i in range(out.shape[0]):
            copy(matrix[i, : out.shape[1]], out[i])
        return
    queries[:] = 0.0
    for p in range(queries.shape[0]):
        for i in range(axes.shape[1]):
            for j in range(axes.shape[1]):
                queries[p, j] += axes[p, i] * matrix[i, j]
        for q in range(axes.shape[0]):
            total = 0.0
            for j in range(axes.shape[1]):
                total += queries[p, j] * axes[q, j]
            out[p, q] = total


def write_entries(entries, basis, queries, out):  # type: ignore[no-untyped-def]
    """The matrix, shape (d, d), that has these entries and no others.

    Parameters
    ----------
    entries : float array, shape (P, P + features)
    basis : Basis
    queries : float array, shape (P, d)
        Overwritten, unless the axes are unit vectors.
    out : float array, shape (d, d)
        Filled.
    """
    axes = basis.axes
    out[:] = 0.0
    if basis.unit:
        out[: entries.shape[0], : entries.shape[1]] = entries
        return
    queries[:] = 0.0
    for p in range(queries.shape[0]):
        for q in range(axes.shape[0]):
            for j in range(axes.shape[1]):
                queries[p, j] += entries[p, q] * axes[q, j]
        for i in range(axes.shape[1]):
            for j in range(axes.shape[1]):
                out[i, j] += axes[p, i] * queries[p, j]


def accumulate(entries, feature, images, batch, sums):  # type: ignore[no-untyped-def]
    """Set the sums over the images of a batch.

    Parameters
    ----------
    entries : float array, shape (P, P + features)
    feature : int array, shape (K, P)
    images : Images
    batch : Batch
    sums : Sums
    """
    size, features = entries.shape[0], entries.shape[1] - entries.shape[0]
    slopes, losses, floors, own_sums, mate_sums = sums
    clusters, latents, masks, _ = images
    slopes[:] = 0.0
    losses[:] = 0.0
    floors[:] = 0.0
    own_sums[:] = 0.0
    mate_sums[:] = 0.0
    unmasked = np.empty(size)
    attention, scratch, area = np.empty(size), np.empty(size), np.empty(features)
    _, members, weights = batch
    for k in range(members.size):
        n, weight = members[k], weights[k]
        label, z = feature[clusters[n]], latents[n]
        unmasked[:] = 1.0
        for m in range(masks.shape[1]):
            unmasked[masks[n, m]] = 0.0
        for m in range(masks.shape[1]):
            p = masks[n, m]
            entry, slope = entries[p], slopes[p]
            # Scores s_q, and their softmax u.
            top = -np.inf
            for q in range(size):
                attention[q] = entry[q] + unmasked[q] * z[q] * entry[size + label[q]]
                top = max(top, attention[q])
            if not abs(top) < np.inf:
                slope[:] = np.nan
                continue
            for q in range(size):
                attention[q] = max(attention[q] - top, DEEPEST)
            exponentials(attention, scratch)
            total = 0.0
            for q in range(size):
                total += attention[q]
            # A_a, and how many mates are unmasked.
            area[:] = 0.0
            mates = 0.0
            for q in range(size):
                attention[q] /= total
                area[label[q]] += unmasked[q] * attention[q]
                if label[q] == label[p]:
                    mates += unmasked[q]
            # The loss, and r.
            square = z[p] * z[p]
            own = area[label[p]]
            mean, loss = square * own, 0.5 * square * (1.0 - 2.0 * own)
            for q in range(size):
                part = unmasked[q] * attention[q] * z[q] * z[q] * area[label[q]]
                mean -= part
                loss += 0.5 * part
            # Derivatives by the scores, u_q (b_q - r), and by Ups and Phi.
            for q in range(size):
                rate = -mean
                if unmasked[q] > 0.0:
                    rate -= z[q] * z[q] * area[label[q]]
                    if label[q] == label[p]:
                        rate += square
                rate *= weight * attention[q]
                slope[q] -= rate
                slope[size + label[q]] -= unmasked[q] * z[q] * rate
            losses[p] += weight * loss
            if mates > 0.0:
                own_sums[p] += weight * own
                mate_sums[p] += weight
            else:
                floors[p] += weight * 0.5 * square


def evaluate(state, data):  # type: ignore[no-untyped-def]
    """Make the pass over the batch at a state, unless it was the last one.

    Parameters
    ----------
    state : float array, shape (d * d,)
    data : FullData
    """
    room, last, depth = data.room, data.room.state, data.basis.axes.shape[1]
    same = room.batch[0] == data.batch.number
    for i in range(state.size):
        same = same and state[i] == last[i]
    if same:
        return
    read_entries(state.reshape(depth, depth), data.basis, room.queries, room.entries)
    accumulate(room.entries, data.basis.feature, data.images, data.batch, data.sums)
    copy(state, last)
    room.batch[0] = data.batch.number


def gradient(state, data, out):  # type: ignore[no-untyped-def]
    """Gradient by every entry of Q of the risk of the batch.

    Parameters
    ----------
    state : float array, shape (d * d,)
    data : FullData
    out : float array, shape (d * d,)
        Filled.
    """
    evaluate(state, data)
    depth = data.basis.axes.shape[1]
    write_entries(data.sums.slopes, data.basis, data.room.queries, out.reshape(depth, depth))


def mean_entry(entries, pairs):  # type: ignore[no-untyped-def]
    """Mean of the entries of pairs (row, column).

    Parameters
    ----------
    entries : float array, shape (P, P + features)
    pairs : int array, shape (pairs, 2)
    """
    total = 0.0
    for k in range(pairs.shape[0]):
        total += entries[pairs[k, 0], pairs[k, 1]]
    return total / pairs.shape[0]


def row_numbers(data, out):  # type: ignore[no-untyped-def]
    """Of every row type: (L_p - L*_p, own attention given a mate) of the last pass, its means.

    Parameters
    ----------
    data : FullData
    out : float array, shape (rows, 2)
        Filled.
    """
    kind, sums = data.readout.kind, data.sums
    mates, patches = np.zeros(out.shape[0]), np.zeros(out.shape[0])
    out[:] = 0.0
    for p in range(kind.size):
        row = kind[p]
        patches[row] += 1.0
        out[row, 0] += sums.loss[p] - sums.floor[p]
        out[row, 1] += sums.own[p]
        mates[row] += sums.mates[p]
    for row in range(out.shape[0]):
        out[row, 0] /= patches[row]
        out[row, 1] /= mates[row]


def order_parameters(state, slope, data, out):  # type: ignore[no-untyped-def]
    """Order parameters of the batch, from means over rows of one type.

    Parameters
    ----------
    state, slope : float array, shape (d * d,)
        Q of the last pass, and its gradient.
    data : FullData
    out : float array, shape (9,)
        Filled; see `reduced.write_order_parameters`.
    """
    readout, room, depth = data.readout, data.room, data.basis.axes.shape[1]
    row_numbers(data, readout.rows)
    read_entries(slope.reshape(depth, depth), data.basis, room.queries, room.moved)
    near = (mean_entry(room.entries, readout.own), mean_entry(room.moved, readout.own))
    remote = (mean_entry(room.entries, readout.remote), mean_entry(room.moved, readout.remote))
    write_order_parameters(near, remote, readout.local, readout.far, readout.rows, out)


def summary(state, data, out):  # type: ignore[no-untyped-def]
    """Risk over the images of the batch, and its excess over the floor, of the last pass.

    Parameters
    ----------
    state : float array, shape (d * d,)
        Not read.
    data : FullData
    out : float array, shape (2,)
        Filled.
    """
    sums = data.sums
    out[:] = 0.0
    for p in range(sums.loss.size):
        out[0] += sums.loss[p]
        out[1] += sums.loss[p] - sums.floor[p]
