r"""Conserved quantities of training on a closed set of scalars.

*Linear.* A combination :math:`c \cdot z` of scalars is constant under gradient descent and under
the flow if :math:`c` is orthogonal to the gradient (per entry) at every state. The null space of
gradients at random states is brought to reduced echelon form with complete pivoting, and its
coefficients are written as fractions where these reproduce it.

*Quadratic.* :math:`z^T S z` is constant along the flow if :math:`g(z)^T S z = 0` at every state.
Products of scalars of the same array are tried, less those that follow from linear laws. Gradient
descent breaks such a law at order :math:`\eta`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass, replace
from fractions import Fraction
from itertools import combinations_with_replacement

import numpy as np

from theory.closure.linear import LinearSpace
from theory.closure.partition import FLOORS, MOST_HALVINGS, SCALES, EntryClasses, Training
from theory.law import FloatArray

MOST_LINEAR = 600
"""Scalars up to which linear laws are sought."""
MOST_PRODUCTS = 1000
"""Products of scalars up to which quadratic laws are sought."""
NULL = 1e-9
"""Singular values below this, relative to the largest, belong to the null space."""
NOISE = 1e-11
"""Part of a row that counts as rounding, beside its floors."""
GAP = 1e3
"""Ratio between the least singular value of the row space and the largest of the null space."""
Visited = tuple[FloatArray, FloatArray, FloatArray]
"""Scalars, gradient per entry and its rounding error at a state of a run."""
LEAST_PART = 1e-6
"""Terms below this part of the largest are left out where a law holds without them."""
DENOMINATOR = 64
FRACTION = 1e-9
"""Relative distance up to which a coefficient is a fraction."""


@dataclass(frozen=True)
class ConservationLaw:
    """A quantity that training leaves as it is.

    Attributes
    ----------
    terms : tuple of tuple of int
        Scalars of each term: one of a linear law, two of a quadratic one.
    coefficients : tuple of float
        Of each term.
    fractions : tuple of Fraction
        The same as fractions; empty where they are decimal.
    value : float
        Of the law at the start.
    """

    terms: tuple[tuple[int, ...], ...]
    coefficients: tuple[float, ...]
    fractions: tuple[Fraction, ...]
    value: float

    @property
    def degree(self) -> int:
        """1 for a linear law, which gradient descent conserves; 2 for one of the flow alone."""
        return len(self.terms[0])

    @property
    def exact(self) -> bool:
        """Whether the coefficients are fractions."""
        return bool(self.fractions)

    def at(self, scalars: FloatArray) -> FloatArray:
        """Its value at scalars of shape (..., count)."""
        parts = [
            factor * np.prod(np.asarray(scalars)[..., list(term)], axis=-1)
            for factor, term in zip(self.coefficients, self.terms, strict=True)
        ]
        return np.asarray(sum(parts))

    def text(self, names: Sequence[str]) -> str:
        """``u**2 - 4*s**2``, in the names of the scalars; decimal factors have an ``~``."""
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


def conservation_laws(
    training: Training,
    classes: EntryClasses,
    space: LinearSpace,
    generator: np.random.Generator,
    visited: Sequence[FloatArray] = (),
) -> tuple[ConservationLaw, ...]:
    """Linear laws, then quadratic ones, of training on the closed scalars.

    Parameters
    ----------
    training : Training
    classes : EntryClasses
    space : LinearSpace
        Where the scalars stay.
    generator : numpy Generator
        Draws the states.
    visited : sequence of float arrays, shape (n,)
        States of a run, at which a law must hold too.

    Returns
    -------
    tuple of ConservationLaw
    """
    count = classes.count
    if not 0 < count <= MOST_LINEAR:
        return ()
    groups = training.groups[classes.first]
    arrays = training.arrays[classes.first]
    products = [
        pair
        for pair in combinations_with_replacement(range(count), 2)
        if arrays[pair[0]] == arrays[pair[1]]
    ]
    if len(products) > MOST_PRODUCTS:
        products = []
    needed = max(count, len(products)) + 20
    if space.free == 0:
        return ()
    states, rates = _rates(training, classes, space, generator, needed)
    along_run = [_visited(training, classes, s) for s in space.inside(classes, visited)]
    at_start = classes.start[classes.first]
    laws: list[ConservationLaw] = []
    if space.free < count:
        for group in np.unique(groups):
            inside = np.flatnonzero(groups == group)
            own = [(rate[inside], floor[inside]) for _, rate, floor in along_run]
            for vector in _null_space(rates[:, inside], own):
                terms = [(int(k),) for k in inside]
                laws.append(_law(terms, vector, at_start, rates[:, inside]))
    if products and len(np.unique(groups)) == 1:
        laws += _quadratic(products, (states, rates), at_start, along_run)
    return tuple(laws)


def _quadratic(
    products: list[tuple[int, int]],
    sampled: tuple[FloatArray, FloatArray],
    at_start: FloatArray,
    along_run: Sequence[Visited],
) -> list[ConservationLaw]:
    """Quadratic laws that do not follow from linear ones."""
    first, second = np.array(products).T

    def change(state: FloatArray, rate: FloatArray) -> FloatArray:
        return rate[..., first] * state[..., second] + rate[..., second] * state[..., first]

    own = [(change(s, r), change(np.abs(s), f)) for s, r, f in along_run]
    null = _null_space(change(*sampled), own)
    if not null.size:
        return []
    # Forms that are constant on the linear space say nothing about training.
    states = sampled[0]
    constant = _annihilated(
        states[:, first] * states[:, second] - at_start[first] * at_start[second]
    )
    if constant.size:
        single = np.count_nonzero(constant, axis=0) == 1
        leading = np.argmax((constant == 1) & single, axis=1)
        rest = null - null[:, leading] @ constant
        vectors, sizes = np.linalg.svd(rest, full_matrices=False)[1:][::-1]
        null = _echelon(vectors[sizes > 1e-6 * max(1.0, sizes.max(initial=0.0))])
    return [_law(products, vector, at_start, change(*sampled)) for vector in null]


def _rates(
    training: Training,
    classes: EntryClasses,
    space: LinearSpace,
    generator: np.random.Generator,
    needed: int,
) -> tuple[FloatArray, FloatArray]:
    """Random states of the closed scalars and the gradient per entry there, (needed, count)."""
    at_start = classes.start[classes.first]
    states, rates = [], []
    for k in range(needed):
        scale = SCALES[k % len(SCALES)]
        for _ in range(MOST_HALVINGS):
            moved = space.basis @ generator.standard_normal(space.free)
            moved *= scale / max(np.sqrt(np.mean(moved**2)), 1e-300)
            gradient, _floor = training.probe(classes.lift(at_start + moved))
            if np.isfinite(gradient).all():
                states.append(at_start + moved)
                rates.append(classes.project(gradient))
                break
            scale /= 2
    return np.array(states), np.array(rates)


def _visited(training: Training, classes: EntryClasses, state: FloatArray) -> Visited:
    """Scalars, gradient per entry and its rounding error at a state of a run."""
    gradient, floor = training.probe(state)
    return state[classes.first], classes.project(gradient), classes.project(floor * classes.signs)


def _null_space(rows: FloatArray, along_run: Sequence[tuple[FloatArray, FloatArray]]) -> FloatArray:
    """Vectors that every row annihilates, in reduced echelon form, shape (laws, columns).

    Rows of a run, each with its rounding error, come to rest: one is added where it shows more than
    rounding. Empty where singular values leave no gap between rounding and signal.
    """
    null = _annihilated(rows)
    for row, error in along_run:
        if not null.size or not np.isfinite(row).all():
            continue
        noise = FLOORS * (np.abs(null) @ error) + NOISE * (np.abs(null) @ np.abs(row))
        if (np.abs(null @ row) > noise).any():
            rows = np.concatenate([rows, row[None, :]])
            null = _annihilated(rows)
    return null


def _annihilated(rows: FloatArray) -> FloatArray:
    """Vectors that every row annihilates, whatever a run shows."""
    if not rows.size:
        return np.zeros((0, rows.shape[1]))
    lengths = np.linalg.norm(rows, axis=1)
    scaled = rows[lengths > 0] / lengths[lengths > 0][:, None]
    columns = np.linalg.norm(scaled, axis=0)
    columns[columns == 0] = 1.0
    scaled /= columns
    if len(scaled) >= rows.shape[1]:
        # Most models have no law: the values alone take a third of the time.
        values = np.linalg.svd(scaled, compute_uv=False)
        if values.min() > 2 * NULL * values.max():
            return np.zeros((0, rows.shape[1]))
    values, vectors = np.linalg.svd(scaled, full_matrices=True)[1:]
    values = np.concatenate([values, np.zeros(rows.shape[1] - values.size)])
    small = values < NULL * values.max(initial=0.0)
    if not small.any():
        return np.zeros((0, rows.shape[1]))
    if not small.all() and values[~small].min() < GAP * max(
        values[small].max(), np.finfo(float).eps * values.max()
    ):
        return np.zeros((0, rows.shape[1]))
    return _echelon(vectors[small] / columns)


def _echelon(vectors: FloatArray) -> FloatArray:
    """Reduced echelon form by complete pivoting: sparse combinations of the same vectors."""
    rows = np.array(vectors, dtype=np.float64)
    free = np.ones(rows.shape[1], dtype=bool)
    for k in range(len(rows)):
        block = np.abs(rows[k:]) * free
        pivot, column = divmod(int(block.argmax()), rows.shape[1])
        rows[[k, k + pivot]] = rows[[k + pivot, k]]
        rows[k] /= rows[k, column]
        free[column] = False
        for other in range(len(rows)):
            if other != k:
                rows[other] -= rows[other, column] * rows[k]
    rows[np.abs(rows) < 1e-9] = 0.0
    return rows


def _law(
    terms: Sequence[tuple[int, ...]], vector: FloatArray, at_start: FloatArray, rows: FloatArray
) -> ConservationLaw:
    """A law from its coefficients, the first positive, as fractions where the law holds with them.

    It holds where every row annihilates it. What rounding has left of terms is dropped.
    """
    columns = np.abs(rows).max(axis=0)
    weight = np.abs(vector) * np.where(columns > 0, columns, 1.0)
    clean = np.where(weight > LEAST_PART * weight.max(), vector, 0.0)
    if not _holds(clean, rows, FRACTION):
        clean = vector
    used = np.flatnonzero(clean)
    scaled = clean[used] / np.abs(clean[used]).min() * np.sign(clean[used[0]])
    fractions = tuple(Fraction(float(c)).limit_denominator(DENOMINATOR) for c in scaled)
    near, whole = np.array([float(f) for f in fractions]), np.zeros_like(vector)
    whole[used] = near
    exact = bool((np.abs(near - scaled) <= FRACTION * np.abs(scaled)).all())
    exact = exact and _holds(whole, rows, NOISE)
    coefficients = tuple((near if exact else scaled).tolist())
    named = tuple(tuple(terms[int(k)]) for k in used)
    law = ConservationLaw(named, coefficients, fractions if exact else (), 0.0)
    return replace(law, value=float(law.at(at_start)))


def _holds(vector: FloatArray, rows: FloatArray, part: float) -> bool:
    """Whether every row annihilates a vector, up to a part of its terms and rounding of the row."""
    sizes = np.abs(rows)
    noise = part * (sizes @ np.abs(vector))
    noise += 64 * np.finfo(np.float64).eps * sizes.max(axis=1) * np.abs(vector).sum()
    return bool((np.abs(rows @ vector) <= noise).all())


def break_by_descent(
    law: ConservationLaw, run: Callable[[float], FloatArray], rates: Sequence[float]
) -> tuple[FloatArray, float]:
    """How far gradient descent breaks a law, and the power of eta with which it does.

    Parameters
    ----------
    law : ConservationLaw
    run : callable
        Learning rate -> scalars of a run to one time, shape (records, count).
    rates : sequence of float
        Learning rates.

    Returns
    -------
    float array, shape (rates,), and float
        Largest change of the law along each run; slope of log(change) against log(eta).
    """
    changes = np.array([float(np.abs(law.at(run(eta)) - law.value).max()) for eta in rates])
    if (changes <= 0).any():
        return changes, float("nan")
    return changes, float(np.polyfit(np.log(rates), np.log(changes), 1)[0])
