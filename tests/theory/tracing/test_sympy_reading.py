"""Traced programs read as a paper would write them; what cannot be read is refused by name."""

import numpy as np
import pytest
import sympy
from traced import read, symbols, trace

from theory.tracing import UntracedPrimitive, to_mpmath

jax = pytest.importorskip("jax")
jnp, lax = jax.numpy, jax.lax


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
