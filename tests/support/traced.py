"""Traced programs, and what JAX gives for them."""

import jax
import numpy as np
import sympy

from dynamics.codegen.programs import compiled_program
from theory.tracing import to_sympy


def trace(function, *arguments):
    with jax.enable_x64(True):
        return jax.make_jaxpr(function)(*arguments)


def in_jax(function, *arguments):
    with jax.enable_x64(True):
        return np.asarray(compiled_program(jax, function)(*arguments))


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
