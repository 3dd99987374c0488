r"""Data law, masks and network: Definitions 2.1 and 2.5, Assumption 2.4, the unavoidable error.

*Data law and masks.* A cluster k is drawn uniformly; it partitions the P patches into areas, of
which area 0 is global. Area a has the latent :math:`z_a`, independent of the others, and every
patch of it the content :math:`z_a v_{k,a}`. Of the patches, M are masked, all subsets of that size
being equally likely.

Given that p is masked, M - 1 of the other P - 1 patches are. The numbers of unmasked patches in
disjoint sets are then multivariate hypergeometric: with :math:`(x)_r` the falling factorial,

.. math:: E \prod_a (h_a)_{r_a}
   = \frac{(P - M)_r}{(P - 1)_r} \prod_a (C_a)_{r_a}, \qquad r = \sum_a r_a.

*Network* for explicit small sizes, every entry of Q a symbol (Assumption 2.4). Features
:math:`v_{k,a}` and positions :math:`e_p` are the coordinates, features first, cluster by cluster.
The token of patch q is :math:`\tilde X_q = 1\{q \notin M\} X_q + e_q`, and

.. math::
   s_{pq} = \tilde X_p^\top Q \tilde X_q, \quad
   u_{pq} = \frac{e^{s_{pq}}}{\sum_r e^{s_{pr}}}, \quad
   F_p = \sum_{q \notin M} u_{pq} X_q, \quad
   L_p = \tfrac12 E\, 1\{p \in M\}\, |F_p - X_p|^2 .

The softmax runs over all P keys. A masked key adds nothing to the output but holds attention.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cache
from math import comb

import sympy


def masks(P: int, masked: int) -> Iterator[tuple[frozenset[int], sympy.Rational]]:
    """Every set of masked patches, with its probability.

    `P`, `masked`: patches, and how many of them are masked.
    """
    chance = sympy.Rational(1, comb(P, masked))
    return ((frozenset(members), chance) for members in itertools.combinations(range(P), masked))


def unmasked_moment(
    sets: Iterable[tuple[sympy.Expr, int]], P: sympy.Expr, masked: sympy.Expr
) -> sympy.Expr:
    """E of a product of powers of numbers of unmasked patches, given that p is masked.

    `sets`: disjoint sets of patches, none of which holds p.
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
    """E of a power of the latent of an area.

    `values`, `odds`: values of z and their probabilities.
    """
    return sum(chance * value**order for value, chance in zip(values, odds, strict=True))


@cache
def fully_masked(P: int, masked: int, size: int) -> Fraction:
    """Chance that all patches of an area are masked, :math:`C(P-C, M-C) / C(P, M)`.

    `size`: patches of the area, C; 0 is returned where they are more than M.
    """
    return (
        Fraction(comb(P - size, masked - size), comb(P, masked)) if size <= masked else Fraction()
    )


def unavoidable_error(
    P: int, masked: int, sizes: Sequence[int], second_moment: float | Fraction = Fraction(1)
) -> float | Fraction:
    r"""Infimum :math:`L_p^\star` of the loss of one patch.

    Where p's area is masked as a whole the input says nothing of it, and the best answer is 0. The
    infimum is approached, and not attained, as all attention goes to p's own unmasked area, or to
    masked keys where that is empty.

    `sizes`: for each cluster, the size of p's area; `second_moment`: E z^2; the result is exact
    where it is.
    """
    chances = sum((fully_masked(P, masked, size) for size in sizes), Fraction())
    return chances * second_moment / (2 * len(sizes))


Areas = Sequence[Sequence[int]]


def feature_index(areas: Areas, cluster: int, area: int) -> int:
    """Coordinate of the feature of an area.

    `areas`, K of length P.
    """
    return sum(max(row) + 1 for row in areas[:cluster]) + area


def position_index(areas: Areas, patch: int) -> int:
    """Coordinate of the position of a patch.

    `areas`, K of length P.
    """
    return feature_index(areas, len(areas), 0) + patch


def dimension(areas: Areas) -> int:
    """Least d in which features and positions are orthonormal."""
    return position_index(areas, len(areas[0]))


def image(areas: Areas, cluster: int, latents: Sequence[sympy.Expr]) -> list[sympy.Matrix]:
    """Content X_q of every patch of an image of a cluster, columns of length d.

    `areas`, K of length P; `latents`: z of each area.
    """
    patches = []
    for area in areas[cluster]:
        content = sympy.zeros(dimension(areas), 1)
        content[feature_index(areas, cluster, area)] = latents[area]
        patches.append(content)
    return patches


def tokens(
    areas: Areas, patches: Sequence[sympy.Matrix], masked: Collection[int]
) -> list[sympy.Matrix]:
    """Input tokens: the content, 0 where it is masked, plus the position.

    `areas`, K of length P; `patches`: contents of `image`.
    """
    result = []
    for q, content in enumerate(patches):
        token = sympy.zeros(*content.shape) if q in masked else content.copy()
        token[position_index(areas, q)] += 1
        result.append(token)
    return result


def scores(matrix: sympy.Matrix, inputs: Sequence[sympy.Matrix], p: int) -> list[sympy.Expr]:
    """Score of every key for the query p.

    `matrix`, shape (d, d): Q; `inputs`: of `tokens`.
    """
    row = inputs[p].T * matrix
    return [(row * token)[0] for token in inputs]


def reconstruction(
    weights: Sequence[sympy.Expr], patches: Sequence[sympy.Matrix], masked: Collection[int]
) -> sympy.Matrix:
    """F_p: the unmasked contents, each with its attention.

    `weights`: attention to every patch; `patches`: contents of `image`.
    """
    contents = [weights[q] * patches[q] for q in range(len(patches)) if q not in masked]
    return sum(contents, sympy.zeros(*patches[0].shape))


def squared_error(output: sympy.Matrix, target: sympy.Matrix) -> sympy.Expr:
    """Half of the squared distance, coordinate by coordinate.

    `output`, `target`, shape (d, 1).
    """
    return sympy.Add(*[(a - b) ** 2 for a, b in zip(output, target, strict=True)]) / 2


def area_attention(
    weights: Sequence[sympy.Expr], cluster: Sequence[int], masked: Collection[int]
) -> dict[int, sympy.Expr]:
    """A_a: attention to the unmasked patches of every area.

    `weights`: attention to every patch; `cluster`: area of every patch.
    """
    return {
        area: sympy.Add(
            *[w for q, w in enumerate(weights) if cluster[q] == area and q not in masked]
        )
        for area in cluster
    }


def area_loss(
    own: tuple[sympy.Expr, sympy.Expr], others: Mapping[sympy.Expr, sympy.Expr]
) -> sympy.Expr:
    """The loss of a masked patch in terms of areas: coordinates of F_p - X_p along the features.

    `own`: latent and attention of the own area; `others`: z -> A of other areas.
    """
    z, A = own
    along = [z * A - z, *[latent * share for latent, share in others.items()]]
    return sympy.Add(*[coordinate**2 for coordinate in along]) / 2
