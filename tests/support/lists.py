"""Functions of one array as programs, and what JAX gives for them."""

import jax
import jax.numpy as jnp
import numpy as np

from theory.program import ONE, Values, adjoints, build, read, run_floats

SMOOTH = {
    "powers": lambda w: w[0] ** 3 * w[1] - w[2] ** -2 + (w[0] ** 2 + 1.5) ** 1.7,
    "quotients": lambda w: (w[0] - w[1]) / (2.0 + w[2] ** 2) + 3 / (1 + w[0] ** 2),
    "exponentials": lambda w: jnp.exp(w[0] * w[1]) + jnp.expm1(w[2]) + jnp.log1p(w[0] ** 2),
    "trigonometry": lambda w: jnp.sin(w[0]) * jnp.cos(w[1]) + jnp.tan(w[2] / 9) + jnp.sinh(w[0]),
    "inverses": lambda w: jnp.arcsin(w[0] / 9) + jnp.arctan2(w[1], 3 + w[2] ** 2),
    "gates": lambda w: jnp.tanh(w[0]) * jax.nn.sigmoid(w[1] * 3) + jax.lax.erf(w[2]),
    "roots": lambda w: jnp.sqrt(1 + w[0] ** 2) + jax.lax.rsqrt(2 + w[1] ** 2) + jnp.cbrt(2 + w[2]),
    "matrices": lambda w: jnp.sum((w.reshape(1, 3).T @ w.reshape(1, 3)) ** 2),
    "statistics": lambda w: jnp.var(w) + jnp.prod(w) + jnp.cumsum(w)[1] * jnp.cumprod(w)[2],
    "scatter": lambda w: jnp.sum(jnp.zeros(4).at[jnp.array([0, 2, 2])].add(w) ** 2),
    "gather": lambda w: jnp.sum(w[jnp.array([2, 0, 2])] * w[::-1]) + w[1:][0],
    "loops": lambda w: jax.lax.fori_loop(0, 3, lambda k, s: jnp.tanh(s * w[k] + w[0]), w[1]),
    "scan": lambda w: jax.lax.scan(lambda s, x: (s * x + 1, s), w[0], w)[1].sum(),
    "gelu": lambda w: jnp.sum(jax.nn.gelu(w)) + jax.nn.silu(w[0]) + jax.nn.elu(w[1]),
    "sorted constants": lambda w: jnp.sum(jnp.sort(jnp.array([3.0, 1.0, 2.0])) * w),
    "mod": lambda w: jnp.mod(w[0] * 3, 2.0) + jnp.floor(w[1]) * w[2] + jnp.ceil(w[0]) * w[1],
}
ROWS = {
    "softmax": lambda xp, w: xp.sum(xp.softmax(w.reshape(2, 3), axis=0)[0] * w[:3]),
    "log_softmax": lambda xp, w: xp.log_softmax(w)[1] + xp.log_softmax(w * 2, axis=0)[2],
    "logsumexp": lambda xp, w: xp.logsumexp(w[:4]) + xp.logsumexp(w.reshape(2, 3), axis=-1)[1],
    "kept": lambda xp, w: xp.logsumexp(w.reshape(2, 3), axis=1, keepdims=True)[:, 0] @ w[:2],
    "all axes": lambda xp, w: xp.logsumexp(w.reshape(2, 3)),
    "equal entries": lambda xp, w: xp.softmax(w[xp.array([0, 0, 1, 1])])[1],
    "softplus": lambda xp, w: xp.softplus(w[0] - w[1]) + xp.logaddexp(w[2], w[3]),
    "masked": lambda xp, w: xp.softmax(xp.where(xp.arange(6) < 4, w, -xp.inf))[2],
}


def _batched(name):
    """A function of rows under vmap, of a product that leaves the batch behind the row."""

    def of(xp, w):
        one, two = w.reshape(2, 3), w[::-1].reshape(2, 3)
        rows = jax.vmap(lambda x: getattr(xp, name)(one[:, :2] @ x, axis=-1))(two[:, :2])
        return xp.sum(rows * xp.arange(1.0, 1 + rows.size).reshape(rows.shape))

    return of


ROWS |= {f"{name} of a batch": _batched(name) for name in ("softmax", "log_softmax", "logsumexp")}


def table_of(function, count, seed=0):
    """Table of a function of an array of inputs: values, inputs, ids of its outputs."""
    values = Values(seed)
    inputs = values.inputs([f"w{k}" for k in range(count)])
    with jax.enable_x64(True):
        traced = jax.make_jaxpr(function)(np.zeros(count))
    return values, inputs, read(values, traced, [inputs])


def numbers_and_slopes(function, count):
    """(state) -> the value of a function and its gradient, by its program."""
    values, inputs, (root,) = table_of(function, count)
    slopes = adjoints(values, {int(root): ONE}, inputs)
    program = build(values, inputs, {"value": root, "slopes": slopes})

    def at(state):
        numbers = run_floats(program, state)
        return numbers[program.outputs["value"]][0], numbers[program.outputs["slopes"]]

    return at


def in_jax(function, states):
    """Values of a function and its gradients at states, by JAX."""
    with jax.enable_x64(True):
        # One by one: under vmap JAX's own gradient of cumprod is wrong.
        of = jax.jit(lambda rows: jax.lax.map(jax.value_and_grad(function), rows))
        return [np.asarray(part) for part in of(np.asarray(states, dtype=float))]
