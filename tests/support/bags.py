"""Bags of tokens, a softmax and a perceptron by plain loops: the twin of system 3.

Nothing here imports the code it checks.
"""

import itertools

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
