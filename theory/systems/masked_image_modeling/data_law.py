r"""The data law of Definition 2.1, the masks of Definition 2.5, and what both leave unavoidable.

A cluster k is drawn uniformly; it partitions the P patches into areas, of which area 0 is global.
Area a has the latent :math:`z_a`, independent of the others, and every patch of it the content
:math:`z_a v_{k,a}`. Of the patches, M are masked, all subsets of that size being equally likely.

Given that p is masked, M - 1 of the other P - 1 patches are. The numbers of unmasked patches in
disjoint sets are then multivariate hypergeometric: with :math:`(x)_r` the falling factorial,

.. math:: E \prod_a (h_a)_{r_a}
   = \frac{(P - M)_r}{(P - 1)_r} \prod_a (C_a)_{r_a}, \qquad r = \sum_a r_a.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterable, Iterator, Sequence
from fractions import Fraction
from functools import cache
from math import comb

import sympy


def masks(P: int, masked: int) -> Iterator[tuple[frozenset[int], sympy.Rational]]:
    """Every set of masked patches, with its probability."""
    chance = sympy.Rational(1, comb(P, masked))
    return ((frozenset(chosen), chance) for chosen in itertools.combinations(range(P), masked))


def unmasked_moment(
    sets: Iterable[tuple[sympy.Expr, int]], P: sympy.Expr, masked: sympy.Expr
) -> sympy.Expr:
    """E of a product of powers of numbers of unmasked patches, given that p is masked.

    Parameters
    ----------
    sets : iterable of (size, power)
        Disjoint sets of patches, none of which holds p.
    P, masked : int or sympy.Expr
    """
    sets = list(sets)
    total = sympy.Integer(0)
    for orders in itertools.product(*[range(power + 1) for _, power in sets]):
        weight = sympy.Integer(1)
        for (size, power), order in zip(sets, orders, strict=True):
            weight *= sympy.functions.combinatorial.numbers.stirling(power, order)
            weight *= sympy.ff(size, order)
        rank = sum(orders)
        total += weight * sympy.ff(P - masked, rank) / sympy.ff(P - 1, rank)
    return total


def latent_moment(values: Sequence[float], odds: Sequence[float], order: int) -> float:
    """E of a power of the latent of an area."""
    return sum(chance * value**order for value, chance in zip(values, odds, strict=True))


@cache
def fully_masked(P: int, masked: int, size: int) -> Fraction:
    """Chance that all patches of an area are masked, :math:`C(P-C, M-C) / C(P, M)`.

    Parameters
    ----------
    P, masked : int
    size : int
        Patches of the area, C; 0 is returned where they are more than M.
    """
    return (
        Fraction(comb(P - size, masked - size), comb(P, masked)) if size <= masked else Fraction()
    )


def unavoidable_error(
    P: int, masked: int, sizes: Sequence[int], second_moment: float | Fraction = Fraction(1)
) -> float | Fraction:
    r"""Infimum :math:`L_p^\star` of the loss of one patch.

    Where p's area is masked as a whole nothing is known of it and the best is to answer 0. The
    infimum is approached, and not attained, as all attention goes to p's own unmasked area, or to
    masked keys where that is empty.

    Parameters
    ----------
    P, masked : int
    sizes : sequence of int
        For each cluster, the size of p's area.
    second_moment : float or Fraction
        E z^2; the result is exact where it is.
    """
    chances = sum((fully_masked(P, masked, size) for size in sizes), Fraction())
    return chances * second_moment / (2 * len(sizes))
