r"""One layer of attention scans for distinct tokens and snaps (Tian, Wang, Chen, Du 2023).

A long sequence has common tokens, which are in every sequence, and distinct ones, which tell the
next token n. From the shares :math:`x_l` of the tokens in the sequence, n is predicted by

.. math:: b_l = \frac{x_l e^{z_l}}{\sum_m x_m e^{z_m}}, \qquad
   R = -E \ln \mathrm{softmax}_n (Y^\top b / \|b\|) ,

with logits of attention z and a decoder Y, both from zero. There are two next tokens of probability
1/2 here. Common tokens have the share ``share``, each as much as any other; each distinct token of
n has ``ratio`` of the share of the one before it. At ratio 1, by exchange of tokens and of the two
next tokens, training closes on three scalars and keeps common :math:`z_c` + 2 distinct
:math:`z_d = 0`. The paper has several queries, and a decoder that learns faster than attention;
both have one rate here.

:common: number of common tokens
:distinct: number of distinct tokens of each next token
:share: share of the common tokens in a sequence
:ratio: share of a distinct token over that of the one before it
:z: logits of attention
:Y: decoder, token by next token
:z_c: logit of a common token
:z_d: logit of the first distinct token
:Y_d: weight of the first distinct token for its next token; for the other it is minus this
:attention_c: attention on the common tokens
:attention_d: attention on the first distinct token, over that on all distinct ones
:T_scan: attention on the common tokens is half of their share
"""

import numpy as np

SOURCE = "arXiv 2305.16380"
eta, steps = 1.0, 3000
limits = ("common >= 1", "distinct >= 1", "common + 2*distinct <= 20000", "0 < share < 1",
          "0 < ratio <= 1")  # fmt: skip
events = {"T_scan": "attention_c <= share/2"}


def start(common=20, distinct=40):
    """Trained arrays at step 0.

    Parameters
    ----------
    common, distinct : int
    """
    tokens = common + 2 * distinct
    return {"z": np.zeros(tokens), "Y": np.zeros((tokens, 2))}


def names(common):
    """Name of each scalar and an entry that it stands for.

    Parameters
    ----------
    common : int
    """
    return {"z_c": ("z", 0), "z_d": ("z", common), "Y_d": ("Y", common, 0)}


def law(common, distinct, share=0.5, ratio=1.0):
    """The sequence of each next token.

    Parameters
    ----------
    common, distinct : int
    share, ratio : float
    """
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
    """Loss of one sequence.

    Parameters
    ----------
    theta : dict of arrays
    sample : dict
        ``x``, shares of the tokens, and ``next``, shape (2,).
    xp : array namespace
    """
    b = _attention(theta, sample, xp)
    return -xp.log_softmax(theta["Y"].T @ b / xp.sqrt(xp.sum(b**2))) @ sample["next"]


def observe(theta, sample, xp, common, distinct):
    """Attention on the common tokens, and on the first distinct one.

    Parameters
    ----------
    theta, sample : dict
    xp : array namespace
    common, distinct : int
    """
    b = _attention(theta, sample, xp)
    first = xp.max(sample["next"] * xp.stack([b[common], b[common + distinct]]))
    on_common = xp.sum(b[:common])
    return {"attention_c": on_common, "attention_d": first / (1 - on_common)}
