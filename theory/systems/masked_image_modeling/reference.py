"""Which patch and which cluster stand for local, or for global, areas in events and parameters."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import ArrayLike

from theory.systems.masked_image_modeling.symmetry import RowType, as_areas, feature_offsets


@dataclass(frozen=True)
class Reference:
    """The patch and the cluster that stand for local, or for global, areas.

    Attributes
    ----------
    patch, cluster : int
    own : int
        Patches of the area that holds the patch.
    globally : int
        Patches of the global area of the cluster.
    """

    patch: int
    cluster: int
    own: int
    globally: int


def reference(areas: ArrayLike, local: bool) -> Reference | None:
    """The patch that speaks for local, or for global, areas.

    One with a mate, another patch of its area, if there is any; of these one that is local (global)
    in most clusters, and of these one in the largest area. Where several are left, the first patch,
    in the first cluster. Only sizes count, so that areas can be renamed.

    Parameters
    ----------
    areas : int array, shape (K, P)
    local : bool

    Returns
    -------
    Reference or None
        None where no patch is in a local area; some are in a global one always.
    """
    checked = as_areas(areas)
    sizes = np.stack([np.bincount(cluster)[cluster] for cluster in checked])
    fits = (checked > 0) == local
    if not fits.any():
        return None
    k, p = np.nonzero(fits)
    size, often = sizes[k, p], fits.sum(axis=0)[p]
    best = np.lexsort((k, p, -size, -often, size == 1))[0]
    cluster = checked[k[best]]
    return Reference(int(p[best]), int(k[best]), int(size[best]), int((cluster == 0).sum()))


@dataclass(frozen=True)
class View:
    """A row and a cluster in which its patches lie in a local, or in the global, area.

    Attributes
    ----------
    row : int
        Which row type.
    cluster : int
        Which of its ``clusters``.
    own : int
        Index of the Phi of the own area.
    globally : int
        Index of the Phi of the global area; equal to ``own`` where that is the own one.
    """

    row: int
    cluster: int
    own: int
    globally: int


def view(areas: ArrayLike, types: tuple[RowType, ...], local: bool) -> View | None:
    """The row of the `reference`, which stands for local, or for global, areas in events.

    Returns
    -------
    View or None
        None where there is no such patch.
    """
    found = reference(areas, local)
    if found is None:
        return None
    checked, p, k = as_areas(areas), found.patch, found.cluster
    row = next(number for number, kind in enumerate(types) if p in kind.patches)
    line = int(np.searchsorted(types[row].patches, p))
    first = int(feature_offsets(checked)[k])
    place = types[row].features_seen(line)
    own = int(place[first + checked[k, p]])
    return View(row, types[row].own_phi.index(own), own, int(place[first]))
