r"""A one-layer transformer on a binary Markov chain (Makkuva et al. 2024).

The chain leaves 0 with probability p and 1 with probability q; the next symbol is predicted from
the last one, by cross-entropy. On rank-one weights the embedding is one number e, and attention and
feed-forward layer are one number w. The logit after 1 exceeds the logit after 0 by

.. math:: z = e^2 (1 + 2 w |w|),

and a bias, here at its optimum, shifts both: with :math:`m = \tfrac12 \ln \tfrac pq +
\mathrm{asinh} [\tfrac{p - q}{2 \sqrt{pq}} e^{-z/2}]` they are :math:`m \pm z/2`. The risk in (e, w)
is closed (``risk``, exact).

The flow keeps :math:`e^2 - w^2 - \mathrm{sgn}(w) \ln |w|`. With p + q < 1 its saddle at
:math:`w = -1/\sqrt 2, e = 0` divides the plane: one side ends on the curve of global minima, where
the transformer is the chain (``bigram``), the other at e = 0, where it knows only how frequent each
symbol is (``unigram``). The default start is on the good side, near the separatrix.

:p: probability that the chain leaves 0
:q: probability that the chain leaves 1
:e0: embedding at the start
:w0: attention and feed-forward weight at the start
:e: embedding, also that of the output
:w: attention and feed-forward weight, merged
:z: difference of the logits after 1 and after 0
:bigram: z is above half of its value at the global minima
"""

import numpy as np

SOURCE = "arXiv 2406.03072"
eta, steps = 0.1, 3000
limits = ("0 < p < 1", "0 < q < 1")
names = {"e": ("e", 0), "w": ("w", 0)}
events = {"bigram": "2*z/log((1 - p)*(1 - q)/(p*q)) >= 1"}
panels = [("e", "w"), ("z",), ("risk",)]


def start(e0=1.1, w0=-1.5):
    """Trained arrays at step 0.

    Parameters
    ----------
    e0, w0 : float
    """
    return {"e": np.full(1, e0), "w": np.full(1, w0)}


def gap(theta, xp):
    """Difference of the logits after 1 and after 0.

    Parameters
    ----------
    theta : dict of arrays
    xp : array namespace
    """
    e, w = theta["e"][0], theta["w"][0]
    return e**2 * (1 + 2 * w * xp.abs(w))


def risk(theta, xp, p=0.1, q=0.1):
    """Population risk, at the best bias.

    Parameters
    ----------
    theta : dict of arrays
    xp : array namespace
    p, q : float
    """
    z, loss = gap(theta, xp), xp.softplus
    m = xp.log(p / q) / 2 + xp.arcsinh((p - q) / (2 * xp.sqrt(p * q)) * xp.exp(-z / 2))
    after_0 = p * loss(z / 2 - m) + (1 - p) * loss(m - z / 2)
    after_1 = q * loss(m + z / 2) + (1 - q) * loss(-m - z / 2)
    return (q * after_0 + p * after_1) / (p + q)


def observables(theta, xp):
    """Difference of the logits.

    Parameters
    ----------
    theta : dict of arrays
    xp : array namespace
    """
    return {"z": gap(theta, xp)}
