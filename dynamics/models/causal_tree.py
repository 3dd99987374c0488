r"""Two layers of attention learn a causal tree of symbols (Nichani, Damian, Lee 2024).

Six places of symbols 0 and 1. Place 0 is drawn from the stationary law of a transition matrix,
places 1 to 4 by this matrix from the symbols of their parents, (0, 0, 1, 2), and the last place is
uniform. Its successor is to be predicted. The two rows of the matrix are uniform on their simplex
and drawn anew for each sequence (integrated by ``nodes`` Gauss-Legendre nodes a row), so the
successor is known from the context alone, if the parents are.

Each layer of the transformer adds what it attends to behind what it has,

.. math:: h \mapsto [h, \mathrm{softmax}(h A h^T)\, h] ,

causally, from symbols and places one-hot, by A1 and then by A2. The logits are W on the last row,
which has 32 entries. The loss is the cross-entropy. At the start A2 compares the last symbol with
the symbols that the first layer attends to, and W reads the symbols that the second one does, both
centred and of size ``beta``. All entries are trained; the paper's two stages are
``--stages A1:N,A2:N``.

The first layer learns the tree: among earlier places, A1 of each place is largest at the parent.
Rate 2 is above the stability limit across the classes, where symbols change places and all signs
with them: a full run leaves them by growing rounding, a reduced run does not.

:beta: size of the start of A2 and W
:nodes: Gauss-Legendre nodes of each row of the transition matrix
:A1: bilinear weights of the first layer, symbols then places
:A2: bilinear weights of the second layer
:W: weights of the logits
:A1_*: weight of a query (symbols 0, 1, places 2 to 7) on a key
:A2_*: weight of a query on a key in the second layer
:W_*: weight of an entry of the last row
:tree: share of the parents in the attention by places to earlier ones, mean of places 2 to 4
:T_tree: the parents have half of this attention
"""

import itertools

import numpy as np

SOURCE = "arXiv 2402.14735"
PARENTS = np.array([-1, 0, 0, 1, 2])
eta, steps = 0.5, 2000
limits = ("2 <= nodes <= 100",)
events = {"T_tree": "tree >= 1/2"}
panels = [("tree",), ("log risk",)]


def start(beta=0.1):
    A2, W, centred = np.zeros((16, 16)), np.zeros((2, 32)), beta * (np.eye(2) - 1 / 2)
    A2[:2, 8:10], W[:, 16:18] = centred, centred
    return {"A1": np.zeros((8, 8)), "A2": A2, "W": W}


def law(nodes=10):
    """Every sequence and successor with its probability.

    Parameters
    ----------
    nodes : int
    """
    z, weights = np.polynomial.legendre.leggauss(nodes)
    up, down = np.meshgrid((z + 1) / 2, (z + 1) / 2)
    chain = np.array([[1 - up, up], [down, 1 - down]])
    for *s, y in itertools.product((0, 1), repeat=7):
        p = np.outer(weights, weights) / 4 * chain[1 - s[0], s[0]] / (up + down)
        for place in range(1, 5):
            p = p * chain[s[PARENTS[place]], s[place]]
        X = np.column_stack([np.eye(2)[s], np.eye(6)])
        yield (p * chain[s[5], y]).sum() / 2, {"X": X, "y": np.eye(2)[y]}


def layer(h, A, xp):
    """Rows with, behind each, the average of all rows up to it by the softmax of h A h'.

    Parameters
    ----------
    h : array, shape (6, d)
    A : array, shape (d, d)
    xp : array namespace
    """
    scores = xp.where(np.tri(6, dtype=bool), h @ A @ h.T, -xp.inf)
    return xp.concatenate([h, xp.softmax(scores, axis=-1) @ h], axis=1)


def loss(theta, sample, xp):
    """Loss of one sequence.

    Parameters
    ----------
    theta : dict of arrays
    sample : dict
        ``X``, shape (6, 8), and ``y``, shape (2,).
    xp : array namespace
    """
    h = layer(layer(sample["X"], theta["A1"], xp), theta["A2"], xp)
    return -xp.log_softmax(theta["W"] @ h[-1], axis=-1) @ sample["y"]


def observables(theta, xp):
    places = np.arange(2, 5)
    scores = xp.where(np.arange(6) < places[:, None], theta["A1"][4:7, 2:], -xp.inf)
    return {"tree": xp.mean(xp.softmax(scores, axis=-1)[places - 2, PARENTS[2:]])}
