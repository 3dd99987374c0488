r"""Row types as the flat arrays that kernels read.

A *block* is one row type and one cluster; the increments of a row are the mean over its blocks. A
*slot* is an area, or a class of areas alike; a *unit* is the patches of one class in it, and stands
for one weight of a key. The patch p itself is in no unit: it is always masked.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dynamics.problem import FloatArray

if TYPE_CHECKING:
    from theory.systems.masked_image_modeling.symmetry import Area, RowType

IntArray = NDArray[np.int64]

FIELDS = (
    "row", "contour", "first_unit", "last_unit", "first_slot", "last_slot", "self",
    "counts_at", "configurations", "chances_at", "clusters",
)  # fmt: skip
"""Columns of ``blocks``."""
COUNTS, CONTOUR = 0, 1


@dataclass(frozen=True)
class Slot:
    """An area, or ``copies`` areas alike, as a block sees it.

    Attributes
    ----------
    phi : int
        Place of its Phi in the state.
    copies : int
        Number of areas.
    units : tuple of (int, int)
        Place of an Ups in the state, and number of patches; in each area, or, where ``merged``,
        in all of them.
    merged : bool
        Only the total of the areas is counted.
    """

    phi: int
    copies: int
    units: tuple[tuple[int, int], ...]
    merged: bool = False


@dataclass(frozen=True)
class Block:
    """One row type and one cluster, or clusters alike, in the form that an expectation takes.

    Attributes
    ----------
    row : int
        Which row type.
    me : int
        Place of the Ups of p itself in the state.
    slots : tuple of Slot
        p's own area first.
    clusters : int
        Number of clusters alike.
    """

    row: int
    me: int
    slots: tuple[Slot, ...]
    clusters: int = 1

    @property
    def units(self) -> tuple[tuple[int, int, int], ...]:
        """All units: (slot, place of the Ups, patches)."""
        return tuple((k, ups, n) for k, slot in enumerate(self.slots) for ups, n in slot.units)

    @property
    def sizes(self) -> tuple[int, ...]:
        """Number of patches of every unit."""
        return tuple(n for _, _, n in self.units)

    def single(self, merging: bool) -> Block:
        """Every area a slot of its own, but those alike of one unit merged where that is right."""
        found: list[Slot] = []
        for slot in self.slots:
            if slot.copies > 1 and merging and len(slot.units) == 1:
                ups, n = slot.units[0]
                found.append(Slot(slot.phi, slot.copies, ((ups, n * slot.copies),), merged=True))
            else:
                found += [Slot(slot.phi, 1, slot.units)] * slot.copies
        return replace(self, slots=tuple(found))


def blocks_of(rows: Sequence[RowType]) -> tuple[Block, ...]:
    """The blocks of all rows, row by row, areas alike as one slot and clusters alike as one."""
    found: dict[Block, int] = {}
    at = 0
    for r, row in enumerate(rows):
        ups, phi = at, at + len(row.ups_names)
        for areas in row.clusters:
            slots = tuple(_slot(area, ups, phi, k == 0) for k, area in enumerate(areas))
            block = Block(r, ups, slots)
            found[block] = found.get(block, 0) + 1
        at = phi + len(row.phi_names)
    return tuple(replace(block, clusters=many) for block, many in found.items())


def _slot(area: Area, ups: int, phi: int, own: bool) -> Slot:
    cells = [(ups + cell, n) for cell, n in area.cells if not (own and cell == 0)]
    return Slot(phi + area.phi, area.multiplicity, tuple(cells))


def flattened(
    parts: Sequence[tuple[Block, tuple[FloatArray, FloatArray] | None]],
) -> tuple[Any, ...]:
    """Blocks as arrays: (blocks, (units, slots), (counts, chances)).

    Parameters
    ----------
    parts : sequence of (Block, configurations)
        Configurations (counts (units, N), chances (N,)) of a sum over counts; None for a contour.
    """
    table: list[list[int]] = []
    units: list[tuple[int, ...]] = []
    slots: list[tuple[int, ...]] = []
    counts, chances, counted, weighed = [np.empty(0)], [np.empty(0)], 0, 0
    for block, configurations in parts:
        first_unit, first_slot = len(units), len(slots)
        for slot in block.slots:
            begin = len(units)
            units += [(len(slots), ups, n) for ups, n in slot.units]
            slots.append((slot.phi, slot.copies, begin, len(units)))
        many = 0
        if configurations is not None:
            many = configurations[1].size
            counts.append(configurations[0].ravel())
            chances.append(configurations[1])
        kind = CONTOUR if configurations is None else COUNTS
        table.append(
            [
                *(block.row, kind, first_unit, len(units), first_slot, len(slots), block.me),
                *(counted, many, weighed, block.clusters),
            ]
        )
        counted += many * (len(units) - first_unit)
        weighed += many
    shape = (
        np.array(units, dtype=np.int64).reshape(-1, 3),
        np.array(slots, dtype=np.int64).reshape(-1, 4),
    )
    configured = (np.concatenate(counts), np.concatenate(chances))
    return np.array(table, dtype=np.int64), shape, configured
