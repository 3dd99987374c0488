"""Every primitive agrees with JAX in sympy and in mpmath, and inputs of any kind are read."""

import subprocess
import sys

import mpmath
import numpy as np
import pytest
import sympy
from traced import differs, in_jax, read, symbols, trace, values

from theory.tracing import Mpmath, Sympy, evaluate, to_mpmath, to_sympy
from theory.tracing.primitives import MOVEMENTS

jax = pytest.importorskip("jax")
jnp, lax = jax.numpy, jax.lax


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


@pytest.mark.parametrize("start", [-2, 0, 3, 5])
def test_a_slice_that_would_leave_its_array_is_moved_into_it(start):
    values = np.arange(6.0)
    found = MOVEMENTS["dynamic_slice"]({"slice_sizes": (3,)}, values, np.array(start))
    first = min(max(start, 0), 3)  # as jax.lax.dynamic_slice says
    np.testing.assert_array_equal(found, values[first : first + 3])
