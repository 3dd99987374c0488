"""The baseline: the same reduced GD in JAX, float64, ``jit`` + ``lax.scan``, ``jax.grad``.

Two ways to write the risk, the faster of which is the baseline: ``table`` computes h(type, Z) once
and gathers, ``direct`` computes the share of every set of every configuration.
"""

import jax

jax.config.update("jax_enable_x64", True)

import jax.numpy as jnp  # noqa: E402
import numpy as np  # noqa: E402


def shares(state, parameters, composition, sums, totals):
    """Shares h for broadcast arrays of types and Z."""
    alpha, gamma, rho = state
    D, C, p, nu, s = (getattr(parameters, name) for name in ("D", "C", "p", "nu", "scale"))
    logits = s * jnp.stack([parameters.beta * jnp.ones(()), gamma, rho])
    weights = jnp.exp(logits - logits.max())
    lam, gam, xi = weights / (weights * jnp.array([1, C - 1, D - C])).sum()
    out = 0.0
    for k, x in enumerate((1, -1, 0)):
        inner = D * alpha * ((lam - gam) * x + (gam - xi) * sums + xi * totals)
        out = out + composition[..., k] * (inner**p + nu * inner)
    return out


def risks(problem):
    """The risk as a function of the state, written in both ways.

    Types and sums Z; of configurations the type of each set and the position of Z, (n, L).
    """
    rows, parameters = problem.expectation.configurations, problem.parameters
    D, C, types = parameters.D, parameters.C, parameters.set_law.types
    kinds = np.searchsorted(types[:, :2] @ (C + 1, 1), rows.counts @ (C + 1, 1))
    totals = np.arange(2 * C - D, D + 1)
    columns = (rows.counts @ (1, -1)).sum(axis=1, keepdims=True).astype(int) - totals[0]
    columns, probability = np.broadcast_to(columns, kinds.shape), rows.probability
    entries = jnp.array(kinds * totals.size + columns)
    composition, sums = jnp.array(types, float), jnp.array(types[:, 0] - types[:, 1], float)
    totals, kinds, columns = jnp.array(totals, float), jnp.array(kinds), jnp.array(columns)

    def table(state):
        grid = shares(state, parameters, composition[:, None, :], sums[:, None], totals[None, :])
        return (probability * jnp.logaddexp(0.0, -grid.ravel()[entries].sum(axis=1))).sum()

    def direct(state):
        values = shares(state, parameters, composition[kinds], sums[kinds], totals[columns])
        return (probability * jnp.logaddexp(0.0, -values.sum(axis=1))).sum()

    return {"table": table, "direct": direct}


def descender(risk, share, eta, steps):
    """Compiled GD of so many steps, recording nothing but the end."""
    slope = jax.grad(risk)

    @jax.jit
    def run(state):
        step = lambda s, _: (s - eta * share * slope(s), None)  # noqa: E731
        return jax.lax.scan(step, state, None, length=steps)[0]

    return run
