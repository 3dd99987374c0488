r"""An induction head: two layers copy what followed the query before (Musat et al. 2025).

A sequence has N pairs of an item and its label, and then one of the items again, the query; the
model outputs the label of the query. Items and labels are orthonormal vectors, and so are
positions. An item at position p has its label at position M p in the same plane, with :math:`M^2 =
-I`; the position of the query lies in another plane. The residual stream starts as :math:`z =
[\mathrm{token}; \mathrm{position}] \in R^{2D}`. Two causal layers of attention with merged
query-key matrices append their outputs, first :math:`h = [z;\, \mathrm{attend}(z, z W_1 z^T)]`,
then :math:`[h;\, \mathrm{attend}(h, h W_2 h^T)]`, and :math:`W_3` reads the label. The loss is half
the squared error; all matrices start at zero.

Tokens and positions are random orthonormal frames. Entries that stay equal under the law of all
frames also stay equal under a finite group of frames: products of exchanges and signs of
coordinates (Pauli matrices). For positions, M is one of these products. The law enumerates this
group. Theorem 1 of the paper leaves 19 scalars: 3 in :math:`W_1 = \mathrm{diag}(\alpha_1 I,
\alpha_2 I + \alpha_3 M)` (a token and a position block), 12 in :math:`W_2` and 4 in :math:`W_3`. In
:math:`W_2`, ``beta1`` to ``beta4`` weight tokens, ``b1`` to ``b4`` (with I) and ``c1`` to ``c4``
(with M) weight positions. The two scalars with M at the query's position have zero gradient.

The model is reconstructed from the abstract and notes, not from the printed equations. Here causal
masks include the token itself, and the query is the last token; the risk is the mean over all pairs
from which the query is taken.

:N: number of pairs of an item and its label
:W1: merged query-key matrix of the first layer
:W2: merged query-key matrix of the second layer
:W3: readout of the label
:alpha1: weight of a token on equal tokens
:alpha2: weight of a position on itself
:alpha3: weight of a label on the position of its item, by M
:beta1, beta4: weight of a token on equal tokens, within the first or the second half of h
:beta2, beta3: weight of a token on equal tokens, between the two halves of h
:b1, b4: weight of a position on itself, within the first or the second half of h
:b2, b3: weight of a position on itself, between the two halves of h
:c*: weight of a position on the other position of its plane, by M
:gamma1: readout of the query token itself
:gamma2: readout of the first layer's output at the query
:gamma3: readout of the tokens that the second layer attends to
:gamma4: readout of the first layer's output at the tokens that the second layer attends to
:T_gamma: the readout of tokens that the second layer attends to reaches 1/2
:T_copy: the label is copied, with a tenth of the loss left
"""

from functools import reduce
from itertools import product

import numpy as np

SOURCE = "arXiv 2511.01033"
eta, steps, limits = 1.0, 600, ("1 <= N <= 7",)
ONES = np.array([[[1.0, 0], [0, 1]], [[0, 1], [1, 0]], [[1, 0], [0, -1]], [[0, 1], [-1, 0]]])
events = {"T_gamma": "gamma3 >= 1/2", "T_copy": "risk <= 1/10"}


def start(N=3):
    D = 2 ** (2 * N + 1).bit_length()
    return {f"W{k}": np.zeros((D * n, D * m)) for k, n, m in ((1, 2, 2), (2, 4, 4), (3, 1, 8))}


def names(N):
    D = 2 ** (2 * N + 1).bit_length()
    table = {"alpha1": ("W1", 0, 0), "alpha2": ("W1", D, D), "alpha3": ("W1", D, D + 1)}
    for k, (i, j) in enumerate(product((0, 2 * D), repeat=2), 1):
        table |= {f"beta{k}": ("W2", i, j), f"b{k}": ("W2", i + D, j + D)}
        table |= {f"c{k}": ("W2", i + D, j + D + 1), f"gamma{k}": ("W3", 0, 2 * (k - 1) * D)}
    return table


def frames(N):
    bits = (2 * N + 1).bit_length()
    planes = [*product(*[ONES] * (bits - 1), ONES[::3])]
    for (k, factors), sign in product(enumerate(product(ONES, repeat=bits)), (1, -1)):
        yield sign * reduce(np.kron, factors), reduce(np.kron, planes[k // 2])


def law(N):
    for (tokens, planes), pair in product([*frames(N)], range(N)):
        z = np.hstack([tokens[[*range(2 * N), 2 * pair]], planes[np.arange(2 * N + 1) ^ 1]])
        yield 1 / (2 * N * len(tokens) ** 2), {"z": z, "y": tokens[2 * pair + 1]}


def attend(h, scores, xp):
    """Output of one causal attention layer, shape (queries, d), from rows h and scores."""
    weights = xp.exp(scores) * np.tri(*scores.shape, scores.shape[1] - scores.shape[0])
    return weights / xp.sum(weights, axis=1, keepdims=True) @ h


def loss(theta, sample, xp):
    """Half of the squared error of the label for one sequence."""
    h = sample["z"]
    h = xp.hstack([h, attend(h, h @ theta["W1"] @ h.T, xp)])
    out = xp.hstack([h[-1:], attend(h, h[-1:] @ theta["W2"] @ h.T, xp)]) @ theta["W3"].T
    return xp.sum((out[0] - sample["y"]) ** 2) / 2
