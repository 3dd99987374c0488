r"""A one-layer transformer on a binary Markov chain (Makkuva et al. 2024).

The chain leaves state 0 with probability p and state 1 with probability q; the model predicts the
next symbol from the last symbol and is trained by cross-entropy. With rank-one weights, one scalar
e stands for the embedding and one scalar w for attention and feed-forward layer. The logit of the
next symbol 1 is larger after symbol 1 than after symbol 0 by

.. math:: z = e^2 (1 + 2 w |w|),

and a bias, set to its optimum here, shifts both logits: with :math:`m = \tfrac12 \ln \tfrac pq +
\mathrm{asinh} [\tfrac{p - q}{2 \sqrt{pq}} e^{-z/2}]` they are :math:`m \pm z/2`. The risk in (e, w)
has an exact closed form.

The flow conserves :math:`e^2 - w^2 - \mathrm{sgn}(w) \ln |w|`. For p + q < 1 the separatrix of the
saddle :math:`w = -1/\sqrt 2, e = 0` divides the plane (e, w). Starts on the ``bigram`` side
converge to the curve of global minima, where the transformer outputs the transition probabilities
of the chain. Starts on the ``unigram`` side converge to e = 0, where the transformer outputs the
stationary probabilities. The default start is on the ``bigram`` side, near the separatrix.

:p: probability that the chain leaves 0
:q: probability that the chain leaves 1
:e0: embedding at the start
:w0: attention and feed-forward weight at the start
:e: embedding, also that of the output
:w: attention and feed-forward weight, merged
:z: difference of the logits after 1 and after 0
:bigram: z exceeds half of its value at the global minima
"""

import numpy as np

SOURCE = "arXiv 2406.03072"
eta, steps = 0.1, 3000
limits = ("0 < p < 1", "0 < q < 1")
names = {"e": ("e", 0), "w": ("w", 0)}
events = {"bigram": "2*z/log((1 - p)*(1 - q)/(p*q)) >= 1"}
panels = [("e", "w"), ("z",), ("risk",)]


def start(e0=1.1, w0=-1.5):
    return {"e": np.full(1, e0), "w": np.full(1, w0)}


def gap(theta, xp):
    """Logit of next symbol 1 after symbol 1, minus that after symbol 0."""
    e, w = theta["e"][0], theta["w"][0]
    return e**2 * (1 + 2 * w * xp.abs(w))


def risk(theta, xp, p=0.1, q=0.1):
    """Population risk at the optimal bias."""
    z, loss = gap(theta, xp), xp.softplus
    m = xp.log(p / q) / 2 + xp.arcsinh((p - q) / (2 * xp.sqrt(p * q)) * xp.exp(-z / 2))
    after_0 = p * loss(z / 2 - m) + (1 - p) * loss(m - z / 2)
    after_1 = q * loss(m + z / 2) + (1 - q) * loss(-m - z / 2)
    return (q * after_0 + p * after_1) / (p + q)


def observables(theta, xp):
    return {"z": gap(theta, xp)}
