"""Vectors and small linear systems, in arrays allocated by the caller.

Functions are loops over entries, because numba compiles slice assignments much more slowly.
"""

from math import isfinite

from dynamics.loops.kernels import kernels


def copy(source, target):
    """Copy a vector into another."""
    for k in range(source.size):
        target[k] = source[k]


def all_finite(values):
    """Whether all entries are finite."""
    finite = True
    for k in range(values.size):
        finite = finite and isfinite(values[k])
    return finite


def factorize(matrix, pivots):
    """LU-factorize `matrix` in place with partial pivoting; return whether `matrix` is regular."""
    size = matrix.shape[0]
    for k in range(size):
        pivot = k
        for i in range(k + 1, size):
            if abs(matrix[i, k]) > abs(matrix[pivot, k]):
                pivot = i
        pivots[k] = pivot
        if not (abs(matrix[pivot, k]) > 0.0 and isfinite(matrix[pivot, k])):
            return False
        if pivot != k:
            for j in range(size):
                matrix[k, j], matrix[pivot, j] = matrix[pivot, j], matrix[k, j]
        for i in range(k + 1, size):
            matrix[i, k] /= matrix[k, k]
            for j in range(k + 1, size):
                matrix[i, j] -= matrix[i, k] * matrix[k, j]
    return True


def solve(matrix, pivots, values):
    """Solve a system with the LU factors of `factorize`, replacing the right-hand side `values`."""
    size = matrix.shape[0]
    for k in range(size):
        pivot = pivots[k]
        values[k], values[pivot] = values[pivot], values[k]
    for i in range(size):
        for j in range(i):
            values[i] -= matrix[i, j] * values[j]
    for i in range(size - 1, -1, -1):
        for j in range(i + 1, size):
            values[i] -= matrix[i, j] * values[j]
        values[i] /= matrix[i, i]


def largest_sum(matrix):
    """Maximum norm of a matrix: the largest row sum of absolute values."""
    largest = 0.0
    for i in range(matrix.shape[0]):
        total = 0.0
        for j in range(matrix.shape[1]):
            total += abs(matrix[i, j])
        largest = max(largest, total)
    return largest


kernels(__name__)
