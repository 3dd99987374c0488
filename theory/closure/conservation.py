r"""Conserved quantities of training, as laws of the scalars of a closure.

A linear combination :math:`c \cdot z` of the scalars :math:`z` is constant under gradient descent
and under the flow if :math:`c` is orthogonal to the linear space of training (`linear`).

A quadratic form :math:`z^T S z` with symmetric :math:`S` is constant under the flow if
:math:`g(z)^T S z = 0` for the gradient :math:`g` at all points :math:`z` of the linear space. A
conserved :math:`S` is orthogonal to every matrix with entries :math:`z_i g_j + z_j g_i`, evaluated
at random points in the finite field. Quadratic forms with one value on the whole linear space are
left out. Gradient descent over a fixed time changes a conserved form by the order of the learning
rate.

The coefficients of all laws are exact modulo three primes and are converted to fractions. If one
coefficient of a conservation law is not a small fraction (`modular.SMALL`), all its coefficients
are computed in floats.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations_with_replacement
from math import gcd, lcm

import numpy as np

from theory.closure import modular
from theory.closure.linear import Span
from theory.closure.refinement import Gradient
from theory.color_refinement import IntArray
from theory.law import FloatArray
from theory.program import field
from theory.program.field import Triples

MOST_PRODUCTS = 640
"""Maximum number of products of two scalars; above it, both scalars must be in the same array."""
SPARE = 8
"""A search for quadratic laws uses this many random points more than it has unknowns."""
DENOMINATOR, FRACTION = 64, 1e-9
"""Maximum denominator of a fraction that replaces a float, and maximum relative difference."""


@dataclass(frozen=True)
class ConservationLaw:
    """Linear or quadratic combination of scalars that training conserves.

    Each tuple in `terms` holds the scalars of a term: one in a linear law, two in a quadratic law.
    `coefficients` holds the factor of each term; `fractions` holds the same factors as fractions
    and is empty for decimal factors. `value` is the value of the law at the start.
    """

    terms: tuple[tuple[int, ...], ...]
    coefficients: tuple[float, ...]
    fractions: tuple[Fraction, ...]
    value: float

    @property
    def degree(self) -> int:
        """Degree: 1 for a law of gradient descent and the flow; 2 for a law of the flow alone."""
        return len(self.terms[0])

    @property
    def exact(self) -> bool:
        """Whether every coefficient of the law is known as a fraction."""
        return bool(self.fractions)

    def at(self, scalars: FloatArray) -> FloatArray:
        """Value of the conserved combination, shape (...), at scalars of shape (..., count)."""
        parts = [
            factor * np.prod(np.asarray(scalars)[..., list(term)], axis=-1)
            for factor, term in zip(self.coefficients, self.terms, strict=True)
        ]
        return np.asarray(sum(parts))

    def text(self, names: Sequence[str]) -> str:
        """Text such as ``u**2 - 4*s**2``, with names of scalars; ``~`` marks decimal factors."""
        written = []
        for k, term in enumerate(self.terms):
            factor = self.fractions[k] if self.exact else self.coefficients[k]
            size = abs(factor)
            letters = [names[j] for j in term]
            same = len(letters) == 2 and letters[0] == letters[1]
            product = f"{letters[0]}**2" if same else "*".join(letters)
            number = str(size) if self.exact else f"~{size:.6g}"
            sign = "-" if factor < 0 else "+"
            written.append(f"{sign} {product}" if size == 1 else f"{sign} {number}*{product}")
        text = " ".join(written)
        return text[2:] if text.startswith("+ ") else "-" + text[2:]


def linear_laws(span: Span, basis: FloatArray, at_start: FloatArray) -> list[ConservationLaw]:
    """Linear combinations of the scalars that are constant on the space start + `span`."""
    terms = [(k,) for k in range(basis.shape[0])]
    null = modular.null_space(span.rows)
    return [_law(terms, vector, basis.T, at_start) for vector in null]


def linear_laws_in_floats(basis: FloatArray, at_start: FloatArray) -> list[ConservationLaw]:
    """Linear laws of a space known only in floats, the span of the columns of `basis`."""
    sizes = np.linalg.norm(basis, axis=1)
    scale = np.where(sizes > 0, sizes, 1.0)
    null = np.linalg.svd((basis / scale[:, None]).T, full_matrices=True)[2][basis.shape[1] :]
    rows = null / scale
    for k in range(len(rows)):  # Reduce the rows to echelon form with complete pivoting.
        column = int(np.abs(rows[k:] * scale).max(axis=0).argmax())
        pivot = k + int(np.abs(rows[k:, column]).argmax())
        rows[[k, pivot]] = rows[[pivot, k]]
        rows[k] /= rows[k, column]
        others = np.arange(len(rows)) != k
        rows[others] -= rows[others, column][:, None] * rows[k]
    found = []
    sizes = np.abs(rows * scale)
    for row in np.where(sizes < FRACTION * sizes.max(axis=1, keepdims=True), 0.0, rows):
        used = np.flatnonzero(row)
        scaled = row[used] / row[used[np.abs(row[used]).argmin()]]
        near = [Fraction(float(c)).limit_denominator(DENOMINATOR) for c in scaled]
        exact = all(abs(f - c) <= FRACTION * abs(c) for f, c in zip(near, scaled, strict=True))
        found.append(_stated([(int(k),) for k in used], near if exact else scaled, at_start))
    return found


@dataclass(frozen=True)
class Products:
    """Products of pairs of scalars; a quadratic form has one coefficient for each product."""

    first: IntArray
    second: IntArray

    @classmethod
    def of(cls, arrays: IntArray) -> Products:
        """Products of all pairs, else of pairs in one array, else none: at most `MOST_PRODUCTS`."""
        pairs = np.array(list(combinations_with_replacement(range(arrays.size), 2))).reshape(-1, 2)
        if len(pairs) > MOST_PRODUCTS:
            pairs = pairs[arrays[pairs[:, 0]] == arrays[pairs[:, 1]]]
        if len(pairs) > MOST_PRODUCTS:
            pairs = pairs[:0]
        return cls(*pairs.T)

    @property
    def terms(self) -> list[tuple[int, ...]]:
        """Pair of scalars in each product."""
        return list(zip(self.first.tolist(), self.second.tolist(), strict=True))

    def values(self, points: Triples) -> Triples:
        """Products at points, (count, points, 3) -> (points, products, 3)."""
        return field.multiply(points[self.first], points[self.second]).transpose(1, 0, 2)

    def rates(self, points: Triples, slope: Triples) -> Triples:
        """Derivatives of the products along a gradient, shape (points, products, 3)."""
        one = field.multiply(points[self.first], slope[self.second])
        two = field.multiply(points[self.second], slope[self.first])
        return field.add(one, two).transpose(1, 0, 2)

    def rates_in_floats(self, points: FloatArray, slope: FloatArray) -> FloatArray:
        """Derivatives of the products in floats, (points, count) -> (points, products)."""
        one = points[:, self.first] * slope[:, self.second]
        return np.asarray(one + points[:, self.second] * slope[:, self.first])


def quadratic_forms(
    products: Products,
    gradient: Gradient,
    span: Span,
    start: Triples,
    generator: np.random.Generator,
) -> Triples:
    """Quadratic forms conserved by the flow, modulo forms that are constant on start + `span`."""
    width = products.first.size
    points = span.points(start, width + SPARE, generator)
    rows = products.rates(points, gradient(points))
    if not width or modular.rank(rows) == width:
        return np.zeros((0, width, 3), dtype=np.uint64)
    kept = modular.null_space(rows)
    if len(span.rows) == len(start):
        return kept
    moved = field.add(products.values(points), field.negative(products.values(start[:, None])))
    constant, pivots = modular.echelon(modular.null_space(moved))
    return modular.echelon(modular.outside(kept, constant, pivots))[0]


def quadratic_laws(
    products: Products, forms: Triples, rows: FloatArray, at_start: FloatArray
) -> list[ConservationLaw]:
    """Conservation laws from quadratic forms as triples of residues, shape (forms, products, 3).

    The array `rows`, shape (points, products), holds derivatives of the products along the gradient
    in floats.
    """
    rows = rows[np.isfinite(rows).all(axis=1)]
    known = [form for form in forms if len(rows) or modular.fractions(form)]
    return [_law(products.terms, form, rows, at_start) for form in known]


def _law(
    terms: Sequence[tuple[int, ...]], vector: Triples, rows: FloatArray, at_start: FloatArray
) -> ConservationLaw:
    """Conservation law with the coefficients `vector`: fractions if all are small, else floats."""
    used = np.flatnonzero(vector.any(axis=1))
    numbers: Sequence[Fraction] | FloatArray = modular.fractions(vector[used])
    if not numbers:
        part = rows[:, used]
        sizes = np.linalg.norm(part, axis=0)
        scale = np.where(sizes > 0, sizes, 1.0)
        numbers = np.linalg.svd(part / scale)[2][-1] / scale
    return _stated([terms[int(k)] for k in used], numbers, at_start)


def _stated(
    terms: Sequence[tuple[int, ...]], numbers: Sequence[Fraction] | FloatArray, at_start: FloatArray
) -> ConservationLaw:
    """Law with coprime integers, or floats of size >= 1; its first coefficient is positive."""
    if isinstance(numbers[0], Fraction):
        whole = lcm(*(number.denominator for number in numbers))
        unit = Fraction(gcd(*(int(number * whole) for number in numbers)), whole)
    else:
        unit = min(map(abs, numbers))
    scaled = [number / unit * (1 if numbers[0] > 0 else -1) for number in numbers]
    exact = tuple(scaled) if isinstance(scaled[0], Fraction) else ()
    law = ConservationLaw(tuple(terms), tuple(map(float, scaled)), exact, 0.0)
    return replace(law, value=float(law.at(at_start)))


def pair_laws(labels: IntArray, signs: FloatArray, at_start: FloatArray) -> list[ConservationLaw]:
    """Conserved difference or sum of each scalar and the first scalar of its class.

    `labels`, shape (count,), holds the class of each scalar. Scalars of a class change equally, up
    to the signs in `signs`, shape (count,); two scalars with opposite signs have a conserved sum.
    """
    laws: list[ConservationLaw] = []
    first: dict[int, int] = {}
    for k, label in enumerate(labels.tolist()):
        one = first.setdefault(label, k)
        if one != k:
            other = -Fraction(int(signs[one] * signs[k]))
            laws.append(_stated([(one,), (k,)], [Fraction(1), other], at_start))
    return laws
