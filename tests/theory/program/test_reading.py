"""Functions read into the table: values, derivatives, ties, and what must stay apart."""

import jax
import jax.numpy as jnp
import numpy as np
import pytest
from lists import ROWS, SMOOTH, in_jax, numbers_and_slopes, table_of

from dynamics.models.engine.tracing import namespace
from theory.program import ZERO, UnreadPrimitive, numbering

FUNCTIONS = {name: (of, 3) for name, of in SMOOTH.items()}
FUNCTIONS |= {name: (lambda w, of=of: of(namespace(), w), 6) for name, of in ROWS.items()}
ROOT = np.full(1, np.sqrt(3.0))
FUNCTIONS["a root squared"] = (lambda w: w[0] + jnp.sum(ROOT**2) * w[3] - w[1] ** 3, 4)  # 3 - 4e-16


@pytest.mark.parametrize("name", FUNCTIONS)
def test_values_and_gradients_are_those_of_jax(name):
    function, count = FUNCTIONS[name]
    at, generator = numbers_and_slopes(function, count), np.random.default_rng(1)
    states = generator.normal(size=(20, count)) * generator.choice([0.1, 1, 3], (20, 1))
    for state, expected, wanted in zip(states, *in_jax(function, states), strict=True):
        value, slopes = at(state)
        assert value == pytest.approx(expected, rel=1e-12, abs=1e-13)
        gross = max(1.0, np.abs(wanted).max())  # of 1 - tanh(x)^2 and the like
        np.testing.assert_allclose(slopes, wanted, rtol=1e-11, atol=1e-12 * gross)


TIES = {
    "max": lambda w: jnp.maximum(w[0], w[1]) * 3,
    "relu": lambda w: jax.nn.relu(w[0]) + 2 * jax.nn.relu(w[1] - w[0]),
    "abs": lambda w: jnp.abs(w[0]) + jnp.abs(w[1] - w[0]) * 2,
    "clip": lambda w: jnp.clip(w[0], 0.0, 1.0) + jnp.clip(w[1], -1.0, 0.0),
    "where": lambda w: jnp.where(w[0] > 0, w[1] * 2, w[0] + w[1]) * (w[0] >= w[1]),
    "largest": lambda w: jnp.max(jnp.array([w[0], w[1], w[0], -1.0])),
    "smallest": lambda w: jnp.min(jnp.stack([w[0], w[1], w[1]])),
    "stopped": lambda w: jax.lax.stop_gradient(w[0] + 1) * w[1] + jax.lax.stop_gradient(w[1]) ** 2,
    "straight through": lambda w: (
        (w[0] + jax.lax.stop_gradient(jnp.sign(w[0]) - w[0])) * (w[1] + 2)
    ),
    "safe root": lambda w: (
        jnp.where(w[0] > 0, jnp.sqrt(jnp.where(w[0] > 0, w[0], 1.0)), 0.0) + w[1]
    ),
}


@pytest.mark.parametrize("name", TIES)
def test_slopes_at_ties_are_those_of_jax(name):
    at = numbers_and_slopes(TIES[name], 2)
    states = np.array([[0.0, 0.0], [1.0, 1.0], [0.0, 1.0], [1.0, 0.0], [-1.0, 0.5]])
    for state, expected, wanted in zip(states, *in_jax(TIES[name], states), strict=True):
        value, slopes = at(state)
        assert value == expected
        np.testing.assert_array_equal(slopes, wanted)


APART = {
    "thresholds": lambda w: jax.nn.relu(w[0] - jnp.arange(400.0) / 100),
    "a distant kink": lambda w: jnp.stack([w[0], w[0] + 1e-11 * jax.nn.relu(w[0] - 5)]),
    "saturation": lambda w: jnp.stack([jnp.tanh(40 * (1 + w[0] ** 2)), w[0] * 0 + 1.0]),
    "selections": lambda w: jnp.stack(
        [jnp.where(w[0] > 2, jnp.sqrt(w[0] - 2), 0), jnp.where(w[0] > 3, jnp.sqrt(w[0] - 2), 0)]
    ),
    "odd functions": lambda w: jnp.stack([jnp.tanh(w[0]), jnp.tanh(-w[0])]),
    "halves of a maximum": lambda w: jnp.stack([jnp.maximum(w[0], 1.0), jnp.maximum(w[0], 2.0)]),
}


@pytest.mark.parametrize("name", APART)
def test_different_numbers_are_different_values(name):
    _, _, (ids,) = table_of(APART[name], 1)
    assert np.unique(ids).size == ids.size


ONE_VALUE = {
    "order of summation": lambda w: jnp.stack([w[0] + (w[1] + w[2]), (w[2] + w[0]) + w[1]]),
    "odd functions": lambda w: jnp.stack([jnp.tanh(w[0] - w[1]), -jnp.tanh(w[1] - w[0])]),
    "even functions": lambda w: jnp.stack([jnp.cos(w[0] - w[1]), jnp.cos(w[1] - w[0])]),
    "selection of one": lambda w: jnp.stack([jnp.where(w[2] > 0, w[0], w[0]), w[0]]),
    "logistic": lambda w: jnp.stack([jax.nn.sigmoid(-w[0]), 1 - jax.nn.sigmoid(w[0])]),
    "softplus": lambda w: jnp.stack([jax.nn.softplus(w[0]) - jax.nn.softplus(-w[0]), w[0]]),
    "expansion": lambda w: jnp.stack([(w[0] + w[1]) ** 2, w[0] ** 2 + 2 * w[0] * w[1] + w[1] ** 2]),
    "comparisons": lambda w: jnp.stack([1.0 * (w[0] >= w[1]), 1.0 - (w[0] < w[1])]),
    "thirds": lambda w: jnp.stack([w[0] / 3, w[0] * (1 / 3)]),
}


@pytest.mark.parametrize("name", ONE_VALUE)
def test_equal_numbers_are_one_value(name):
    _, _, (ids,) = table_of(ONE_VALUE[name], 3)
    assert np.unique(ids).size == 1


def test_a_softmax_of_shifted_rows_is_one_value_and_sums_to_one():
    xp = namespace()

    def rows(w):
        shares = xp.softmax(xp.stack([w, w + w[0]]))
        return xp.concatenate([shares[0] - shares[1], xp.sum(shares, axis=1) - 1])

    _, _, (ids,) = table_of(rows, 3)
    assert (ids == ZERO).all()


def test_what_has_no_program_is_named_with_its_line():
    with pytest.raises(UnreadPrimitive, match=r"'sort'.*test_reading.py, line"):
        table_of(lambda w: jnp.sort(w)[0], 3)


def test_operations_of_the_kernel_have_the_codes_of_the_table():
    from dynamics.loops.kernels import program as kernel

    for name, code in numbering.CODE.items():
        if name not in ("input", "constant"):
            assert getattr(kernel, name.upper()) == code
