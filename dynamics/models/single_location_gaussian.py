r"""Single-location regression with Gaussian tokens, by draws (Marion, Berthier, Biau, Boyer 2025).

Tokens are :math:`X_l \sim N(0, \gamma^2 I_d)`. The token :math:`l^*` that holds the label has the
mean :math:`\sqrt{d/2}\, k^*` instead of 0, and the label is :math:`y = X_{l^*} v^*`, with
orthonormal :math:`k^*` and :math:`v^*`. Attention is the softmax of the scores :math:`X k / \sqrt
d`, as in the paper's model; the paper's analysis replaces the softmax by the error function. The
law is represented by draws, so gradients have standard errors. Equal entries follow from the
declared ``symmetry``: signed permutations of the other d - 2 coordinates and reversals of
:math:`v^*`. The paper trains k and v on the sphere and closes on five overlaps. Here only ``kappa``
and ``nu`` move from a start at zero, for any d.

:d: dimension of the tokens
:L: number of tokens
:gamma: standard deviation of a token, per coordinate
:k: key
:v: vector that reads the label
:kappa: overlap of the key with :math:`k^*`
:nu: overlap of v with :math:`v^*`
:found: attention to the token that holds the label
:T_v: half of the label direction is recovered
:T_k: half of the attention is on the right token
"""

import numpy as np

SOURCE = "arXiv 2410.01537"
eta, steps = 0.1, 1000
limits = ("3 <= d <= 100", "L >= 2", "L*d <= 1000", "gamma > 0")
axes = {"k": ("key",), "v": ("value",)}
names = {"kappa": ("k", 0), "nu": ("v", 1)}
events = {"T_v": "nu >= 1/2", "T_k": "found >= 1/2"}


def start(d=8):
    return {"k": np.zeros(d), "v": np.zeros(d)}


def sample(rng, d, L=3, gamma=0.7):
    """Draw one sequence: tokens ``X``, shape (L, d), label ``y``, and its one-hot ``place``."""
    X, place = gamma * rng.standard_normal((L, d)), rng.integers(L)
    X[place, 0] += np.sqrt(d / 2)
    return {"X": X, "y": X[place, 1], "place": np.eye(L)[place]}


def attention(theta, sample, xp):
    """Attention to each token, shape (L,)."""
    return xp.softmax(sample["X"] @ theta["k"] / np.sqrt(len(theta["k"])))


def loss(theta, sample, xp):
    """Half of the squared error for one sequence."""
    return (attention(theta, sample, xp) @ (sample["X"] @ theta["v"]) - sample["y"]) ** 2 / 2


def observe(theta, sample, xp):
    """Attention to the token that holds the label."""
    return {"found": attention(theta, sample, xp) @ sample["place"]}


def symmetry(d):
    same, flip = np.arange(d), np.where(np.arange(d) == 1, -1.0, 1.0)
    yield {"key": (same, flip), "value": (same, -flip)}
    for k in range(2, d):
        swap, sign = same.copy(), np.where(same == k, -1.0, 1.0)
        swap[[k, 2]] = [2, k]
        yield {"key": (swap, sign), "value": (swap, sign)}
