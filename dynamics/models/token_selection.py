r"""Attention selects the tokens of the largest margin (Tarzanagh, Li, Zhang, Oymak 2023).

A softmax head with a trained query p outputs the attention-weighted score of the tokens X,

.. math:: f(X) = \langle X v, \mathrm{softmax}(X p) \rangle , \qquad
          R(p) = E \log(1 + e^{-f(X)}) ,

with fixed scores X v. As in the paper's figure on several inputs, each input has seven tokens in
the plane. One token is near (1, 0) and has score 1; three are near (-1, 1), three near (-1/2,
-1/2), all with a lower score. All labels are 1. Tokens are drawn once; the risk is the mean over
the drawn inputs. The attention to the first token increases throughout training, so p grows without
bound. The direction of p converges to the direction of the shortest vector p with :math:`p \cdot
(x_1 - x_t) \ge 1` for the first token :math:`x_1` and every other token :math:`x_t` of every input.

Gradients decrease exponentially in the norm of the query p, so descent at a constant rate is slow.
With normalized gradients (``--rule normalized --eta 0.1 --eps 1e-12``) every step increases the
norm by eta, until the gradient is as small as ``eps``.

:inputs: number of inputs
:other: score of the tokens that are not optimal
:spread: standard deviation of the tokens about their centres
:draw: seed of the draw of the tokens
:p: query
:p1: first coordinate of the query
:p2: second coordinate of the query
:norm: length of the query
:selected: mean attention to the optimal tokens
:T_select: nine tenths of the attention is on the optimal tokens
"""

import numpy as np

SOURCE = "arXiv 2306.13596"
CENTRES = np.repeat([[1.0, 0.0], [-1.0, 1.0], [-0.5, -0.5]], (1, 3, 3), axis=0)
eta, steps = 1.0, 4000
limits = ("1 <= inputs <= 1000", "0 <= spread", "0 <= draw <= 1000000")
names = {"p1": ("p", 0), "p2": ("p", 1)}
events = {"T_select": "selected >= 9/10"}
panels = [("p1", "p2"), ("norm",), ("selected",), ("log risk",)]


def start():
    return {"p": np.zeros(2)}


def tokens(inputs=3, spread=0.2, draw=0):
    """Tokens of all inputs, shape (inputs, 7, 2); the first token of each input is optimal."""
    return np.random.default_rng(draw).normal(0.0, spread, (inputs, *CENTRES.shape)) + CENTRES


def law(inputs=3, spread=0.2, draw=0, other=0.5):
    for X in tokens(inputs, spread, draw):
        yield 1 / inputs, {"X": X, "score": np.where(np.arange(len(X)) == 0, 1.0, other)}


def attention(theta, sample, xp):
    """Attention to each token of an input, shape (7,)."""
    return xp.softmax(sample["X"] @ theta["p"])


def loss(theta, sample, xp):
    """Logistic loss of one input with label 1."""
    return xp.softplus(-attention(theta, sample, xp) @ sample["score"])


def observables(theta, xp):
    return {"norm": xp.sqrt(theta["p"] @ theta["p"])}


def observe(theta, sample, xp):
    """Attention to the optimal token."""
    return {"selected": attention(theta, sample, xp)[0]}
