"""Traced programs in sympy and mpmath agree with JAX, and read as a paper would write them."""

import subprocess
import sys

import mpmath
import numpy as np
import pytest
import sympy

from theory.tracing import Mpmath, Sympy, UntracedPrimitive, evaluate, to_mpmath, to_sympy

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


def trace(function, *arguments):
    with jax.enable_x64(True):
        return jax.make_jaxpr(function)(*arguments)


def in_jax(function, *arguments):
    with jax.enable_x64(True):
        return np.asarray(jax.jit(function)(*arguments))


def symbols(shape, name="x", **assumptions):
    names = [name + "_".join(map(str, k)) for k in np.ndindex(shape)]
    flat = [sympy.Symbol(n, **assumptions) for n in names]
    return np.array(flat, dtype=object).reshape(shape)


def read(function, *inputs):
    """The only output as sympy expressions; a scalar as itself."""
    examples = [np.ones(np.shape(x)) for x in inputs]
    (value,) = to_sympy(trace(function, *examples), inputs)
    return value if value.shape else value.item()


def values(expressions, names, numbers):
    """Expressions at exact decimals, to 30 digits."""
    pairs = zip(names.flat, numbers.flat, strict=True) if names.size else ()
    exact = {s: sympy.Rational(repr(float(v))) for s, v in pairs}
    flat = [float(e.subs(exact).evalf(30)) for e in np.ravel(expressions)]
    return np.reshape(flat, np.shape(expressions))


def differs(found, expected):
    found, expected = np.asarray(found, dtype=float), np.asarray(expected)
    assert found.shape == expected.shape
    return np.max(np.abs(found - expected)) / np.max(np.abs(expected))


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


def test_softmax_is_a_quotient_of_exponentials():
    x = symbols((3,))
    whole = sum(map(sympy.exp, x))
    assert list(read(jax.nn.softmax, x)) == [sympy.exp(s) / whole for s in x]
    assert list(read(jax.nn.log_softmax, x)) == [s - sympy.log(whole) for s in x]
    assert read(jax.nn.logsumexp, x) == sympy.log(whole)
    gradient = read(jax.grad(lambda v: jax.nn.softmax(v)[0] + jax.nn.logsumexp(v)), x)
    assert not any(g.has(sympy.Max, sympy.Piecewise, sympy.Abs) for g in gradient)
    expected = sympy.diff(sympy.exp(x[0]) / whole + sympy.log(whole), x[1])
    assert sympy.simplify(gradient[1] - expected) == 0


def test_rows_of_a_softmax_are_apart():
    x = symbols((2, 2))
    found = read(lambda v: jax.nn.softmax(v, axis=1) * jax.nn.softmax(v, axis=0), x)
    e = np.vectorize(sympy.exp, otypes=[object])(x)
    expected = e / e.sum(axis=1, keepdims=True) * e / e.sum(axis=0, keepdims=True)
    assert np.all(found == expected)


def test_masked_softmax_leaves_the_others():
    x = symbols((3,))
    found = read(lambda v: jax.nn.softmax(jnp.where(jnp.arange(3) < 2, v, -jnp.inf)), x)
    whole = sympy.exp(x[0]) + sympy.exp(x[1])
    assert list(found) == [sympy.exp(x[0]) / whole, sympy.exp(x[1]) / whole, 0]


def test_maximum_that_matters_is_written():
    x = symbols((3,))
    maximum = sympy.Max(*x)
    assert read(jnp.max, x) == maximum
    assert read(lambda v: jnp.exp(v[0] - jnp.max(v)), x) == sympy.exp(-maximum) * sympy.exp(x[0])
    half = read(lambda v: jax.nn.logsumexp(v) - jnp.max(v), x)
    assert half == sympy.log(sum(map(sympy.exp, x))) - maximum


def test_softplus_relu_and_sigmoid_read_as_in_a_paper():
    x = sympy.Symbol("x")
    assert read(jax.nn.softplus, x) == sympy.log(sympy.exp(x) + 1)
    assert read(jax.nn.relu, x) == sympy.Max(0, x)
    assert read(jax.nn.sigmoid, x) == 1 / (1 + sympy.exp(-x))
    assert read(jax.grad(jax.nn.softplus), x) == sympy.exp(x) / (sympy.exp(x) + 1)
    step = read(jax.grad(jax.nn.relu), x)
    assert [step.subs(x, v) for v in (-1, 0, 2)] == [0, 0, 1]


def test_function_that_resembles_logaddexp_is_not_taken_for_it():
    @jax.custom_jvp
    def logaddexp(a, b):
        return jnp.maximum(a, b) + jnp.log1p(2 * jnp.exp(-jnp.abs(a - b)))

    logaddexp.defjvps(None, None)
    x = sympy.Symbol("x")
    found = read(lambda v: logaddexp(v, 0.0), x)
    assert found.subs(x, 0) == sympy.log(3)


def test_where_with_a_symbol_is_a_piecewise():
    x = sympy.Symbol("x")
    found = read(lambda v: jnp.where(v == 0, 1.0, jnp.sin(v) / v), x)
    assert isinstance(found, sympy.Piecewise)
    assert found.free_symbols == {x}
    assert found.subs(x, 0) == 1
    assert found.subs(x, 2) == sympy.sin(2) / 2
    assert read(lambda v: jnp.where(v == 0, 1.0, v), sympy.Symbol("p", positive=True)).is_Symbol


def test_expressions_with_symbols_are_finite():
    x = sympy.Symbol("x")
    assert read(lambda v: jnp.where(1 / v < jnp.inf, v, 0.0), x) == x
    assert read(jax.grad(lambda v: jax.nn.softplus(1 / v)), x).has(sympy.Piecewise) is False


def test_conditions_with_symbols_combine():
    x = symbols((2,))
    inside = read(lambda v: jnp.where(jnp.all(v > 0) & ~(v[0] > 1), jnp.sum(v), 0.0), x)
    for point in ([1, 2], [-1, 2], [3, 2], [1, -2]):
        expected = sum(point) if min(point) > 0 and point[0] <= 1 else 0
        assert inside.subs(dict(zip(x, point, strict=True))) == expected
    assert isinstance(read(lambda v: v[0] > v[1], x), sympy.Rel)
    assert read(lambda v: jnp.isfinite(v[0]), x) is True


@pytest.mark.parametrize(
    ("function", "name"),
    [
        (lambda v: jnp.linalg.cholesky(jnp.outer(v, v)), "cholesky"),
        (jnp.sort, "sort"),
        (jnp.argmax, "argmax"),
        (jnp.round, "round"),
        (lambda v: lax.cond(v[0] > 0, jnp.sin, jnp.cos, v), "convert_element_type"),
        (lambda v: lax.while_loop(lambda c: c[0] < 3, lambda c: 2 * c, v), "while"),
    ],
)
def test_what_cannot_be_read_is_refused_by_name(function, name):
    with pytest.raises(UntracedPrimitive, match=f"'{name}'") as refusal:
        read(function, symbols((3,)))
    assert refusal.value.primitive == name
    assert isinstance(refusal.value, ValueError)


def test_unknown_primitive_of_numbers_is_refused_by_name():
    with pytest.raises(UntracedPrimitive, match="'cholesky'"):
        to_mpmath(trace(jnp.linalg.cholesky, np.eye(2)), [np.eye(2)])


def test_unused_equations_are_not_read():
    x = symbols((3,))
    assert read(lambda v: (jnp.sort(v), 2 * v[0])[1], x) == 2 * x[0]


def body(carry, row):
    return carry * row[0] + row[1], jnp.sum(row) * carry


TWO = np.random.default_rng(5).normal(size=(4, 3))
PLACES = np.array([[2, 0], [1, -1]])

PROGRAMS = {
    "gather": lambda v: v[PLACES],
    "gather rows": lambda v: v[jnp.array([0, 2])[:, None], jnp.array([1, 1])],
    "out of bounds": lambda v: v.at[jnp.array([1, 9])].get(mode="fill", fill_value=-2.5),
    "clipped": lambda v: v.at[jnp.array([1, 9])].get(mode="clip"),
    "scatter": lambda v: v.at[PLACES[0]].set(2 * v[:2]),
    "scatter-add": lambda v: v.at[jnp.array([1, 1, 9])].add(v[:3], mode="drop"),
    "scatter-mul": lambda v: v.at[:, jnp.array([0, 0])].multiply(v[:, 1:]),
    "scatter-max": lambda v: v.at[0].max(v[1]),
    "scatter window": lambda v: v.at[1:3, 1].add(v[0, :2]),
    "gradient of gather": jax.grad(lambda v: jnp.sum(v[PLACES] ** 3 * v[0])),
    "gradient of slices": jax.grad(lambda v: jnp.sum(v[1:] ** 2 * v[:-1]) + v[2, 1] ** 3),
    "batched gather": lambda v: jax.vmap(lambda row, k: row[k])(v, jnp.array([0, 2, 1, 1])),
    "pad": lambda v: lax.pad(v, 1.5, [(1, -1, 2), (-1, 2, 0)]),
    "flip and roll": lambda v: jnp.roll(v[::-1], 1, axis=1),
    "dynamic slice": lambda v: lax.dynamic_slice(v, (jnp.sum(PLACES), 1), (2, 2)),
    "dynamic update": lambda v: lax.dynamic_update_slice(v, v[:2, :2] ** 2, (1, 1)),
    "strides": lambda v: v[::2, ::-1],
    "split and stack": lambda v: jnp.stack(jnp.split(v, 2)[::-1], axis=1),
    "diagonal": lambda v: jnp.diag(v[:3]) + jnp.trace(v @ v.T) + jnp.tril(v)[2],
    "einsum": lambda v: jnp.einsum("ij,kj,il->ikl", v, v, v),
    "batched product": lambda v: jnp.einsum("bi,bj,bi->bj", v, v, v),
    "outer": lambda v: jnp.tensordot(v, v, axes=0),
    "running": lambda v: jnp.cumsum(v, axis=0) + lax.cumsum(v, axis=1, reverse=True),
    "running product": lambda v: jnp.cumprod(v, axis=1) + lax.cummax(v) - lax.cummin(v),
    "running logsumexp": lambda v: lax.cumlogsumexp(v, axis=1),
    "sort": lambda v: jnp.sort(v, axis=0) * jnp.argsort(v, axis=1),
    "extremes": lambda v: jnp.max(v, 0) * jnp.min(v) + jnp.argmax(v, 0) - 2.0 * jnp.argmin(v),
    "product": lambda v: jnp.prod(v, axis=1) + jnp.prod(v[:0], axis=(0, 1)),
    "gradient of max": jax.grad(lambda v: jnp.sum(jnp.max(v, axis=1) ** 2)),
    "statistics": lambda v: jnp.var(v, axis=0) + jnp.std(v) + jnp.linalg.norm(v),
    "indices": lambda v: v * jnp.arange(3) + lax.iota(float, 3) + jax.nn.one_hot(1, 3),
    "scan": lambda v: lax.scan(body, 0.5, v)[1] + lax.scan(body, 0.5, v, reverse=True)[1],
    "gradient of scan": jax.grad(lambda v: lax.scan(body, 0.5, v)[0]),
    "empty scan": lambda v: lax.scan(body, v[0, 0], v[:0])[0],
    "loop": lambda v: lax.fori_loop(0, 3, lambda k, c: c * v + k, v),
    "while": lambda v: lax.while_loop(lambda c: jnp.sum(c**2) < 100.0, lambda c: 2 * c, v),
    "cond": lambda v: lax.cond(v[0, 0] > 0, jnp.sin, jnp.cos, v),
    "switch": lambda v: lax.switch(2, [jnp.sin, jnp.cos, jnp.tanh], v),
    "choice": lambda v: lax.select_n(jnp.array([2, 0, 1]), v[0], v[1], v[2]),
    "checkpoint": jax.grad(lambda v: jnp.sum(jax.checkpoint(jnp.sin)(v))),
    "casts": lambda v: (3 * v).astype(int) + (v > 0) + v.astype(bool) * v.astype(np.float32) * 0,
    "where": lambda v: jnp.where(v > 0.2, v, jnp.where(v < -0.5, 1.0, v**2)),
    "clip": lambda v: jnp.clip(v, -0.5, 0.5) + jnp.sign(v) * jnp.floor(v) + jnp.ceil(v),
    "round": lambda v: jnp.round(4 * v) + lax.round(jnp.array([0.5, 1.5, -2.5]), 0),
    "round even": lambda v: jnp.round(jnp.array([0.5, 1.5, -2.5])) * v,
    "rem": lambda v: lax.rem(v, v[::-1]) + jnp.mod(v, 0.3),
    "roots": lambda v: jnp.cbrt(v) + jnp.sqrt(v**2) + lax.rsqrt(v**2 + 1) + jnp.abs(v) ** 0.3,
    "powers": lambda v: v**3 + v**-2 + jnp.square(v) + (2 + v) ** v + jnp.exp2(v),
    "logarithms": lambda v: jnp.log1p(v**2) + jnp.log(v**2) + jnp.expm1(v) + jnp.logaddexp(v, 1),
    "circular": lambda v: jnp.sin(v) + jnp.cos(v) + jnp.tan(v) + jnp.atan2(v, v[0]),
    "inverse": lambda v: jnp.asin(v / 4) + jnp.acos(v / 4) + jnp.atan(v),
    "hyperbolic": lambda v: jnp.sinh(v) + jnp.cosh(v) + jnp.tanh(v) + jnp.asinh(v),
    "inverse hyperbolic": lambda v: jnp.acosh(2 + v**2) + jnp.atanh(v / 4),
    "errors": lambda v: lax.erf(v) + lax.erfc(v) + lax.erf_inv(v / 4),
    "gamma": lambda v: lax.lgamma(v) + lax.digamma(v),
    "activations": lambda v: jax.nn.gelu(v) + jax.nn.silu(v) + jax.nn.elu(v) + jnp.sinc(v),
    "softplus of a sequence": jax.grad(lambda v: jnp.sum(jax.vmap(jax.nn.softplus)(v))),
}


@pytest.mark.parametrize("name", PROGRAMS)
@pytest.mark.parametrize("arithmetic", [Mpmath(30), Sympy()], ids=["mpmath", "sympy"])
def test_program_agrees_with_jax(name, arithmetic):
    expected = in_jax(PROGRAMS[name], TWO)
    (found,) = evaluate(trace(PROGRAMS[name], TWO), [TWO], arithmetic)
    if isinstance(arithmetic, Sympy):
        found = values(found, np.array([]), np.array([]))
    assert differs(found, expected) < 1e-13


@pytest.mark.parametrize("name", ["gather", "scatter-add", "pad", "einsum", "loop", "where"])
def test_program_in_symbols_agrees_with_jax(name):
    names = symbols(TWO.shape)
    found = read(PROGRAMS[name], names)
    assert differs(values(found, names, TWO), in_jax(PROGRAMS[name], TWO)) < 1e-13


def test_integer_inputs_stay_integers():
    def program(v, k):
        return v[k] + k, k + 1

    x, traced = symbols((3,)), trace(program, np.ones(3), np.array([1, 2]))
    picked, moved = to_sympy(traced, [x, [2, 0]])
    assert list(picked) == [x[2] + 2, x[0]]
    assert moved.dtype == np.int64
    assert list(moved) == [3, 1]


def test_decimals_are_exact():
    def program(v):
        return 0.1 * v + 0.123456789012345

    (tenth,) = to_mpmath(trace(program, 1.0), [0.3], 40)
    with mpmath.workdps(40):
        exact = mpmath.mpf("0.153456789012345")
        assert abs(tenth.item() - exact) < mpmath.mpf("1e-39")
    x = sympy.Symbol("x")
    expression = read(program, x)
    assert expression.coeff(x) == sympy.Rational(1, 10)
    constant = sympy.Rational(expression.subs(x, 0))
    assert abs(constant - sympy.Rational("0.123456789012345")) < sympy.Rational(1, 10**28)
    assert read(lambda v: v / 3 + 0.25, x) == x / 3 + sympy.Rational(1, 4)


def test_inputs_may_be_numbers_of_many_kinds():
    from fractions import Fraction

    traced = trace(lambda v: v / 2, np.ones(3))
    inputs = [Fraction(1, 3), sympy.pi, 2]
    (numbers,), (expressions,) = to_mpmath(traced, [inputs]), to_sympy(traced, [inputs])
    with mpmath.workdps(50):
        assert abs(numbers[1] - mpmath.pi / 2) < mpmath.mpf("1e-48")
        assert abs(numbers[0] - mpmath.mpf(1) / 6) < mpmath.mpf("1e-48")
    assert list(expressions) == [sympy.Rational(1, 6), sympy.pi / 2, 1]
    with pytest.raises(ValueError, match="not a real number"):
        to_mpmath(traced, [symbols((3,))])


@pytest.mark.parametrize("arithmetic", [Mpmath(), Sympy()], ids=["mpmath", "sympy"])
def test_guards_see_what_they_see_in_floating_point(arithmetic):
    def program(v):
        kinds = [1 / v, -1 / v, v / v, jnp.log(v), jnp.sqrt(v - 1), v**-2, lax.rsqrt(v)]
        return jnp.stack([*kinds, jnp.where(v == 0, 1.0, jnp.sin(v) / v)])

    (found,) = evaluate(trace(program, 0.0), [0.0], arithmetic)
    expected = in_jax(program, 0.0)
    np.testing.assert_array_equal([float(entry) for entry in found], expected)
    assert np.isnan(expected[2])


def test_wrong_inputs_are_refused():
    traced = trace(jnp.sum, np.ones(3))
    with pytest.raises(ValueError, match="shape"):
        to_mpmath(traced, [np.ones(4)])
    with pytest.raises(ValueError, match="2 inputs"):
        to_mpmath(traced, [np.ones(3), 1.0])


def test_settings_of_the_process_are_left_alone():
    digits, wide = mpmath.mp.dps, jax.config.jax_enable_x64
    to_mpmath(trace(jnp.sum, np.ones(3)), [np.ones(3)], 80)
    assert (mpmath.mp.dps, jax.config.jax_enable_x64) == (digits, wide)


def test_symbols_come_back_as_they_were():
    x = symbols((3,))
    found = read(lambda v: jax.nn.softmax(v) * jnp.sqrt(v**2), x)
    assert found[0].free_symbols == set(x)
    assert found[0] == sympy.Abs(x[0]) * read(jax.nn.softmax, x)[0]


def test_importing_theory_does_not_import_jax():
    code = "import sys, theory.tracing; sys.exit('jax' in sys.modules)"
    assert subprocess.run([sys.executable, "-c", code], check=False).returncode == 0
