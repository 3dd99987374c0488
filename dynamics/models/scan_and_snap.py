r"""One layer of attention scans for distinct tokens and snaps (Tian, Wang, Chen, Du 2023).

A long sequence has common tokens, which occur in every sequence, and distinct tokens, which
determine the next token n. From the shares :math:`x_l` of the tokens l in the sequence, the model
predicts n by

.. math:: b_l = \frac{x_l e^{z_l}}{\sum_m x_m e^{z_m}}, \qquad
   R = -E \ln \mathrm{softmax}_n (Y^\top b / \|b\|) ,

with attention logits z and a decoder Y, both zero at the start. Here n has two values of
probability 1/2. All common tokens together have the share ``share``, each an equal part; the first
distinct token of n has the largest share, each other one ``ratio`` times the share before it. At
``ratio`` 1, exchanges of tokens and of the two values of n are symmetries, so training closes on
three scalars. Training then conserves :math:`n_c z_c + 2 n_d z_d = 0`, with :math:`n_c` common
tokens of logit :math:`z_c` and :math:`n_d` distinct tokens of logit :math:`z_d` per n. The paper
has several queries, and a decoder that learns faster than attention; here both have one rate.

:common: number of common tokens
:distinct: number of distinct tokens of each next token
:share: share of the common tokens in a sequence
:ratio: share of a distinct token over that of the distinct token before it
:z: logits of attention
:Y: decoder, token by next token
:z_c: logit of a common token
:z_d: logit of the first distinct token
:Y_d: weight of the first distinct token for its next token, minus its weight for the other one
:attention_c: attention on the common tokens
:attention_d: attention on the first distinct token, over that on all distinct tokens
:T_scan: attention on the common tokens has fallen to half of their share
"""

import numpy as np

SOURCE = "arXiv 2305.16380"
eta, steps = 1.0, 3000
limits = ("common >= 1", "distinct >= 1", "common + 2*distinct <= 20000", "0 < share < 1",
          "0 < ratio <= 1")  # fmt: skip
events = {"T_scan": "attention_c <= share/2"}


def start(common=20, distinct=40):
    tokens = common + 2 * distinct
    return {"z": np.zeros(tokens), "Y": np.zeros((tokens, 2))}


def names(common):
    return {"z_c": ("z", 0), "z_d": ("z", common), "Y_d": ("Y", common, 0)}


def law(common, distinct, share=0.5, ratio=1.0):
    """One sequence for each next token: probability 1/2, shares ``x``, one-hot ``next``."""
    powers = ratio ** np.arange(distinct)
    for n in (0, 1):
        own = np.zeros((2, distinct))
        own[n] = (1 - share) * powers / powers.sum()
        x = np.concatenate([np.full(common, share / common), *own])
        yield 0.5, {"x": x, "next": np.eye(2)[n]}


def _attention(theta, sample, xp):
    weights = sample["x"] * xp.exp(theta["z"])
    return weights / xp.sum(weights)


def loss(theta, sample, xp):
    """Cross-entropy of the next token for one sequence."""
    b = _attention(theta, sample, xp)
    return -xp.log_softmax(theta["Y"].T @ b / xp.sqrt(xp.sum(b**2))) @ sample["next"]


def observe(theta, sample, xp, common, distinct):
    """Attention on common tokens; share of the first token in the attention on distinct tokens."""
    b = _attention(theta, sample, xp)
    first = xp.max(sample["next"] * xp.stack([b[common], b[common + distinct]]))
    on_common = xp.sum(b[:common])
    return {"attention_c": on_common, "attention_d": first / (1 - on_common)}
