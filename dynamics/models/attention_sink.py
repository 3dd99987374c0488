r"""An attention sink grows as half the logarithm of time (Guo et al. 2024).

In this simplified model of the Bigram-Backcopy task, restricted to tokens that are not triggers,
the next token k after a token v has the bigram probability :math:`p_{vk}`, which the feed-forward
layer outputs exactly. The attention head adds a mixture of the value :math:`\beta` of the first
token of the sequence, the sink, and of the values of W other tokens. Each token except the sink has
the value :math:`\xi` at its own logit; the sum of the values at logit k is :math:`\bar\xi_k`. With
the sink's attention logits :math:`\alpha_v`, the prediction :math:`q_v` after v has the risk R:

.. math:: q_v = \mathrm{softmax}_k \left( \ln p_{vk} + \frac{e^{\alpha_v} \beta_k + \bar\xi_k}
   {e^{\alpha_v} + W} \right), \qquad R = -E_{v, k} \ln q_{vk} .

The feed-forward layer alone is optimal, so the head can only increase the loss. If only
:math:`\alpha` is trained, the head learns to attend to the sink: at time t, :math:`\alpha =
\tfrac12 \ln(2 \mathrm{Var}_k(\bar\xi_k)\, t / V) + o(1)`. If only :math:`\beta` is trained, the
sink cancels the other values: :math:`\beta_k = c - e^{-\alpha} \bar\xi_k`, c constant. All bigram
probabilities are equal here; ``copied`` of the V tokens occur in the sequence, equally often.

:V: number of tokens
:copied: number of tokens that occur in the sequence
:W: number of tokens in the sequence, without the sink
:xi: strength of a copy
:trained: arrays that move, both, ``alpha`` or ``beta``
:alpha: attention logits of the sink, by token
:beta: value of the sink, by next token
:a: attention logit of the sink
:b_c: value of the sink for a token of the sequence
:b_o: value of the sink for a token outside the sequence
:attention: attention on the sink
:added: logit added by the head to a token of the sequence, minus that of a token outside
:T_sink: attention on the sink reaches 9/10
:T_drain: the added logit has fallen to a tenth of its initial value
"""

import numpy as np

SOURCE = "arXiv 2410.13835"
eta, steps = 1.0, 3000
limits = (
    "V <= 200", "1 <= copied", "copied < V", "W > 0", "xi > 0", "trained in both, alpha, beta",
)  # fmt: skip
events = {"T_sink": "attention >= 9/10", "T_drain": "added <= W*xi/copied/(1 + W)/10"}


def start(V=8, trained="both"):
    return {name: np.zeros(V) for name in ("alpha", "beta") if trained in ("both", name)}


def names(copied, trained):
    every = {"a": ("alpha", 0), "b_c": ("beta", 0), "b_o": ("beta", copied)}
    return {name: entry for name, entry in every.items() if trained in ("both", entry[0])}


def law(V):
    """Every bigram with its probability; ``token`` and ``next`` are one-hot, shape (V,)."""
    for v in range(V):
        for k in range(V):
            yield 1 / V**2, {"token": np.eye(V)[v], "next": np.eye(V)[k]}


def _head(theta, sample, xp, V, copied, W, xi):
    """Attention on the sink, and logits added by the attention head."""
    sink = xp.exp(sample["token"] @ theta.get("alpha", np.zeros(V)))
    copies = W * xi / copied * (np.arange(V) < copied)
    return sink / (sink + W), (sink * theta.get("beta", np.zeros(V)) + copies) / (sink + W)


def loss(theta, sample, xp, V, copied=2, W=4.0, xi=5.0):
    """Cross-entropy of one bigram."""
    return -xp.log_softmax(_head(theta, sample, xp, V, copied, W, xi)[1]) @ sample["next"]


def observe(theta, sample, xp, V, copied, W, xi):
    """Attention on the sink; logit added to a copied token, minus logit added to another token."""
    attention, logits = _head(theta, sample, xp, V, copied, W, xi)
    return {"attention": attention, "added": logits[0] - logits[-1]}
