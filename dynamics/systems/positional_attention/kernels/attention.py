"""Kernels on a whole matrix A: its softmax, its gradient from that of S, its order parameters.

Shared by the full problems, whose states hold every entry of A; alpha and its rate come from the
caller, because each problem keeps v in its own way.
"""

import numpy as np

from dynamics.codegen.kernels.exponential import exponentials

LEAST = -700.0


def softmax_row(row, scale, weights, scratch):  # type: ignore[no-untyped-def]
    """Softmax of scale * row; weights below e^-700 of the largest are e^-700 of it."""
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
    """Row-wise softmax of scale * A."""
    scratch = np.empty(attention.shape[0])
    for i in range(attention.shape[0]):
        softmax_row(matrix[i], scale, attention[i], scratch)


def row_through_softmax(weights, pushed, factor, out):  # type: ignore[no-untyped-def]
    """dR/dA_ij = factor S_ij (M_ij - sum over r of S_ir M_ir) of one row, M = dR/dS / factor."""
    mean = 0.0
    for j in range(weights.size):
        mean += weights[j] * pushed[j]
    for j in range(weights.size):
        out[j] = factor * weights[j] * (pushed[j] - mean)


def orbit_parameters(matrix, slope, attention, labels, scale, out):  # type: ignore[no-untyped-def]
    """Orbit means of A, G, its rate, association margin (of A, its rate -slope, and S).

    ``out`` has the order of the system's order parameters; its places of alpha (0) and of the rate
    of alpha (4) are left to the caller.
    """
    size = attention.shape[0]
    same, other, count, own, rate = 0.0, 0.0, 0, 0.0, 0.0
    worst = np.inf
    for i in range(size):
        drift, inside, outside = 0.0, np.inf, -np.inf
        for j in range(size):
            drift -= attention[i, j] * slope[i, j]
        for j in range(size):
            entry = matrix[i, j]
            if labels[i] == labels[j]:
                inside = min(inside, entry)
                own += attention[i, j]
                rate += scale * attention[i, j] * (-slope[i, j] - drift)
                if i != j:
                    same += entry
                    count += 1
            else:
                outside = max(outside, entry)
                other += entry
        worst = min(worst, inside - outside)
    out[1] = same / count
    out[2] = other / (size * size - size - count)
    out[3] = own
    out[5] = rate
    out[6] = worst
