"""The shallow Vision Transformer on patterns, without noise (Li, Wang, Liu, Chen 2023)."""

import itertools

import numpy as np

eta, steps = 0.1, 1000
events = {"t_fit": "error <= 0", "t_zero": "active <= 0"}
events |= {f"mass_{share}": f"relevant >= {share}/100" for share in (50, 75, 90)}


def start(M=5, m=24, xi=0.01, seed_0=0, symmetric=True):
    rng = np.random.default_rng(seed_0)
    W_O = xi * rng.standard_normal((m, M))
    V, K, Q = (np.eye(M) + (not symmetric) * 0.1 * rng.standard_normal((M, M)) for _ in range(3))
    if symmetric:  # whole orbits of neurons; those of the second half exchange patterns 1 and 2
        rest = itertools.permutations(range(2, M))
        turns = [(*two, *r) for two, r in itertools.product([(0, 1), (1, 0)], rest)]
        W_O = np.concatenate([W_O[: m // len(turns), turn] for turn in turns])
    return {"W_O": W_O, "V": V, "K": K, "Q": Q}


def fixed(m):
    return {"a": np.repeat([1.0, -1.0], m // 2) / np.sqrt(m)}


def law(M, n_star=25, n_confusion=4, others=7):
    for y, label in ((1.0, 0), (-1.0, 1)):
        two = (n_star, n_confusion)[:: int(y)]
        yield 0.5, {"c": np.array([*two, *[others] * (M - 2)], float), "y": y, "label": label}


def reached(theta, sample, xp):
    powers = sample["c"][:, None] * xp.exp(theta["K"].T @ theta["Q"])
    P = powers / xp.sum(powers, axis=0)
    F = theta["a"] @ xp.relu(theta["W_O"] @ theta["V"] @ P) @ sample["c"] / xp.sum(sample["c"])
    return sample["y"] * F, P


def loss(theta, sample, xp, margin=1.0):
    return xp.relu(margin - reached(theta, sample, xp)[0])


def observe(theta, sample, xp, margin):
    yF, P = reached(theta, sample, xp)
    relevant = P[sample["label"]] @ sample["c"] / xp.sum(sample["c"])
    return {"active": 1.0 * (yF < margin), "error": 1.0 * (yF <= 0), "relevant": relevant}
