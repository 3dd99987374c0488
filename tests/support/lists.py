"""Functions of one array as programs, and what JAX gives for them."""

import jax
import numpy as np

from theory.program import ONE, Values, adjoints, build, read, run_floats


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
