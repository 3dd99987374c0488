r"""Row types as the tables that kernels read, and how every block takes its expectation.

A *block* is one row type in one cluster; the increments of a row are the mean over its blocks. An
*area class* is an area, or areas alike; a *patch class* is the patches of one class in it, and
stands for one weight of a key. The patch p itself is in no class: it is always masked.

A block sums over *configurations*, or takes the contour. Of N - 1 patches other than p, U are
unmasked, every set of them with equal chance, so the numbers h_c in classes of n_c patches are
multivariate hypergeometric: :math:`P(h) = \prod_c \binom{n_c}{h_c} / \binom{N-1}{U}`. Classes are
added one by one, and what has a marginal chance below `NEGLIGIBLE` is left out with everything that
it would become.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from math import prod, sqrt
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dynamics.problem import FloatArray
from dynamics.systems.masked_image_modeling.kernels.reduced import Blocks
from dynamics.systems.masked_image_modeling.parameters import Parameters
from dynamics.validation import known_word, refuse

if TYPE_CHECKING:
    from theory.papers.masked_image_modeling.symmetry import Area, RowType

KINDS = ("auto", "counts", "contour")
NEGLIGIBLE = 1e-32
WIDTHS = 24.0
"""Standard deviations of a count that matter, both sides together."""
MOST_NUMBERS = 2e7
"""Numbers that a table of configurations may hold."""
MOST_TERMS = 1e9
"""Terms of one gradient, latents included."""
PER_TERM, PER_BLOCK, PER_NODE = 2.0e-9, 2e-6, 1.2e-7
"""Seconds."""
RADII = 110
"""Values of s on a contour, about."""

BLOCK_FIELDS = (
    "row", "contour", "self_ups", "first_patch", "last_patch", "first_area", "last_area",
    "counts", "configurations", "chances", "clusters",
)  # fmt: skip
"""Of a block: row type, whether it takes the contour, place of the Ups of p itself, its patch and
area classes, its first count, number of configurations, first chance, clusters alike."""
AREA_FIELDS = ("phi", "copies", "first", "last")
"""Of an area class: place of its Phi, number of areas, its patch classes."""
PATCH_FIELDS = ("area", "ups", "patches")
"""Of a patch class: its area class, place of its Ups, number of patches."""

Configurations = tuple[FloatArray, FloatArray]
Part = tuple["Block", Configurations | None]
"""A block with its configurations; None where it takes the contour."""


@dataclass(frozen=True)
class PatchClass:
    """Patches of one class in an area.

    Attributes
    ----------
    ups : int
        Place of their Ups in the state.
    patches : int
        How many, in each area; or in all of them, where the areas are merged.
    """

    ups: int
    patches: int


@dataclass(frozen=True)
class AreaClass:
    """An area, or areas alike, as a block sees it.

    Attributes
    ----------
    phi : int
        Place of its Phi in the state.
    copies : int
        Number of areas.
    classes : tuple of PatchClass
    """

    phi: int
    copies: int
    classes: tuple[PatchClass, ...]


@dataclass(frozen=True)
class Block:
    """One row type and one cluster, or clusters alike.

    Attributes
    ----------
    row : int
        Which row type.
    self_ups : int
        Place of the Ups of p itself in the state.
    areas : tuple of AreaClass
        That of p first.
    clusters : int
        Number of clusters alike.
    """

    row: int
    self_ups: int
    areas: tuple[AreaClass, ...]
    clusters: int = 1

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of patches of every patch class."""
        return tuple(patches.patches for area in self.areas for patches in area.classes)

    def single(self, merging: bool) -> Block:
        """Every area for itself, but those alike of one patch class merged where that is right."""
        areas: list[AreaClass] = []
        for area in self.areas:
            if area.copies > 1 and merging and len(area.classes) == 1:
                (patches,) = area.classes
                total = replace(patches, patches=patches.patches * area.copies)
                areas.append(replace(area, classes=(total,)))
            else:
                areas += [replace(area, copies=1)] * area.copies
        return replace(self, areas=tuple(areas))


def blocks_of(rows: Sequence[RowType]) -> tuple[Block, ...]:
    """The blocks of all rows, row by row, areas alike as one class and clusters alike as one."""
    clusters: dict[Block, int] = {}
    at = 0
    for r, row in enumerate(rows):
        ups, phi = at, at + len(row.ups_names)
        for areas in row.clusters:
            classes = tuple(_area_class(area, ups, phi, k == 0) for k, area in enumerate(areas))
            block = Block(r, ups, classes)
            clusters[block] = clusters.get(block, 0) + 1
        at = phi + len(row.phi_names)
    return tuple(replace(block, clusters=many) for block, many in clusters.items())


def _area_class(area: Area, ups: int, phi: int, own: bool) -> AreaClass:
    cells = [PatchClass(ups + cell, n) for cell, n in area.cells if not (own and cell == 0)]
    return AreaClass(phi + area.phi, area.multiplicity, tuple(cells))


def tables(parts: Sequence[Part]) -> Blocks:
    """Blocks as the kernels read them.

    Parameters
    ----------
    parts : sequence of (Block, configurations)
        Configurations (counts (patch classes, N), chances (N,)); None for a contour.

    Returns
    -------
    Blocks
    """
    blocks: list[tuple[int, ...]] = []
    areas: list[tuple[int, ...]] = []
    patches: list[tuple[int, ...]] = []
    counts, chances, count_at, chance_at = [np.empty(0)], [np.empty(0)], 0, 0
    for block, configurations in parts:
        first_patch, first_area, many = len(patches), len(areas), 0
        for area in block.areas:
            begin = len(patches)
            patches += [(len(areas), part.ups, part.patches) for part in area.classes]
            areas.append((area.phi, area.copies, begin, len(patches)))
        if configurations is not None:
            counts.append(configurations[0].ravel())
            chances.append(configurations[1])
            many = configurations[1].size
        blocks.append(
            (
                *(block.row, int(configurations is None), block.self_ups),
                *(first_patch, len(patches), first_area, len(areas)),
                *(count_at, many, chance_at, block.clusters),
            )
        )
        count_at += many * (len(patches) - first_patch)
        chance_at += many
    return Blocks(
        _table(blocks, BLOCK_FIELDS),
        _table(areas, AREA_FIELDS),
        _table(patches, PATCH_FIELDS),
        np.concatenate(counts),
        np.concatenate(chances),
    )


def _table(rows: list[tuple[int, ...]], fields: Sequence[str]) -> NDArray[Any]:
    return np.array(rows, dtype=[(field, np.int64) for field in fields])


def estimate(sizes: Sequence[int], unmasked: int) -> float:
    """About how many configurations there are.

    Parameters
    ----------
    sizes : sequence of int
        Patches of every class.
    unmasked : int
        U.

    Returns
    -------
    float
    """
    total = sum(sizes)
    widths = []
    for size in sizes:
        share = unmasked / total
        spread = sqrt(size * share * (1 - share) * (total - size) / max(1, total - 1))
        widths.append(1.0 + min(size, unmasked, total - unmasked, WIDTHS * spread + 2.0))
    return prod(sorted(widths)[:-1]) if len(widths) > 1 else 1.0


def configurations(sizes: Sequence[int], unmasked: int) -> Configurations:
    """All configurations that matter.

    Parameters
    ----------
    sizes : sequence of int
        Patches of every class.
    unmasked : int
        U.

    Returns
    -------
    counts : float array, shape (patch classes, N)
        Unmasked patches of every class.
    chances : float array, shape (N,)
    """
    # In long double where there is one: logarithms of thousands cost three digits of a chance.
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
        # The last class, the largest, has what is left over.
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


def expectation_seconds(block: Block, parameters: Parameters, expectation: str) -> float:
    """Predicted time of one gradient of a block.

    Parameters
    ----------
    block : Block
    parameters : Parameters
    expectation : str
        One of `KINDS`.

    Returns
    -------
    float
    """
    others, latents = parameters.P - 1, len(parameters.z)
    share = (parameters.P - parameters.masked) / others
    angles = min(others / 2 + 1, 7.0 * sqrt(others * share * (1 - share)) + 12.0)
    # Few of the angles matter at most radii; see the cut in `kernels.contour`.
    nodes = RADII * (20.0 + 0.2 * angles) * (1 + len(block.sizes)) * latents
    by_counts = PER_BLOCK + PER_TERM * _terms(block.single(latents == 1), parameters)
    by_contour = PER_NODE * nodes
    return {"counts": by_counts, "contour": by_contour}.get(expectation, min(by_counts, by_contour))


def _terms(single: Block, parameters: Parameters) -> float:
    """Predicted terms of a sum over counts, patch classes and latents."""
    many = estimate(single.sizes, parameters.P - parameters.masked)
    return many * (1 + len(single.sizes)) * float(len(parameters.z)) ** len(single.areas)


def select(blocks: Sequence[Block], parameters: Parameters, expectation: str) -> tuple[Part, ...]:
    """Every block with its configurations, or with None where it takes the contour.

    Parameters
    ----------
    blocks : sequence of Block
    parameters : Parameters
    expectation : str
        One of `KINDS`; ``"auto"`` is for every block what is predicted to be faster.

    Returns
    -------
    tuple of (Block, configurations)

    Raises
    ------
    InvalidRequest
        For an unknown expectation, or for counts whose sum is too long.
    """
    known_word("expectation", expectation, KINDS)
    parts: list[Part] = []
    computed: dict[tuple[int, ...], Configurations] = {}
    for block in blocks:
        by_counts = expectation_seconds(block, parameters, "counts")
        by_contour = expectation_seconds(block, parameters, "contour")
        if expectation == "contour" or (expectation == "auto" and by_counts > by_contour):
            parts.append((block, None))
            continue
        single = block.single(merging=len(parameters.z) == 1)
        _check_affordable(single, parameters)
        if single.sizes not in computed:
            computed[single.sizes] = configurations(single.sizes, parameters.P - parameters.masked)
        parts.append((single, computed[single.sizes]))
    return tuple(parts)


def _check_affordable(single: Block, parameters: Parameters) -> None:
    """Refuse a table that would not fit, or sums that would not end."""
    terms = _terms(single, parameters)
    numbers = estimate(single.sizes, parameters.P - parameters.masked) * len(single.sizes)
    if max(numbers / MOST_NUMBERS, terms / MOST_TERMS) > 1:
        allowed = f"another one where counts need more than {MOST_TERMS:.0g} terms"
        problem = f"needs {terms:.2g} terms at P={parameters.P}"
        refuse("expectation", "counts", problem, allowed, "contour")


def expectation_settings(parts: Sequence[Part]) -> dict[str, object]:
    """How the expectation is taken, ``"counts+contour"`` if both ways; size of the sums."""
    many = [part[1].size for _, part in parts if part is not None]
    kinds = {"counts": len(many), "contour": len(parts) - len(many)}
    name = "+".join(kind for kind, number in kinds.items() if number)
    return {"expectation": name, "configurations": int(np.sum(many, dtype=np.int64))}
