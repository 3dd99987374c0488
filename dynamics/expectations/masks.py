r"""Expectation over masked patches: tables for the kernels of `contour`, method for each block.

The expectation of a block is a contour integral, or a sum over *configurations*: the numbers of
unmasked patches in each class. U of the P - 1 patches other than the masked patch p are unmasked,
uniformly at random. So :math:`\prod_c \binom{n_c}{h_c} / \binom{P-1}{U}` is the probability that
h_c of the n_c patches of each class c are unmasked. Classes are added one by one; partial
configurations with a marginal probability below `NEGLIGIBLE` are dropped.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import prod, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dynamics import loops
from dynamics.expectations import Expectation, FloatArray, contour
from dynamics.validation import known_word, refuse

if TYPE_CHECKING:
    from theory.papers.masked_image_modeling.rows import Rows
    from theory.papers.masked_image_modeling.symmetry import Area

KINDS = ("auto", "counts", "contour")
NEGLIGIBLE = 1e-32
WIDTHS = 24.0
"""Assumed width of the range of a count, in standard deviations, for predicted costs."""
MAX_NUMBERS = 2e7
"""Maximum number of counts in a table of configurations; above it, the sum is refused."""
MAX_TERMS = 1e9
"""Maximum number of terms of one gradient, over counts, classes and latents of all areas."""
PER_TERM, PER_BLOCK, PER_NODE = 1.5e-9, 1e-6, 3e-8
"""Predicted seconds per term of a sum over counts, per block, and per node of a contour."""
RADII = 110
"""Approximate number of nodes in s of a contour integral, for predicted costs."""
FIRST, STEP = -3.7, 0.09
"""First node tau of a contour integral, and distance of the nodes; see `contour.Law`."""
MOVE = 2e-5
"""Step of a score in the central differences of a Hessian."""
ROUNDING = 2.0**-52

BLOCK_FIELDS = (
    "row", "self_ups", "clusters", "first_class", "last_class", "first_area", "last_area",
    "configurations", "counts", "factors", "chances",
)  # fmt: skip
"""Columns of a block: row type, state index of p's correlation with itself, number of equal
clusters, ranges of its classes and areas, number of configurations (0 for a contour), places of its
first count, factor and probability in `contour.Tables`."""
AREA_FIELDS = ("copies", "first", "last")
"""Columns of one area or of several equal areas: number of areas, index of the first class, and
index after the last class."""
CLASS_FIELDS = ("area", "ups", "phi", "patches", "many")
"""Columns of a class of patches: area within the block, state indices of its correlation Ups and of
its area's Phi, number of its patches in one area and in all equal areas."""

Configurations = tuple[FloatArray, FloatArray]


@dataclass(frozen=True)
class AreaClass:
    """One area, or several equal areas.

    `phi` is the state index of the area's Phi, `copies` the number of areas. Each class has a pair
    (state index of its correlation Ups, number of patches); ``merged`` areas share one pair.
    """

    phi: int
    copies: int
    classes: tuple[tuple[int, int], ...]
    merged: bool = False


@dataclass(frozen=True)
class Block:
    """One row type in one cluster, or in several equal clusters.

    `row` is the index of the row type, `self_ups` the state index of p's correlation with itself.
    `areas` holds the areas, p's own first; `clusters` is the number of equal clusters.
    """

    row: int
    self_ups: int
    areas: tuple[AreaClass, ...]
    clusters: int = 1

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of patches of every class."""
        return tuple(patches for area in self.areas for _, patches in area.classes)

    def single(self, merging: bool) -> Block:
        """Copy with an `AreaClass` for each area, or (`merging`) for equal areas with one class."""
        areas: list[AreaClass] = []
        for area in self.areas:
            if area.copies > 1 and merging and len(area.classes) == 1:
                ((ups, patches),) = area.classes
                together = ((ups, patches * area.copies),)
                areas.append(replace(area, classes=together, merged=True))
            else:
                areas += [replace(area, copies=1)] * area.copies
        return replace(self, areas=tuple(areas))


def blocks_of(rows: Rows) -> tuple[Block, ...]:
    """Blocks of all rows, row by row; equal areas and equal clusters are counted, not repeated."""
    clusters: dict[Block, int] = {}
    for number, (row, start) in enumerate(zip(rows.types, rows.starts, strict=False)):
        phi = start + len(row.ups_names)
        for areas in row.clusters:
            classes = tuple(_area_class(area, start, phi, k == 0) for k, area in enumerate(areas))
            block = Block(number, start, classes)
            clusters[block] = clusters.get(block, 0) + 1
    return tuple(replace(block, clusters=many) for block, many in clusters.items())


def _area_class(area: Area, ups: int, phi: int, own: bool) -> AreaClass:
    cells = [(ups + cell, patches) for cell, patches in area.cells if not (own and cell == 0)]
    return AreaClass(phi + area.phi, area.multiplicity, tuple(cells))


def mean_squares(area: AreaClass, counts: FloatArray) -> FloatArray:
    """Mean of sum h_i^2 / (sum h_i)^2 over the counts h_i of merged areas, given their sum."""
    if not area.merged:
        return np.ones(counts.shape)
    each, total = 1.0 / area.copies, area.classes[0][1]
    return each + (1.0 - each) * (total - counts) / ((total - 1.0) * np.maximum(counts, 1.0))


def tables(parts: Sequence[tuple[Block, Configurations | None]]) -> contour.Tables:
    """Blocks in the format of the kernels; a block without configurations uses the contour."""
    blocks: list[tuple[int, ...]] = []
    areas: list[tuple[int, ...]] = []
    classes: list[tuple[int, ...]] = []
    numbers: tuple[list[FloatArray], ...] = ([np.empty(0)], [np.empty(0)], [np.empty(0)])
    for block, configurations in parts:
        first_class, first_area = len(classes), len(areas)
        at, places = 0, [sum(map(len, each)) for each in numbers]
        for a, area in enumerate(block.areas):
            copies = 1 if area.merged else area.copies
            areas.append((area.copies, at, at + len(area.classes)))
            classes += [(a, ups, area.phi, n, n * copies) for ups, n in area.classes]
            if configurations is not None:
                counts = configurations[0][at : at + len(area.classes)].sum(axis=0)
                numbers[1].append(mean_squares(area, counts))
            at += len(area.classes)
        if configurations is not None:
            numbers[0].append(configurations[0].ravel())
            numbers[2].append(configurations[1])
        many = 0 if configurations is None else configurations[1].size
        ends = (first_class, len(classes), first_area, len(areas))
        blocks.append((block.row, block.self_ups, block.clusters, *ends, many, *places))
    return contour.Tables(
        _table(blocks, BLOCK_FIELDS),
        _table(areas, AREA_FIELDS),
        _table(classes, CLASS_FIELDS),
        *map(np.concatenate, numbers),
    )


def _table(rows: list[tuple[int, ...]], fields: Sequence[str]) -> NDArray[Any]:
    return np.array(rows, dtype=[(field, np.int64) for field in fields])


def _count(sizes: Sequence[int], unmasked: int) -> float:
    """Approximate number of configurations of classes with these sizes."""
    total = sum(sizes)
    widths = []
    for size in sizes:
        share = unmasked / total
        spread = sqrt(size * share * (1 - share) * (total - size) / max(1, total - 1))
        widths.append(1.0 + min(size, unmasked, total - unmasked, WIDTHS * spread + 2.0))
    return prod(sorted(widths)[:-1]) if len(widths) > 1 else 1.0


def configurations(sizes: Sequence[int], unmasked: int) -> Configurations:
    """Counts, shape (classes, N), and probabilities, shape (N,), of N likely configurations."""
    # Logarithms of factorials are in the thousands; long doubles save three digits of `chances`.
    logs = np.log(np.arange(1, sum(sizes) + 1, dtype=np.longdouble))
    logs = np.concatenate([np.zeros(1, np.longdouble), np.cumsum(logs)])

    def log_binomial(n: int, k: NDArray[np.floating[Any]]) -> NDArray[np.floating[Any]]:
        k = k.astype(np.int64)
        return np.asarray(logs[n] - logs[k] - logs[n - k])

    total = sum(sizes)
    every = log_binomial(total, np.array([unmasked]))[0]
    least = np.log(np.longdouble(NEGLIGIBLE))
    order = sorted(range(len(sizes)), key=lambda c: sizes[c])
    counts = np.zeros((len(sizes), 1))
    weight, used, left = np.zeros(1, np.longdouble), np.zeros(1), total
    for c in order:
        size = sizes[c]
        left -= size
        alone = np.arange(max(0, unmasked - total + size), min(size, unmasked) + 1.0)
        marginal = log_binomial(size, alone) + log_binomial(total - size, unmasked - alone)
        h = alone[marginal - every >= least] if left else np.empty(0)
        # The last class is the largest; it has the remaining unmasked patches.
        after = used[:, None] + h if left else np.full((used.size, 1), float(unmasked))
        count = after - used[:, None]
        possible = (count >= 0) & (count <= size) & (after <= unmasked) & (unmasked - after <= left)
        marginal = weight[:, None] + log_binomial(size, np.clip(count, 0, size))
        rest = log_binomial(left, np.clip(unmasked - after, 0, left))
        matter = np.nonzero(possible & (marginal + rest - every >= least))
        counts = counts[:, matter[0]]
        counts[c] = count[matter]
        weight, used = marginal[matter], after[matter]
    chances = np.exp(weight - every)
    return np.ascontiguousarray(counts), np.asarray(chances / chances.sum(), dtype=np.float64)


def _seconds(block: Block, law: Any) -> tuple[float, float]:
    """Predicted seconds of one gradient of a block, by counts and by the contour."""
    others, latents = law.P - 1, len(law.z)
    share = (law.P - law.masked) / others
    angles = min(others / 2 + 1, 7.0 * sqrt(others * share * (1 - share)) + 12.0)
    # At nearly all nodes s few angles of x are computed: `contour_block` stops at small weights.
    nodes = RADII * (20.0 + 0.2 * angles) * (1 + len(block.sizes)) * latents
    return PER_BLOCK + PER_TERM * _terms(block.single(latents == 1), law), PER_NODE * nodes


def _terms(single: Block, law: Any) -> float:
    """Predicted number of terms of a sum over counts, classes and latents."""
    many = _count(single.sizes, law.P - law.masked)
    return many * (1 + len(single.sizes)) * float(len(law.z)) ** len(single.areas)


def _selected(rows: Rows, kind: str) -> Iterator[tuple[Block, Configurations | None]]:
    """Yield every block with its configurations, or with None for the contour."""
    law = rows.parameters
    computed: dict[tuple[int, ...], Configurations] = {}
    for block in blocks_of(rows):
        by_counts, by_contour = _seconds(block, law)
        if kind == "contour" or (kind == "auto" and by_counts > by_contour):
            yield block, None
            continue
        single = block.single(merging=len(law.z) == 1)
        _check_affordable(single, law)
        if single.sizes not in computed:
            computed[single.sizes] = configurations(single.sizes, law.P - law.masked)
        yield single, computed[single.sizes]


def _check_affordable(single: Block, law: Any) -> None:
    """Raise InvalidRequest for a table above `MAX_NUMBERS` or a sum above `MAX_TERMS`."""
    terms = _terms(single, law)
    numbers = _count(single.sizes, law.P - law.masked) * len(single.sizes)
    if max(numbers / MAX_NUMBERS, terms / MAX_TERMS) > 1:
        allowed = f"another expectation if counts need more than {MAX_TERMS:.0g} terms"
        problem = f"needs {terms:.2g} terms at P={law.P}"
        refuse("expectation", "counts", problem, allowed, "contour")


class MaskExpectation(Expectation):
    """Expectation over masks and latents, row by row.

    `rows` holds the row types of parameters or of an `ImageLaw`. `kind` is ``"counts"``,
    ``"contour"``, or ``"auto"``, which selects for every block the method with the smaller
    predicted time. `configurations` is the number of configurations in all sums over counts. Raises
    InvalidRequest for an unknown kind, and for a sum over counts that is too long.
    """

    def __init__(self, rows: Rows, kind: str = "auto") -> None:
        known_word("expectation", kind, KINDS)
        self.rows, self.kind = rows, kind
        parts = tuple(_selected(rows, kind))
        law = rows.parameters
        factor = law.masked / law.P / law.K
        kinds = ("contour" if part is None else "counts" for _, part in parts)
        self.name = "+".join(sorted(set(kinds), reverse=True))
        self.configurations = sum(part[1].size for _, part in parts if part is not None)
        self.settings = {"expectation": self.name, "configurations": self.configurations}
        features = [
            start + len(row.ups_names) for start, row in zip(rows.starts, rows.types, strict=False)
        ]
        widths = np.full(rows.starts[-1], MOVE)
        for first, last in zip(features, rows.starts[1:], strict=True):
            widths[first:last] /= max(law.z)
        self.data = contour.MaskData(
            tables(parts),
            contour.Law(
                law.P - 1.0, law.masked - 1.0, np.array(law.z), np.array(law.odds), FIRST, STEP
            ),
            contour.Reading(
                np.array(rows.starts), widths, factor / rows.sizes, rows.floors,
                law.K * rows.mates, rows.many, factor, *map(int, rows.references),
            ),
        )  # fmt: skip

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), (self.rows, self.kind)

    def error_estimate(self, state: FloatArray) -> dict[str, FloatArray]:
        """Value and estimated error; all gradient components share the largest error.

        The estimate is the rounding of all sums plus the change of the result if the contour nodes
        shift by half a step, which reverses the sign of the quadrature error.
        """
        law, reading = self.data.law, self.data.reading
        shifted = self.data._replace(law=law._replace(first=law.first + 0.5 * law.step))
        largest = float(law.z.max())
        scale = 2.0 * largest**2 * MOVE / reading.widths
        rounding = 4.0 * ROUNDING * (1.0 + law.others / 64.0)
        value = np.append(self.gradient(state), self.value(state))
        slopes = np.abs(value[:-1] - loops.gradient(shifted, state)).max()
        risks = abs(value[-1] - float(loops.summary(shifted, state)[0]))
        of_gradient = slopes + rounding * float((reading.shares * scale).max())
        of_risk = risks + rounding * reading.factor * float(reading.patches.sum()) * largest**2
        return {"value": value, "estimate": np.append(np.full(state.size, of_gradient), of_risk)}

    def failure(self, state: FloatArray) -> str:
        """Reason why a state has no gradient (weights overflow on the contour), or ""."""
        if "contour" not in self.name or not np.isfinite(state).all():
            return ""
        if np.isfinite(self.gradient(state)).all():
            return ""
        return (
            "the contour over masks overflows: weights of keys differ by too many orders of "
            f"magnitude (correlations up to {np.abs(state).max():.3g}); try expectation='counts', "
            "or a smaller eta"
        )
