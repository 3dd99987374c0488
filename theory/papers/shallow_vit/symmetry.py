r"""Classes of equal entries (16 attention scalars), and conditions under which they stay equal.

Consider a permutation of the patterns that preserves the set {1, 2}. A permutation that exchanges 1
and 2 also maps the label y to -y and the output weights a to -a. The permutation is a symmetry of
training if it maps the weighted samples onto themselves, preserves the inner products at the start,
and maps neurons onto neurons. The condition on samples holds for all laws of `data_law` if the
tokens of the other M - 2 patterns are split equally. If all such permutations are symmetries,

- B has one value on each of 6 classes of ordered pairs of patterns, and G_K and G_Q have one value
  on each of 5 classes of unordered pairs: 16 scalars for every M > 3;
- training depends only on the orbit means of T, the derivative of the loss by B. The two samples of
  the ``fixed`` law are mirror images, so the positive sample yields the `orbit_means`.

The classes are the orbits of `pattern_group`. `conditions` measures each condition at a start, and
`broken` reports the first one that does not hold.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache
from math import prod

import numpy as np
import sympy

from theory.color_refinement import IntArray
from theory.law import FloatArray
from theory.papers.shallow_vit.data_law import Law
from theory.papers.shallow_vit.notation import EVEN_PAIRS, PAIRS
from theory.symmetry import Classes, PermutationGroup, classes

TOLERANCE = 1e-12
"""A condition holds if its deviation, relative to the largest entry or weight, is at most this."""


def pattern_group(M: int, exchange: bool = True) -> PermutationGroup:
    """Group of all permutations of the M - 2 other patterns, with the exchange of 1 and 2.

    Without `exchange`, patterns 1 and 2 stay in place, as in the symmetry of a single sample. M is
    at least 3.
    """
    generators = []
    if exchange:
        generators.append(np.array([1, 0, *range(2, M)]))
    if M > 3:
        generators.append(np.array([0, 1, 3, 2, *range(4, M)]))
    if M > 4:
        generators.append(np.array([0, 1, *range(3, M), 2]))
    return PermutationGroup(M, tuple(generators))


def unordered(orbits: Classes) -> Classes:
    """Classes for symmetric matrices, in which the orbits of (i, j) and (j, i) are merged."""
    merged = np.minimum(orbits.labels, orbits.labels.T)
    return Classes(np.unique(merged, return_inverse=True)[1].reshape(merged.shape))


def pair_name(pair: tuple[int, int]) -> str:
    """Name of the class of a pair counted from 0, such as "1k" for (0, 2) and "kl" for (2, 3)."""
    i, j = pair
    if max(i, j) < 2:
        return f"{i + 1}{j + 1}"
    first = str(i + 1) if i < 2 else "k"
    return first + (str(j + 1) if j < 2 else "k" if i < 2 or i == j else "l")


def named(orbits: Classes) -> dict[str, IntArray]:
    """Mapping from each class name to its pairs (i, j), counted from 0, shape (size, 2)."""
    return {
        pair_name(first): np.argwhere(orbits.labels == index)
        for index, first in enumerate(orbits.representatives)
    }


@cache
def pairs(M: int) -> tuple[Classes, dict[str, IntArray]]:
    """Classes of ordered pairs of patterns, and the mapping from class names to pairs."""
    orbits = classes(pattern_group(M))
    return orbits, named(orbits)


@cache
def scalars(M: int) -> tuple[str, ...]:
    """Names of the attention scalars for M patterns: 16, but 13 if M = 3 (no pair is kl)."""
    orbits, ordered = pairs(M)
    even = named(unordered(orbits))
    if set(ordered) - set(PAIRS) or set(even) - set(EVEN_PAIRS):
        raise ValueError(f"M={M} has classes without a name in the notation")
    return tuple(
        f"{code}_{pair}"
        for code, found in (("B", ordered), ("G_K", even), ("G_Q", even))
        for pair in found
    )


def class_means(matrix: FloatArray, orbits: Classes) -> FloatArray:
    """Mean over each class of the entries of matrices, (..., M, M) -> (..., classes)."""
    leading = matrix.shape[:-2]
    places = np.arange(prod(leading))[:, None] * orbits.count + orbits.labels.ravel()
    sums = np.bincount(places.ravel(), matrix.ravel(), prod(leading) * orbits.count)
    return np.asarray(sums.reshape(*leading, orbits.count) / orbits.sizes)


def asymmetry(matrix: FloatArray, orbits: Classes) -> FloatArray:
    """Maximum difference of two entries of the same class, for each matrix, shape (...)."""
    spreads = [np.ptp(matrix[..., orbits.labels == k], axis=-1) for k in range(orbits.count)]
    return np.asarray(np.max(spreads, axis=0))


def orbit_means(M: int) -> Mapping[str, sympy.Expr]:
    """Mean of T, the derivative of the loss by B, over each orbit of pairs of patterns.

    The permutations of the M - 2 other patterns leave the positive sample unchanged, so its T has
    one entry ``T_<pair>`` on each of their orbits. The negative sample is the mirror image of the
    positive sample. Hence the mean of T over both samples is the mean of these entries over an
    orbit of the whole group.
    """
    fine, whole = (classes(pattern_group(M, exchange)) for exchange in (False, True))
    means: dict[str, sympy.Expr] = {}
    for index, first in enumerate(whole.representatives):
        inside = np.unique(fine.labels[whole.labels == index])
        total = sum(
            int(fine.sizes[k]) * sympy.Symbol(f"T_{pair_name(fine.representatives[k])}", real=True)
            for k in inside
        )
        means[pair_name(first)] = sympy.together(total / int(whole.sizes[index]))
    return means


@dataclass(frozen=True, eq=False)
class Weights:
    """Initial weights at which the conditions are measured.

    `W_O` has shape (m, d), and `V`, `K`, `Q` have shape (d, M). The output weights `a` have shape
    (m,), or (m, L) if they depend on the position.
    """

    W_O: FloatArray
    V: FloatArray
    K: FloatArray
    Q: FloatArray
    a: FloatArray


@dataclass(frozen=True)
class Condition:
    """Condition under which training reduces to the 16 scalars.

    `deviation` is the maximum violation relative to the largest entry or weight, `where` its place.
    """

    name: str
    deviation: float
    where: str

    @property
    def holds(self) -> bool:
        """Whether the deviation is at most `TOLERANCE`."""
        return self.deviation <= TOLERANCE


def conditions(start: Weights, law: Law) -> tuple[Condition, ...]:
    """Conditions under which training reduces to 16 scalars, measured at a start for a law."""
    M = law.counts.shape[1]
    ordered = classes(pattern_group(M))
    even, K, Q, V = unordered(ordered), start.K, start.Q, start.V
    equal = "have equal inner products on every class"
    return (
        _samples(law),
        _entries(f"keys {equal} (delta = 0)", K.T @ K, even),
        _entries(f"queries {equal} (delta = 0)", Q.T @ Q, even),
        _entries("scores are equal on every class (delta = 0 and W_K = W_Q)", K.T @ Q, ordered),
        _entries(f"values {equal} (sigma = 0)", V.T @ V, even),
        _neurons(start, M),
    )


def broken(measured: tuple[Condition, ...]) -> str | None:
    """Message about the first condition that does not hold, or None if all conditions hold."""
    for condition in measured:
        if not condition.holds:
            size = f"{condition.deviation:.3g}"
            return f"the symmetric collapse needs: {condition.name}; off by {size}{condition.where}"
    return None


def _samples(law: Law) -> Condition:
    """Condition that the permutations of patterns map the weighted samples onto themselves."""
    name = "equal weights of samples that the symmetry exchanges (equal non-discriminative counts)"
    weight: dict[tuple[int, ...], float] = {}
    rows = np.column_stack([law.labels, law.counts]).tolist()
    for row, chance in zip(rows, law.probability.tolist(), strict=True):
        weight[tuple(row)] = weight.get(tuple(row), 0.0) + chance
    worst, where = 0.0, ""
    for generator in pattern_group(law.counts.shape[1]).generators:
        sign = -1 if generator[0] == 1 else 1
        for (label, *counts), chance in weight.items():
            image = (sign * label, *[counts[k] for k in generator])
            off = abs(chance - weight.get(image, 0.0)) / max(weight.values())
            if off > worst:
                worst, where = off, f", counts {counts} with y = {label:+d}"
    return Condition(name, worst, where)


def _entries(name: str, matrix: FloatArray, orbits: Classes) -> Condition:
    off = np.abs(matrix - class_means(matrix, orbits)[orbits.labels])
    i, j = np.unravel_index(int(off.argmax()), off.shape)
    scale = max(float(np.abs(matrix).max()), np.finfo(float).tiny)
    return Condition(name, float(off.max()) / scale, f" at the patterns {i + 1}, {j + 1}")


def _neurons(start: Weights, M: int) -> Condition:
    r"""Condition that permutations of the values, applied to rows of W_O, permute the neurons.

    On the span of the values, a permutation :math:`\Pi` acts as :math:`V \Pi V^+`; on its
    complement, it is the identity.
    """
    from scipy.optimize import linear_sum_assignment

    if start.a.ndim > 1:
        return Condition(
            "one output weight per neuron (output_weights = shared)", 1.0, ": one per position"
        )
    name = "neurons invariant under permutations of patterns (a to -a if 1 and 2 are exchanged)"
    inverse = np.linalg.pinv(start.V)
    scale = max(float(np.abs(start.W_O).max()), np.finfo(float).tiny)
    worst, where = 0.0, ""
    for generator in pattern_group(M).generators:
        sign = -1.0 if generator[0] == 1 else 1.0
        moved = start.W_O + start.W_O @ (start.V[:, generator] - start.V) @ inverse
        for value in np.unique(start.a):
            of, to = moved[start.a == value], start.W_O[start.a == sign * value]
            if len(of) != len(to):
                where = f", {len(of)} neurons have a = {value:.3g}, {len(to)} have a = {-value:.3g}"
                return Condition(name, 1.0, where)
            distance = np.abs(of[:, None, :] - to[None, :, :]).max(axis=2)
            matching = linear_sum_assignment(distance)
            off = float(distance[matching].max()) / scale
            if off > worst:
                pair = "1 and 2" if sign < 0 else "others"
                worst, where = off, f" of the largest weight, exchanging {pair}"
    return Condition(name, worst, where)
