r"""Coefficients of collocation at the Radau points of a step.

The points :math:`0 < c_1 < \dots < c_s = 1` are the zeros of :math:`P_{s-1} - P_s`, with Legendre
polynomials on [0, 1], and :math:`a_{ij} = \int_0^{c_i} \ell_j` of the Lagrange polynomials
:math:`\ell_j` of the points. Within a step the path is the polynomial of degree s through the start
and the values at all points.

Source: E. Hairer and G. Wanner, Solving Ordinary Differential Equations II, section IV.5 (Radau IIA
methods).
"""

from functools import cache
from typing import NamedTuple

import numpy as np
from numpy.polynomial import legendre, polynomial
from numpy.typing import NDArray

STAGES = 7
"""Number s of collocation points of a step."""
ENDING = 3
"""Number of last Legendre coefficients from which the error of a step is estimated."""


class Table(NamedTuple):
    """Coefficients of a collocation step."""

    points: NDArray[np.float64]  # c_j, in [0, 1]
    weights: NDArray[np.float64]  # a_ij
    ending: NDArray[np.float64]  # (ENDING, STAGES): last Legendre coefficients from stage values
    powers: NDArray[np.float64]  # (STAGES + 1, STAGES): coefficients in powers of (position - 1)


@cache
def table() -> Table:
    """Coefficients of the collocation method with `STAGES` points."""
    difference = np.zeros(STAGES + 1)
    difference[STAGES - 1 :] = 1.0, -1.0
    points = _zeros(difference)
    # Legendre polynomials of x = 2 c - 1, for points c of a step, condition the systems well.
    of_values = np.linalg.inv(legendre.legvander(points, STAGES - 1))
    integrals = [
        legendre.legval(points, 0.5 * legendre.legint(unit, lbnd=-1)) for unit in np.eye(STAGES)
    ]
    through_start = np.linalg.inv(legendre.legvander(np.append(-1.0, points), STAGES))[:, 1:]
    shifted = [_about_the_end(legendre.leg2poly(unit)) for unit in np.eye(STAGES + 1)]
    return Table(
        0.5 * (points + 1.0),
        np.ascontiguousarray(np.transpose(integrals) @ of_values),
        np.ascontiguousarray(through_start[-ENDING:]),
        np.ascontiguousarray(np.transpose(shifted) @ through_start),
    )


def _zeros(series: NDArray[np.float64]) -> NDArray[np.float64]:
    """Zeros of a Legendre series, accurate to rounding; the last zero is 1."""
    zeros = np.sort(legendre.legroots(series).real)
    slope = legendre.legder(series)
    for _ in range(3):
        zeros -= legendre.legval(zeros, series) / legendre.legval(zeros, slope)
    zeros[-1] = 1.0
    return zeros


def _about_the_end(powers: NDArray[np.float64]) -> NDArray[np.float64]:
    """Convert powers of x = 1 + 2 (position - 1) to powers of (position - 1)."""
    result = np.zeros(STAGES + 1)
    for power, value in enumerate(powers):
        result[: power + 1] += value * polynomial.polypow([1.0, 2.0], power)
    return result
