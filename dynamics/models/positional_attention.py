r"""Positional attention learns which patches belong together (Jelassi, Sander, Li 2022).

An image has D patches in sets of C. All patches of one set, the signal set, have the label y as
their value; a patch of any other set has the value +1 or -1 with probability q/2 each, else 0. One
layer of attention by positions, with logits A, mixes the projections of the patches :math:`X_j` on
a vector v; the output F is the sum of a polynomial of degree p over the mixtures :math:`o_i`:

.. math:: S = \mathrm{softmax}(s A), \quad o_i = D \sum_j S_{ij} \langle v, X_j \rangle, \quad
   F = \sum_i o_i^p + \nu o_i, \quad R = E \log(1 + e^{-y F})

The diagonal of A stays at beta. Noise of the patches is orthogonal to the feature and does not
enter F, so v has one entry, alpha (Lemma 4.2). Exchanges of patches within sets, and of sets, are
symmetries, so A has two scalars, gamma within sets and rho between sets (Lemma 4.1). The sum over
all samples reduces to a sum over the numbers of +1 and -1 in each set. In the reduced sum, F is
computed from central moments of each set, which avoids cancellation.

:D: number of patches
:C: number of patches of a set
:q: probability that a patch of a random set has a feature
:p: odd degree of the activation
:nu: linear part of the activation
:beta: diagonal of A, not trained
:scale: factor s in the exponent of the softmax
:alpha0: alpha at the start, :math:`\nu^{1/(p-1)}` if None
:random_sets: any, or mixed, without random sets of one sign
:v: value of the feature
:A: logits of attention
:alpha: value of the feature
:gamma: logit of a patch of the same set
:rho: logit of a patch of another set
:G: D times the attention of a patch to its own set
:error: share of samples with y F <= 0
:T0: attention takes over the growth of the signal
:T1: half of the attention falls inside the own set
:T1_paper: gamma exceeds the largest abs(rho) of the run, the paper's form of T1
:event_III: alpha, which fell after T1, grows again
:patch_association: in every row of A the entries of the own set are the largest
"""

import itertools
from math import comb

import numpy as np

from dynamics.models.counts import multisets

SOURCE = "arXiv 2210.09221"
TIE = 500
"""A sample counts as an error if y F is at most this multiple of the machine epsilon times the sum
of absolute terms."""
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
    value = nu ** (1 / (p - 1)) if alpha0 is None else alpha0
    return {"v": np.full(1, value), "A": beta * np.eye(D)}


def fixed(D, C=4):
    """Untrained array ``sets`` with the number of the set of each patch."""
    return {"sets": np.arange(D) // C}


def law(D, C, q=0.5, random_sets="any"):
    """Every sample ``X``, shape (D, 1), with its label ``y`` and its probability."""
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
    """Contribution of each patch to the output F, shape (D,)."""
    S = xp.softmax(scale * theta["A"], axis=-1)
    o = D * (S @ (sample["X"] @ theta["v"]))
    return o**p + nu * o


def loss(theta, sample, xp, D, p, nu, beta, scale=1.0):
    """Logistic loss of one sample."""
    held = {**theta, "A": xp.where(xp.eye(D) > 0, beta, theta["A"])}
    return xp.softplus(-sample["y"] * xp.sum(shares(held, sample, xp, D, p, nu, scale)))


def eps(array):
    """Machine epsilon of the dtype of an array."""
    return float(np.finfo(array.dtype).eps)


def observe(theta, sample, xp, D, p, nu, scale):
    """Error of one sample: 1 if misclassified, else 0."""
    parts = shares(theta, sample, xp, D, p, nu, scale)
    right = sample["y"] * xp.sum(parts) > TIE * eps(parts) * xp.sum(xp.abs(parts))
    return {"error": xp.where(right, 0.0, 1.0)}  # NaN counts as an error


def observables(theta, xp, D, scale):
    """G, D times the mean attention of a patch to its own set."""
    same = theta["sets"][:, None] == theta["sets"][None, :]
    return {"G": xp.sum(same * xp.softmax(scale * theta["A"], axis=-1))}


def sizes(D, C):
    return {"alpha": 1, "gamma": D * (C - 1), "rho": D * (D - C)}


def configurations(D, C, q, random_sets):
    """Yield the numbers of +1 and -1 in each set, the signal set first, with their probability."""
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
    """Attention of a patch to itself minus that to a mate (same set); to a mate; to another patch.

    The exponentials do not overflow, and the difference has full relative accuracy.
    """
    b, g, r = scale * beta, scale * scalars["gamma"], scale * scalars["rho"]
    top = xp.stop_gradient(xp.maximum(b, xp.maximum(g, r)))
    own, mate, other = xp.exp(b - top), xp.exp(g - top), xp.exp(r - top)
    B = own + (C - 1) * mate + (D - C) * other
    sign = xp.where(b > g, 1.0, -1.0)
    apart = -sign * xp.where(b > g, own, mate) * xp.expm1(sign * (g - b))
    return apart / B, mate / B, other / B


def moments(scalars, sample, xp, D, C, p, nu, beta, scale):
    """Contributions to the output F by order of central moment and by set, shape (p, D / C)."""
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
    """Contribution of each set to the output F, shape (D / C,)."""
    return xp.sum(moments(scalars, sample, xp, D, C, p, nu, beta, scale), axis=0)


def reduced(scalars, sample, xp, D, C, p, nu, beta, scale):
    """Logistic loss of one configuration: numbers of +1 and -1 in each set, shape (D / C, 2)."""
    return xp.softplus(-parts(scalars, sample, xp, D, C, p, nu, beta, scale).sum())


def reduced_observe(scalars, sample, xp, D, C, p, nu, beta, scale):
    """Error of one configuration: 1 if misclassified, else 0."""
    added = parts(scalars, sample, xp, D, C, p, nu, beta, scale)
    return {"error": xp.where(added.sum() > TIE * eps(added) * xp.sum(xp.abs(added)), 0.0, 1.0)}


def reduced_observables(scalars, xp, D, C, beta, scale):
    """G, D times the attention of a patch to its own set."""
    apart, mate, _ = weights(scalars, xp, D, C, beta, scale)
    return {"G": D * (apart + C * mate)}
