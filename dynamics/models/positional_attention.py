r"""Positional attention learns which patches belong together (Jelassi, Sander, Li 2022).

An image has D patches in sets of C. All patches of one set, the signal set, carry the label y; a
patch of the other sets carries +1 or -1 with probability q/2 each, else 0. One layer of attention
by positions mixes the patches, and a polynomial of degree p sums them up:

.. math:: S = \mathrm{softmax}(s A), \quad o_i = D \sum_j S_{ij} \langle v, X_j \rangle, \quad
   F = \sum_i o_i^p + \nu o_i, \quad R = E \log(1 + e^{-y F})

The diagonal of A stays at beta. Noise of the patches is orthogonal to the feature and never enters
F, so v has one entry, alpha (Lemma 4.2). By exchange of patches within sets, and of sets, A stays
at two numbers, gamma within sets and rho between them (Lemma 4.1). The sum over all samples is then
one over the numbers of +1 and -1 in each set, declared here by central moments: a patch deviates
from the mean of its set by its own share alone, so nothing large cancels.

:D: number of patches
:C: patches of a set
:q: probability that a patch of a random set carries a feature
:p: odd degree of the activation
:nu: linear part of the activation
:beta: diagonal of A, not trained
:scale: the factor s in the exponent of the softmax
:alpha0: alpha at the start, :math:`\nu^{1/(p-1)}` where it is None
:random_sets: any, or mixed, where no random set is all of one sign
:v: value of the feature
:A: logits of attention
:alpha: value of the feature
:gamma: logit of a patch of the same set
:rho: logit of a patch of another set
:G: D times the attention of a patch to its own set
:error: share of samples without y F > 0
:T0: attention takes over the growth of the signal
:T1: half of the attention falls inside the own set
:T1_paper: the same as the paper puts it, for this horizon
:event_III: alpha, which fell after T1, grows again
:patch_association: every row puts its own set on top
"""

import itertools
from math import comb

import numpy as np

from dynamics.models.counts import multisets

SOURCE = "arXiv 2210.09221"
TIE = 500
"""Roundings of the terms of F below which its sign counts as an error."""
eta, steps = 0.02, 100_000
limits = (
    "D >= 4",
    "2 <= C < D",
    "D % C <= 0",
    "0 < q <= 1",
    "p >= 3",
    "p % 2 >= 1",
    "nu > 0",
    "scale > 0",
    "random_sets in any, mixed",
)
held_at = {"D": 8, "C": 2}
names = {"alpha": ("v", 0), "gamma": ("A", 0, 1), "rho": ("A", 0, -1)}
events = {
    "T0": "d_G / G >= d_alpha / alpha while alpha > 0",
    "T1": "G >= D/2 after T0",
    "T1_paper": "gamma exceeds the maximum of abs(rho) after T0",
    "event_III": "alpha rises again after T1",
    "patch_association": "min(beta, gamma) > rho",
}
panels = (("alpha",), ("gamma", "rho"), ("log G",), ("log risk",))


def start(D=16, p=3, nu=1e-3, beta=1.0, alpha0=None):
    """Trained arrays at step 0.

    Parameters
    ----------
    D, p : int
    nu, beta : float
    alpha0 : float or None
    """
    value = nu ** (1 / (p - 1)) if alpha0 is None else alpha0
    return {"v": np.full(1, value), "A": beta * np.eye(D)}


def fixed(D, C=4):
    """The set of each patch.

    Parameters
    ----------
    D, C : int
    """
    return {"sets": np.arange(D) // C}


def law(D, C, q=0.5, random_sets="any"):
    """Every sample, by its signal set and label.

    Parameters
    ----------
    D, C : int
    q : float
    random_sets : str
    """
    chances, sets = {1: q / 2, -1: q / 2, 0: 1 - q}, D // C
    mixed = random_sets == "mixed"
    share = (1 - 2 * (q / 2) ** C if mixed else 1.0) ** (sets - 1)
    for rest in itertools.product(chances, repeat=D - C):
        if mixed and any(abs(sum(rest[k : k + C])) == C for k in range(0, D - C, C)):
            continue
        chance = np.prod([chances[x] for x in rest]) / (2 * sets * share)
        for own, y in itertools.product(range(0, D - C + 1, C), (1.0, -1.0)):
            x = np.array([*rest[:own], *[y] * C, *rest[own:]])
            yield chance, {"X": x[:, None], "y": y}


def shares(theta, sample, xp, D, p, nu, scale):
    """Contribution of each patch to F, shape (D,).

    Parameters
    ----------
    theta, sample, xp
        As of `loss`.
    D, p : int
    nu, scale : float
    """
    S = xp.softmax(scale * theta["A"], axis=-1)
    o = D * (S @ (sample["X"] @ theta["v"]))
    return o**p + nu * o


def loss(theta, sample, xp, D, p, nu, beta, scale=1.0):
    """Loss of one sample.

    Parameters
    ----------
    theta : dict of arrays
    sample : dict
        ``X``, shape (D, 1), or (D, d) with noise, and ``y``.
    xp : array namespace
    D, p : int
    nu, beta, scale : float
    """
    held = {**theta, "A": xp.where(xp.eye(D) > 0, beta, theta["A"])}
    return xp.softplus(-sample["y"] * xp.sum(shares(held, sample, xp, D, p, nu, scale)))


def eps(array):
    """Relative rounding of the numbers of an array.

    Parameters
    ----------
    array : float array
    """
    return float(np.finfo(array.dtype).eps)


def observe(theta, sample, xp, D, p, nu, scale):
    """Whether a sample is on the wrong side.

    Parameters
    ----------
    theta, sample, xp, D, p, nu, scale
        As of `loss`.
    """
    parts = shares(theta, sample, xp, D, p, nu, scale)
    right = sample["y"] * xp.sum(parts) > TIE * eps(parts) * xp.sum(xp.abs(parts))
    return {"error": xp.where(right, 0.0, 1.0)}  # also where it is no number


def observables(theta, xp, D, scale):
    """Attention to the own set.

    Parameters
    ----------
    theta : dict of arrays
    xp : array namespace
    D : int
    scale : float
    """
    same = theta["sets"][:, None] == theta["sets"][None, :]
    return {"G": xp.sum(same * xp.softmax(scale * theta["A"], axis=-1))}


def sizes(D, C):
    """Entries that each scalar stands for.

    Parameters
    ----------
    D, C : int
    """
    return {"alpha": 1, "gamma": D * (C - 1), "rho": D * (D - C)}


def configurations(D, C, q, random_sets):
    """Numbers of +1 and of -1 in the signal set and in each random set.

    Parameters
    ----------
    D, C : int
    q : float
    random_sets : str
    """
    mixed = random_sets == "mixed"
    share = 1 - 2 * (q / 2) ** C if mixed else 1.0
    kinds = [
        (comb(C, a) * comb(C - a, b) * (q / 2) ** (a + b) * (1 - q) ** (C - a - b) / share, (a, b))
        for a in range(C + 1)
        for b in range(C + 1 - a)
        if not (mixed and C in (a, b))
    ]
    for probability, sets in multisets(kinds, D // C - 1):
        yield probability, np.array([(C, 0), *sets], dtype=float)


def weights(scalars, xp, D, C, beta, scale):
    """Attention of a patch to itself less that to a mate, to a mate, to one of another set.

    No exponential overflows, and where the first is small no digit of it is lost.

    Parameters
    ----------
    scalars, xp
        As of `reduced`.
    D, C : int
    beta, scale : float
    """
    b, g, r = scale * beta, scale * scalars["gamma"], scale * scalars["rho"]
    top = xp.stop_gradient(xp.maximum(b, xp.maximum(g, r)))
    own, mate, other = xp.exp(b - top), xp.exp(g - top), xp.exp(r - top)
    B = own + (C - 1) * mate + (D - C) * other
    sign = xp.where(b > g, 1.0, -1.0)
    apart = -sign * xp.where(b > g, own, mate) * xp.expm1(sign * (g - b))
    return apart / B, mate / B, other / B


def moments(scalars, sample, xp, D, C, p, nu, beta, scale):
    """Contribution of each central moment of each set to F, shape (p, D / C).

    Parameters
    ----------
    scalars, sample, xp, D, C, p, nu, beta, scale
        As of `reduced`.
    """
    apart, _, other = weights(scalars, xp, D, C, beta, scale)
    u = D * scalars["alpha"] * apart
    a, b = sample[:, 0], sample[:, 1]
    z = a - b
    m = z / C
    mean = D * scalars["alpha"] * (m + other * (z.sum() - D * m))
    added = [C * (mean**p + nu * mean)]
    for k in range(2, p + 1):
        moment = a * (1 - m) ** k + b * (-1 - m) ** k + (C - a - b) * (-m) ** k
        added.append(float(comb(p, k)) * mean ** (p - k) * u**k * moment)
    return xp.stack(added)


def parts(scalars, sample, xp, D, C, p, nu, beta, scale):
    """Contribution of each set to F, shape (D / C,).

    Parameters
    ----------
    scalars, sample, xp, D, C, p, nu, beta, scale
        As of `reduced`.
    """
    return xp.sum(moments(scalars, sample, xp, D, C, p, nu, beta, scale), axis=0)


def reduced(scalars, sample, xp, D, C, p, nu, beta, scale):
    """Loss of one configuration: every share about the mean of its set.

    Parameters
    ----------
    scalars : dict of numbers
    sample : float array, shape (D / C, 2)
        Numbers of +1 and of -1 in each set, the signal set first.
    xp : array namespace
    D, C, p : int
    nu, beta, scale : float
    """
    return xp.softplus(-parts(scalars, sample, xp, D, C, p, nu, beta, scale).sum())


def reduced_observe(scalars, sample, xp, D, C, p, nu, beta, scale):
    """Whether a configuration is on the wrong side.

    Parameters
    ----------
    scalars, sample, xp, D, C, p, nu, beta, scale
        As of `reduced`.
    """
    added = parts(scalars, sample, xp, D, C, p, nu, beta, scale)
    return {"error": xp.where(added.sum() > TIE * eps(added) * xp.sum(xp.abs(added)), 0.0, 1.0)}


def reduced_observables(scalars, xp, D, C, beta, scale):
    """Attention to the own set.

    Parameters
    ----------
    scalars, xp, D, C, beta, scale
        As of `reduced`.
    """
    apart, mate, _ = weights(scalars, xp, D, C, beta, scale)
    return {"G": D * (apart + C * mate)}
