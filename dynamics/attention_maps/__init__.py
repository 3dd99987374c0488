"""Differences between the queries of an attention map: attention diversity and total variation.

A map A is row-stochastic, one row per query; the patches form a grid H x W, numbered row by row.

Attention diversity (Huang, Wen, Chi and Liang 2024, Section 6): for each query take the k keys of
greatest weight in descending order, the lower index first if weights are equal after rounding to
multiples of 1e-9; concatenate their positions (row, column) to a vector of 2k numbers. Diversity is
the mean Euclidean distance between these P vectors, in patches, over all P^2 ordered pairs of
queries, including equal ones. Diversity is zero if all queries rank the same keys in the same
order. Diversity depends on the order of the weights only, so a nearly uniform map can have a large
diversity.

Mean total variation: the mean of sum_q |A_pq - A_p'q| / 2 over the same pairs, each row divided by
its sum, from 0 (equal rows) to 1 - 1/P (rows without a common key). Total variation does not depend
on the positions of the keys.

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
