r"""A two-layer network learns the parity of a few hidden bits (Barak et al. 2022).

Inputs are uniform on the hypercube :math:`\{-1, 1\}^D`, the label is the product of the first k
bits. The network :math:`\sum_r a_r\, \mathrm{relu}(w_r \cdot x + b_r)` is trained by the squared
error, all layers, from :math:`w_r = (1/D, \dots, 1/D)`.

By symmetry a neuron has one weight for the bits of the parity and one for all others, so only two
sums of bits matter: :math:`(k+1)(D-k+1)` configurations stand for :math:`2^D` inputs. This
reduction is declared here. It is held against every entry where all inputs can be listed, and runs
at any D. Where a bias is minus a sum of bits over D, as at D = 50, the start lies on a kink of the
network, and rounding decides on which side training begins.

:D: dimension of the hypercube
:k: bits of the parity
:half: neurons of each sign of the output weight
:W: weights of the neurons
:a: output weights
:b: biases
:u_*: weight of the bits of the parity in this neuron
:v_*: weight of all other bits in this neuron
:a_*: output weight of this neuron
:b_*: bias of this neuron
:T_parity: the risk has fallen to a quarter
"""

import itertools

import numpy as np

from dynamics.models.counts import multinomial

SOURCE = "arXiv 2207.08799"
eta, steps = 0.2, 1500
limits = ("1 <= k", "k < D", "D <= 1000", "half >= 2", "half <= 20")
events = {"T_parity": "risk <= 1/8"}


def start(D=8, half=6):
    """Trained arrays at step 0.

    Parameters
    ----------
    D, half : int
    """
    a, b = np.repeat([0.5, -0.5], half), np.tile(np.linspace(-D, D, half) / D, 2)
    return {"W": np.full((2 * half, D), 1 / D), "a": a, "b": b}


def law(D, k=3):
    """Every input with its probability and its label.

    Parameters
    ----------
    D, k : int
    """
    for signs in itertools.product((-1.0, 1.0), repeat=D):
        yield 0.5**D, {"x": np.array(signs), "y": np.prod(signs[:k])}


def loss(theta, sample, xp):
    """Loss of one input.

    Parameters
    ----------
    theta : dict of arrays
    sample : dict
        ``x``, shape (D,), and ``y``.
    xp : array namespace
    """
    hidden = xp.relu(theta["W"] @ sample["x"] + theta["b"])
    return (theta["a"] @ hidden - sample["y"]) ** 2 / 2


def names(half, k):
    """An entry of each scalar.

    Parameters
    ----------
    half, k : int
    """
    each = {"u": ("W", 0), "v": ("W", k), "a": ("a",), "b": ("b",)}
    return {f"{n}_{r}": (e[0], r, *e[1:]) for r in range(2 * half) for n, e in each.items()}


def sizes(D, half, k):
    """Entries that each scalar stands for.

    Parameters
    ----------
    D, half, k : int
    """
    each = {"u": k, "v": D - k, "a": 1, "b": 1}
    return {f"{name}_{r}": size for r in range(2 * half) for name, size in each.items()}


def configurations(D, k):
    """Sums of the bits of the parity and of all others, with their probability and the label.

    Parameters
    ----------
    D, k : int
    """
    for p, (minus, plus) in multinomial(k, (0.5, 0.5)):
        for q, (below, above) in multinomial(D - k, (0.5, 0.5)):
            yield p * q, {"own": plus - minus, "rest": above - below, "y": (-1.0) ** minus}


def reduced(scalars, sample, xp, half):
    """Loss of one configuration.

    Parameters
    ----------
    scalars : dict of numbers
    sample : dict
        ``own`` and ``rest``, sums of bits, and ``y``.
    xp : array namespace
    half : int
    """
    u, v, a, b = (xp.stack([scalars[f"{n}_{r}"] for r in range(2 * half)]) for n in "uvab")
    hidden = xp.relu(u * sample["own"] + v * sample["rest"] + b)
    return (a @ hidden - sample["y"]) ** 2 / 2
