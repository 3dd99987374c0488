"""Bags of tokens, a softmax and a perceptron by plain loops: the twin of system 3.

Nothing here imports the code it checks.
"""

import itertools
import math

import numpy as np
import tokens


def tokens_of(counts, patterns):
    """Columns: pattern j as often as counts say."""
    return np.repeat(patterns, counts, axis=1)


def output(weights, bag, a):
    """F(X), query by query; ``a`` is (m,) or (m, L)."""
    return tokens.output(bag, a, weights)


def loss(weights, samples, a, margin):
    """Weighted hinge of samples (tokens, label, weight)."""
    return sum(w * max(margin - y * output(weights, x, a), 0.0) for x, y, w in samples)


def central_differences(function, weights, width=1e-6):
    """Gradient of a function of several matrices, entry by entry."""
    found = [np.zeros_like(matrix) for matrix in weights]
    for number, matrix in enumerate(weights):
        for place in np.ndindex(matrix.shape):
            ends = []
            for sign in (1, -1):
                moved = [w.copy() for w in weights]
                moved[number][place] += sign * width
                ends.append(function(moved))
            found[number][place] = (ends[0] - ends[1]) / (2 * width)
    return found


def pattern_slopes(H, B, samples, a, margin):
    """(E, T, T of each sample) of weighted count vectors (counts, label, weight), by loops."""
    m, M = H.shape
    E, T, each = np.zeros((m, M)), np.zeros((M, M)), []
    for counts, y, weight in samples:
        P = np.zeros((M, M))
        for j in range(M):
            column = [counts[i] * math.exp(B[i, j]) for i in range(M)]
            P[:, j] = [value / sum(column) for value in column]
        U, L = H @ P, sum(counts)
        F = sum(a[i] * counts[j] * max(U[i, j], 0) for i in range(m) for j in range(M)) / L
        D = np.zeros((m, M))
        if y * F < margin:
            for i, j in itertools.product(range(m), range(M)):
                D[i, j] = -y * counts[j] / L * a[i] * (U[i, j] > 0)
        rho, own = H.T @ D, np.zeros((M, M))
        for i, j in itertools.product(range(M), range(M)):
            own[i, j] = P[i, j] * (rho[i, j] - sum(P[k, j] * rho[k, j] for k in range(M)))
        E, T = E + weight * D @ P.T, T + weight * own
        each.append(own)
    return E, T, each


def closed_ensemble(values, neurons, a):
    """Rows of W_O and their a, completed under permutations of patterns 3.. and 1 with 2."""
    dimension, M = values.shape
    inverse, rows, signs = np.linalg.pinv(values), [], []
    for others in itertools.permutations(range(2, M)):
        for first in ((0, 1), (1, 0)):
            moved = np.eye(dimension) + (values[:, [*first, *others]] - values) @ inverse
            rows.append(neurons @ moved)
            signs.append(a if first == (0, 1) else -a)
    return np.concatenate(rows), np.concatenate(signs)
