"""The baseline: full-batch GD on the realistic problem in JAX, float64, ``jit`` + ``lax.scan``."""

import jax

jax.config.update("jax_enable_x64", True)

import jax.numpy as jnp  # noqa: E402


def descender(problem, eta, steps):
    """Compiled GD of so many steps on (v, A), the diagonal held; takes and returns (v, A)."""
    patches, labels = (jnp.asarray(part) for part in problem.data())
    parameters = problem.parameters
    size, held = parameters.D, 1.0 - jnp.eye(parameters.D)

    def risk(state):
        value, matrix = state
        weights = jax.nn.softmax(parameters.scale * matrix, axis=1)
        attended = size * (patches @ value) @ weights.T
        output = (attended**parameters.p + parameters.nu * attended).sum(axis=1)
        return jax.nn.softplus(-labels * output).mean()

    slope = jax.grad(risk)

    @jax.jit
    def run(state):
        def step(state, _):
            by_value, by_matrix = slope(state)
            return (state[0] - eta * by_value, state[1] - eta * held * by_matrix), None

        return jax.lax.scan(step, state, None, length=steps)[0]

    return run
