"""Masked image modelling (Huang et al. 2024): P = 8, two clusters, every mask enumerated."""

import itertools

import numpy as np

AREAS = np.array([[0, 0, 0, 0, 1, 1, 2, 2], [0, 0, 1, 2, 0, 0, 1, 2]])


def start(d=14):
    return {"Q": np.zeros((d, d))}


def law(masked=4):
    masks = list(itertools.combinations(range(8), masked))
    for cluster, mask in itertools.product(range(2), masks):
        M = np.zeros(8)
        M[list(mask)] = 1
        yield 1 / (2 * len(masks)), {"areas": AREAS[cluster] + 3 * cluster, "M": M}


def loss(theta, sample, xp):
    X = xp.concatenate([xp.eye(6)[sample["areas"]], xp.zeros((8, 8))], axis=1)
    shown = (1 - sample["M"])[:, None] * X
    tokens = shown + xp.concatenate([xp.zeros((8, 6)), xp.eye(8)], axis=1)
    F = xp.softmax(tokens @ theta["Q"] @ tokens.T, axis=-1) @ shown
    return xp.sum(sample["M"][:, None] * (F - X) ** 2) / 2
