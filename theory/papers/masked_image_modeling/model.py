r"""Data law, masks and network (Definitions 2.1 and 2.5, Assumption 2.4), and unavoidable error.

*Data law and masks.* A cluster k is drawn uniformly; it partitions the P patches into areas, with
area 0 the global one. Area a has an independent latent :math:`z_a`, and each of its patches has the
content :math:`z_a v_{k,a}`. A uniformly drawn subset of M patches is masked.

Given that p is masked, M - 1 of the other P - 1 patches are masked. The numbers of unmasked patches
in disjoint sets are then multivariate hypergeometric: with :math:`(x)_r` the falling factorial,

.. math:: E \prod_a (h_a)_{r_a}
   = \frac{(P - M)_r}{(P - 1)_r} \prod_a (C_a)_{r_a}, \qquad r = \sum_a r_a.

*Network* for explicit small sizes, with a symbol for every entry of Q (Assumption 2.4). Features
:math:`v_{k,a}` and positions :math:`e_p` are the coordinates, features first, cluster by cluster.
The token of patch q is :math:`\tilde X_q = 1\{q \notin M\} X_q + e_q`, and

.. math::
   s_{pq} = \tilde X_p^\top Q \tilde X_q, \quad
   u_{pq} = \frac{e^{s_{pq}}}{\sum_r e^{s_{pr}}}, \quad
   F_p = \sum_{q \notin M} u_{pq} X_q, \quad
   L_p = \tfrac12 E\, 1\{p \in M\}\, |F_p - X_p|^2 .

The softmax runs over all P keys. A masked key receives attention but adds nothing to the output.
"""

from __future__ import annotations

import itertools
from collections.abc import Collection, Iterable, Iterator, Mapping, Sequence
from fractions import Fraction
from functools import cache
from math import comb

import sympy


def masks(P: int, masked: int) -> Iterator[tuple[frozenset[int], sympy.Rational]]:
    """Yield every set of `masked` out of `P` patches with its probability."""
    chance = sympy.Rational(1, comb(P, masked))
    return ((frozenset(members), chance) for members in itertools.combinations(range(P), masked))


def unmasked_moment(
    sets: Iterable[tuple[sympy.Expr, int]], P: sympy.Expr, masked: sympy.Expr
) -> sympy.Expr:
    """Expected product of powers of the numbers of unmasked patches in given sets, if p is masked.

    The pairs (size, power) describe disjoint `sets` of patches that do not contain p.
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
    """Moment E z^order of the latent of an area with given values and probabilities (`odds`)."""
    return sum(chance * value**order for value, chance in zip(values, odds, strict=True))


@cache
def fully_masked(P: int, masked: int, size: int) -> Fraction:
    """Probability :math:`C(P-C, M-C) / C(P, M)` that an area of C = `size` patches is masked."""
    return (
        Fraction(comb(P - size, masked - size), comb(P, masked)) if size <= masked else Fraction()
    )


def unavoidable_error(
    P: int, masked: int, sizes: Sequence[int], second_moment: float | Fraction = Fraction(1)
) -> float | Fraction:
    r"""Infimum :math:`L_p^\star` of the loss of one patch p.

    If p's whole area is masked, the input carries no information on X_p, and the best output is 0.
    The infimum is approached, but not attained, as all attention moves to p's own unmasked area, or
    to masked keys if the whole area is masked. `sizes` holds the size of p's area in each cluster,
    and `second_moment` is E z^2. A Fraction as second moment gives an exact result.
    """
    chances = sum((fully_masked(P, masked, size) for size in sizes), Fraction())
    return chances * second_moment / (2 * len(sizes))


Areas = Sequence[Sequence[int]]


def feature_index(areas: Areas, cluster: int, area: int) -> int:
    """Coordinate of the feature of an area; `areas` holds P area ids per cluster."""
    return sum(max(row) + 1 for row in areas[:cluster]) + area


def position_index(areas: Areas, patch: int) -> int:
    """Coordinate of the position of a patch; `areas` holds P area ids per cluster."""
    return feature_index(areas, len(areas), 0) + patch


def dimension(areas: Areas) -> int:
    """Smallest dimension d in which all features and positions can be orthonormal."""
    return position_index(areas, len(areas[0]))


def image(areas: Areas, cluster: int, latents: Sequence[sympy.Expr]) -> list[sympy.Matrix]:
    """Content X_q of every patch of an image of a cluster, as columns of length d.

    `areas` holds one sequence of P area ids per cluster, and `latents` the latent z of each area.
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
    """Input token of every patch: content plus position, where the content is 0 for masked patches.

    `areas` holds one sequence of P area ids per cluster; `patches` holds the contents from `image`.
    """
    result = []
    for q, content in enumerate(patches):
        token = sympy.zeros(*content.shape) if q in masked else content.copy()
        token[position_index(areas, q)] += 1
        result.append(token)
    return result


def scores(matrix: sympy.Matrix, inputs: Sequence[sympy.Matrix], p: int) -> list[sympy.Expr]:
    """Score of every key for the query p, from Q = `matrix` and the tokens `inputs`."""
    row = inputs[p].T * matrix
    return [(row * token)[0] for token in inputs]


def reconstruction(
    weights: Sequence[sympy.Expr], patches: Sequence[sympy.Matrix], masked: Collection[int]
) -> sympy.Matrix:
    """Output F_p: sum of the contents of unmasked patches, weighted by the attention to them."""
    contents = [weights[q] * patches[q] for q in range(len(patches)) if q not in masked]
    return sum(contents, sympy.zeros(*patches[0].shape))


def squared_error(output: sympy.Matrix, target: sympy.Matrix) -> sympy.Expr:
    """Half of the squared distance between output and target, two columns of length d."""
    return sympy.Add(*[(a - b) ** 2 for a, b in zip(output, target, strict=True)]) / 2


def area_attention(
    weights: Sequence[sympy.Expr], cluster: Sequence[int], masked: Collection[int]
) -> dict[int, sympy.Expr]:
    """Mapping from area to A_a, the attention to the unmasked patches of the area."""
    return {
        area: sympy.Add(
            *[w for q, w in enumerate(weights) if cluster[q] == area and q not in masked]
        )
        for area in cluster
    }


def area_loss(
    own: tuple[sympy.Expr, sympy.Expr], others: Mapping[sympy.Expr, sympy.Expr]
) -> sympy.Expr:
    """Loss of a masked patch, from the coordinates of F_p - X_p along the features of areas.

    The pair `own` holds the latent of the patch's own area and the attention to this area. The
    mapping `others` gives the attention to every other area by the symbol of its latent.
    """
    z, A = own
    along = [z * A - z, *[latent * share for latent, share in others.items()]]
    return sympy.Add(*[coordinate**2 for coordinate in along]) / 2
