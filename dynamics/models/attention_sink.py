r"""An attention sink grows as half the logarithm of time (Guo et al. 2024).

The simplified model of the Bigram-Backcopy task, on tokens that are not triggers. After a token v
the next token k has the law of bigrams :math:`p_{vk}`, which the feed-forward layer knows. The
attention head adds a mixture of the value :math:`\beta` of the first token of the sequence, the
sink, and of the W other tokens, whose values copy them with the strength :math:`\xi`:

.. math:: q_v = \mathrm{softmax}_k \left( \ln p_{vk} + \frac{e^{\alpha_v} \beta_k + \bar\xi_k}
   {e^{\alpha_v} + W} \right), \qquad R = -E_{v, k} \ln q_{vk} .

The head can only do harm. Where its values are at rest it learns to attend to the sink,
:math:`\alpha = \tfrac12 \ln(2 \mathrm{Var}_p(\bar\xi)\, t / V) + o(1)`; where its logits are at
rest the value of the sink comes to cancel what is copied, :math:`\beta = c - e^{-\alpha} \bar\xi`.
Bigrams are uniform here, and ``copied`` of the V tokens are in the sequence, equally often.

:V: number of tokens
:copied: number of them that are in the sequence
:W: tokens of the sequence beside the sink
:xi: strength of a copy
:trained: both, or ``alpha`` or ``beta`` alone
:alpha: attention logits of the sink, by token
:beta: value of the sink, by next token
:a: attention logit of the sink
:b_c: value of the sink for a token of the sequence
:b_o: value of the sink for another token
:attention: attention on the sink
:added: logit that the head adds to a token of the sequence, less that of another
:T_sink: attention on the sink is nine tenths
:T_drain: a tenth of what the head added at the start is left
"""

import numpy as np

SOURCE = "arXiv 2410.13835"
eta, steps = 1.0, 3000
limits = (
    "V <= 200", "1 <= copied", "copied < V", "W > 0", "xi > 0", "trained in both, alpha, beta",
)  # fmt: skip
events = {"T_sink": "attention >= 9/10", "T_drain": "added <= W*xi/copied/(1 + W)/10"}


def start(V=8, trained="both"):
    """Trained arrays at step 0.

    Parameters
    ----------
    V : int
    trained : str
    """
    return {name: np.zeros(V) for name in ("alpha", "beta") if trained in ("both", name)}


def names(copied, trained):
    """Name of each scalar and an entry that it stands for.

    Parameters
    ----------
    copied : int
    trained : str
    """
    every = {"a": ("alpha", 0), "b_c": ("beta", 0), "b_o": ("beta", copied)}
    return {name: entry for name, entry in every.items() if trained in ("both", entry[0])}


def law(V):
    """Every bigram with its probability.

    Parameters
    ----------
    V : int
    """
    for v in range(V):
        for k in range(V):
            yield 1 / V**2, {"token": np.eye(V)[v], "next": np.eye(V)[k]}


def _head(theta, sample, xp, V, copied, W, xi):
    """Attention on the sink, and the logits that the head adds."""
    sink = xp.exp(sample["token"] @ theta.get("alpha", np.zeros(V)))
    copies = W * xi / copied * (np.arange(V) < copied)
    return sink / (sink + W), (sink * theta.get("beta", np.zeros(V)) + copies) / (sink + W)


def loss(theta, sample, xp, V, copied=2, W=4.0, xi=5.0):
    """Loss of one bigram.

    Parameters
    ----------
    theta : dict of arrays
    sample : dict
        ``token`` and ``next``, shape (V,).
    xp : array namespace
    V, copied : int
    W, xi : float
    """
    return -xp.log_softmax(_head(theta, sample, xp, V, copied, W, xi)[1]) @ sample["next"]


def observe(theta, sample, xp, V, copied, W, xi):
    """Attention on the sink, and what the head adds.

    Parameters
    ----------
    theta, sample : dict
    xp : array namespace
    V, copied : int
    W, xi : float
    """
    attention, logits = _head(theta, sample, xp, V, copied, W, xi)
    return {"attention": attention, "added": logits[0] - logits[-1]}
