r"""Orbits of entries (Lemma 4.1), and the network of equation (T).

Orbits are classes of entries that stay equal (Lemma 4.1). The law of Assumption 1 is invariant
under every permutation of the patches that maps sets onto sets (the wreath product
:math:`S_C \wr S_L`), and the network is invariant under all permutations.
`theory.symmetry.classes` computes the orbits of index pairs from generators. For L sets of equal
size C there are three orbits, which `ORBITS` names; `entries` gives their sizes for symbolic D and
C.

The network is one layer of positional attention, with the scale s and the value vector v:

.. math::
   F(X) = \sum_i act\Big(D \sum_j S_{ij} \langle v, X_j\rangle\Big), \quad
   S_{ij} = \frac{e^{s A_{ij}}}{\sum_r e^{s A_{ir}}}, \quad act(u) = u^p + \nu u .

`output` is F for a matrix A of symbols. If A is constant on the three orbits, a row of S has the
entry Lambda once, Gamma C-1 times and Xi D-C times. Let z be the sum of the values in a set, and Z
the sum of all values. A patch of value x in this set has the attended value

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
"""Names of the values of A on the three orbits: the diagonal, the same set, different sets."""


def row_entries() -> dict[str, sympy.Expr]:
    """Mapping from each orbit to the number of entries of this orbit in one row of A."""
    return {"beta": sympy.Integer(1), "gamma": C - 1, "rho": D - C}


def entries() -> dict[str, sympy.Expr]:
    """Mapping from each orbit to the number of entries of this orbit in A."""
    return {orbit: D * count for orbit, count in row_entries().items()}


def orbit_of(partition: Partition, i: int, j: int) -> str:
    """Name of the orbit of the index pair (i, j), for a partition into sets of equal size."""
    if i == j:
        return "beta"
    return "gamma" if partition.labels[i] == partition.labels[j] else "rho"


ATTENTION = dict(zip(ORBITS, NOTATION.symbols("Lambda Gamma Xi"), strict=True))
"""Mapping from each orbit to the symbol of the attention S on it."""


def activation(u: sympy.Expr, degree: sympy.Expr | int = p) -> sympy.Expr:
    """Activation u^p + nu u, with p = `degree`."""
    return u**degree + nu * u


def attention(matrix: sympy.Matrix) -> sympy.Matrix:
    """Softmax of every row of scale * A, for an explicit matrix A."""
    weights = matrix.applyfunc(lambda entry: sympy.exp(scale * entry))
    return sympy.Matrix(matrix.rows, matrix.cols, lambda i, j: weights[i, j] / sum(weights.row(i)))


def output(
    matrix: sympy.Matrix, projections: Sequence[sympy.Expr], degree: sympy.Expr | int = p
) -> sympy.Expr:
    """Output F(X) of equation (T), from A = `matrix` and the patches' projections <v, X_j>."""
    return readout(attention(matrix), projections, degree)


def readout(
    weights: sympy.Matrix, projections: Sequence[sympy.Expr], degree: sympy.Expr | int = p
) -> sympy.Expr:
    """Output F(X) from S = `weights`, any matrix, and the projections <v, X_j> of the patches."""
    attended = weights * sympy.Matrix(projections)
    return sympy.Add(*[activation(weights.rows * entry, degree) for entry in attended])


def orbit_attention() -> dict[sympy.Symbol, sympy.Expr]:
    """Expressions of Lambda, Gamma, Xi: the softmax of A if it is constant on the orbits."""
    counts = row_entries()
    weight = {orbit: sympy.exp(scale * NOTATION.symbol(orbit)) for orbit in ORBITS}
    total = sympy.Add(*[counts[orbit] * weight[orbit] for orbit in ORBITS])
    return {ATTENTION[orbit]: weight[orbit] / total for orbit in ORBITS}


def own_attention() -> sympy.Expr:
    """G = D (Lambda + (C-1) Gamma), the attention to the own set multiplied by D."""
    counts = row_entries()
    return D * sum(counts[orbit] * ATTENTION[orbit] for orbit in ("beta", "gamma"))


def attended() -> sympy.Expr:
    """Attended value of a patch of value x, if its set has the sum z and all patches the sum Z."""
    row_sums = {"beta": x, "gamma": z - x, "rho": Z - z}
    return sympy.Add(*[ATTENTION[orbit] * row_sums[orbit] for orbit in ORBITS])


def preactivation() -> sympy.Expr:
    """Argument O of the activation, which is D alpha times the attended value."""
    return D * alpha * attended()


def set_contribution() -> sympy.Expr:
    """Contribution of a set of type (a, b) to the output F, if the sum of all values is Z."""
    patch = activation(preactivation()).subs(z, a - b)
    return sympy.Add(*[count * patch.subs(x, value) for value, count in composition().items()])
