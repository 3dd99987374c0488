"""Masked image modelling (Huang et al. 2024): P = 8, two clusters, every mask enumerated."""

import itertools

import numpy as np

AREAS = np.array([[0, 0, 0, 0, 1, 1, 2, 2], [0, 0, 1, 1, 0, 2, 0, 2]])
eta, steps = 2.0, 3000
names = {"Phi_m": ("Q", 5, 9), "Phi_0": ("Q", 5, 8)}  # patch 5 is local in both clusters
events = {
    "E0": "abs(d_Phi_0) > abs(d_Phi_m)",
    "E2": "abs(d_Phi_0) <= abs(d_Phi_m)",
    "E4": "A_m >= 1/2",
    "E4p": "Phi_m >= log(4)",
    "E5": "gap <= 1/1000 after E4",
}


def start():
    return {"Q": np.zeros((14, 14))}


def law():
    for k, mask in itertools.product(range(2), itertools.combinations(range(8), 4)):
        hidden = np.isin(np.arange(8), mask).astype(float)
        yield 1 / 140, {"area": AREAS[k] + 3 * k, "hidden": hidden}


def error(theta, sample, xp):
    X = xp.eye(6)[sample["area"]]
    shown = (1 - sample["hidden"])[:, None] * X
    tokens = xp.concatenate([xp.eye(8), shown], axis=1)
    attention = xp.softmax(tokens @ theta["Q"] @ tokens.T, axis=-1)
    return sample["hidden"][:, None] * (attention @ shown - X)


def loss(theta, sample, xp):
    return xp.sum(error(theta, sample, xp) ** 2) / 2


def observe(theta, sample, xp):
    own = sample["hidden"][5] + error(theta, sample, xp)[5, sample["area"][5]]
    return {"A_m": own * 7 / 2, "gap": xp.sum(error(theta, sample, xp)[5] ** 2) / 2 - 3 / 28}
