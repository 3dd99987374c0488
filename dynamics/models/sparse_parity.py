r"""A two-layer network learns the parity of a few hidden bits (Barak et al. 2022).

Inputs are uniform on the hypercube :math:`\{-1, 1\}^D`, and the label is the product of the first k
bits. The network :math:`\sum_r a_r\, \mathrm{relu}(w_r \cdot x + b_r)` of neurons r is trained in
all layers by the squared error, from :math:`w_r = (1/D, \dots, 1/D)`.

By symmetry a neuron has one weight for all bits of the parity and one weight for all other bits.
The output therefore depends only on the sum of the parity's bits and on the sum of the other bits:
:math:`(k+1)(D-k+1)` configurations replace :math:`2^D` inputs. The declared reduction to
configurations of the two sums runs at any D; at small D it is compared with training of every
entry. At the start the input of a neuron is the mean of all bits plus its bias. If this is 0 for
some bits, as at D = 50, the start lies on a kink of the network, whose side rounding decides.

:D: dimension of the hypercube
:k: number of bits of the parity
:half: number of neurons of each sign of the output weight
:W: weights of the neurons
:a: output weights
:b: biases
:u_*: weight of the bits of the parity in this neuron
:v_*: weight of all other bits in this neuron
:a_*: output weight of this neuron
:b_*: bias of this neuron
:T_parity: the risk has fallen to a quarter of 1/2, that of a zero output
"""

import itertools

import numpy as np

from dynamics.models.counts import multinomial

SOURCE = "arXiv 2207.08799"
eta, steps = 0.2, 1500
limits = ("1 <= k", "k < D", "D <= 1000", "half >= 2", "half <= 20")
events = {"T_parity": "risk <= 1/8"}


def start(D=8, half=6):
    a, b = np.repeat([0.5, -0.5], half), np.tile(np.linspace(-D, D, half) / D, 2)
    return {"W": np.full((2 * half, D), 1 / D), "a": a, "b": b}


def law(D, k=3):
    """Every input ``x``, shape (D,), with its label ``y`` and its probability."""
    for signs in itertools.product((-1.0, 1.0), repeat=D):
        yield 0.5**D, {"x": np.array(signs), "y": np.prod(signs[:k])}


def loss(theta, sample, xp):
    """Half of the squared error for one input."""
    hidden = xp.relu(theta["W"] @ sample["x"] + theta["b"])
    return (theta["a"] @ hidden - sample["y"]) ** 2 / 2


def names(half, k):
    each = {"u": ("W", 0), "v": ("W", k), "a": ("a",), "b": ("b",)}
    return {f"{n}_{r}": (e[0], r, *e[1:]) for r in range(2 * half) for n, e in each.items()}


def sizes(D, half, k):
    each = {"u": k, "v": D - k, "a": 1, "b": 1}
    return {f"{name}_{r}": size for r in range(2 * half) for name, size in each.items()}


def configurations(D, k):
    """Sum of bits of the parity ``own``, sum of other bits ``rest``, with label and probability."""
    for p, (minus, plus) in multinomial(k, (0.5, 0.5)):
        for q, (below, above) in multinomial(D - k, (0.5, 0.5)):
            yield p * q, {"own": plus - minus, "rest": above - below, "y": (-1.0) ** minus}


def reduced(scalars, sample, xp, half):
    """Half of the squared error for one configuration of bit sums."""
    u, v, a, b = (xp.stack([scalars[f"{n}_{r}"] for r in range(2 * half)]) for n in "uvab")
    hidden = xp.relu(u * sample["own"] + v * sample["rest"] + b)
    return (a @ hidden - sample["y"]) ** 2 / 2
