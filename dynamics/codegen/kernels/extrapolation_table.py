r"""The extrapolation of results of n = 2, 3, 4, ... substeps, and what lies between the ends.

By Aitken and Neville's scheme, for the row of n substeps,

.. math:: T_{n,m} = T_{n,m-1} + \frac{T_{n,m-1} - T_{n-1,m-1}}{n / (n - m) - 1}.                (1)

Between the ends of a step the path is a polynomial: the k-th backward differences of the last
substeps of each row, times n^k, are derivatives at the end that have the same expansion, and are
extrapolated as (1). One more term makes it meet the state at the beginning, and where the step is
not stiff another one the rate there.

Source: E. Hairer and A. Ostermann, Dense output for extrapolation methods, Numerische Mathematik 58
(1990).
"""

from dynamics.codegen.kernels import exact
from dynamics.codegen.kernels.linear_algebra import copy, largest_sum

ROWS = 10
"""Most rows of the scheme: the order is at most so large."""
FIRST = 2
"""Substeps of the first row."""
STIFF = 10.0
"""Widths times the Jacobian from which the rate at the beginning is not used between the ends: it
magnifies the error of the state by this."""


@exact
def neville(row, table):  # type: ignore[no-untyped-def]
    """The new row of (1) from the last; row j is ``table[j % 2]``.

    Parameters
    ----------
    row : int
        Number of the new row.
    table : float array, shape (2, ROWS, n)
    """
    new, old = table[row % 2], table[(row + 1) % 2]
    for m in range(1, row + 1):
        ratio = m / (row + FIRST - float(m))  # (1)
        for k in range(table.shape[2]):
            new[m, k] = new[m - 1, k] + (new[m - 1, k] - old[m - 1, k]) / ratio


@exact
def interpolate(width, rows, room, coefficients):  # type: ignore[no-untyped-def]
    """The polynomial of a step, from the increments of its rows.

    Parameters
    ----------
    width : float
    rows : int
        Number of rows.
    room : dynamics.codegen.kernels.extrapolation.Room
        With the increments and the table of the step, J and the gradient at its beginning, and the
        state at its end.
    coefficients : float array, shape (ROWS + 2, n)
    """
    last, size = (rows - 1) % 2, room.ending.size
    whole = room.inner  # the change over the step
    copy(room.table[last, rows - 1], whole)
    new = room.table[0]
    for order in range(coefficients.shape[0]):
        for k in range(size):
            coefficients[order, k] = room.ending[k] if order == 0 else 0.0
    factorial = 1.0
    for order in range(1, rows):
        factorial *= order
        # Rows with more substeps than the order: the first substep, which may hold what decays
        # quickly, is never used.
        first = max(0, order + 1 - FIRST)
        for row in range(first, rows):
            count = row + FIRST
            for k in range(size):
                difference, binomial = 0.0, 1.0
                for i in range(order):
                    difference += binomial * room.increments[row, count - 1 - i, k]
                    binomial *= -(order - 1.0 - i) / (i + 1.0)
                new[row, k] = difference * float(count) ** order
        for m in range(1, rows - first):
            for row in range(rows - 1, first + m - 1, -1):
                ratio = m / (row + FIRST - float(m))  # (1)
                for k in range(size):
                    new[row, k] += (new[row, k] - new[row - 1, k]) / ratio
        for k in range(size):
            coefficients[order, k] = new[rows - 1, k] / factorial
    stiff = width * largest_sum(room.jacobian) > STIFF
    for k in range(size):
        value, slope, sign = -whole[k], -width * room.rate[k], -1.0
        for order in range(1, rows):
            value -= sign * coefficients[order, k]
            slope += sign * order * coefficients[order, k]
            sign = -sign
        # What value and slope at -1 leave to the last terms.
        second = 0.0 if stiff else slope + rows * value
        coefficients[rows, k] = sign * (value + second)
        coefficients[rows + 1, k] = sign * second
