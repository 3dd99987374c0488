r"""Facts learned in one direction are not known in the other (Zhu et al. 2024).

A fact is a pair of tokens. A sentence is one token of a fact, a forward or backward arrow, and the
other token of the fact. One layer of attention, with logits z and the arrow r as query, and a
decoder Y predict the last token from the token and the arrow:

.. math:: b_l = \mathrm{softmax}(z_{r l}) \text{ over the token and the arrow r}, \qquad
   R = -E \ln \mathrm{softmax}(Y^\top b / \|b\|) ,

both zero at the start; :math:`b_l` is the attention to l. ``both`` facts are trained in both
directions; ``one`` facts are trained forwards only, and another ``one`` facts backwards only. The
untrained directions form the held-out law. Training increases the weight from one token to another,
but not the weight back. Exchanges of facts, and of forwards with backwards, are symmetries, so the
number of scalars does not depend on the numbers of facts.

:both: number of facts trained in both directions
:one: number of facts trained forwards only, and of facts trained backwards only
:z: logits of attention, arrow by token
:Y: decoder, token by next token
:z_arrow: logit of an arrow
:z_token: logit of a token that is no arrow
:Y_right: weight of a token for the token that follows it
:Y_wrong: weight of a token for another token that follows its arrow
:Y_never: weight of a token for one that never follows its arrow
:Y_after: weight of an arrow for a token that follows it
:Y_before: weight of an arrow for a token that never follows it
:known: probability of the right token
:T_learned: the right token has mean probability .99 over trained sentences
"""

import numpy as np

SOURCE = "arXiv 2405.04669"
eta, steps = 5.0, 3000
limits = ("both >= 2", "one >= 2", "both + 2*one <= 40")
names = {
    "z_arrow": ("z", 0, 0), "z_token": ("z", 0, 2), "Y_right": ("Y", 2, 3), "Y_wrong": ("Y", 2, 5),
    "Y_never": ("Y", 2, 0), "Y_after": ("Y", 0, 3), "Y_before": ("Y", 0, 0),
}  # fmt: skip
events = {"T_learned": "known >= 99/100"}
panels = [("known", "held_out_known"), ("log risk", "held_out_risk")]


def start(both=4, one=2):
    tokens = 2 + 2 * (both + 2 * one)
    return {"z": np.zeros((2, tokens)), "Y": np.zeros((tokens, tokens))}


def _sentences(both, one, trained):
    """Yield numbers (token, arrow, next token); arrows are 0, 1, facts (2, 3), (4, 5), ..."""
    for fact in range(both + 2 * one):
        for arrow in (0, 1):
            known = fact < both or (fact < both + one) == (arrow == 0)
            if known == trained:
                yield 2 + 2 * fact + arrow, arrow, 3 + 2 * fact - arrow


def _law(both, one, trained):
    sentences, tokens = list(_sentences(both, one, trained)), np.eye(2 + 2 * (both + 2 * one))
    for token, arrow, last in sentences:
        shown = tokens[token] + tokens[arrow]
        yield 1 / len(sentences), {"shown": shown, "arrow": np.eye(2)[arrow], "last": tokens[last]}


def law(both, one):
    """Trained sentences (the ``shown`` tokens, ``arrow`` and ``last``) with their probabilities."""
    return _law(both, one, True)


def held_out(both, one):
    """Sentences in the untrained directions, with their probabilities."""
    return _law(both, one, False)


def _chances(theta, sample, xp):
    b = sample["shown"] * xp.exp(sample["arrow"] @ theta["z"])
    return xp.log_softmax(theta["Y"].T @ (b / xp.sqrt(xp.sum(b**2)))) @ sample["last"]


def loss(theta, sample, xp):
    """Cross-entropy of the last token of one sentence."""
    return -_chances(theta, sample, xp)


def observe(theta, sample, xp):
    """Probability that the model gives to the true last token."""
    return {"known": xp.exp(_chances(theta, sample, xp))}
