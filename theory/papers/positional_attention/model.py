r"""Orbits and network: Lemma 4.1 and equation (T).

The data law is in `data_law`.

*Orbits*, the entries that stay equal (Lemma 4.1). The law of Assumption 1 is invariant under every
permutation of the patches that maps sets onto sets, the wreath product :math:`S_C \wr S_L`, and the
model is permutation-invariant. The orbits of index pairs are computed from generators by
`theory.symmetry.classes`; for L sets of equal size C they are the three named here. `entries`
states their sizes for symbolic D and C; the tests compare it with `classes` at many sizes.

*Network*, one positional-attention layer, and what it computes on an orbit-symmetric A.

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

from theory.papers.positional_attention.data_law import composition
from theory.papers.positional_attention.notation import NOTATION
from theory.symmetry import Partition

D, C, p, nu, scale, alpha = NOTATION.symbols("D C p nu scale alpha")
a, b, x, z, Z = NOTATION.symbols("a b x z Z")

ORBITS = ("beta", "gamma", "rho")
"""The value that an entry of A has on each orbit: diagonal, same set, different sets."""


def row_entries() -> dict[str, sympy.Expr]:
    """Entries of each orbit in one row of A."""
    return {"beta": sympy.Integer(1), "gamma": C - 1, "rho": D - C}


def entries() -> dict[str, sympy.Expr]:
    """Entries of each orbit in the whole of A: D rows of them."""
    return {orbit: D * count for orbit, count in row_entries().items()}


def orbit_of(partition: Partition, i: int, j: int) -> str:
    """The orbit of the pair (i, j) for L sets of equal size."""
    if i == j:
        return "beta"
    return "gamma" if partition.labels[i] == partition.labels[j] else "rho"


ATTENTION = dict(zip(ORBITS, NOTATION.symbols("Lambda Gamma Xi"), strict=True))
"""The entry of S on each orbit."""


def activation(u: sympy.Expr, degree: sympy.Expr | int = p) -> sympy.Expr:
    """The polynomial activation, u^p + nu u.

    `degree`: p.
    """
    return u**degree + nu * u


def attention(matrix: sympy.Matrix) -> sympy.Matrix:
    """Row-wise softmax of an explicit matrix A, with the scale in the exponent."""
    weights = matrix.applyfunc(lambda entry: sympy.exp(scale * entry))
    return sympy.Matrix(matrix.rows, matrix.cols, lambda i, j: weights[i, j] / sum(weights.row(i)))


def output(
    matrix: sympy.Matrix, projections: Sequence[sympy.Expr], degree: sympy.Expr | int = p
) -> sympy.Expr:
    """F(X) of equation (T) for explicit A and explicit <v, X_j>.

    `matrix`, shape (D, D): a; `projections`: <v, X_j>; `degree`: p.
    """
    return readout(attention(matrix), projections, degree)


def readout(
    weights: sympy.Matrix, projections: Sequence[sympy.Expr], degree: sympy.Expr | int = p
) -> sympy.Expr:
    """F(X) for an explicit S, which need not come from a softmax.

    `weights`, shape (D, D): S; `projections`, `degree`: as for `output`.
    """
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


def set_contribution() -> sympy.Expr:
    """h(a, b; Z): what a set of type (a, b) adds to F."""
    patch = activation(preactivation()).subs(z, a - b)
    return sympy.Add(*[count * patch.subs(x, value) for value, count in composition().items()])
