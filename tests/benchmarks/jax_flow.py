"""The peer: the same gradient flow by diffrax, float64, its stiff Kvaerno5, one or many."""

import diffrax
import jax
import jax.numpy as jnp
from jax_reduced import risks


def flow(problem, times, rtol, many=False):
    """Compiled flow from a start, or from many, to states at some times."""
    risk = risks(problem)["direct"]
    D, C = problem.parameters.D, problem.parameters.C
    share = jnp.array([1, 1 / (D * (C - 1)), 1 / (D * (D - C))])

    def rate(_, state, __):
        return -share * jax.grad(risk)(state)

    def solve(start):
        return diffrax.diffeqsolve(
            diffrax.ODETerm(rate), diffrax.Kvaerno5(), t0=0.0, t1=float(times[-1]), dt0=None,
            y0=start, saveat=diffrax.SaveAt(ts=jnp.array(times)), max_steps=100_000,
            stepsize_controller=diffrax.PIDController(rtol=rtol, atol=1e-3 * rtol),
        ).ys  # fmt: skip

    return jax.jit(jax.vmap(solve) if many else solve)
