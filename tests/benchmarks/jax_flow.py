"""The peer: the same gradient flow by diffrax, float64, its stiff Kvaerno5, one point or many."""

import diffrax
import jax
import jax.numpy as jnp
from jax_reduced import risks


def flow(problem, times, rtol):
    """Compiled flow from a start to states at some times."""
    risk = risks(problem)["direct"]
    D, C = problem.parameters.D, problem.parameters.C
    share = jnp.array([1, 1 / (D * (C - 1)), 1 / (D * (D - C))])

    def rate(_, state, __):
        return -share * jax.grad(risk)(state)

    return jax.jit(lambda start: _solve(rate, start, times, rtol))


def flows(problem, times, rtol):
    """Compiled flow of many points: their probabilities and nu are the arguments."""
    from jax_reduced import laid_out, shares

    fixed = problem.parameters
    types, totals, kinds, columns = laid_out(problem)
    composition, sums = jnp.array(types, float), jnp.array(types[:, 0] - types[:, 1], float)
    every = jnp.array(totals, float)[columns]

    class Point:
        """Parameters whose nu is traced."""

        D, C, p, scale, beta = (getattr(fixed, n) for n in ("D", "C", "p", "scale", "beta"))

        def __init__(self, nu):
            self.nu = nu

    def risk(state, point):
        probability, nu = point
        values = shares(state, Point(nu), composition[kinds], sums[kinds], every)
        return (probability * jnp.logaddexp(0.0, -values.sum(axis=1))).sum()

    D, C = fixed.D, fixed.C
    share = jnp.array([1, 1 / (D * (C - 1)), 1 / (D * (D - C))])
    rate = lambda _, state, point: -share * jax.grad(risk)(state, point)  # noqa: E731
    one = lambda start, point: _solve(rate, start, times, rtol, point)  # noqa: E731
    return jax.jit(jax.vmap(one))


def _solve(rate, start, times, rtol, point=None):
    return diffrax.diffeqsolve(
        diffrax.ODETerm(rate),
        diffrax.Kvaerno5(),
        t0=0.0,
        t1=float(times[-1]),
        dt0=None,
        y0=start,
        args=point,
        saveat=diffrax.SaveAt(ts=jnp.array(times)),
        stepsize_controller=diffrax.PIDController(rtol=rtol, atol=1e-3 * rtol),
        max_steps=100_000,
    ).ys
