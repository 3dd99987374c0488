r"""What rounding may change in gradient and risk: tables in longer floats, with bounds.

Written out at a state, with :math:`\varsigma = 1/(1 + e^F)`: where the share h of every set has an
error of at most e, the margin F = sum of h has one of at most :math:`\delta` = sum of e, and

.. math::
   |\delta\varsigma| \le \min\bigl(1, \varsigma (1 - \varsigma)(e^\delta - 1)\bigr), \qquad
   |\delta \log(1 + e^{-F})| \le \min\bigl(\delta, \varsigma\,(e^\delta - 1)\bigr), \qquad (1)

since the logarithms of :math:`\varsigma(1-\varsigma)` and :math:`\varsigma` change by at most
:math:`\delta`. Where large shares cancel in F, that is what decides. The tables of a kernel are
compared with those in numpy's longest floats, whose errors are bounded; `spectral` sums them up.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from dynamics import codegen
from dynamics.codegen import LONG_ROUNDING
from dynamics.problem import FloatArray, IntArray
from theory.papers.positional_attention import recursion

if TYPE_CHECKING:
    from collections.abc import Callable

ROUNDING = 2.0**-53
"""Largest relative error of one rounding of a float64."""
FLOOR = 1e-290
"""Added to every bound, for what underflows."""
LARGEST_SPREAD, LARGEST_ENTRY, LARGEST_POWER, LEAST_NU = 600.0, 1e7, 30, 1e-30
"""Exponents of the softmax, D alpha, p and nu up to which, and from which on, sizes of terms are
computed in float64: no exponential underflows and nothing overflows, and a power that underflows is
below 1e-60 of the linear term beside it."""
MORE_OF_SIZES = 1.0 + 1e-10
"""On these: the exponential of a rounded exponent is right to 1e-12, a product of powers to 1e-11.
"""


class Shares(NamedTuple):
    """h and its derivatives by alpha, gamma, rho in the longest floats, shape (4, K, columns) each.

    Attributes
    ----------
    values : longdouble array
    errors : float array
        Bounds on their errors.
    """

    values: np.ndarray
    errors: FloatArray


def shares(
    degree: int,
    state: FloatArray,
    constants: FloatArray,
    totals: FloatArray,
    multiples: FloatArray,
    sum_index: IntArray,
) -> Shares:
    """Shares of sets of every type, and what they may be wrong by.

    An entry of S is wrong by the roundings of its exponents, which are the larger the wider apart
    these are; in a share stand at most p + 1 of them, and as many powers of other numbers.

    Parameters
    ----------
    degree : int
        p.
    state : float array, shape (3,)
    constants : float array
        In the order of `recursion.PARAMETERS`: D, C, nu, beta, scale.
    totals : float array, shape (columns,)
        Sums Z of all patches.
    multiples, sum_index : arrays, shapes (K, 3), (K,)
        What a type has of each part of a share, and the position of its sum.
    """
    sums = np.arange(-constants[1], constants[1] + 1)
    named = dict(zip([s.name for s in recursion.PARAMETERS], constants, strict=True))
    numbers = *state, *constants, 0, sums[:, None], totals
    with np.errstate(all="ignore"):
        spread = named["scale"] * np.ptp([named["beta"], *state[1:]])
        short = spread < LARGEST_SPREAD and named["D"] * abs(state[0]) < LARGEST_ENTRY
        short = short and degree <= LARGEST_POWER and named["nu"] > LEAST_NU
        kind = np.float64 if short else np.longdouble
        parts, sizes = (
            rows(of_kind, *numbers).reshape(4, 3, sums.size, totals.size)
            for rows, of_kind in zip(_rows(degree), (np.longdouble, kind), strict=True)
        )
        each = (degree + 1) * (4.0 * spread + 32.0) * LONG_ROUNDING
        values = _by_type(parts, multiples, sum_index)
        errors = _by_type((MORE_OF_SIZES * each * sizes).astype(float), multiples, sum_index)
        return Shares(values, errors)


def _by_type(parts: np.ndarray, multiples: FloatArray, sum_index: IntArray) -> np.ndarray:
    """Sums over the parts of what every type has of each, shape (4, K, columns).

    Parameters
    ----------
    parts : array, shape (4, 3, 2 C + 1, columns)
    multiples, sum_index
        As of `shares`.
    """
    total = parts[:, 0].take(sum_index, axis=1)
    total *= multiples[:, :1]
    for i in (1, 2):
        one = parts[:, i].take(sum_index, axis=1)
        one *= multiples[:, i, None]
        total += one
    return total


@cache
def _rows(degree: int) -> tuple[Callable[..., np.ndarray], Callable[..., np.ndarray]]:
    """The parts of the shares and the sizes of their terms, for one p, in floats of any type."""
    parts, sizes = (codegen.printed_source(_printed, degree, sizes) for sizes in (False, True))
    return codegen.block_rows(parts), codegen.block_rows(sizes)


def _printed(degree: int, sizes: bool) -> str:
    """What one of `_rows` is made of, printed from the derivation."""
    reduction = recursion.derive(degree)
    names = [name for name in reduction.blocks if name.startswith("share")]
    return codegen.block_source(names, reduction, sizes)


def relative(bound: FloatArray, gross: FloatArray) -> float:
    """Largest bound of a component of the gradient, in its gross; a bound of `FLOOR` is none.

    Parameters
    ----------
    bound, gross : float arrays, shape (at least 3,)
    """
    with np.errstate(all="ignore"):
        known = np.where(bound[:3] > 2 * FLOOR, bound[:3] / gross[:3], 0.0)
    return float(known.max())
