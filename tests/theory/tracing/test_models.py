"""Losses and gradients of small models, traced, agree with JAX in sympy and in mpmath."""

import mpmath
import numpy as np
import pytest
import sympy
from traced import differs, in_jax, read, symbols, trace, values

from theory.tracing import to_mpmath, to_sympy

jax = pytest.importorskip("jax")
jnp, lax = jax.numpy, jax.lax

LENGTH = 3


def positional_attention(scores, x, y):
    hidden = jax.nn.softmax(scores, axis=-1) @ x
    return jax.nn.softplus(-y * jnp.mean(hidden + hidden**3 / 3))


def linear_attention(weights, x, y):
    context, query = x[:-1], x[-1]
    return (query * (weights[0, :-1] @ context) * (context @ weights[1, :-1]) - y) ** 2 / 2


def softmax_in_context(weights, x, y):
    context, query = x[:-1], x[-1]
    return (jax.nn.softmax(context * query * weights[0, :-1]) @ context - y) ** 2


def deep_linear(weights, x, y):
    return jnp.sum((weights @ (weights.T @ (weights @ x)) - y) ** 2) / 2


def perceptron(weights, x, y):
    hidden = jax.nn.relu(jnp.tanh(weights @ x) + weights[:, 0])
    return jax.nn.logsumexp(jnp.stack([jnp.sum(hidden), 0.3 * y]))


def single_location(weights, x, y):
    attention = jax.nn.softmax(weights[0] * x)
    return (attention @ (weights[1] * x) - y) ** 2


MODELS = [
    positional_attention,
    linear_attention,
    softmax_in_context,
    deep_linear,
    perceptron,
    single_location,
]


def risk(model, samples, seed=0):
    """Mean loss over samples as a function of the weights, and weights to try it at."""
    rng = np.random.default_rng(seed)
    x, y = rng.normal(size=(samples, LENGTH)), np.sign(rng.normal(size=samples))

    def mean(weights):
        return jnp.mean(jax.vmap(model, (None, 0, 0))(weights, jnp.asarray(x), jnp.asarray(y)))

    return mean, rng.normal(size=(LENGTH, LENGTH))


@pytest.mark.parametrize("model", MODELS)
@pytest.mark.parametrize("seed", [0, 1])
def test_loss_agrees_with_jax(model, seed):
    mean, weights = risk(model, samples=3, seed=seed)
    names, traced = symbols(weights.shape), trace(mean, weights)
    expected = in_jax(mean, weights)
    (expression,), (number,) = to_sympy(traced, [names]), to_mpmath(traced, [weights])
    assert differs(values(expression, names, weights), expected) < 1e-14
    assert differs(number, expected) < 1e-14
    assert differs(number, in_jax(mean, weights * (1 + 1e-11))) > 1e-14


@pytest.mark.parametrize("model", MODELS)
def test_gradient_of_a_sum_over_samples_agrees_with_jax(model):
    gradient, weights = jax.grad(risk(model, samples=20)[0]), risk(model, samples=20)[1]
    (found,) = to_mpmath(trace(gradient, weights), [weights], 50)
    assert differs(found, in_jax(gradient, weights)) < 1e-13


@pytest.mark.parametrize("model", MODELS)
def test_gradient_in_symbols_agrees_with_jax_and_with_the_derivative_of_the_loss(model):
    mean, weights = risk(model, samples=2)
    names, gradient = symbols(weights.shape, real=True), jax.grad(mean)
    (found,) = to_sympy(trace(gradient, weights), [names])
    partial = sympy.diff(read(mean, names), names[1, 0])
    with mpmath.workdps(30):
        compiled = sympy.lambdify(list(names.flat), [*found.flat, partial], "mpmath", cse=True)
        *components, partial = compiled(*map(mpmath.mpf, weights.flat))
    expected = in_jax(gradient, weights)
    assert differs(np.reshape(components, weights.shape), expected) < 1e-13
    assert abs(partial - expected[1, 0]) < 1e-13 * np.max(np.abs(expected))


def cyclic_gradient(disturbance):
    """Gradient at equal weights, for 20 samples that are all rotations of four sequences."""
    rng = np.random.default_rng(3)
    sequences = rng.normal(size=(4, 5))
    x = np.concatenate([np.roll(sequences, k, axis=1) for k in range(5)])
    x[7, 2] += disturbance

    def loss(weights, sequence):
        scores = weights * sequence
        hidden = jax.nn.softmax(scores) @ jax.nn.relu(sequence) + jax.nn.logsumexp(scores)
        return jax.nn.softplus(hidden + hidden**3)

    def risk(weights, sequences):
        return jnp.mean(jax.vmap(loss, (None, 0))(weights, sequences))

    gradient = jax.grad(lambda weights: risk(weights, jnp.asarray(x)))
    weights = np.full(5, 0.7)
    return to_mpmath(trace(gradient, weights), [weights])[0], in_jax(gradient, weights)


def test_symmetric_law_gives_equal_components_to_all_digits():
    found, expected = cyclic_gradient(0.0)
    assert differs(found, expected) < 1e-13
    assert abs(found[0]) > 0.01
    with mpmath.workdps(60):
        assert max(abs(g - found[0]) for g in found) < mpmath.mpf("1e-48")
    broken, _ = cyclic_gradient(1e-6)
    assert max(abs(g - broken[0]) for g in broken) > 1e-9
