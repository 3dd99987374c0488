"""Page sections on the closure of a model file; the engine of `dynamics` makes the page."""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from itertools import combinations_with_replacement
from typing import Any

import numpy as np
import sympy

from theory.closure import Closure
from theory.closure.conservation import ConservationLaw
from theory.notation import latex_of
from theory.page import HandWritten, Section

MOST_ROWS = 16
"""Maximum number of rows and of columns of an array whose classes are printed."""
MOST_ENTRIES = 4
"""Maximum number of entries that are printed for a class; an ellipsis stands for the others."""
MOST_SCALARS = 24
"""Maximum number of scalars that are printed; the number of the others is stated."""
MOST_LAWS = 12
BY_THE_FLOW = (
    "first integrals of the flow, compared with its rates at random states; gradient descent "
    "breaks them at order eta"
)
DIGITS = 1e-12
"""Minimum size of a printed component of a direction, relative to the largest component."""


def closure_sections(
    closure: Closure,
    entry_names: Sequence[str],
    integrals: Sequence[tuple[sympy.Expr, float]] = (),
) -> list[Section]:
    """Sections on the scalars, the linear space and the conserved quantities of a closure.

    `entry_names` holds the array and position of every entry. `integrals` holds first integrals of
    the flow beyond the laws of the closure, with their values at the start.
    """
    equal, still = [], []
    for k, name in enumerate(closure.names[:MOST_SCALARS]):
        members = np.flatnonzero(closure.classes.labels == k)
        signs = closure.classes.signs[members]
        named = [entry_names[entry] for entry in members[:MOST_ENTRIES]]
        minus = ["-" if sign < 0 else "" for sign in signs[:MOST_ENTRIES]]
        text = " = ".join(map("".join, zip(minus, named, strict=True)))
        latex = " = ".join(map("".join, zip(minus, map(_entry, named), strict=True)))
        dots = (" = ...", r" = \dots") if members.size > MOST_ENTRIES else ("", "")
        size = closure.sizes[k]
        count = f"({size} entr{'y' if size == 1 else 'ies'})"
        right = HandWritten(
            f"{text}{dots[0]}   {count}", rf"{latex}{dots[1]} \quad \text{{{count}}}"
        )
        equal.append((HandWritten(name, latex_of(name, closure.shapes)), right))
    if closure.scalars > MOST_SCALARS:
        still.append(f"and {closure.scalars - MOST_SCALARS} more")
    if closure.frozen:
        frozen = np.flatnonzero(closure.classes.labels < 0)
        first_entries = ", ".join(entry_names[entry] for entry in frozen[:MOST_ENTRIES])
        more = ", ..." if frozen.size > MOST_ENTRIES else ""
        still.append(f"{frozen.size} entries never move: {first_entries}{more}")
    sections = [
        Section(
            "What stays equal",
            (closure.summary(), closure.proof, *still),
            tuple(equal),
            _class_numbers(closure),
        )
    ]
    kept = [(_law(closure, law), law.value) for law in closure.laws if law.exact]
    laws = law_equations([*kept, *integrals])
    said = []
    if any(law.exact and law.degree == 2 for law in closure.laws):
        said.append("squares and products: by the flow; gradient descent breaks them at order eta")
    if integrals:
        said.append(BY_THE_FLOW)
    if 0 < closure.free < closure.scalars:
        sections.append(_linear_section(closure))
    decimal = sum(not law.exact for law in closure.laws)
    if len(laws) > MOST_LAWS:
        said.append(f"and {len(laws) - MOST_LAWS} more")
    if decimal:
        said.append(f"{decimal} linear combinations with decimal coefficients")
    if laws or decimal:
        sections.append(Section("What training keeps", tuple(said), tuple(laws[:MOST_LAWS])))
    return sections


def law_equations(
    laws: Sequence[tuple[sympy.Expr, float]],
) -> list[tuple[sympy.Expr, HandWritten]]:
    """Equations of conserved quantities with their values at the start."""
    return [(law, HandWritten(f"{value:.6g}", f"{value:.6g}")) for law, value in laws]


def _entry(name: str) -> str:
    """LaTeX of an entry given by array and position, such as ``A[0, 3]``."""
    array, _, position = name.partition("[")
    return latex_of("_".join([array, *re.findall(r"\d+", position)]), [array])


def _law(closure: Closure, law: ConservationLaw) -> sympy.Expr:
    """Conserved quantity of a law with rational coefficients, as an expression."""
    letters = [sympy.Symbol(name, real=True) for name in closure.names]
    terms = zip(law.fractions, law.terms, strict=True)
    return sympy.Add(
        *(sympy.Rational(f) * sympy.prod([letters[k] for k in term]) for f, term in terms)
    )


def _linear_section(closure: Closure) -> Section:
    """Section with the scalars as combinations of coordinates z_1, z_2, ... of the linear space."""
    columns = closure.space.directions(closure.classes)
    letters = [sympy.Symbol(f"z_{k + 1}", real=True) for k in range(columns.shape[1])]
    small = DIGITS * np.abs(columns).max(initial=0.0)
    rows: list[tuple[Any, Any]] = []
    for k, name in enumerate(closure.names[:MOST_SCALARS]):
        start = float(closure.classes.start[closure.classes.first[k]])
        terms = zip(columns[k], letters, strict=True)
        combination = sum(sympy.Float(c) * z for c, z in terms if abs(c) > small)
        rows.append((name, sympy.Float(start) + combination if start else combination))
    sentences = ["`z = 0` at the start; with --coordinates linear a step is `z' = z - eta * dR/dz`"]
    if closure.scalars > MOST_SCALARS:
        sentences.append(f"and {closure.scalars - MOST_SCALARS} more scalars")
    heading = f"The linear space of {closure.free} in which the scalars stay"
    return Section(heading, tuple(sentences), tuple(rows))


def _class_numbers(closure: Closure) -> tuple[tuple[str, tuple[tuple[str, ...], ...]], ...]:
    """Small arrays with the number of each entry's scalar, from 1; a dot marks a frozen entry."""
    arrays = []
    for name, entries in closure.labels().items():
        matrix = np.atleast_1d(np.array(entries))
        matrix = matrix.reshape(matrix.shape[0], -1) if matrix.ndim > 1 else matrix[None, :]
        if max(matrix.shape) <= MOST_ROWS:
            rows = tuple(tuple("." if not k else str(k) for k in row) for row in matrix)
            arrays.append((name, rows))
    return tuple(arrays)


def multiplicities(
    sizes: Mapping[tuple[int, ...], int], names: Sequence[str]
) -> tuple[sympy.Expr | None, int]:
    """Fit a polynomial in the constants `names` to the number of entries of a scalar.

    `sizes` maps values of the constants to the number of entries. Returns the polynomial of least
    degree through all points, and the number of redundant points, which check it. The polynomial is
    None if the points do not determine it, or if no point is left to check it.
    """
    symbols = [sympy.Symbol(name, real=True) for name in names]
    points = [dict(zip(symbols, point, strict=True)) for point in sizes]
    values = sympy.Matrix([sympy.Integer(size) for size in sizes.values()])
    for degree in range(4):
        monomials = [
            sympy.prod(term)
            for total in range(degree + 1)
            for term in combinations_with_replacement(symbols, total)
        ]
        matrix = sympy.Matrix([[sympy.sympify(m).subs(at) for m in monomials] for at in points])
        rank = matrix.rank()
        if rank >= len(points):
            return None, 0
        if matrix.row_join(values).rank() > rank:
            continue
        solution, free = matrix.gauss_jordan_solve(values)
        solution = solution.subs(dict.fromkeys(free, 0))
        terms = [factor * term for factor, term in zip(solution, monomials, strict=True)]
        return sympy.factor(sum(terms)), len(points) - rank
    return None, 0
