"""Statistical induction heads on long sequences, by draws (Edelman et al. 2024).

This is the minimal model of ``statistical_induction`` with sequences too long for enumeration.
Chains and sequences are drawn, so gradients have standard errors. The exchange of the two symbols
leaves the law invariant (``symmetry``). W therefore has two scalars, and v has one scalar per
distance.

:L: length of the context
:w0: entries of W at the start
:W: weights of the second layer, symbol by attended symbol
:v: scores of the first layer by distance
:same: weight of W on equal symbols
:other: weight of W on different symbols
:v_*: score of this distance
:contrast: weight on equal symbols minus weight on different symbols
:previous: attention of the last place to the place before it
:T_previous: the last place gives half of its attention to the place before it
"""

import numpy as np

from dynamics.models import statistical_induction as minimal

SOURCE = minimal.SOURCE
eta, steps = 0.1, 100
limits = ("2 <= L <= 200", "0 < w0")
axes = {"W": ("symbol", "symbol"), "v": ("distance",)}
names, events, panels = minimal.names, minimal.events, minimal.panels
loss, observables = minimal.loss, minimal.observables


def start(L=16, w0=0.01):
    return minimal.start(L, w0)


def samples(rng, count, L):
    """Draw `count` sequences."""
    up, down = rng.uniform(size=(2, count))
    x = np.empty((count, L + 1), dtype=int)
    x[:, 0] = rng.uniform(size=count) < up / (up + down)
    for k in range(L):
        x[:, k + 1] = rng.uniform(size=count) < np.where(x[:, k] == 1, 1 - down, up)
    return {"symbols": np.eye(2)[x]}


def sample(rng, L):
    return {"symbols": samples(rng, 1, L)["symbols"][0]}


def symmetry(L):
    yield {"symbol": [1, 0], "distance": np.arange(L)}
