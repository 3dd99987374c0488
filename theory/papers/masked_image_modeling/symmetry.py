r"""Classes of equal entries of Q: types of rows, and classes of positions and features in a row.

Gradient descent changes only the correlations of each patch p with positions, :math:`\Upsilon_{p\to
q} = e_p^\top Q e_q`, and with features, :math:`\Phi_{p\to v} = e_p^\top Q v`. Rows of different p
do not interact (`model`). Consider the graph whose vertices are the patches, areas and clusters,
with an edge between a patch and its areas, and between an area and its cluster. Colour refinement
starts with a separate colour for p (`theory.color_refinement`). At the end of the refinement,
patches q of one colour have equal :math:`\Upsilon_{p\to q}`, and areas of one colour have equal
:math:`\Phi_{p\to v}`. Patches p of one *type* have equal rows.

Proof. Masks are exchangeable, so the increment of :math:`\Upsilon_{p\to q}` depends only on the
areas that contain q, and on the composition of these areas and of their clusters. The composition
of an area or cluster is its number of patches for each pair of values of Ups and Phi. In a stable
colouring, the compositions are the same for all q of one colour. Entries of Q for vertices of one
colour start equal and stay equal. The orbits of automorphisms can only be finer than these classes.

The name of a class has one word for each cluster, or a single word if all clusters have the same.
The word *own* denotes the area of p, *global* the global area, and *other* another local area
(*local* if p is global). In names of feature classes, *target* denotes the local area of p.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from theory.color_refinement import IntArray, Refinement, RelationalStructure, refine

SELF = "self"
WORDS = ("own", "target", "global", "other", "local")
"""Words for an area relative to a patch p; classes are listed in this order."""


@dataclass(frozen=True)
class Area:
    """Class of areas of one cluster, relative to the patch p of a row.

    `phi` is the index of the Phi that the areas share, and `multiplicity` the number of these
    areas. Each pair in `cells` holds the index of an Ups and the number of patches with this Ups in
    *each* area of the class.
    """

    phi: int
    multiplicity: int
    cells: tuple[tuple[int, int], ...]


@dataclass(frozen=True, eq=False)
class RowType:
    """Rows of Q that stay equal up to permutations of patches and features.

    `patches` lists, in ascending order, the patches p whose rows have this type. `ups_names` and
    `phi_names` are the names of the Ups and Phi classes; the first Ups class, ``"self"``, is p
    alone. `ups_sizes` holds the number of patches in each Ups class, and `phi_sizes` the number of
    features in each Phi class. `clusters` holds the classes of areas of each cluster, as seen from
    ``patches[0]``; the first class is the own area of this patch, in which the cell (0, 1), Ups 0,
    is the patch itself. Other patches of the type can see the clusters in another order.
    """

    patches: IntArray
    ups_names: tuple[str, ...]
    phi_names: tuple[str, ...]
    ups_sizes: IntArray
    phi_sizes: IntArray
    clusters: tuple[tuple[Area, ...], ...]
    refined: Refinement = field(repr=False)
    _of_colour: IntArray = field(repr=False)

    @property
    def size(self) -> int:
        """Number of scalars of the row type."""
        return len(self.ups_names) + len(self.phi_names)

    @cached_property
    def ups_of(self) -> NDArray[np.int32]:
        """Ups class of every patch q, for every patch p of the row type, shape (patches, P)."""
        return self.classes_for(self.patches, features=False)

    @cached_property
    def phi_of(self) -> NDArray[np.int32]:
        """Phi class of every feature, for every patch p of the type, shape (patches, features)."""
        return self.classes_for(self.patches, features=True)

    def classes_for(self, patches: IntArray, features: bool) -> NDArray[np.int32]:
        """Phi class of every feature, or Ups class of every patch, in the rows of given patches."""
        structure = self.refined.structure
        P = structure.rows.size
        vertices = slice(P, structure.columns.size) if features else slice(P)
        rows = [self.refined.colours(p)[vertices] for p in patches.tolist()]
        return self._of_colour.astype(np.int32)[np.stack(rows)]


def one_cluster(P: int, C_global: int, C_local: int) -> IntArray:
    """Areas of one cluster, shape (1, P): a global area, then local areas of `C_local` patches.

    Raises ValueError if P minus the size `C_global` of the global area is not a multiple of
    `C_local`.
    """
    if min(P, C_global, C_local) < 1 or C_global > P or (P - C_global) % C_local:
        raise ValueError(
            f"C_global={C_global} and areas of C_local={C_local} patches do not partition P={P}"
        )
    runs = 1 + np.arange(P - C_global) // C_local
    return np.concatenate([np.zeros(C_global, np.int64), runs])[None, :]


def two_cluster_grid(b11: int, b10: int, C_local: int, T: int) -> IntArray:
    """Areas of two crossing clusters, shape (2, b11 + 2 b10 + T C_local^2).

    The first `b11` patches are global in both clusters. The next `b10` patches are global in
    cluster 1, and in local areas of `C_local` patches in cluster 2. The `b10` patches after these
    are global in cluster 2 and local in cluster 1. The last patches form `T` square grids; each row
    of a grid is an area of cluster 1, and each column an area of cluster 2. Raises ValueError if no
    area is global, or if `C_local` does not divide b10.
    """
    if min(b11, b10, T) < 0 or C_local < 1 or b11 + b10 < 1 or b10 % C_local:
        raise ValueError(
            f"b11={b11}, b10={b10}, C_local={C_local}, T={T}; required: C_local divides b10, no "
            "number is negative, and some patch is global"
        )
    none, runs = np.zeros(b10, np.int64), 1 + np.arange(b10) // C_local
    grid, row, column = np.indices((T, C_local, C_local)).reshape(3, -1)
    lines = 1 + b10 // C_local + grid * C_local
    both = np.zeros(b11, np.int64)
    first = np.concatenate([both, none, runs, lines + row])
    return np.stack([first, np.concatenate([both, runs, none, lines + column])])


def as_areas(areas: ArrayLike) -> IntArray:
    """Convert area ids to an array, and check that each cluster uses the ids 0, 1, ..., max.

    Raises ValueError unless `areas` is a K x P array, each row of which contains all ids from 0 to
    its maximum.
    """
    try:
        result = np.asarray(areas)
    except ValueError as error:
        raise ValueError("areas must be one list per cluster, all of length P") from error
    if result.ndim != 2 or result.size == 0 or result.dtype.kind not in "iu":
        raise ValueError("areas must be one list per cluster, with the area id of each patch")
    for k, cluster in enumerate(result):
        ids = np.unique(cluster)
        if not np.array_equal(ids, np.arange(ids.size)):
            raise ValueError(
                f"areas of cluster {k} have the ids {', '.join(map(str, ids[:8]))}; required: "
                "0 (global), 1, 2, ..., each at least once"
            )
    return result.astype(np.int64)


def feature_offsets(areas: IntArray) -> IntArray:
    """Index of the first feature of each cluster, then the number of features; shape (K + 1,)."""
    return np.concatenate([[0], np.cumsum(areas.max(axis=1) + 1)])


def structure(areas: IntArray) -> RelationalStructure:
    """Graph of patches, areas and clusters, for classes of pairs (patch, patch or area)."""
    K, P = areas.shape
    offsets = feature_offsets(areas)
    features = int(offsets[-1])
    membership = [np.column_stack([np.arange(P), P + offsets[k] + areas[k]]) for k in range(K)]
    owner = np.repeat(np.arange(K), np.diff(offsets))
    belonging = np.column_stack([P + np.arange(features), P + features + owner])
    return RelationalStructure(
        kinds=np.repeat([0, 1, 2], [P, features, K]),
        edges=np.concatenate([*membership, belonging]),
        rows=np.arange(P),
        columns=np.arange(P + features),
    )


def row_types(areas: ArrayLike) -> tuple[RowType, ...]:
    """Row types of Q, ordered by their first patch.

    The array `areas`, shape (K, P), holds the area id of each patch in each cluster; id 0 is the
    global area. Raises ValueError as `as_areas` does.
    """
    checked = as_areas(areas)
    refined = refine(structure(checked))
    order = np.argsort(refined.types, kind="stable")
    cuts = np.flatnonzero(np.diff(refined.types[order])) + 1
    return tuple(_row_type(checked, refined, patches) for patches in np.split(order, cuts))


def _row_type(areas: IntArray, refined: Refinement, patches: IntArray) -> RowType:
    K, P = areas.shape
    offsets, p = feature_offsets(areas), int(patches[0])
    colours = refined.colours(p).astype(np.int64)
    of_patches, of_features = colours[:P], colours[P : P + offsets[-1]]
    words = [_words(cluster, p) for cluster in areas]
    words_of_patches = [
        sorted((words[k][area] for k, area in enumerate(column)), key=WORDS.index)
        for column in areas.T.tolist()
    ]
    words_of_features = [
        ["target" if word == "own" and area else word]
        for cluster in words
        for area, word in enumerate(cluster)
    ]
    ups = _named_classes(of_patches, words_of_patches, p)
    phi = _named_classes(of_features, words_of_features, None)
    of_colour = np.zeros(int(refined.refined.max()) + 1, dtype=np.int64)
    for result in (ups, phi):
        of_colour[list(result)] = np.arange(len(result))
    clusters = [
        _cluster(of_colour, of_patches, areas[k], of_features[offsets[k] : offsets[k + 1]], p)
        for k in range(K)
    ]
    return RowType(
        patches=patches,
        ups_names=_distinct(list(ups.values())),
        phi_names=_distinct(list(phi.values())),
        ups_sizes=np.bincount(of_colour[of_patches], minlength=len(ups)),
        phi_sizes=np.bincount(of_colour[of_features], minlength=len(phi)),
        clusters=tuple(clusters),
        refined=refined,
        _of_colour=of_colour,
    )


def _words(cluster: IntArray, p: int) -> list[str]:
    """Word of `WORDS` for each area of a cluster, relative to patch p."""
    own = int(cluster[p])
    words = ["global"] + ["other" if own else "local"] * int(cluster.max())
    words[own] = "own"
    return words


def _named_classes(colours: IntArray, words: list[list[str]], p: int | None) -> dict[int, str]:
    """Mapping from each colour to the name of its class, in the order of the classes."""
    ranked = []
    for colour, first in zip(*np.unique(colours, return_index=True), strict=True):
        of_first = words[first]
        distinct = of_first if len(set(of_first)) > 1 else of_first[:1]
        name = SELF if first == p else "-".join(distinct)
        ranked.append((first != p, [WORDS.index(word) for word in of_first], first, colour, name))
    return {int(colour): name for *_, colour, name in sorted(ranked)}


def _distinct(names: list[str]) -> tuple[str, ...]:
    """Names in which repetitions have a number, such as other, other_2, other_3."""
    return tuple(
        name if (before := names[:i].count(name)) == 0 else f"{name}_{before + 1}"
        for i, name in enumerate(names)
    )


def _cluster(
    of_colour: IntArray, patches: IntArray, cluster: IntArray, areas: IntArray, p: int
) -> tuple[Area, ...]:
    """Classes of areas of one cluster, in order of their first areas, but p's own area first."""
    distinct, first, counts = np.unique(areas, return_index=True, return_counts=True)
    result = []
    for colour, a, count in zip(distinct.tolist(), first.tolist(), counts.tolist(), strict=True):
        ups, sizes = np.unique(of_colour[patches[cluster == a]], return_counts=True)
        cells = tuple(zip(ups.tolist(), sizes.tolist(), strict=True))
        result.append((a != cluster[p], a, Area(int(of_colour[colour]), count, cells)))
    return tuple(area for *_, area in sorted(result, key=lambda item: item[:2]))


@dataclass(frozen=True)
class Reference:
    """Patch and cluster that represent all local areas, or all global areas.

    `own` is the size of the patch's area in this cluster, and `globally` that of the global area.
    """

    patch: int
    cluster: int
    own: int
    globally: int


def reference(areas: ArrayLike, local: bool) -> Reference | None:
    """Select the patch and the cluster that represent all local areas, or all global areas.

    A patch that shares its area with another patch is preferred. Next, a patch that is local (or
    global) in more clusters is preferred, and then one in a larger area. Among equals, the first
    patch and cluster are selected. The choice does not depend on the ids of local areas. Returns
    None if no patch is in a local area.
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
    """Row type and cluster that represent all local areas, or all global areas.

    `row` is the index of the row type, and `cluster` the index of the cluster in its ``clusters``.
    `own` and `globally` are the indices of Phi of the own area and of Phi of the global area.
    """

    row: int
    cluster: int
    own: int
    globally: int


def view(areas: ArrayLike, types: tuple[RowType, ...], local: bool) -> View | None:
    """Row type and cluster of the patch that `reference` selects, or None if it selects none."""
    result = reference(areas, local)
    if result is None:
        return None
    checked, p, k = as_areas(areas), result.patch, result.cluster
    row = next(number for number, kind in enumerate(types) if p in kind.patches)
    first = int(feature_offsets(checked)[k])
    phi = types[row].classes_for(np.array([p]), features=True)[0]
    own = int(phi[first + checked[k, p]])
    own_of_clusters = [areas_of_cluster[0].phi for areas_of_cluster in types[row].clusters]
    return View(row, own_of_clusters.index(own), own, int(phi[first]))
