"""The noisy shallow ViT by loops over samples, queries, keys and neurons: the twin of the kernels.

Nothing here imports the code it checks.
"""

import math


def dot(one, two):
    return math.fsum(a * b for a, b in zip(one, two, strict=True))


def times(matrix, vector):
    return [dot(row, vector) for row in matrix]


def output(weights, a, tokens):
    """F of one sample, and for every query: its attention, X s, the neurons' inputs."""
    neurons, by_value, by_key, by_query = weights
    keys = [times(by_key, x) for x in tokens]
    found, queries = 0.0, []
    for place, x in enumerate(tokens):
        asked = times(by_query, x)
        powers = [math.exp(dot(key, asked)) for key in keys]
        attention = [power / math.fsum(powers) for power in powers]
        mixed = [dot(attention, column) for column in zip(*tokens, strict=True)]
        inputs = times(neurons, times(by_value, mixed))
        signs = [row[place] if hasattr(row, "__len__") else row for row in a]
        found += dot(signs, [max(u, 0.0) for u in inputs]) / len(tokens)
        queries.append((attention, mixed, inputs, signs, asked))
    return found, queries


def loss(weights, a, samples, margin, kind):
    """Mean hinge or linear loss; ``samples`` is a list of (tokens, label)."""
    total = 0.0
    for tokens, label in samples:
        reached = label * output(weights, a, tokens)[0]
        total += max(margin - reached, 0.0) if kind == "hinge" else -reached
    return total / len(samples)


def gradient(weights, a, samples, margin, kind):
    """Derivatives of `loss` by every entry of W_O, W_V, W_K, W_Q, by the chain rule, in loops."""
    neurons, by_value, by_key, by_query = weights
    slopes = [[[0.0] * len(row) for row in part] for part in weights]
    depth = len(by_value)
    for tokens, label in samples:
        found, queries = output(weights, a, tokens)
        if kind == "hinge" and not label * found < margin:
            continue
        scale = -label / (len(tokens) * len(samples))
        keys = [times(by_key, x) for x in tokens]
        for x, (attention, mixed, inputs, signs, asked) in zip(tokens, queries, strict=True):
            values, back = times(by_value, mixed), [0.0] * depth
            for i, u in enumerate(inputs):
                if u > 0.0:
                    push = scale * signs[i]
                    for k in range(depth):
                        slopes[0][i][k] += push * values[k]
                        back[k] += push * neurons[i][k]
            for j in range(depth):
                for k in range(depth):
                    slopes[1][j][k] += back[j] * mixed[k]
            by_score = [dot(back, times(by_value, key)) for key in tokens]
            mean = dot(attention, by_score)
            for p, key, s, token in zip(attention, keys, by_score, tokens, strict=True):
                moved = p * (s - mean)
                for j in range(depth):
                    for k in range(depth):
                        slopes[2][j][k] += moved * asked[j] * token[k]
                        slopes[3][j][k] += moved * key[j] * x[k]
    return slopes
