"""How much the queries of an attention map differ: attention diversity, and total variation.

A map A is row-stochastic, one row for each query patch; patches stand row by row on a grid H x W.

Attention diversity (Huang, Wen, Chi and Liang 2024, Section 6): for each query take the k keys of
greatest weight in descending order, the lower index first where weights are equal once rounded to
multiples of 1e-9; put their positions (row, column) one after the other into a vector of 2k
numbers. Diversity is the mean Euclidean distance of these P vectors, in patches, over all P^2
ordered pairs of queries, each with itself included. It is zero if all queries look at the same keys
in the same order. It depends on the order of the weights only, so a map that is nearly uniform can
have a large diversity.

Mean total variation: the mean of sum_q |A_pq - A_p'q| / 2 over the same pairs, each row divided by
its sum, from 0 (equal rows) to 1 - 1/P (rows without a common key). It depends on the weights, and
not on the positions of the keys.

Over different queries only (``off_diagonal``) both are greater by the factor P / (P - 1). Tokens
before the patches, as a class token, are left out by ``skip``: as queries and as keys, and the rest
of each row is divided by its sum.

>>> import numpy as np
>>> from dynamics import diversity, total_variation
>>> attention = np.eye(2)[[0, 1, 1, 0]] @ np.eye(2, 4)
>>> float(diversity(attention, grid=(2, 2), k=1)), float(total_variation(attention))
(0.5, 0.5)
"""

from dynamics.attention_maps.files import read
from dynamics.attention_maps.measures import (
    Measured,
    Setting,
    diversity,
    measure,
    quartiles,
    total_variation,
)

__all__ = ["Measured", "Setting", "diversity", "measure", "quartiles", "read", "total_variation"]
