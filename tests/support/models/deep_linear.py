"""A deep linear network of two layers on whitened inputs (Saxe, McClelland, Ganguli 2013)."""

import numpy as np


def _target(h, seed):
    rng = np.random.default_rng(seed)
    U, V = (np.linalg.qr(rng.standard_normal((h, h)))[0] for _ in range(2))
    return U, np.array([4.0, 2.0, 1.0, 1.0])[:h], V


def start(h=4, seed_0=0, scale=0.1, aligned=True):
    U, _, V = _target(h, seed_0)
    if aligned:
        return {"W1": scale * V.T, "W2": scale * U}
    rng = np.random.default_rng(seed_0 + 1)
    return {"W1": scale * rng.standard_normal((h, h)), "W2": scale * rng.standard_normal((h, h))}


def fixed(h, seed_0):
    U, s, V = _target(h, seed_0)
    return {"T": U * s @ V.T}


def risk(theta, xp):
    return xp.sum((theta["W2"] @ theta["W1"] - theta["T"]) ** 2) / 2
