r"""Network, hinge loss and gradients of one sample as matrix expressions with symbolic sizes.

The columns of X (d x L) are the tokens, and the columns :math:`a_{(l)}` of A (m x L) the output
weights at each position:

.. math::
   Z = (W_K X)^\top (W_Q X), \quad S = \mathrm{softmax}(Z) \text{ over keys, the rows of a column},
   \quad U = W_O W_V X S, \quad F = \frac1L \sum_l a_{(l)}^\top \mathrm{relu}(U_l),

and the loss is :math:`\max(\gamma - yF, 0)`. Almost everywhere, the gates :math:`G = 1[U > 0]` and
the activity :math:`1[yF < \gamma]` have derivative zero, so up to a constant the loss is

.. math:: \ell = \mathrm{tr}(D^\top U), \qquad D = g\, A \circ G, \quad
   g = -\frac{y}{L} 1[yF < \gamma].

`gradients` differentiates this loss by the weights in U and, through the softmax, by the weights in
Z. The linear loss :math:`-yF` has the same gradients, but every sample is active.

`terms`, `contract` and `evaluate` represent a sum of matrix products by a mapping from each
product, as a tuple of factors (a *word*), to its coefficient. If the mappings of two expressions
are equal, the expressions are equal for all sizes. `contract` replaces adjacent factors by a named
matrix, such as ``K.T*Q`` by ``B``.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cache, reduce
from typing import Any

import sympy
from sympy import HadamardProduct, MatrixSymbol, OneMatrix, Trace
from sympy.matrices.expressions import MatAdd, MatMul

from theory.claims import softmax
from theory.papers.shallow_vit.notation import NOTATION

m, L = NOTATION.symbols("m L")
g = NOTATION.symbol("g")
d, m_a, m_b = sympy.symbols("d m_a m_b", integer=True, positive=True)

X = MatrixSymbol("X", d, L)
A = MatrixSymbol("A", m, L)
GATES = MatrixSymbol("G", m, L)
S = MatrixSymbol("S", L, L)
D = MatrixSymbol("D", m, L)
DZ = MatrixSymbol("dZ", L, L)
W_O = MatrixSymbol("W_O", m, m_a)
W_V = MatrixSymbol("W_V", m_a, d)
W_K = MatrixSymbol("W_K", m_b, d)
W_Q = MatrixSymbol("W_Q", m_b, d)

TRAINED = (W_O, W_V, W_K, W_Q)

Expr = Any
"""Scalar or matrix expression."""


def scores() -> Expr:
    """Scores Z of one sample; rows are keys, columns are queries."""
    return (W_K * X).T * (W_Q * X)


def hidden() -> Expr:
    """Preactivations U of the neurons, with one column for each query."""
    return W_O * W_V * X * S


def output() -> Expr:
    """Output F for fixed gates, where relu(U) is the entrywise product of the gates and U."""
    return Trace(A.T * HadamardProduct(GATES, hidden())) / L


def backward() -> Expr:
    """Derivative D of the loss by U, for fixed gates and activity."""
    return g * HadamardProduct(A, GATES)


def loss() -> Expr:
    """Loss of one sample, up to a constant, if its derivative D by the preactivations is fixed."""
    return Trace(D.T * hidden())


def column_softmax(columns: sympy.Matrix, exponential: Any = sympy.exp) -> sympy.Matrix:
    """Softmax of every column of an explicit matrix; `exponential` replaces exp."""
    shares = [softmax(columns.col(j), exponential) for j in range(columns.cols)]
    return sympy.Matrix(shares).T


def through_softmax(weights: Expr, slope: Expr) -> Expr:
    """Derivative by a column softmax's argument, from the derivative `slope` by the softmax."""
    size = weights.shape[0]
    return HadamardProduct(weights, slope - OneMatrix(size, size) * HadamardProduct(weights, slope))


def slope(expression: Expr, matrix: Expr) -> Expr:
    """Derivative of a scalar by a matrix, entry by entry."""
    return sympy.diff(expression, matrix).doit()


@cache
def by_scores() -> Expr:
    """Derivative DZ of the loss by the scores Z."""
    return through_softmax(S, slope(loss(), S))


@cache
def gradients() -> Mapping[Expr, Expr]:
    """Derivatives of a sample's loss by the trained matrices, in terms of those by U and Z."""
    through = Trace(DZ.T * scores())
    result = {matrix: slope(loss(), matrix) for matrix in (W_O, W_V)}
    return result | {matrix: slope(through, matrix) for matrix in (W_K, W_Q)}


def explicit(
    expression: Expr, sizes: Mapping[Any, int], values: Mapping[Any, sympy.Matrix]
) -> sympy.Matrix:
    """Explicit matrix of a matrix expression, at given sizes and entries.

    `sizes` holds the number for each symbolic size, and `values` the explicit matrix for each
    matrix symbol.
    """
    entries = {symbol.subs(sizes): value.as_immutable() for symbol, value in values.items()}
    return sympy.Matrix(expression.subs(sizes).doit().xreplace(entries).doit())


def free(symbol: Expr, sizes: Mapping[Any, int]) -> sympy.Matrix:
    """Explicit matrix with a separate symbol for every entry."""
    rows, columns = (int(sympy.sympify(size).subs(sizes)) for size in symbol.shape)
    name = symbol.name
    return sympy.Matrix(rows, columns, lambda i, j: sympy.Symbol(f"{name}_{i}{j}", real=True))


Matrix = Any
Word = tuple[Matrix, ...]
Rules = Mapping[tuple[Matrix, Matrix], Matrix]


def terms(expression: Matrix) -> dict[Word, sympy.Expr]:
    """Mapping from each matrix product of an expanded sum to its coefficient."""
    result: dict[Word, sympy.Expr] = {}
    for part in MatAdd.make_args(expression.doit().expand().doit()):
        coefficient, factors = part.as_coeff_mmul()
        word = tuple(MatMul.make_args(factors))
        result[word] = sympy.expand(result.get(word, 0) + coefficient)
    return {word: coefficient for word, coefficient in result.items() if coefficient != 0}


def summed(result: Mapping[Word, sympy.Expr]) -> Matrix:
    """Sum of matrix products with coefficients, the inverse of `terms`."""
    return MatAdd(*[MatMul(value, *word) for word, value in result.items()]).doit()


def contract(expression: Matrix, rules: Rules, symmetric: tuple[Matrix, ...] = ()) -> Matrix:
    """Expand an expression, and replace pairs of adjacent factors by matrices until none is left.

    `rules` maps each pair to the matrix that replaces it, and implies the rule for the transposed
    pair. The matrices in `symmetric` are equal to their transposes.
    """
    names = dict(rules) | {(b.T, a.T): name.T for (a, b), name in rules.items()}
    plain = {matrix.T: matrix for matrix in symmetric}
    result: dict[Word, sympy.Expr] = {}
    for word, coefficient in terms(expression).items():
        short = _contracted(tuple(plain.get(factor, factor) for factor in word), names, plain)
        result[short] = sympy.expand(result.get(short, 0) + coefficient)
    return summed(result)


def evaluate(
    expression: Matrix, values: Mapping[Matrix, Any], product: Callable[[Any, Any], Any]
) -> list[tuple[sympy.Expr, Any]]:
    """Coefficient and value of each matrix product; `values` holds the values of the factors."""
    return [
        (coefficient, reduce(product, (values[factor] for factor in word)))
        for word, coefficient in terms(expression).items()
    ]


def _contracted(word: Word, rules: Rules, plain: Mapping[Matrix, Matrix]) -> Word:
    for k in range(len(word) - 1):
        if (name := rules.get((word[k], word[k + 1]))) is not None:
            short = (*word[:k], plain.get(name, name), *word[k + 2 :])
            return _contracted(short, rules, plain)
    return word
