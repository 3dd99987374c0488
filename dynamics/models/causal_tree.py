r"""Two layers of attention learn a causal tree of symbols (Nichani, Damian, Lee 2024).

A sequence has six places with symbols 0 and 1. The symbol at place 0 is drawn from the stationary
law of a transition matrix. The symbols at places 1 to 4 are drawn from the row of the matrix that
belongs to the symbol at their parent; the parents are the places 0, 0, 1, 2. The symbol at place 5
is uniform, and the model predicts its successor. Both rows of the transition matrix are drawn anew
for each sequence, uniformly on the simplex; the law integrates over them by ``nodes``
Gauss-Legendre nodes per row. A sequence predicts the successor only if the parents are known.

Each layer of the transformer appends its attention output to its input h,

.. math:: h \mapsto [h, \mathrm{softmax}(h A h^T)\, h] ,

with a causal mask, where A is A1 in the first layer and A2 in the second. The input rows are
one-hot vectors of symbol and place. The last row of the output has 32 entries; its product with W
gives the logits, and the loss is the cross-entropy. At the start one 2 x 2 block of A2 and one of W
are ``beta`` times I - 1/2. The block of A2 compares the last symbol with the symbols that the first
layer attends to; the block of W reads the symbols that the second layer attends to. All entries are
trained at once; ``--stages A1:N,A2:N`` gives the paper's two stages.

The first layer learns the tree: in A1, each place gives its parent the largest score of all earlier
places. Learning rate 2 exceeds the stability limit in the direction that exchanges the two symbols.
At this rate, rounding errors grow and separate equal entries in a full run, not in a reduced run.

:beta: size of A2 and W at the start
:nodes: Gauss-Legendre nodes per row of the transition matrix
:A1: bilinear weights of the first layer, symbols then places
:A2: bilinear weights of the second layer
:W: weights of the logits
:A1_*: weight of a query (symbols 0, 1, places 2 to 7) on a key
:A2_*: weight of a query on a key in the second layer
:W_*: weight of an entry of the last output row in a logit
:tree: share of the parents in the attention by places to earlier places, mean of places 2 to 4
:T_tree: half of the attention to earlier places is on the parents
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
    """Probability of every sequence ``X``, shape (6, 8), with successor ``y``, shape (2,)."""
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
    """Output of a causal attention layer: each row of h, followed by its attention output."""
    scores = xp.where(np.tri(6, dtype=bool), h @ A @ h.T, -xp.inf)
    return xp.concatenate([h, xp.softmax(scores, axis=-1) @ h], axis=1)


def loss(theta, sample, xp):
    """Cross-entropy of the successor for one sequence."""
    h = layer(layer(sample["X"], theta["A1"], xp), theta["A2"], xp)
    return -xp.log_softmax(theta["W"] @ h[-1], axis=-1) @ sample["y"]


def observables(theta, xp):
    places = np.arange(2, 5)
    scores = xp.where(np.arange(6) < places[:, None], theta["A1"][4:7, 2:], -xp.inf)
    return {"tree": xp.mean(xp.softmax(scores, axis=-1)[places - 2, PARENTS[2:]])}
