r"""Who is equal to whom: the three orbits of Lemma 4.1 and their numbers of entries.

The law of Assumption 1 is invariant under every permutation of the patches that maps sets onto
sets, the wreath product :math:`S_C \wr S_L`, and the model is permutation-invariant. The orbits of
index pairs are computed from generators by `theory.symmetry.classes`; for L sets of equal size C
they are the three named here. `entries` states their sizes for symbolic D and C; the tests compare
it with `classes` at many sizes.
"""

from __future__ import annotations

import sympy

from theory.symmetry import Partition
from theory.systems.positional_attention.notation import NOTATION

D, C = NOTATION.symbols("D C")

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
