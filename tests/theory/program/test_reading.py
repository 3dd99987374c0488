"""Functions as lists of operations: in floats beside JAX, in sympy, in mpmath and as source."""

from fractions import Fraction

import jax
import jax.numpy as jnp
import mpmath
import numpy as np
import precise
import pytest
import sympy

from dynamics.models.engine.tracing import namespace
from theory.program import (
    ONE,
    ZERO,
    UnreadPrimitive,
    Values,
    adjoints,
    build,
    field,
    numbering,
    read,
    run_floats,
    source,
    symbolic,
)
from theory.program.evaluate import exact

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


FUNCTIONS = {name: (of, 3) for name, of in SMOOTH.items()}
FUNCTIONS |= {name: (lambda w, of=of: of(namespace(), w), 6) for name, of in ROWS.items()}
ROOT = np.full(1, np.sqrt(3.0))
SQUARED = {"a root squared": (lambda w: w[0] + jnp.sum(ROOT**2) * w[3] - w[1] ** 3, 4)}  # 3 - 4e-16


@pytest.mark.parametrize("name", FUNCTIONS | SQUARED)
def test_values_and_gradients_are_those_of_jax(name):
    function, count = (FUNCTIONS | SQUARED)[name]
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


KINKS = {
    "relu": lambda xp, w: xp.relu(w[0] - 0.2) + xp.abs(w[1]) + xp.maximum(w[2], w[0] * w[1]),
    "where": lambda xp, w: xp.where(w[0] > 0.1, w[1] ** 2, w[2]) + xp.max(w * 2),
    "clip": lambda xp, w: xp.clip(w[0], -0.3, 0.3) * xp.sign(w[1]) + xp.sum(w[:2] == w[1:]),
    "whole": lambda xp, w: xp.round(w[0] * 3) * w[1] + jnp.trunc(w[1] * 3) + xp.floor(w[2]),
    "sigmoid": lambda xp, w: xp.sigmoid(w[0]) + xp.softplus(w[1] * 9) + xp.erf(w[2]),
}
KINKED = {name: (lambda w, of=of: of(namespace(), w), 3) for name, of in KINKS.items()}


@pytest.mark.parametrize("name", FUNCTIONS | KINKED)
def test_readers_give_the_numbers_of_the_list(name):
    function, count = (FUNCTIONS | KINKED)[name]
    values, inputs, (root,) = table_of(function, count)
    roots = [int(root), *adjoints(values, {int(root): ONE}, inputs).tolist()]
    program = build(values, inputs, {"": np.array(roots)})
    states = np.random.default_rng(2).normal(size=(3, count))
    expected = [run_floats(program, state)[program.outputs[""]] for state in states]
    names = [f"w{k}" for k in range(count)]
    symbols = {int(k): sympy.Symbol(n, real=True) for k, n in zip(inputs, names, strict=True)}

    written = symbolic.expressions(values, roots, symbols)
    compute = sympy.lambdify(list(symbols.values()), written, "mpmath", cse=True)
    parts, shorts = symbolic.named_parts(values, roots, symbols, ["t0"])
    assert "t0" not in {part.name for part, _ in parts}
    whole = [short.subs(parts[::-1]) for short in shorts]
    by_parts = sympy.lambdify(list(symbols.values()), whole, "mpmath", cse=True)
    texts = dict(zip(inputs.tolist(), names, strict=True))
    file = source.function_file(
        values, roots[0], np.array(roots[1:]), (texts, {}, {}), [0.0] * count, [0.1], "A file."
    )
    space = {}
    exec(compile(file, "file.py", "exec"), space)
    many = np.column_stack([space["risk"](states), space["gradient"](states)])
    for state, wanted, found in zip(states, expected, many, strict=True):
        given = dict(zip(inputs.tolist(), state.tolist(), strict=True))
        numbers = precise.evaluated(values, roots, given, 40)
        exactly = [numbers[k] for k in roots]
        tolerance = 1e-13 * (1 + float(max(map(abs, exactly))))
        np.testing.assert_allclose(wanted, np.array(exactly, float), rtol=1e-12, atol=tolerance)
        np.testing.assert_allclose(found, wanted, rtol=1e-12, atol=tolerance)
        with mpmath.workdps(40):
            for read in (compute, by_parts):
                off = [a - b for a, b in zip(read(*map(mpmath.mpf, state)), exactly, strict=True)]
                assert max(map(abs, off)) < 1e-35 * (1 + max(map(abs, exactly)))


def test_constants_are_read_as_the_fractions_that_they_are():
    for number in (Fraction(3, 7), Fraction(-349, 1600), Fraction(5, 3**13), Fraction(0)):
        assert field.read_back(field.residues(number)) == number
    assert field.simplest(0.1 + 0.118125 + 2.0**-55) == Fraction(349, 1600)
    assert field.simplest(1 / 3) == Fraction(1, 3)
    assert field.simplest(np.pi) == Fraction(np.pi)
    values = Values()
    one, two = values.constants(np.array([1 / 3**6, 5 / 3**7]))
    (factor,) = values.apply("mul", (np.array([one]), np.array([two])))
    assert exact(values, int(factor)) == Fraction(5, 3**13)
    assert symbolic.decimal(Fraction(5, 3**13)) == sympy.Rational(5, 3**13)
    assert symbolic.decimal(Fraction(np.pi)).is_Float


def test_a_short_expression_is_simplified_and_a_long_one_is_left():
    x, y = sympy.symbols("x y", real=True)
    assert symbolic.simplified((x + 1) ** 2 - x**2 - 2 * x - 1 + y) == y
    long = sum((x + k) ** 2 for k in range(99))
    assert symbolic.simplified(long) == long
