r"""A two-layer network climbs a staircase of monomials (Abbe, Boix-Adsera, Misiakiewicz 2022).

Inputs are uniform on the hypercube :math:`\{-1, 1\}^D` and enumerated exactly. The network
:math:`\frac1m \sum_i a_i \tanh(w_i \cdot x + b_i)` is trained in all layers by the squared error
from :math:`w_i = 0`, which is the limit of the paper's random starts at large D. The targets are
``staircase``, :math:`x_1 + x_1 x_2 + x_1 x_2 x_3`, ``leap``, :math:`x_1 + x_1 x_2 x_3`, and
``parity``, :math:`x_1 x_2 x_3`.

``F_..`` are Fourier coefficients of the network, ``w_k`` is the root mean square over neurons of
the weights of coordinate k. Weights of a coordinate outside the target stay 0, so training closes
on the same scalars for every D. In a target with the merged-staircase property, every monomial has
at most one coordinate that no earlier monomial has. The merged-staircase property is necessary for
learning the target, and nearly sufficient in wide networks. A monomial with two coordinates that no
earlier monomial has is not learned from w = 0; networks with few neurons may stop earlier.

:D: dimension of the hypercube
:neurons: number of neurons
:target: staircase, leap or parity
:W: weights of the neurons
:a: output weights
:b: biases
:F_*: Fourier coefficient of the network for the product of these coordinates
:w_*: root mean square of the weights of this coordinate
:T_*: half of the coefficient of this monomial is learned
"""

import itertools

import numpy as np

SOURCE = "arXiv 2202.08658"
eta, steps = 1.0, 3000
limits = ("3 <= D <= 20", "neurons >= 2", "neurons*D <= 5000", "target in staircase, leap, parity")
PRODUCTS = {"staircase": ([0], [0, 1], [0, 1, 2]), "leap": ([0], [0, 1, 2]), "parity": ([0, 1, 2],)}
panels = [("risk",), ("F_1", "F_12", "F_123"), ("w_1", "w_2", "w_3")]
events = {f"T_{name}": f"F_{name} >= 1/2" for name in ("1", "12", "123")}


def start(D=5, neurons=12):
    a = np.linspace(-1.0, 1.0, neurons)
    return {"W": np.zeros((neurons, D)), "a": a, "b": np.roll(a, neurons // 3)}


def law(D, target="staircase"):
    """Every input ``x``, shape (D,), with its label ``y`` and its probability."""
    for signs in itertools.product((-1.0, 1.0), repeat=D):
        x = np.array(signs)
        yield 0.5**D, {"x": x, "y": sum(np.prod(x[term]) for term in PRODUCTS[target])}


def network(theta, x, xp):
    """Output of the network for one input."""
    return theta["a"] @ xp.tanh(theta["W"] @ x + theta["b"]) / len(theta["a"])


def loss(theta, sample, xp):
    """Half of the squared error for one input."""
    return (network(theta, sample["x"], xp) - sample["y"]) ** 2 / 2


def observe(theta, sample, xp):
    """Product of the output and each monomial; the mean over inputs is a Fourier coefficient."""
    x, F = sample["x"], network(theta, sample["x"], xp)
    return {
        "F_1": F * x[0],
        "F_12": F * x[0] * x[1],
        "F_123": F * x[0] * x[1] * x[2],
    }


def observables(theta, xp):
    """Root mean square over neurons of the weights of each of the first three coordinates."""
    return {f"w_{k + 1}": xp.sqrt(xp.mean(theta["W"][:, k] ** 2)) for k in range(3)}
