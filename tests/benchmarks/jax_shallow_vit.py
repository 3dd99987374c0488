"""The baseline: full-batch GD of the shallow ViT in JAX, float64, ``jit`` + ``lax.scan``."""

import jax

jax.config.update("jax_enable_x64", True)

import jax.numpy as jnp  # noqa: E402


def descender(problem, eta, steps):
    """Compiled GD of so many steps on (W_O, W_V, W_K, W_Q), which it takes and returns."""
    tokens = jnp.asarray(problem.tokens.values)
    labels, output = jnp.asarray(problem.tokens.labels), jnp.asarray(problem.start.a)
    margin = problem.parameters.margin

    def risk(state):
        neurons, by_value, by_key, by_query = state
        scores = jnp.einsum("nid,de,nle->nli", tokens, by_key.T @ by_query, tokens)
        mixed = jax.nn.softmax(scores, axis=2) @ tokens
        opened = jax.nn.relu(mixed @ (neurons @ by_value).T)
        found = (opened @ output).mean(axis=1)
        return jnp.maximum(margin - labels * found, 0.0).mean()

    slope = jax.grad(risk)

    @jax.jit
    def run(state):
        def step(state, _):
            moved = zip(state, slope(state), strict=True)
            return tuple(part - eta * change for part, change in moved), None

        return jax.lax.scan(step, state, None, length=steps)[0]

    return run
