"""Sums of products of matrices, in which adjacent pairs have names: ``K.T*Q`` is ``B``.

A sum is kept as a mapping of words to coefficients, a word being the tuple of its factors. Two
expressions are equal where these mappings are; no entry is ever looked at.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import Any

import sympy
from sympy.matrices.expressions import MatAdd, MatMul

Matrix = Any
Word = tuple[Matrix, ...]
Rules = Mapping[tuple[Matrix, Matrix], Matrix]


def terms(expression: Matrix) -> dict[Word, sympy.Expr]:
    """Words of an expanded sum -> their coefficients."""
    found: dict[Word, sympy.Expr] = {}
    for part in MatAdd.make_args(expression.doit().expand().doit()):
        coefficient, factors = part.as_coeff_mmul()
        word = tuple(MatMul.make_args(factors))
        found[word] = sympy.expand(found.get(word, 0) + coefficient)
    return {word: coefficient for word, coefficient in found.items() if coefficient != 0}


def summed(found: Mapping[Word, sympy.Expr]) -> Matrix:
    """The expression of a mapping of words to coefficients."""
    return MatAdd(*[MatMul(value, *word) for word, value in found.items()]).doit()


def contract(expression: Matrix, rules: Rules, symmetric: tuple[Matrix, ...] = ()) -> Matrix:
    """Expand, and write adjacent pairs by their names, until none is left.

    Parameters
    ----------
    expression : matrix expression
    rules : mapping
        Pair -> its name; the transposed pair has the transposed name.
    symmetric : tuple of matrices
        Their transposes are themselves.
    """
    known = dict(rules) | {(b.T, a.T): name.T for (a, b), name in rules.items()}
    plain = {matrix.T: matrix for matrix in symmetric}
    found: dict[Word, sympy.Expr] = {}
    for word, coefficient in terms(expression).items():
        short = _contracted(tuple(plain.get(factor, factor) for factor in word), known, plain)
        found[short] = sympy.expand(found.get(short, 0) + coefficient)
    return summed(found)


def evaluate(
    expression: Matrix, values: Mapping[Matrix, Any], product: Callable[[Any, Any], Any]
) -> list[tuple[sympy.Expr, Any]]:
    """Coefficients and values of the words of an expression, in another algebra.

    Parameters
    ----------
    expression : matrix expression
    values : mapping
        Factor, or transposed factor -> its value.
    product : callable
        Product of two values.
    """
    found = []
    for word, coefficient in terms(expression).items():
        value = values[word[0]]
        for factor in word[1:]:
            value = product(value, values[factor])
        found.append((coefficient, value))
    return found


def _contracted(word: Word, rules: Rules, plain: Mapping[Matrix, Matrix]) -> Word:
    for k in range(len(word) - 1):
        if (name := rules.get((word[k], word[k + 1]))) is not None:
            short = (*word[:k], plain.get(name, name), *word[k + 2 :])
            return _contracted(short, rules, plain)
    return word
