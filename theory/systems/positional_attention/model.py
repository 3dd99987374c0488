r"""The model (T): one positional-attention layer, and what it computes on an orbit-symmetric A.

.. math::
   F(X) = \sum_i act\Big(D \sum_j S_{ij} \langle v, X_j\rangle\Big), \quad
   S_{ij} = \frac{e^{s A_{ij}}}{\sum_r e^{s A_{ir}}}, \quad act(u) = u^p + \nu u .

`output` is F for an explicit matrix of symbols. For A constant on the three orbits, a row of S has
the value Lambda once, Gamma C-1 times, Xi D-C times, and a patch of value x in a set of sum z, Z
being the sum of all values, sees

.. math:: \sum_j S_{ij} x_j = \Lambda x + \Gamma (z - x) + \Xi (Z - z).
"""

from __future__ import annotations

from collections.abc import Sequence

import sympy

from theory.systems.positional_attention.data_law import composition
from theory.systems.positional_attention.notation import NOTATION
from theory.systems.positional_attention.symmetry import ORBITS, row_entries

D, C, p, nu, scale = NOTATION.symbols("D C p nu scale")
alpha, beta, gamma, rho = NOTATION.symbols("alpha beta gamma rho")
x, z, Z = NOTATION.symbols("x z Z")
a, b = NOTATION.symbols("a b")

ATTENTION = dict(zip(ORBITS, NOTATION.symbols("Lambda Gamma Xi"), strict=True))
"""The entry of S on each orbit."""


def activation(u: sympy.Expr, degree: sympy.Expr | int = p) -> sympy.Expr:
    """The polynomial activation, u^p + nu u."""
    return u**degree + nu * u


def attention(matrix: sympy.Matrix) -> sympy.Matrix:
    """Row-wise softmax of an explicit matrix A, with the scale in the exponent."""
    weights = matrix.applyfunc(lambda entry: sympy.exp(scale * entry))
    return sympy.Matrix(matrix.rows, matrix.cols, lambda i, j: weights[i, j] / sum(weights.row(i)))


def output(
    matrix: sympy.Matrix, projections: Sequence[sympy.Expr], degree: sympy.Expr | int = p
) -> sympy.Expr:
    """F(X) of equation (T) for explicit A and explicit <v, X_j>.

    Parameters
    ----------
    matrix : sympy.Matrix, shape (D, D)
        A.
    projections : sequence of D expressions
        <v, X_j>.
    degree : int or sympy.Expr
        p.
    """
    return readout(attention(matrix), projections, degree)


def readout(
    weights: sympy.Matrix, projections: Sequence[sympy.Expr], degree: sympy.Expr | int = p
) -> sympy.Expr:
    """F(X) for an explicit S, which need not come from a softmax."""
    attended = weights * sympy.Matrix(projections)
    return sympy.Add(*[activation(weights.rows * entry, degree) for entry in attended])


def orbit_attention() -> dict[sympy.Symbol, sympy.Expr]:
    """Lambda, Gamma, Xi: the softmax of a row of an orbit-symmetric A."""
    counts = row_entries()
    weight = {orbit: sympy.exp(scale * NOTATION.symbol(orbit)) for orbit in ORBITS}
    total = sympy.Add(*[counts[orbit] * weight[orbit] for orbit in ORBITS])
    return {ATTENTION[orbit]: weight[orbit] / total for orbit in ORBITS}


def own_attention() -> sympy.Expr:
    """G = D (Lambda + (C-1) Gamma), in terms of the entries of S."""
    counts = row_entries()
    return D * sum(counts[orbit] * ATTENTION[orbit] for orbit in ("beta", "gamma"))


def attended() -> sympy.Expr:
    """sum_j S_ij x_j for a patch of value x in a set of sum z, all values summing to Z."""
    row_sums = {"beta": x, "gamma": z - x, "rho": Z - z}
    return sympy.Add(*[ATTENTION[orbit] * row_sums[orbit] for orbit in ORBITS])


def preactivation() -> sympy.Expr:
    """O = D alpha sum_j S_ij x_j, the argument of the activation."""
    return D * alpha * attended()


def patch_contribution() -> sympy.Expr:
    """act(O): what one patch adds to F."""
    return activation(preactivation())


def set_contribution() -> sympy.Expr:
    """h(a, b; Z): what a set of type (a, b) adds to F."""
    patch = patch_contribution().subs(z, a - b)
    return sympy.Add(*[count * patch.subs(x, value) for value, count in composition().items()])
