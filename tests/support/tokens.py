"""Slow twins of the shallow ViT: one token, one neuron at a time, nothing merged.

Nothing here is shared with the package but the `Parameters`.
"""

from math import exp

import numpy as np


def tokens_of(counts, depth):
    """Noise-free tokens of counts, as columns of a (d, L) array, and the pattern of each."""
    order = [j for j, many in enumerate(counts) for _ in range(many)]
    return np.eye(depth)[:, order], order


def attention(tokens, keys, queries):
    """Weight of key k for query l, shape (L, L)."""
    length = tokens.shape[1]
    weights = np.empty((length, length))
    for column in range(length):
        asked = queries @ tokens[:, column]
        scores = [float((keys @ tokens[:, k]) @ asked) for k in range(length)]
        powers = [exp(score - max(scores)) for score in scores]
        weights[:, column] = [power / sum(powers) for power in powers]
    return weights


def output(tokens, a, parts):
    """F of one sample; ``a`` is (m,) or (m, L), parts are W_O, W_V, W_K, W_Q."""
    hidden, values, keys, queries = parts
    weights, total = attention(tokens, keys, queries), 0.0
    length = tokens.shape[1]
    for column in range(length):
        seen = values @ tokens @ weights[:, column]
        for i, row in enumerate(hidden):
            sign = a[i] if a.ndim == 1 else a[i, column]
            total += sign * max(float(row @ seen), 0.0) / length
    return total


def loss(parameters, samples, a, parts):
    """Mean loss of (tokens, label, weight)."""
    total = 0.0
    for tokens, label, weight in samples:
        reached = label * output(tokens, a, parts)
        hinge = parameters.loss == "hinge"
        total += weight * (max(parameters.margin - reached, 0.0) if hinge else -reached)
    return total


def relevant(samples, parts, query_pattern=None):
    """Attention to relevant tokens, mean of all queries, or of those of one kind.

    Samples are (tokens, order of patterns, label, weight); kinds are relevant, confusion, other.
    """
    mass, many = 0.0, 0.0
    for tokens, order, label, weight in samples:
        star, confusion = (0, 1) if label > 0 else (1, 0)
        kinds = {star: "relevant", confusion: "confusion"}
        weights = attention(tokens, parts[2], parts[3])
        for column, query in enumerate(order):
            if query_pattern in (None, kinds.get(query, "other")):
                here = [weights[k, column] for k, key in enumerate(order) if key == star]
                mass, many = mass + weight * sum(here), many + weight
    return mass / many
