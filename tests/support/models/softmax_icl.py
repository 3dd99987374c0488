"""Softmax attention in context on orthonormal features (Huang, Cheng, Liang 2023), in counts."""

import math

import numpy as np


def start(K=3):
    return {"Q": np.zeros((K, K))}


def _counts(total, parts):
    if parts == 1:
        yield (total,)
        return
    for first in range(total + 1):
        for rest in _counts(total - first, parts - 1):
            yield (first, *rest)


def law(K, N=6, p1=1 / 3, p2=0.0):
    p = [p1, *[(1 - p1) / (K - 1)] * (K - 1)] if not p2 else [p1, p2, 1 - p1 - p2]
    for query in range(K):
        for n in _counts(N, K):
            parts = (p[k] ** n[k] / math.factorial(n[k]) for k in range(K))
            yield (
                p[query] * math.factorial(N) * math.prod(parts),
                {"n": np.array(n, float), "query": query},
            )


def loss(theta, sample, xp, K):
    own = xp.arange(K) == sample["query"]
    weights = sample["n"] * xp.exp(theta["Q"][sample["query"]])
    attention = weights / xp.sum(weights)
    return xp.sum(xp.where(own, 1 - attention, attention) ** 2) / 2
