r"""Network, hinge loss and gradients of one sample as matrix expressions, all sizes symbolic.

Tokens are the columns of X (d x L), :math:`a_{(l)}` those of A (m x L):

.. math::
   Z = (W_K X)^\top (W_Q X), \quad S = \mathrm{softmax}(Z) \text{ over keys, the rows of a column},
   \quad U = W_O W_V X S, \quad F = \frac1L \sum_l a_{(l)}^\top \mathrm{relu}(U_l),

and the loss is :math:`\max(\gamma - yF, 0)`. Almost everywhere the gates :math:`G = 1[U > 0]` and
the activity :math:`1[yF < \gamma]` are constants, so that up to a constant

.. math:: \ell = \mathrm{tr}(D^\top U), \qquad D = g\, A \circ G, \quad
   g = -\frac{y}{L} 1[yF < \gamma].

`gradients` differentiates that: first by the factors of U, then through the softmax by the factors
of Z. The linear loss, :math:`-yF`, has the same gradients with every sample active.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import cache
from typing import Any

import sympy
from sympy import HadamardProduct, MatrixSymbol, OneMatrix, Trace

from theory.systems.shallow_vit.notation import NOTATION

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
"""A scalar or a matrix expression."""


def scores() -> Expr:
    """Z: keys in rows, queries in columns."""
    return (W_K * X).T * (W_Q * X)


def hidden() -> Expr:
    """U: what the neurons see of each query."""
    return W_O * W_V * X * S


def output() -> Expr:
    """F, the gates given: relu(U) is the entrywise product of the gates and U."""
    return Trace(A.T * HadamardProduct(GATES, hidden())) / L


def backward() -> Expr:
    """D, the derivative of the loss by U, gates and activity given."""
    return g * HadamardProduct(A, GATES)


def loss() -> Expr:
    """The loss of a sample up to a constant, in terms of D."""
    return Trace(D.T * hidden())


def softmax(columns: sympy.Matrix, exponential: Any = sympy.exp) -> sympy.Matrix:
    """Softmax of every column of an explicit matrix.

    Parameters
    ----------
    columns : sympy.Matrix
    exponential : callable
        Stands for the exponential.
    """
    weights = columns.applyfunc(exponential)
    return sympy.Matrix(*weights.shape, lambda i, j: weights[i, j] / sympy.Add(*weights.col(j)))


def through_softmax(weights: Expr, slope: Expr) -> Expr:
    """Derivative of a loss by the argument of a softmax of columns, from that by its value.

    Parameters
    ----------
    weights, slope : matrix expressions of one square shape
        The softmax, and the derivative by it.
    """
    size = weights.shape[0]
    return HadamardProduct(weights, slope - OneMatrix(size, size) * HadamardProduct(weights, slope))


def slope(expression: Expr, matrix: Expr) -> Expr:
    """Derivative of a scalar by a matrix, entry by entry."""
    return sympy.diff(expression, matrix).doit()


@cache
def by_scores() -> Expr:
    """DZ: derivative of the loss by Z."""
    return through_softmax(S, slope(loss(), S))


@cache
def gradients() -> Mapping[Expr, Expr]:
    """Trained matrix -> derivative of the loss of a sample, in S, D and DZ (`by_scores`)."""
    through = Trace(DZ.T * scores())
    found = {matrix: slope(loss(), matrix) for matrix in (W_O, W_V)}
    return found | {matrix: slope(through, matrix) for matrix in (W_K, W_Q)}


def explicit(
    expression: Expr, sizes: Mapping[Any, int], values: Mapping[Any, sympy.Matrix]
) -> sympy.Matrix:
    """A matrix expression at explicit sizes and entries.

    Parameters
    ----------
    expression : matrix expression
    sizes : mapping
        Symbol of a size -> number.
    values : mapping
        Matrix symbol -> explicit matrix of that size.
    """
    entries: dict[Any, Any] = {}
    for symbol, value in values.items():
        sized = symbol.subs(sizes)
        entries |= {sized[i, j]: value[i, j] for i, j in _places(value.shape)}
    return sympy.Matrix(expression.subs(sizes).doit().as_explicit()).xreplace(entries)


def free(symbol: Expr, sizes: Mapping[Any, int]) -> sympy.Matrix:
    """A matrix with a symbol of its own for every entry."""
    rows, columns = (int(sympy.sympify(size).subs(sizes)) for size in symbol.shape)
    name = symbol.name
    return sympy.Matrix(rows, columns, lambda i, j: sympy.Symbol(f"{name}_{i}{j}", real=True))


def _places(shape: Sequence[int]) -> list[tuple[int, int]]:
    return [(i, j) for i in range(shape[0]) for j in range(shape[1])]
