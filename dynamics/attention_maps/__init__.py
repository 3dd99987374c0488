"""Differences between the queries of an attention map: attention diversity and total variation.

A map A is row-stochastic, one row per query; the patches form a grid H x W, numbered row by row.

Attention diversity (Huang, Wen, Chi and Liang 2024, Section 6) is the mean Euclidean distance, in
patches, between the vectors of two queries, over all P^2 ordered pairs, equal queries included. The
vector of a query has 2k numbers: the positions (row, column) of the k keys of greatest weight in
descending order, the lower index first if weights are equal after rounding to multiples of 1e-9.
Diversity is zero if all queries rank the same keys in the same order. A nearly uniform map can have
a large diversity, since only the order of the weights matters.

Mean total variation is the mean of sum_q |A_pq - A_p'q| / 2 over all ordered pairs of queries, each
row divided by its sum. Total variation ranges from 0 (equal rows) to 1 - 1/P (rows without a common
key), whatever the positions of the keys.

With ``off_diagonal`` the means are over different queries, and are greater by P / (P - 1). ``skip``
removes the tokens before the patches, such as a class token, from queries and keys; the rest of
each row is divided by its sum.

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
