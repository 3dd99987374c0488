r"""Deep linear networks learn one mode after another (Saxe, McClelland, Ganguli 2014).

``layers`` square matrices are trained on whitened inputs. With singular values :math:`s_k` of the
input-output correlation in a constant ratio r, the population risk is exactly

.. math:: R = \tfrac12 \| W_L \cdots W_1 - \mathrm{diag}(s) \|^2, \qquad s_k = s_1 r^{k-1}.

In the basis of the target's singular vectors, each of the L layers starts at :math:`a_0^{1/L}`
times the identity, with strength :math:`a_0` of a mode: the start is aligned and balanced. The
entries ``(k, k)`` of all layers then stay equal to one scalar ``w_k`` per mode; all other entries
stay zero. With two layers, the strength of a mode is the square of its scalar, a sigmoid in time.
From an aligned but unbalanced start, training closes on one scalar per mode and layer; without
alignment it does not close. The gradient flow conserves :math:`W_{l+1}^T W_{l+1} - W_l W_l^T`.

:D: size of the square matrices, and number of modes
:layers: number of layers
:a0: strength of every mode at the start
:s1: largest singular value of the target
:ratio: ratio of consecutive singular values of the target
:W: matrices of the layers
:s: singular values of the target
:w*: entry of a mode in every layer, the first mode being the largest
:T*: the mode reaches half of its final strength
"""

import numpy as np

SOURCE = "arXiv 1312.6120"
eta, steps = 0.01, 1500
limits = (
    "D >= 1",
    "1 <= layers <= 200",
    "layers*D**2 <= 200000",
    "a0 > 0",
    "s1 > 0",
    "ratio > 0",
)


def start(D=4, layers=2, a0=1e-3):
    return {"W": np.broadcast_to(a0 ** (1 / layers) * np.eye(D), (layers, D, D))}


def fixed(D, s1=4.0, ratio=0.5):
    return {"s": s1 * ratio ** np.arange(D)}


def risk(theta, xp, D, layers):
    product = xp.eye(D)
    for layer in range(layers):
        product = theta["W"][layer] @ product
    return xp.sum((product - xp.diag(theta["s"])) ** 2) / 2


def names(D):
    return {f"w{k + 1}": ("W", 0, k, k) for k in range(D)}


def events(D):
    return {f"T{k + 1}": f"w{k + 1}**layers >= s1*ratio**{k}/2" for k in range(D)}
