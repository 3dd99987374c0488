r"""Single-location regression: one token holds the answer (Marion, Berthier, Biau, Boyer 2025).

One of L tokens, at a random position, holds the label: one coordinate of this token is a mark, and
another coordinate is the label. With tokens as rows of X, the predictor finds the token by softmax
attention with a trained key k, and reads the label by a trained vector v:

.. math:: \hat y = \sum_l \mathrm{softmax}_l(X k)\, (X v)_l, \qquad R = \tfrac12 E (\hat y - y)^2 .

In the paper tokens are Gaussian, and orthogonal symmetry closes training on five overlaps;
``single_location_gaussian`` trains that model on draws. Here finitely many sequences are enumerated
exactly: a token has one mark (0 or 1), one label and two noise coordinates, each
:math:`\pm 1`. From a start at zero, training closes on two of eight entries: ``kappa``, the entry
of k for the mark, and ``nu``, the entry of v for the label.

:L: number of tokens
:k: key
:v: vector that reads the label
:kappa: overlap of the key with the mark
:nu: overlap of v with the label direction
:found: attention to the token that holds the label
:T_v: half of the label direction is recovered
:T_k: half of the attention is on the right token
"""

import itertools

import numpy as np

SOURCE = "arXiv 2410.01537"
eta, steps = 0.1, 3000
limits = ("2 <= L <= 6",)
names = {"kappa": ("k", 0), "nu": ("v", 1)}
events = {"T_v": "nu >= 1/2", "T_k": "found >= 1/2"}


def start(L=3):
    return {"k": np.zeros(4), "v": np.zeros(4)}


def law(L):
    for place in range(L):
        for signs in itertools.product((-1.0, 1.0), repeat=3 * L):
            features = np.array(signs).reshape(L, 3)
            X = np.column_stack([np.arange(L) == place, features]).astype(float)
            yield 1 / L / 2 ** (3 * L), {"X": X, "y": features[place, 0]}


def loss(theta, sample, xp):
    """Half of the squared error for one sequence."""
    attention = xp.softmax(sample["X"] @ theta["k"])
    return (attention @ (sample["X"] @ theta["v"]) - sample["y"]) ** 2 / 2


def observe(theta, sample, xp):
    """Attention to the token that holds the label."""
    return {"found": xp.softmax(sample["X"] @ theta["k"]) @ sample["X"][:, 0]}
