r"""Classes of equal entries of Q: rows of one type, positions and features in a row.

The only entries of Q that gradient descent moves are, for each patch p, its correlations with
positions :math:`\Upsilon_{p\to q} = e_p^\top Q e_q` and with features
:math:`\Phi_{p\to v} = e_p^\top Q v`, and rows of different p do not interact (`model`). Draw the
patches, the areas of all clusters and the clusters as vertices, membership as edges, and refine
with p individualised (`theory.color_refinement`). Then Ups_{p.} is constant on the colours of
patches, Phi_{p.} on the colours of areas, and patches of one *type* have equal rows.

Proof. Masks are exchangeable, so the increment of Ups_pq depends on q only through the areas that
hold q and what those areas and their clusters consist of: how many patches of each value of Ups, in
areas of which value of Phi. A stable colouring fixes all of that for every q of a colour. So equal
values stay equal, and they start equal. No automorphism is needed; orbits refine these classes.

The name of a class says where it lies as seen from p, one word for each cluster where they differ:
*own* area, the *global* one, or an *other* local one (*local*, where p itself is global). The local
area that holds p is the *target* among the features.

`reference` and `view` say which patch and which cluster stand for local, or for global, areas in
events and parameters.
"""

from __future__ import annotations

from dataclasses import dataclass, field
from functools import cached_property

import numpy as np
from numpy.typing import ArrayLike, NDArray

from theory.color_refinement import IntArray, Refinement, RelationalStructure, refine

SELF = "self"
WORDS = ("own", "target", "global", "other", "local")
"""Words for an area as seen from a patch, in the order in which classes are listed."""


@dataclass(frozen=True)
class Area:
    """A class of areas of one cluster, relative to the row's patch p.

    `phi`: index of its Phi in the row's state, 0..n_phi-1; `multiplicity`: how many areas of this
    cluster are alike (nu); `cells`: index of an Ups, and the number of patches of that class in
    *each* of these areas.
    """

    phi: int
    multiplicity: int
    cells: tuple[tuple[int, int], ...]


@dataclass(frozen=True, eq=False)
class RowType:
    """Rows of Q that stay equal up to the names of patches and features.

    `patches`: the patches p whose rows are of this type, ascending; `ups_names`, `phi_names`: names
    of the classes; ``"self"`` is the Ups at index 0; `ups_sizes`, `phi_sizes`, shape (n_ups,) and
    (n_phi,): number of patches in each Ups class, self having 1, and of features in each Phi class;
    `clusters`: for each cluster the classes of its areas, the one that holds p first. The patch p
    is the cell (0, 1) there, and always masked. As seen from ``patches[0]``: for another patch of
    the type the clusters can come in another order.
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
        """Number of scalars of the row."""
        return len(self.ups_names) + len(self.phi_names)

    @cached_property
    def ups_of(self) -> NDArray[np.int32]:
        """Ups class of every patch q, for every p of this type: shape (len(patches), P)."""
        return self.classes_for(self.patches, features=False)

    @cached_property
    def phi_of(self) -> NDArray[np.int32]:
        """Phi class of every feature, for every p of this type: shape (len(patches), features).

        Features are ordered cluster by cluster, area by area.
        """
        return self.classes_for(self.patches, features=True)

    def classes_for(self, patches: IntArray, features: bool) -> NDArray[np.int32]:
        """Phi class of every feature, or Ups class of every patch, for some patches of the type."""
        structure = self.refined.structure
        P = structure.rows.size
        vertices = slice(P, structure.columns.size) if features else slice(P)
        rows = [self.refined.colours(p)[vertices] for p in patches.tolist()]
        return self._of_colour.astype(np.int32)[np.stack(rows)]


def one_cluster(P: int, C_global: int, C_local: int) -> IntArray:
    """Areas of one cluster: the global one first, then runs of ``C_local`` patches; shape (1, P).

    `P`: patches; `C_global`, `C_local`: patches of the global, and of each local area. Raises
    ValueError if the sizes do not add up to P.
    """
    if min(P, C_global, C_local) < 1 or C_global > P or (P - C_global) % C_local:
        raise ValueError(
            f"C_global={C_global} and areas of C_local={C_local} patches do not partition P={P}"
        )
    runs = 1 + np.arange(P - C_global) // C_local
    return np.concatenate([np.zeros(C_global, np.int64), runs])[None, :]


def two_cluster_grid(b11: int, b10: int, C_local: int, T: int) -> IntArray:
    """Areas of two clusters that cross, shape (2, b11 + 2 b10 + T C_local^2).

    In this order: B11, global in both; B10, global in cluster 1 and in runs of ``C_local`` in
    cluster 2; B01, mirrored; B00, T grids whose rows are areas of cluster 1 and whose columns are
    areas of cluster 2.

    `b11`, `b10`: patches global in both clusters, and in one alone; `C_local`: patches of a local
    area; `T`: number of grids. Raises ValueError if there is no global area, or ``C_local`` does
    not divide b10.
    """
    if min(b11, b10, T) < 0 or C_local < 1 or b11 + b10 < 1 or b10 % C_local:
        raise ValueError(
            f"b11={b11}, b10={b10}, C_local={C_local}, T={T}: C_local divides b10, nothing is "
            "negative, and some patch is global"
        )
    none, runs = np.zeros(b10, np.int64), 1 + np.arange(b10) // C_local
    grid, row, column = np.indices((T, C_local, C_local)).reshape(3, -1)
    lines = 1 + b10 // C_local + grid * C_local
    both = np.zeros(b11, np.int64)
    first = np.concatenate([both, none, runs, lines + row])
    return np.stack([first, np.concatenate([both, runs, none, lines + column])])


def as_areas(areas: ArrayLike) -> IntArray:
    """Check that areas partition the patches in every cluster.

    Raises ValueError if they are not a K x P array of area ids 0, 1, ..., each at least once in its
    cluster.
    """
    try:
        result = np.asarray(areas)
    except ValueError as error:
        raise ValueError("areas are one list per cluster, all of the same length P") from error
    if result.ndim != 2 or result.size == 0 or result.dtype.kind not in "iu":
        raise ValueError("areas are one list per cluster, of the area id of each of the P patches")
    for k, cluster in enumerate(result):
        ids = np.unique(cluster)
        if not np.array_equal(ids, np.arange(ids.size)):
            raise ValueError(
                f"areas of cluster {k} have the ids {', '.join(map(str, ids[:8]))}; they are "
                "0 (global), 1, 2, ..., each at least once"
            )
    return result.astype(np.int64)


def feature_offsets(areas: IntArray) -> IntArray:
    """Index of the first feature of every cluster, and at the end their number; shape (K + 1,)."""
    return np.concatenate([[0], np.cumsum(areas.max(axis=1) + 1)])


def structure(areas: IntArray) -> RelationalStructure:
    """Patches, areas and clusters as vertices; rows are patches, columns patches and areas."""
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
    """The types of rows, in order of their first patch.

    `areas`, shape (K, P): area id of each patch in each cluster; id 0 is global. Raises ValueError
    if the areas do not partition the patches.
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
    """Word for each area of a cluster as seen from p."""
    own = int(cluster[p])
    words = ["global"] + ["other" if own else "local"] * int(cluster.max())
    words[own] = "own"
    return words


def _named_classes(colours: IntArray, words: list[list[str]], p: int | None) -> dict[int, str]:
    """Colour -> name, in the order in which the classes are listed; p itself is `SELF`, first."""
    ranked = []
    for colour, first in zip(*np.unique(colours, return_index=True), strict=True):
        of_first = words[first]
        distinct = of_first if len(set(of_first)) > 1 else of_first[:1]
        name = SELF if first == p else "-".join(distinct)
        ranked.append((first != p, [WORDS.index(word) for word in of_first], first, colour, name))
    return {int(colour): name for *_, colour, name in sorted(ranked)}


def _distinct(names: list[str]) -> tuple[str, ...]:
    """Number names that appear more than once: other, other_2, ..."""
    return tuple(
        name if (before := names[:i].count(name)) == 0 else f"{name}_{before + 1}"
        for i, name in enumerate(names)
    )


def _cluster(
    of_colour: IntArray, patches: IntArray, cluster: IntArray, areas: IntArray, p: int
) -> tuple[Area, ...]:
    """Classes of the areas of one cluster, p's own first, the others in order of appearance."""
    distinct, first, counts = np.unique(areas, return_index=True, return_counts=True)
    result = []
    for colour, a, count in zip(distinct.tolist(), first.tolist(), counts.tolist(), strict=True):
        ups, sizes = np.unique(of_colour[patches[cluster == a]], return_counts=True)
        cells = tuple(zip(ups.tolist(), sizes.tolist(), strict=True))
        result.append((a != cluster[p], a, Area(int(of_colour[colour]), count, cells)))
    return tuple(area for *_, area in sorted(result, key=lambda item: item[:2]))


@dataclass(frozen=True)
class Reference:
    """The patch and the cluster that stand for local, or for global, areas.

    `own`, `globally`: patches of the area that holds the patch, and of the global area of the
    cluster.
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

    `areas`, shape (K, P). Returns Reference or None: None where no patch is in a local area; every
    image has patches in a global one.
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

    `row`, `cluster`: which row type, and which of its ``clusters``; `own`, `globally`: index of the
    Phi of the own, and of the global area; equal where that is the own one.
    """

    row: int
    cluster: int
    own: int
    globally: int


def view(areas: ArrayLike, types: tuple[RowType, ...], local: bool) -> View | None:
    """The row of the `reference`, which stands for local, or for global, areas in events.

    `areas`, `local`: as for `reference`. Returns View or None: None where there is no such patch.
    """
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
