r"""The softmax of A, the way of a gradient through it, and what runs report of it, entry by entry.

.. math::
   S_{ij} = \frac{e^{s A_{ij}}}{\sum_r e^{s A_{ir}}}, \qquad
   \frac{\partial R}{\partial A_{ij}} = s S_{ij} \Big(M_{ij} - \sum_r S_{ir} M_{ir}\Big), \quad
   M = \frac{\partial R}{\partial S}.
"""

import numpy as np

from dynamics.codegen.kernels.elementary import LEAST, exponentials


def softmax_row(row, scale, weights, scratch):  # type: ignore[no-untyped-def]
    """Softmax of scale * row; weights below e^-700 of the largest are e^-700 of it.

    Parameters
    ----------
    row : float array, shape (D,)
    scale : float
    weights : float array, shape (D,)
        Filled.
    scratch : float array, shape (D,)
        Overwritten.
    """
    top = scale * row[0]
    for j in range(row.size):
        if scale * row[j] > top:
            top = scale * row[j]
    for j in range(row.size):
        weights[j] = scale * row[j] - top
        if weights[j] < LEAST:
            weights[j] = LEAST
    exponentials(weights, scratch)
    total = 0.0
    for j in range(row.size):
        total += weights[j]
    for j in range(row.size):
        weights[j] /= total


def attention_matrix(matrix, scale, attention):  # type: ignore[no-untyped-def]
    """Row-wise softmax of scale * A.

    Parameters
    ----------
    matrix : float array, shape (D, D)
        A.
    scale : float
    attention : float array, shape (D, D)
        Filled with S.
    """
    scratch = np.empty(attention.shape[0])
    for i in range(attention.shape[0]):
        softmax_row(matrix[i], scale, attention[i], scratch)


def row_through_softmax(weights, by_weights, factor, out):  # type: ignore[no-untyped-def]
    """One row of the gradient by A: factor S_ij (M_ij - sum over r of S_ir M_ir).

    Parameters
    ----------
    weights, by_weights : float array, shape (D,)
        Rows i of S and of M.
    factor : float
    out : float array, shape (D,)
        Filled; may be ``by_weights``.
    """
    mean = 0.0
    for j in range(weights.size):
        mean += weights[j] * by_weights[j]
    for j in range(weights.size):
        out[j] = factor * weights[j] * (by_weights[j] - mean)


def orbit_parameters(matrix, slope, attention, sets, scale, out):  # type: ignore[no-untyped-def]
    """Orbit means of A, G, its rate, association margin (of A, its rate -slope, and S).

    ``out`` has the order of the system's order parameters; alpha (entry 0) and its rate (entry 4)
    are left to the caller, because each problem holds v in its own way.

    Parameters
    ----------
    matrix, slope, attention : float array, shape (D, D)
        A, the gradient by A, and S.
    sets : int array, shape (D,)
        Set of each patch.
    scale : float
        s.
    out : float array, shape (7,)
        Filled, but for entries 0 and 4.
    """
    size = attention.shape[0]
    same, other, count, own, rate = 0.0, 0.0, 0, 0.0, 0.0
    margin = np.inf
    for i in range(size):
        drift, inside, outside = 0.0, np.inf, -np.inf
        for j in range(size):
            drift -= attention[i, j] * slope[i, j]
        for j in range(size):
            entry = matrix[i, j]
            if sets[i] == sets[j]:
                inside = min(inside, entry)
                own += attention[i, j]
                rate += scale * attention[i, j] * (-slope[i, j] - drift)
                if i != j:
                    same += entry
                    count += 1
            else:
                outside = max(outside, entry)
                other += entry
        margin = min(margin, inside - outside)
    out[1] = same / count
    out[2] = other / (size * size - size - count)
    out[3] = own
    out[5] = rate
    out[6] = margin


def orbit_spreads(matrix, sets, out):  # type: ignore[no-untyped-def]
    """Standard deviations of the off-diagonal entries of A inside sets, and of those between them.

    Parameters
    ----------
    matrix : float array, shape (D, D)
        A.
    sets : int array, shape (D,)
        Set of each patch.
    out : float array, shape (2,)
        Filled; NaN where there are no such entries.
    """
    size, inner, outer = sets.size, 0.0, 0.0
    for i in range(size):
        for j in range(i):
            if sets[i] == sets[j]:
                inner = matrix[i, j]
            else:
                outer = matrix[i, j]
    # Of differences to one entry, which are exactly 0 where all are equal; then to the mean.
    count, same, _, other, _ = moments_of_orbits(matrix, sets, inner, outer)
    rest = size * size - size - count
    inner += same / max(count, 1)
    outer += other / max(rest, 1)
    _, _, same_squares, _, other_squares = moments_of_orbits(matrix, sets, inner, outer)
    out[0] = np.sqrt(same_squares / count) if count > 0 else np.nan
    out[1] = np.sqrt(other_squares / rest) if rest > 0 else np.nan


def moments_of_orbits(matrix, sets, inner, outer):  # type: ignore[no-untyped-def]
    """Sums over the off-diagonal entries of A inside sets, and over those between them.

    Parameters
    ----------
    matrix, sets
        As of `orbit_spreads`.
    inner, outer : float
        What is subtracted from the entries inside sets, and from those between them.

    Returns
    -------
    count, same, same_squares, other, other_squares
        Number of entries inside sets, and sums of the differences and of their squares.
    """
    count, same, same_squares, other, other_squares = 0, 0.0, 0.0, 0.0, 0.0
    for i in range(sets.size):
        for j in range(sets.size):
            if sets[i] != sets[j]:
                difference = matrix[i, j] - outer
                other += difference
                other_squares += difference * difference
            elif i != j:
                difference = matrix[i, j] - inner
                same += difference
                same_squares += difference * difference
                count += 1
    return count, same, same_squares, other, other_squares


def associated_share(matrix, sets):  # type: ignore[no-untyped-def]
    """Share of rows i whose C largest A_ij are exactly their set (Definition 2.2); ties are not.

    Parameters
    ----------
    matrix, sets
        As of `orbit_spreads`.
    """
    associated = 0
    for i in range(sets.size):
        inside, outside = np.inf, -np.inf
        for j in range(sets.size):
            if sets[i] == sets[j]:
                inside = min(inside, matrix[i, j])
            else:
                outside = max(outside, matrix[i, j])
        associated += inside > outside
    return associated / sets.size
