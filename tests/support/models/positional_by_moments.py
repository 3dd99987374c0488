"""Positional attention, with its exact sum over types of sets declared by central moments."""

import itertools
from math import comb

import numpy as np

import dynamics

events = {"T1": "G >= D/2"}
names = {"alpha": ("v", 0), "gamma": ("A", 0, 1), "rho": ("A", 0, -1)}


def start(D=9, C=3, nu=1e-3):
    """Trained arrays at step 0."""
    return {"v": np.full(1, nu**0.5), "A": np.zeros((D, D))}


def law(D, C, q=0.5):
    """Every sample, by its own set and label."""
    for own, y in itertools.product(range(D // C), (-1.0, 1.0)):
        for rest in itertools.product((-1, 0, 1), repeat=D - C):
            X = np.full(D, y)
            X[[i for i in range(D) if i // C != own]] = rest
            yield np.prod([q / 2 if r else 1 - q for r in rest]) / (2 * D // C), {"X": X, "y": y}


def loss(theta, sample, xp, D, p=3, nu=1e-3, beta=1.0):
    """Loss of one sample."""
    S = xp.softmax(theta["A"] * (1 - xp.eye(D)) + beta * xp.eye(D), axis=-1)
    o = D * theta["v"][0] * (S @ sample["X"])
    return xp.softplus(-sample["y"] * xp.sum(o**p + nu * o))


def observables(theta, xp, D, C, beta):
    """D times the attention of a row to its own set."""
    S = xp.softmax(theta["A"] * (1 - xp.eye(D)) + beta * xp.eye(D), axis=-1)
    return {"G": D * S[0, :C].sum()}


def sizes(D, C):
    """Entries that each scalar stands for."""
    return {"alpha": 1, "gamma": D * (C - 1), "rho": D * (D - C)}


def configurations(D, C, q):
    """Numbers of +1 and of -1 in the signal set and in each random set."""
    kinds = [
        (comb(C, a) * comb(C - a, b) * (q / 2) ** (a + b) * (1 - q) ** (C - a - b), (a, b))
        for a in range(C + 1) for b in range(C + 1 - a)
    ]  # fmt: skip
    for probability, sets in dynamics.multisets(kinds, D // C - 1):
        yield probability, np.array([(C, 0), *sets], dtype=float)


def partition(gamma, rho, xp, D, C, beta):
    """Partition function of a row."""
    return xp.exp(beta) + (C - 1) * xp.exp(gamma) + (D - C) * xp.exp(rho)


def reduced(scalars, sample, xp, D, C, p, nu, beta):
    """Loss of one configuration: every share about the mean of its set."""
    alpha, gamma, rho = (scalars[name] for name in ("alpha", "gamma", "rho"))
    B = partition(gamma, rho, xp, D, C, beta)
    u = D * alpha * xp.exp(gamma) * xp.expm1(beta - gamma) / B
    a, b = sample[:, 0], sample[:, 1]
    z = a - b
    m = z / C
    mean = D * alpha * (m + xp.exp(rho) / B * (z.sum() - D * m))
    share = C * (mean**p + nu * mean)
    for k in range(2, p + 1):
        moment = a * (1 - m) ** k + b * (-1 - m) ** k + (C - a - b) * (-m) ** k
        share = share + comb(p, k) * mean ** (p - k) * u**k * moment
    return xp.softplus(-share.sum())


def reduced_observables(scalars, xp, D, C, beta):
    """D times the attention of a row to its own set."""
    gamma, rho = scalars["gamma"], scalars["rho"]
    own = xp.exp(beta) + (C - 1) * xp.exp(gamma)
    return {"G": D * own / partition(gamma, rho, xp, D, C, beta)}
