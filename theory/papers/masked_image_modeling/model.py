r"""Data law, masks and network (Definitions 2.1 and 2.5, Assumption 2.4), and unavoidable error.

The data law draws a cluster k uniformly. The cluster partitions the P patches into areas; area 0 is
the global area. Area a has an independent latent :math:`z_a`, and each of its patches has the
content :math:`z_a v_{k,a}`. A uniformly drawn subset of M patches is masked.

If p is masked, M - 1 of the other P - 1 patches are masked. Let :math:`h_a` be the number of
unmasked patches in area a, which has :math:`C_a` patches (without p). The numbers :math:`h_a` are
multivariate hypergeometric: with the falling factorial :math:`(x)_r`,

.. math:: E \prod_a (h_a)_{r_a}
   = \frac{(P - M)_r}{(P - 1)_r} \prod_a (C_a)_{r_a}, \qquad r = \sum_a r_a.

For explicit small sizes, this module also computes the network with a symbol for every entry of Q
(Assumption 2.4). The features :math:`v_{k,a}` and the positions :math:`e_p` are the unit vectors;
the features come first, cluster by cluster. The token of patch q with content :math:`X_q` is
:math:`\tilde X_q = 1\{q \notin M\} X_q + e_q`. The query p has the scores s, the attention u, the
output F and the loss L:

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
    """Yield every set of `masked` patches out of `P`, with the probability of the set."""
    chance = sympy.Rational(1, comb(P, masked))
    return ((frozenset(members), chance) for members in itertools.combinations(range(P), masked))


def unmasked_moment(
    sets: Iterable[tuple[sympy.Expr, int]], P: sympy.Expr, masked: sympy.Expr
) -> sympy.Expr:
    """Expected product of powers of the numbers of unmasked patches in sets, if p is masked.

    Each pair (size, power) in `sets` holds the size of a set and the power of its number of
    unmasked patches. The sets are disjoint and do not contain the query patch p.
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
    """Moment E z^order of a latent z that takes the given values with the probabilities `odds`."""
    return sum(chance * value**order for value, chance in zip(values, odds, strict=True))


@cache
def fully_masked(P: int, masked: int, size: int) -> Fraction:
    """Probability that all patches of an area are masked, for M = `masked` of P patches."""
    return (
        Fraction(comb(P - size, masked - size), comb(P, masked)) if size <= masked else Fraction()
    )


def unavoidable_error(
    P: int, masked: int, sizes: Sequence[int], second_moment: float | Fraction = Fraction(1)
) -> float | Fraction:
    r"""Infimum :math:`L_p^\star` of the loss of a patch p.

    If p's whole area is masked, the input carries no information on the content of p, and the best
    output is 0. The infimum is a limit: all attention moves to the unmasked patches of p's area,
    or, if there are none, to masked keys. `sizes` holds the size of p's area in each cluster.
    `second_moment` is E z^2 of a latent z; if it is a Fraction, the result is exact.
    """
    chances = sum((fully_masked(P, masked, size) for size in sizes), Fraction())
    return chances * second_moment / (2 * len(sizes))


Areas = Sequence[Sequence[int]]


def feature_index(areas: Areas, cluster: int, area: int) -> int:
    """Coordinate of an area's feature; `areas` holds, for each cluster, the area of every patch."""
    return sum(max(row) + 1 for row in areas[:cluster]) + area


def position_index(areas: Areas, patch: int) -> int:
    """Coordinate of a patch's position; `areas` holds, for each cluster, every patch's area."""
    return feature_index(areas, len(areas), 0) + patch


def dimension(areas: Areas) -> int:
    """Minimum dimension d in which all features and positions can be orthonormal."""
    return position_index(areas, len(areas[0]))


def image(areas: Areas, cluster: int, latents: Sequence[sympy.Expr]) -> list[sympy.Matrix]:
    """Contents of all patches of an image from one cluster, as columns of length d.

    `areas` holds, for each cluster, the area of every patch; `latents` holds the latent of each
    area.
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
    """Token of every patch: the sum of its position and, unless it is masked, its content.

    `areas` holds, for each cluster, the area of every patch; `patches` is the result of `image`.
    """
    result = []
    for q, content in enumerate(patches):
        token = sympy.zeros(*content.shape) if q in masked else content.copy()
        token[position_index(areas, q)] += 1
        result.append(token)
    return result


def scores(matrix: sympy.Matrix, inputs: Sequence[sympy.Matrix], p: int) -> list[sympy.Expr]:
    """Scores of all keys for the query patch p, from Q = `matrix` and the tokens `inputs`."""
    row = inputs[p].T * matrix
    return [(row * token)[0] for token in inputs]


def reconstruction(
    weights: Sequence[sympy.Expr], patches: Sequence[sympy.Matrix], masked: Collection[int]
) -> sympy.Matrix:
    """Output for a query: the contents of unmasked patches, summed with the attention `weights`."""
    contents = [weights[q] * patches[q] for q in range(len(patches)) if q not in masked]
    return sum(contents, sympy.zeros(*patches[0].shape))


def squared_error(output: sympy.Matrix, target: sympy.Matrix) -> sympy.Expr:
    """Half of the squared distance between output and target, two columns of length d."""
    return sympy.Add(*[(a - b) ** 2 for a, b in zip(output, target, strict=True)]) / 2


def area_attention(
    weights: Sequence[sympy.Expr], cluster: Sequence[int], masked: Collection[int]
) -> dict[int, sympy.Expr]:
    """Mapping from each area to the attention to its unmasked patches."""
    return {
        area: sympy.Add(
            *[w for q, w in enumerate(weights) if cluster[q] == area and q not in masked]
        )
        for area in cluster
    }


def area_loss(
    own: tuple[sympy.Expr, sympy.Expr], others: Mapping[sympy.Expr, sympy.Expr]
) -> sympy.Expr:
    """Loss of a masked patch, from the components of the error of its output along all features.

    The pair `own` holds the latent of the patch's own area and the attention to this area. The
    mapping `others` holds the attention to every other area, under the symbol of the area's latent.
    """
    z, A = own
    along = [z * A - z, *[latent * share for latent, share in others.items()]]
    return sympy.Add(*[coordinate**2 for coordinate in along]) / 2
