r"""An induction head: two layers copy what followed the query before (Musat et al. 2025).

A sequence is N pairs of an item and its label, then one of the items again, the query; its label is
to be found. Items and labels are orthonormal, and so are positions, which come in planes: an item
at p, its label at M p, the query in a plane of its own, :math:`M^2 = -I`. From :math:`z =
[\mathrm{token}; \mathrm{position}] \in R^{2D}` two causal layers of attention with merged query-key
matrices are concatenated to the residual stream, :math:`h = [z;\, \mathrm{attend}(z, z W_1 z^T)]`,
:math:`[h;\, \mathrm{attend}(h, h W_2 h^T)]`, and :math:`W_3` reads the label from it; half the
squared error, all matrices from zero.

Tokens and positions are random frames. What stays equal under any such law stays so under a finite
group that turns frames as richly: products of exchanges and signs of coordinates (Pauli matrices),
with M among those of positions. That law is enumerated, and exact. Theorem 1 of the paper leaves
:math:`W_1 = \mathrm{diag}(\alpha_1 I, \alpha_2 I + \alpha_3 M)`, 4 + 8 scalars in :math:`W_2`
(``beta1`` to ``beta4`` of token by token, ``b`` and ``c`` of I and M, position by position) and 4
in :math:`W_3`: 19, of which the two of M at the query's own position do not move.

Reconstructed from the abstract and notes, not from the printed equations: causal masks that include
the token itself, the query as the last token, in a plane of its own, averaged over the pairs.

:N: pairs of an item and its label
:W1: merged query-key matrix of the first layer
:W2: merged query-key matrix of the second layer
:W3: readout of the label
:alpha1: attention of a token to equal tokens
:alpha2: attention of a position to itself
:alpha3: attention of a label to the position of its item, by M
:beta1, beta4: attention of a token to equal tokens, within the first or the second half of h
:beta2, beta3: attention of a token to equal tokens, between the two halves of h
:b1, b4: attention of a position to itself, within the first or the second half of h
:b2, b3: attention of a position to itself, between the two halves of h
:c*: attention of a position to the other one of its plane, by M
:gamma1: share of the query itself in the answer
:gamma2: share of what the first layer attends to, from the query
:gamma3: share of the tokens that the second layer attends to
:gamma4: share of what the first layer attended to there
:T_gamma: the readout of what the second layer attends to has emerged
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
    """Output of one causal attention layer, shape (queries, d).

    Parameters
    ----------
    h : array, shape (tokens, d)
    scores : array, shape (queries, tokens)
    xp : array namespace
    """
    weights = xp.exp(scores) * np.tri(*scores.shape, scores.shape[1] - scores.shape[0])
    return weights / xp.sum(weights, axis=1, keepdims=True) @ h


def loss(theta, sample, xp):
    """Loss of one sequence.

    Parameters
    ----------
    theta : dict of arrays
    sample : dict
        ``z``, shape (2 N + 1, 2 D), and ``y``, shape (D,).
    xp : array namespace
    """
    h = sample["z"]
    h = xp.hstack([h, attend(h, h @ theta["W1"] @ h.T, xp)])
    out = xp.hstack([h[-1:], attend(h, h[-1:] @ theta["W2"] @ h.T, xp)]) @ theta["W3"].T
    return xp.sum((out[0] - sample["y"]) ** 2) / 2
