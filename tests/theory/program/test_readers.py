"""Values in sympy, in mpmath and as source, against the same values in floats."""

from fractions import Fraction

import jax.numpy as jnp
import mpmath
import numpy as np
import precise
import pytest
import sympy
from lists import ROWS, SMOOTH, table_of

from dynamics.models.engine.tracing import namespace
from theory.program import ONE, Values, adjoints, build, field, run_floats, source, symbolic
from theory.program.evaluate import exact

KINKS = {
    "relu": lambda xp, w: xp.relu(w[0] - 0.2) + xp.abs(w[1]) + xp.maximum(w[2], w[0] * w[1]),
    "where": lambda xp, w: xp.where(w[0] > 0.1, w[1] ** 2, w[2]) + xp.max(w * 2),
    "clip": lambda xp, w: xp.clip(w[0], -0.3, 0.3) * xp.sign(w[1]) + xp.sum(w[:2] == w[1:]),
    "whole": lambda xp, w: xp.round(w[0] * 3) * w[1] + jnp.trunc(w[1] * 3) + xp.floor(w[2]),
    "sigmoid": lambda xp, w: xp.sigmoid(w[0]) + xp.softplus(w[1] * 9) + xp.erf(w[2]),
}
FUNCTIONS = {name: (of, 3) for name, of in SMOOTH.items()}
FUNCTIONS |= {name: (lambda w, of=of: of(namespace(), w), 6) for name, of in ROWS.items()}
FUNCTIONS |= {name: (lambda w, of=of: of(namespace(), w), 3) for name, of in KINKS.items()}


@pytest.mark.parametrize("name", FUNCTIONS)
def test_readers_give_the_numbers_of_the_list(name):
    function, count = FUNCTIONS[name]
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
