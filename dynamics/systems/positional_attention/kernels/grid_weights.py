r"""Weights of the types at every kappa of the grid, for the saddle points of one sum z.

They are :math:`P_k e^{-\kappa h_k}` of (3) in `spectral`, over the largest exponential: kappa are
multiples of one number, so that two exponentials of a type give all of them. `WIDTH` kappa that
follow one another are one short vector (`dynamics.codegen.kernels.vectors`), a block.
"""

import numpy as np

from dynamics.codegen.kernels.elementary import exponentials
from dynamics.codegen.kernels.vectors import broadcast, load, store, where_less

GRAIN = 0.05
"""Every kappa of the grid is a multiple."""
BELOW = (38, 28, 22, 20, 18, 14, 10, 6, 3, 1)
ABOVE = (1, 3, 6, 8, 10, 12, 14, 16, 18, 20, 22, 28, 38)
"""The multiples: of -kappa, then of kappa; `fill_powers` writes them down too. With 0, all together
fill whole short vectors."""
LEAST_WEIGHT = 1e-280
"""Of a type, so that no factor makes it nothing; psi and the means of larger ones are bounds."""


def tilted_weights(law, tables, c, weights):  # type: ignore[no-untyped-def]
    """e^{-kappa h_k - top} at every kappa, where the top is the largest exponent of any type.

    Parameters
    ----------
    law, tables : SumLaw, float array
    c : int
        Position of z.
    weights : float array, shape (blocks of kappa, K, WIDTH)
        Filled.

    Returns
    -------
    (float, float)
        The least and the largest h of a type.
    """
    kinds = weights.shape[1]
    lowest, highest = 1e300, -1e300
    for k in range(kinds):
        if law.probability[k] > 0.0:
            lowest, highest = min(lowest, tables[0, k, c]), max(highest, tables[0, k, c])
    falling, rising, scratch = np.empty(kinds), np.empty(kinds), np.empty(kinds)
    for k in range(kinds):
        falling[k] = min(max(GRAIN * (lowest - tables[0, k, c]), -700.0), 0.0)
        rising[k] = min(max(GRAIN * (tables[0, k, c] - highest), -700.0), 0.0)
    exponentials(falling, scratch)
    exponentials(rising, scratch)
    for k in range(kinds):
        fill_powers(falling[k], rising[k], weights, k)
    return lowest, highest


def fill_powers(falling, rising, weights, k):  # type: ignore[no-untyped-def]
    """Powers |kappa| / `GRAIN` at every kappa: of one number below 0, of the other above.

    Parameters
    ----------
    falling, rising : float
        e^{-GRAIN h} and e^{GRAIN h} of a type, over the largest.
    weights : float array, shape (blocks of kappa, K, WIDTH)
        Those of the type are filled.
    k : int
        The type.
    """
    second, fourth = rising * rising, rising * rising * (rising * rising)
    sixth = second * fourth
    tenth, fourteenth = sixth * fourth, sixth * fourth * fourth
    eighteenth = fourteenth * fourth
    one, two, three = weights[0, k], weights[1, k], weights[2, k]
    one[0], one[1] = tenth * tenth * eighteenth, fourteenth * fourteenth  # -1.9, -1.4
    one[2], one[3] = eighteenth * fourth, tenth * tenth  # -1.1, -1
    one[4], one[5] = eighteenth, fourteenth  # -0.9, -0.7
    one[6], one[7] = tenth, sixth  # -0.5, -0.3
    two[0], two[1], two[2] = second * rising, rising, 1.0  # -0.15, -0.05, 0
    second, fourth = falling * falling, falling * falling * (falling * falling)
    sixth, eighth = second * fourth, fourth * fourth
    tenth, fourteenth = sixth * fourth, sixth * eighth
    eighteenth = tenth * eighth
    two[3], two[4] = falling, second * falling  # 0.05, 0.15
    two[5], two[6], two[7] = sixth, eighth, tenth  # 0.3, 0.4, 0.5
    three[0], three[1] = sixth * sixth, fourteenth  # 0.6, 0.7
    three[2], three[3] = eighth * eighth, eighteenth  # 0.8, 0.9
    three[4], three[5] = tenth * tenth, eighteenth * fourth  # 1, 1.1
    three[6], three[7] = fourteenth * fourteenth, tenth * tenth * eighteenth  # 1.4, 1.9


def fold_weights(law, weights, folded):  # type: ignore[no-untyped-def]
    """Multiply weights by P_k, and sum those of the types with one sum.

    Parameters
    ----------
    law : SumLaw
    weights : float array, shape (K, WIDTH)
        Overwritten; of types that there are, those below `LEAST_WEIGHT` are raised to it.
    folded : float array, shape (2 C + 1, WIDTH)
        Filled.
    """
    rows, nothing, least = folded.shape[0], broadcast(0.0), broadcast(LEAST_WEIGHT)
    for j in range(rows):
        store(folded, j, nothing)
    for k in range(weights.shape[0]):
        j, weight = law.sums[k] + rows // 2, load(weights, k) * law.probability[k]
        if law.probability[k] > 0.0:
            weight = where_less(weight, least, least, weight)
        store(weights, k, weight)
        store(folded, j, load(folded, j) + weight)
