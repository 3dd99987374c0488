"""Linear algebra modulo the three `PRIMES`: echelon forms, null spaces, small fractions."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
from numpy.typing import NDArray

from theory.color_refinement import IntArray
from theory.program import field
from theory.program.field import PRIMES, Triples

SMALL = 10**6
"""A fraction is small if its numerator and its denominator are at most this in absolute value."""


def product(left: Triples, right: Triples) -> Triples:
    """Product of two matrices of shapes (m, k, 3) and (k, n, 3), shape (m, n, 3)."""
    return field.matrix_product(left[None], right[None])[0]


def rank(rows: Triples) -> int:
    """Rank of a matrix, shape (m, n, 3), modulo the first prime."""
    return _eliminated(rows[..., 0].copy(), PRIMES[0], False)[1].size


def echelon(rows: Triples) -> tuple[Triples, IntArray]:
    """Reduced row echelon form of a matrix, shape (m, n, 3), and its pivot columns.

    Raises ArithmeticError if the pivots differ between the primes, with probability below 1e-6.
    """
    parts = [_eliminated(rows[..., k].copy(), prime, True) for k, prime in enumerate(PRIMES)]
    pivots = parts[0][1]
    if any(not np.array_equal(pivots, other) for _, other in parts[1:]):
        raise ArithmeticError("the ranks of a matrix modulo two primes differ")
    return np.stack([part for part, _ in parts], axis=-1), pivots


def _eliminated(
    rows: NDArray[np.uint64], prime: np.uint64, above: bool
) -> tuple[NDArray[np.uint64], IntArray]:
    """Echelon form (reduced if `above`) modulo one prime, and its pivot columns."""
    pivots: list[int] = []
    for column in range(rows.shape[1]):
        place = len(pivots)
        below = np.flatnonzero(rows[place:, column])
        if not below.size:
            continue
        rows[[place, place + below[0]]] = rows[[place + below[0], place]]
        scale = np.uint64(pow(int(rows[place, column]), -1, int(prime)))
        rows[place] = rows[place] * scale % prime
        others = np.flatnonzero(rows[:, column])
        others = others[(others != place) if above else (others > place)]
        factors = (prime - rows[others, column])[:, None]
        rows[others, column:] = (
            rows[others, column:] + factors * rows[place, column:] % prime
        ) % prime
        pivots.append(column)
        if len(pivots) == len(rows):
            break
    return rows[: len(pivots)], np.array(pivots, dtype=np.int64)


def null_space(rows: Triples) -> Triples:
    """Basis of the null space of a matrix, (m, n, 3) -> (k, n, 3), in reduced echelon form."""
    width = rows.shape[1]
    reduced, pivots = echelon(rows)
    free = np.setdiff1d(np.arange(width), pivots)
    found = np.zeros((free.size, width, 3), dtype=np.uint64)
    found[np.arange(free.size), free] = 1
    found[:, pivots] = field.negative(reduced[:, free]).transpose(1, 0, 2)
    return echelon(found)[0]


def outside(vectors: Triples, span: Triples, pivots: IntArray) -> Triples:
    """Vectors reduced modulo the span, so that they are 0 in its pivot columns."""
    if not len(span):
        return vectors
    return field.add(vectors, field.negative(product(vectors[:, pivots], span)))


def fraction(triple: Triples) -> Fraction | None:
    """Fraction with given residues, or None if it is not small (see `SMALL`)."""
    found = field.read_back(triple)
    if found is None or max(abs(found.numerator), found.denominator) > SMALL:
        return None
    return found


def fractions(row: Triples) -> tuple[Fraction, ...]:
    """Fractions with the residues of a row; empty if one of them is not small (see `SMALL`)."""
    found = [fraction(triple) for triple in row]
    return tuple(f for f in found if f is not None) if None not in found else ()
