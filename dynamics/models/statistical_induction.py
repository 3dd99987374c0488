r"""Statistical induction heads in a minimal model (Edelman, Tsilivis, Edelman, Malach, Goel 2024).

Each sequence of two symbols has its own Markov chain, with transition probabilities uniform on [0,
1] and a stationary first symbol. The model predicts every next symbol. In the first layer a place
attends to itself and to earlier places by distance,

.. math:: h_j = \sum_{k \le j} \mathrm{softmax}_k(v_{j-k})\, e_k ,

where :math:`e_k` is the one-hot symbol at place k. In the second layer place i attends to place j
linearly, by W, and copies the symbol there:

.. math:: o_i = \sum_{j \le i} (e_i^T W h_j)\, e_j .

The loss is the cross-entropy of the logits :math:`o_i`, averaged over places. If v selects the
previous place and W selects equal symbols, :math:`o_i` counts the symbols that followed earlier
occurrences of the symbol at place i: this is the induction head. If all entries of v are equal,
:math:`o_i` depends on counts of single symbols. Every entry of W starts at ``w0``, every entry of v
at 0. The sequences are enumerated; ``statistical_induction_drawn`` draws longer ones.

:L: length of the context
:chains: free, or balanced: both symbols change with equal probability, so they are equally frequent
:w0: entries of W at the start
:W: weights of the second layer, symbol by attended symbol
:v: scores of the first layer by distance
:same: weight of W on equal symbols
:other: weight of W on different symbols
:v_*: score of this distance
:contrast: weight on equal symbols minus weight on different symbols
:previous: attention of the last place to the place before it
:T_previous: the last place gives half of its attention to the place before it
"""

import itertools

import numpy as np

SOURCE = "arXiv 2402.11004"
eta, steps = 1.0, 3000
limits = ("2 <= L <= 12", "0 < w0", "chains in free, balanced")
names = {"same": ("W", 0, 0), "other": ("W", 0, 1)}
events = {"T_previous": "previous >= 1/2"}
panels = [("same", "other"), ("previous",), ("log risk",)]


def start(L=7, w0=0.01):
    return {"W": np.full((2, 2), w0), "v": np.zeros(L)}


def law(L, chains="free"):
    """Every sequence of one-hot ``symbols`` with its probability, averaged over all chains."""
    nodes, weights = np.polynomial.legendre.leggauss(60)
    up, down = np.meshgrid((nodes + 1) / 2, (nodes + 1) / 2)
    down = up if chains == "balanced" else down
    chain = np.array([[1 - up, up], [down, 1 - down]])
    for x in itertools.product((0, 1), repeat=L + 1):
        p = np.outer(weights, weights) / 4 * chain[1 - x[0], x[0]] / (up + down)
        for a, b in itertools.pairwise(x):
            p = p * chain[a, b]
        yield p.sum(), {"symbols": np.eye(2)[list(x)]}


def first_layer(v, xp):
    """Attention of each place (row) to each place (column), shape (L, L)."""
    distance = np.arange(len(v))[:, None] - np.arange(len(v))
    return xp.softmax(xp.where(distance >= 0, v[np.abs(distance)], -xp.inf), axis=-1)


def loss(theta, sample, xp):
    """Cross-entropy of the next symbols of one sequence, averaged over places."""
    e, label = sample["symbols"][:-1], sample["symbols"][1:]
    h = first_layer(theta["v"], xp) @ e
    seen = xp.cumsum(h[:, :, None] * e[:, None, :], axis=0)
    logits = xp.einsum("ia,ab,ibc->ic", e, theta["W"], seen)
    return -xp.mean(xp.sum(xp.log_softmax(logits, axis=-1) * label, axis=-1))


def observables(theta, xp):
    return {
        "contrast": theta["W"][0, 0] - theta["W"][0, 1],
        "previous": first_layer(theta["v"], xp)[-1, -2],
    }
