r"""Facts learned in one direction are not known in the other (Zhu et al. 2024).

Facts join pairs of tokens. A sentence is a token, an arrow and the other token of its fact; the
last one is predicted from the two before it by one layer of attention and a decoder,

.. math:: b_l = \mathrm{softmax}(z_{r l}) \text{ over the token and the arrow r}, \qquad
   R = -E \ln \mathrm{softmax}(Y^\top b / \|b\|) ,

all from zero. ``both`` facts are trained in both directions; ``one`` facts are trained forwards
alone, and as many backwards alone. The other directions of these are held out: the increase of
weights from a token to another does not increase those of the way back. By exchange of facts, and
of forwards with backwards, it closes on a number of scalars that does not depend on the sizes.

:both: facts that are trained in both directions
:one: facts that are trained forwards alone, and backwards alone
:z: logits of attention, arrow by token
:Y: decoder, token by next token
:z_arrow: logit of an arrow
:z_token: logit of another token
:Y_right: weight of a token for the one that follows it
:Y_wrong: weight of a token for another one that follows its arrow
:Y_never: weight of a token for one that never follows its arrow
:Y_after: weight of an arrow for a token that follows it
:Y_before: weight of an arrow for a token that never follows it
:known: probability of the right token
:T_learned: every trained sentence is known, with probability .99
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
    """Trained arrays at step 0.

    Parameters
    ----------
    both, one : int
    """
    tokens = 2 + 2 * (both + 2 * one)
    return {"z": np.zeros((2, tokens)), "Y": np.zeros((tokens, tokens))}


def _sentences(both, one, trained):
    """Token, arrow and next token; of each fact the first token is even, after the two arrows."""
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
    """The sentences of training.

    Parameters
    ----------
    both, one : int
    """
    return _law(both, one, True)


def held_out(both, one):
    """The other directions.

    Parameters
    ----------
    both, one : int
    """
    return _law(both, one, False)


def _chances(theta, sample, xp):
    b = sample["shown"] * xp.exp(sample["arrow"] @ theta["z"])
    return xp.log_softmax(theta["Y"].T @ (b / xp.sqrt(xp.sum(b**2)))) @ sample["last"]


def loss(theta, sample, xp):
    """Loss of one sentence.

    Parameters
    ----------
    theta : dict of arrays
    sample : dict
        ``shown``, the tokens, ``arrow`` and ``last``.
    xp : array namespace
    """
    return -_chances(theta, sample, xp)


def observe(theta, sample, xp):
    """Probability of the right token.

    Parameters
    ----------
    theta, sample : dict
    xp : array namespace
    """
    return {"known": xp.exp(_chances(theta, sample, xp))}
