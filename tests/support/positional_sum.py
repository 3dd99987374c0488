"""Positional attention's exact sum by central moments, as a program (D patches, sets of C)."""

from math import comb

import jax
import jax.numpy as jnp
import numpy as np

from dynamics.papers.positional_attention.configurations import multisets
from theory.program import ONE, Values, adjoints, build, read


def types(C):
    """Numbers of +1 and of -1 in a set."""
    return np.array([(a, b) for a in range(C + 1) for b in range(C + 1 - a)])


def configurations(D, C, q):
    """Sets of each type in every configuration of the L - 1 random sets, and its probability."""
    kinds, count = types(C), D // C - 1
    a, b = kinds.T
    rest = C - a - b
    ways = np.array([comb(C, i) * comb(C - i, j) for i, j in kinds])
    chance = ways * (q / 2) ** (a + b) * (1 - q) ** rest
    numbers = np.asarray(multisets(len(kinds), count))
    if numbers.shape[1] != len(kinds):  # members of each multiset, not their counts
        numbers = np.stack([np.bincount(row, minlength=len(kinds)) for row in numbers])
    factorial = np.cumprod(np.r_[1.0, np.arange(1, count + 1)])
    weights = factorial[count] / factorial[numbers].prod(axis=1) * np.prod(chance**numbers, axis=1)
    return numbers, weights


def losses(state, kinds, numbers, D, C, p=3, nu=1e-3, beta=1.0):
    """Loss of every configuration at (alpha, gamma, rho)."""
    alpha, gamma, rho = state
    B = jnp.exp(beta) + (C - 1) * jnp.exp(gamma) + (D - C) * jnp.exp(rho)
    u = D * alpha * jnp.exp(gamma) * jnp.expm1(beta - gamma) / B
    a, b = kinds.T
    z = a - b
    Z = C + numbers @ z
    m = z / C

    def share(a, b, z, m, Z):
        mean = D * alpha * (z / C + jnp.exp(rho) / B * (Z - D * z / C))
        moments = {k: a * (1 - m) ** k + b * (-1 - m) ** k + (C - a - b) * (-m) ** k
                   for k in range(2, p + 1)}  # fmt: skip
        total = C * (mean**p + nu * mean)
        for k in range(2, p + 1):
            total += comb(p, k) * mean ** (p - k) * u**k * moments[k]
        return total

    signal = share(C, 0, C, 1.0, Z)
    random = share(a, b, z, m, Z[:, None])
    return jax.nn.softplus(-(signal + (numbers * random).sum(axis=1)))


def exact_program(D, C, q=0.5):
    """Gradient per entry of the exact sum as a program, weights, number of losses."""
    numbers, weights = configurations(D, C, q)
    kinds = types(C).astype(float)
    values = Values()
    state = values.inputs(["alpha", "gamma", "rho"])
    with jax.enable_x64(True):
        traced = jax.make_jaxpr(lambda s, n: losses(s, kinds, n, D, C))(
            np.zeros(3), numbers.astype(float)
        )
    flat = values.constants(numbers.reshape(-1).astype(float)).reshape(numbers.shape)
    (ids,) = read(values, traced, [state, flat])
    distinct, back = np.unique(ids, return_inverse=True)
    given = values.inputs([f"P{k}" for k in range(distinct.size)])
    terms = values.apply("mul", (distinct, given))
    (risk,) = values.sums(np.array([terms.size]), terms, np.full(terms.size, ONE))
    slopes = adjoints(values, {int(risk): ONE}, state)
    share = values.constants(1 / np.array([1.0, D * (C - 1), D * (D - C)]))
    slopes = values.apply("mul", (slopes, share))
    program = build(values, [*state, *given], {"gradient": slopes})
    return program, np.bincount(back.reshape(-1), weights), distinct.size
