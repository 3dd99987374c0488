r"""An associative memory whose loss spikes at large steps (Cabannes, Simsek, Bietti 2024).

Two tokens with the embeddings :math:`e_1 = (1, 0)` and :math:`e_2 = (\alpha, \sqrt{1 - \alpha^2})`
occur with probabilities p and 1 - p, and each has its own label. The memory W gives the logits
:math:`W^T e`. W is trained by cross-entropy from W = 0, with both tokens in each step, as in the
paper's experiment on loss spikes.

The two columns of W stay opposite, so training closes on two scalars, or equivalently on the
margins of the two tokens. A margin is the logit of the token's own label minus the logit of the
other label. Along the gradient flow, with the logistic function :math:`\sigma`, the margins obey

.. math:: \dot m_1 = 2 p\, \sigma(-m_1) - 2 \alpha (1 - p)\, \sigma(-m_2), \qquad
   \dot m_2 = 2 (1 - p)\, \sigma(-m_2) - 2 \alpha p\, \sigma(-m_1),

so tokens of correlation :math:`\alpha > 0` decrease each other's margin. At :math:`\alpha = 0`, and
at p = 1/2, a margin never decreases, even in large steps.

:p: probability of the first token
:alpha: correlation of the embeddings
:W: memory, dimension of the embedding by label
:w_1: weight of the first dimension for the first label, half of the paper's :math:`\gamma_0`
:w_2: weight of the second dimension for the first label, half of the paper's :math:`\gamma_1`
:m_1: margin of the first token
:m_2: margin of the second token
:error: probability of a token with margin <= 0
:T_low: the risk is at most a tenth
"""

import numpy as np

SOURCE = "arXiv 2402.18724"
eta, steps = 10.0, 34
limits = ("0 < p < 1", "0 <= alpha < 1")
names = {"w_1": ("W", 0, 0), "w_2": ("W", 1, 0)}
panels = [("risk", "error"), ("m_1", "m_2")]
events = {"T_low": "risk <= 0.1"}


def start():
    return {"W": np.zeros((2, 2))}


def law(p=0.75, alpha=0.95):
    """Both tokens ``x`` with their one-hot labels ``y`` and their probabilities."""
    yield p, {"x": np.array([1.0, 0.0]), "y": np.array([1.0, 0.0])}
    yield 1 - p, {"x": np.array([alpha, (1 - alpha**2) ** 0.5]), "y": np.array([0.0, 1.0])}


def logits(theta, sample):
    return sample["x"] @ theta["W"]


def loss(theta, sample, xp):
    """Cross-entropy of one token."""
    return -sample["y"] @ xp.log_softmax(logits(theta, sample))


def observe(theta, sample, xp):
    """Error of one token: 1 for a margin <= 0, else 0."""
    return {"error": xp.where(logits(theta, sample) @ (2 * sample["y"] - 1) > 0, 0.0, 1.0)}


def observables(theta, xp, alpha):
    """Margins of both tokens."""
    first, second = theta["W"][:, 0] - theta["W"][:, 1]
    return {"m_1": first, "m_2": -alpha * first - xp.sqrt(1 - alpha**2) * second}
