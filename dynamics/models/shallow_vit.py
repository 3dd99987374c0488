r"""A shallow Vision Transformer learns which tokens decide the label (Li, Wang, Liu, Chen 2023).

A sample has L tokens; each token is a pattern :math:`\mu_j`, with noise in the paper but not here.
Patterns 1 and 2 decide the label y = 1 or -1: the sample has :math:`n_*` tokens of the pattern of
its label, :math:`n_\#` tokens of the other deciding pattern, and equally many of each remaining
pattern. One attention layer on the tokens :math:`x_l` and a layer of m neurons with fixed output
weights a are trained by the hinge loss of margin :math:`\gamma`,

.. math:: F(X) = \frac1L \sum_l \sum_i a_i\, \mathrm{relu}\Big(W_O W_V \sum_s x_s\,
   \mathrm{softmax}_s\big(x_s^\top W_K^\top W_Q x_l\big)\Big)_i , \qquad \max(\gamma - y F, 0).

Equal tokens are represented by one token with a multiplicity, so the weights act on patterns alone:
:math:`V = W_V \mu`, :math:`K = W_K \mu`, :math:`Q = W_Q \mu`. From a symmetric start, in which the
neurons form whole orbits of the permutations of the patterns, attention closes on 16 scalars for
any number of patterns. If samples have their own tokens ``X``, the arrays V, K, Q are :math:`W_V`,
:math:`W_K`, :math:`W_Q`.

:M: number of patterns
:m: number of neurons
:xi: spread of the initial entries of W_O
:symmetric: whether the start is invariant under the symmetries of the law
:n_star: tokens of a sample with the pattern of its label
:n_confusion: tokens of a sample with the pattern of the other label
:others: tokens of a sample with each other pattern
:margin: margin of y F that the loss asks for
:hinge: whether the loss is the hinge, or -y F
:frozen: untrained weights, none, attention or values
:W_O: hidden weights of the neurons
:V: values of the patterns
:K: keys of the patterns
:Q: queries of the patterns
:a: output weights
:X: tokens, one per row
:loss_over_margin: loss over the margin
:hinge_over_margin: hinge loss over the margin
:active: share of samples below the margin
:error: share of misclassified samples
:relevant: attention to tokens with the pattern of the label
:t_fit: all samples are correctly classified
:t_zero: every sample has reached the margin, and training stops moving
:mass_50: half of the attention is on relevant tokens
:mass_75: three quarters of the attention are on relevant tokens
:mass_90: nine tenths of the attention are on relevant tokens
"""

import itertools

import numpy as np

SOURCE = "arXiv 2302.06015"
eta, steps = 0.1, 1000
limits = (
    "M >= 3",
    "M <= 6",
    "m >= 2",
    "m <= 5000",
    "xi >= 0",
    "n_star > n_confusion",
    "n_confusion >= 0",
    "others >= 0",
    "margin > 0",
)
events = {"t_fit": "error <= 0", "t_zero": "active <= 0"}
events |= {f"mass_{share}": f"relevant >= {share}/100" for share in (50, 75, 90)}
FROZEN = {"none": (), "attention": ("K", "Q"), "values": ("V",)}


def start(M=5, m=24, xi=0.01, seed_0=0, symmetric=True):
    """Trained arrays at step 0; for a symmetric start, m is a multiple of 2 (M - 2)!."""
    rng = np.random.default_rng(seed_0)
    W_O = xi * rng.standard_normal((m, M))
    V, K, Q = (np.eye(M) + (not symmetric) * 0.1 * rng.standard_normal((M, M)) for _ in range(3))
    if symmetric:  # neurons of the second half exchange patterns 1 and 2
        rest = itertools.permutations(range(2, M))
        turns = [(*two, *r) for two, r in itertools.product([(0, 1), (1, 0)], rest)]
        if m % len(turns):
            raise ValueError(f"a symmetric start has a multiple of {len(turns)} neurons, not {m}")
        W_O = np.concatenate([W_O[: m // len(turns), turn] for turn in turns])
    return {"W_O": W_O, "V": V, "K": K, "Q": Q}


def fixed(M, m):
    return {"a": np.repeat([1.0, -1.0], [m - m // 2, m // 2]) / np.sqrt(m), "X": np.eye(M)}


def law(M, n_star=25, n_confusion=4, others=7):
    """Both samples: label ``y``; number ``times`` and ``is_relevant`` (0 or 1) of each token."""
    patterns = np.eye(M)
    for y, label in ((1.0, 0), (-1.0, 1)):
        two = (n_star, n_confusion)[:: int(y)]
        times = np.array([*two, *[others] * (M - 2)], float)
        yield 0.5, {"times": times, "y": y, "is_relevant": patterns[label]}


def attention(theta, sample, xp):
    """Tokens X, and attention of token i to all copies of token j, shape (n, n)."""
    X = (theta | sample)["X"]
    scores = X @ (theta["Q"].T @ theta["K"]) @ X.T
    return X, xp.softmax(scores + xp.log(sample["times"]), axis=-1)


def reached(theta, sample, xp):
    """Margin y F of a sample, and its attention to relevant tokens.

    A sample may contain its own output weights ``a``, one row for each position, shape (n, m).
    """
    X, P = attention(theta, sample, xp)
    neurons, a = xp.relu(P @ X @ (theta["W_O"] @ theta["V"]).T), (theta | sample)["a"]
    outputs = neurons @ a if a.ndim == 1 else xp.sum(neurons * a, axis=-1)
    share = sample["times"] / xp.sum(sample["times"])
    return sample["y"] * (share @ outputs), share @ P @ sample["is_relevant"]


def loss(theta, sample, xp, margin=1.0, hinge=True, frozen="none"):
    """Hinge loss of the margin y F of one sample, or -y F without `hinge`."""
    held = {name: xp.stop_gradient(theta[name]) for name in FROZEN[frozen]}
    yF, _ = reached(theta | held, sample, xp)
    return xp.relu(margin - yF) if hinge else -yF


def observe(theta, sample, xp, margin, hinge):
    """Losses, errors and attention of one sample; a NaN output counts as an error."""
    yF, relevant = reached(theta, sample, xp)
    below = xp.relu(margin - yF)
    return {
        "loss_over_margin": (below if hinge else -yF) / margin,
        "hinge_over_margin": below / margin,
        "active": 1.0 - (yF >= margin),
        "error": 1.0 - (yF > 0),
        "relevant": relevant,
    }
