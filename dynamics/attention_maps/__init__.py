"""Differences between the queries of an attention map: attention diversity and total variation.

A map A is row-stochastic, one row per query; the patches form a grid H x W, numbered row by row.

Attention diversity (Huang, Wen, Chi and Liang 2024, Section 6) assigns a vector of 2k numbers to
each query: row and column of the k keys with the largest weights, by descending weight. Diversity
is the mean Euclidean distance between two queries' vectors of key positions, in sides of a patch,
over all ordered pairs of queries, also of a query with itself. Weights that are equal after
rounding to multiples of 1e-9 are sorted by the index of the key. Diversity is zero if all queries
rank the same keys in the same order. A nearly uniform map can have a large diversity, since only
the order of the weights matters.

Mean total variation is the mean of sum_q |A_pq - A_p'q| / 2 over all ordered pairs (p, p') of
queries, after each row of A is divided by its sum. Total variation does not depend on the positions
of the keys. For P queries it ranges from 0 (equal rows) to 1 - 1/P (no two rows share a key).

With ``off_diagonal`` both measures are means over pairs of different queries only; this multiplies
the measures of P queries by P / (P - 1). With ``skip`` the first ``skip`` tokens of the map, such
as a class token, are removed from its queries and keys; each remaining row is then divided by its
sum.

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
