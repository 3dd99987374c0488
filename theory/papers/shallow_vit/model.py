r"""Network, hinge loss and gradients of one sample as matrix expressions with symbolic sizes.

Tokens are the columns of X (d x L), output weights :math:`a_{(l)}` the columns of A (m x L):

.. math::
   Z = (W_K X)^\top (W_Q X), \quad S = \mathrm{softmax}(Z) \text{ over keys, the rows of a column},
   \quad U = W_O W_V X S, \quad F = \frac1L \sum_l a_{(l)}^\top \mathrm{relu}(U_l),

and the loss is :math:`\max(\gamma - yF, 0)`. Almost everywhere the gates :math:`G = 1[U > 0]` and
the activity :math:`1[yF < \gamma]` are constants, so up to a constant

.. math:: \ell = \mathrm{tr}(D^\top U), \qquad D = g\, A \circ G, \quad
   g = -\frac{y}{L} 1[yF < \gamma].

`gradients` differentiates this loss by the factors of U, and through the softmax by the factors of
Z. The linear loss :math:`-yF` has the same gradients with every sample active.

`terms`, `contract` and `evaluate` treat a sum of matrix products as a mapping from words (tuples of
factors) to coefficients. Two expressions are equal for all sizes if their mappings are equal.
`contract` replaces adjacent pairs of factors by named matrices: ``K.T*Q`` becomes ``B``.
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
    """Scores Z of one sample: keys in rows, queries in columns."""
    return (W_K * X).T * (W_Q * X)


def hidden() -> Expr:
    """Preactivations U of the neurons, one column per query."""
    return W_O * W_V * X * S


def output() -> Expr:
    """Output F at fixed gates, where relu(U) is the entrywise product of gates and U."""
    return Trace(A.T * HadamardProduct(GATES, hidden())) / L


def backward() -> Expr:
    """Matrix D, the derivative of the loss by U at fixed gates and activity."""
    return g * HadamardProduct(A, GATES)


def loss() -> Expr:
    """Loss of one sample up to a constant, in terms of D."""
    return Trace(D.T * hidden())


def column_softmax(columns: sympy.Matrix, exponential: Any = sympy.exp) -> sympy.Matrix:
    """Softmax of every column of an explicit matrix, with `exponential` in place of exp."""
    shares = [softmax(columns.col(j), exponential) for j in range(columns.cols)]
    return sympy.Matrix(shares).T


def through_softmax(weights: Expr, slope: Expr) -> Expr:
    """Derivative of a loss by the argument of a column softmax, from its `slope` by the softmax."""
    size = weights.shape[0]
    return HadamardProduct(weights, slope - OneMatrix(size, size) * HadamardProduct(weights, slope))


def slope(expression: Expr, matrix: Expr) -> Expr:
    """Derivative of a scalar by a matrix, entry by entry."""
    return sympy.diff(expression, matrix).doit()


@cache
def by_scores() -> Expr:
    """Matrix DZ, the derivative of the loss by the scores Z."""
    return through_softmax(S, slope(loss(), S))


@cache
def gradients() -> Mapping[Expr, Expr]:
    """Derivative of the loss of one sample by each trained matrix, in S, D and DZ (`by_scores`)."""
    through = Trace(DZ.T * scores())
    result = {matrix: slope(loss(), matrix) for matrix in (W_O, W_V)}
    return result | {matrix: slope(through, matrix) for matrix in (W_K, W_Q)}


def explicit(
    expression: Expr, sizes: Mapping[Any, int], values: Mapping[Any, sympy.Matrix]
) -> sympy.Matrix:
    """Matrix expression evaluated at explicit sizes and entries.

    `sizes` gives the number of each symbolic size, and `values` an explicit matrix of each symbol.
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
    """Expand a sum of matrix products into a mapping from each word to its coefficient."""
    result: dict[Word, sympy.Expr] = {}
    for part in MatAdd.make_args(expression.doit().expand().doit()):
        coefficient, factors = part.as_coeff_mmul()
        word = tuple(MatMul.make_args(factors))
        result[word] = sympy.expand(result.get(word, 0) + coefficient)
    return {word: coefficient for word, coefficient in result.items() if coefficient != 0}


def summed(result: Mapping[Word, sympy.Expr]) -> Matrix:
    """Matrix expression of a mapping from words to coefficients."""
    return MatAdd(*[MatMul(value, *word) for word, value in result.items()]).doit()


def contract(expression: Matrix, rules: Rules, symmetric: tuple[Matrix, ...] = ()) -> Matrix:
    """Expand an expression and replace adjacent pairs of factors by named matrices, repeatedly.

    `rules` gives the name of each pair; the transposed pair gets the transposed name. The matrices
    in `symmetric` equal their transposes.
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
    """Coefficient and value of each word, from values of factors and a product of two values."""
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
