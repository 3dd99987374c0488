"""Two samples, a weight for each and a bias: the smallest model, which tests bend in many ways."""

import numpy as np


def start(a=1.0, n=2):
    return {"w": np.full(n, 0.1), "b": np.array(0.2)}


def law(n, q=0.5):
    yield q, {"x": np.eye(n)[0], "y": 1.0}
    yield 1 - q, {"x": np.eye(n)[1], "y": 1.0}


def loss(theta, sample, xp, a):
    return (a * xp.sum(theta["w"] * sample["x"]) + theta["b"] - sample["y"]) ** 2
