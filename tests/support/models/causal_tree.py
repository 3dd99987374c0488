"""Two layers of attention on a causal tree of symbols (Nichani, Damian, Lee 2024)."""

import itertools

import numpy as np

PARENTS = (-1, 0, 0, 1, 2, -1)


def start(T=6, S=2, beta=0.5):
    d = S + T
    A2, W = np.zeros((2 * d, 2 * d)), np.zeros((S, 4 * d))
    A2[:S, d : d + S] = W[:, 2 * d : 2 * d + S] = beta * np.eye(S)
    return {"A1": np.zeros((d, d)), "A2": A2, "W": W}


def law(T, S, sure=0.9):
    one = np.eye(S)
    for stay in itertools.product((sure, 1 - sure), repeat=S):
        chain = np.array([[p, 1 - p] for p in stay])
        rest = np.linalg.matrix_power(chain, 200)[0]
        for s in itertools.product(range(S), repeat=T):
            chances = [rest[s[i]] if p < 0 else chain[s[p], s[i]] for i, p in enumerate(PARENTS)]
            X = np.concatenate([one[list(s)], np.eye(T)], axis=1)
            for y in range(S):
                yield np.prod(chances) * chain[s[-1], y] / 2**S, {"X": X, "y": one[y]}


def _layer(X, A, xp):
    places = xp.arange(X.shape[0])
    scores = xp.where(places[:, None] >= places, X @ A @ X.T, -1e9)
    return xp.concatenate([X, xp.softmax(scores, axis=-1) @ X], axis=1)


def loss(theta, sample, xp):
    out = _layer(_layer(sample["X"], theta["A1"], xp), theta["A2"], xp)
    return -xp.log_softmax(theta["W"] @ out[-1]) @ sample["y"]
