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
"""Words for the place of an area as seen from a patch, in the order in which classes are listed."""


@dataclass(frozen=True)
class Area:
    """A class of areas of one cluster, as seen from the row's patch p.

    Attributes
    ----------
    phi : int
        Index of its Phi in the row's state, 0..n_phi-1.
    multiplicity : int
        How many areas of this cluster are alike (nu).
    cells : tuple of (int, int)
        Index of an Ups, and the number of patches of that class in *each* of these areas.
    """

    phi: int
    multiplicity: int
    cells: tuple[tuple[int, int], ...]


@dataclass(frozen=True, eq=False)
class RowType:
    """Rows of Q that stay equal up to the names of patches and features.

    Attributes
    ----------
    patches : int array
        The patches p whose rows are of this type, ascending.
    ups_names, phi_names : tuple of str
        Names of the classes; ``"self"`` is the Ups at index 0.
    ups_sizes : int array, shape (n_ups,)
        Number of patches in each Ups class; self has 1.
    phi_sizes : int array, shape (n_phi,)
        Number of features in each Phi class.
    clusters : tuple of tuples of Area
        For each cluster the classes of its areas, the one that holds p first. The patch p is the
        cell (0, 1) there, and always masked. As seen from ``patches[0]``: for another patch of the
        type the clusters can come in another order.
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

    @property
    def own_phi(self) -> tuple[int, ...]:
        """For each cluster, the index of the Phi of p's own area."""
        return tuple(areas[0].phi for areas in self.clusters)

    @cached_property
    def ups_of(self) -> NDArray[np.int32]:
        """Ups class of every patch q, for every p of this type: shape (len(patches), P)."""
        return self._classes(slice(0, self._patch_count), self.patches.tolist())

    @cached_property
    def phi_of(self) -> NDArray[np.int32]:
        """Phi class of every feature, for every p of this type: shape (len(patches), features).

        Features are ordered cluster by cluster, area by area.
        """
        return self._classes(self._features, self.patches.tolist())

    def features_seen(self, line: int) -> NDArray[np.int32]:
        """Phi class of every feature for one patch of the type, without those for all of them."""
        return self._classes(self._features, [int(self.patches[line])])[0]

    @property
    def _features(self) -> slice:
        return slice(self._patch_count, int((self.refined.structure.kinds < 2).sum()))

    @property
    def _patch_count(self) -> int:
        return int((self.refined.structure.kinds == 0).sum())

    def _classes(self, vertices: slice, patches: list[int]) -> NDArray[np.int32]:
        rows = [self.refined.colours(p)[vertices] for p in patches]
        return self._of_colour.astype(np.int32)[np.stack(rows)]


def one_cluster(P: int, C_global: int, C_local: int) -> IntArray:
    """Areas of one cluster: the global one first, then runs of ``C_local`` patches; shape (1, P).

    Parameters
    ----------
    P : int
        Patches.
    C_global, C_local : int
        Patches of the global, and of each local area.

    Raises
    ------
    ValueError
        If the sizes do not add up to P.
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

    Parameters
    ----------
    b11, b10 : int
        Patches global in both clusters, and in one alone.
    C_local : int
        Patches of a local area.
    T : int
        Number of grids.

    Raises
    ------
    ValueError
        If there is no global area, or ``C_local`` does not divide b10.
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

    Raises
    ------
    ValueError
        If they are not a K x P array of area ids 0, 1, ..., each at least once in its cluster.
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
    """Patches, areas and clusters as vertices; rows are patches, columns patches and areas.

    Parameters
    ----------
    areas : int array, shape (K, P)
    """
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

    Parameters
    ----------
    areas : int array, shape (K, P)
        Area id of each patch in each cluster; id 0 is global.

    Returns
    -------
    tuple of RowType

    Raises
    ------
    ValueError
        If the areas do not partition the patches.
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
    words = [_words(areas[k], p) for k in range(K)]
    patch_words = [[words[k][a] for k, a in enumerate(places)] for places in areas.T.tolist()]
    ups = _classes(
        colours[:P], [sorted(words_of_patch, key=WORDS.index) for words_of_patch in patch_words], p
    )
    named = [
        [_feature_word(words[k], a, p, areas[k])] for k in range(K) for a in range(len(words[k]))
    ]
    phi = _classes(colours[P : P + offsets[-1]], named, None)
    of_colour = np.zeros(int(refined.refined.max()) + 1, dtype=np.int64)
    for result in (ups, phi):
        of_colour[list(result)] = np.arange(len(result))
    clusters = []
    for k in range(K):
        members = colours[P + offsets[k] : P + offsets[k + 1]]
        clusters.append(_cluster(of_colour, colours[:P], areas[k], members, p))
    return RowType(
        patches=patches,
        ups_names=_distinct(list(ups.values())),
        phi_names=_distinct(list(phi.values())),
        ups_sizes=np.bincount(of_colour[colours[:P]], minlength=len(ups)),
        phi_sizes=np.bincount(of_colour[colours[P : P + offsets[-1]]], minlength=len(phi)),
        clusters=tuple(clusters),
        refined=refined,
        _of_colour=of_colour,
    )


def _words(cluster: IntArray, p: int) -> list[str]:
    """Place of each area of a cluster as seen from p."""
    own = int(cluster[p])
    rest = "other" if own else "local"
    words = ["global"] + [rest] * int(cluster.max())
    words[own] = "own"
    return words


def _feature_word(words: list[str], area: int, p: int, cluster: IntArray) -> str:
    return "target" if area == cluster[p] and area else words[area]


def _classes(colours: IntArray, places: list[list[str]], p: int | None) -> dict[int, str]:
    """Colour -> name, in the order in which the classes are listed."""
    distinct, first = np.unique(colours, return_index=True)
    result = {}
    for colour, at in zip(distinct.tolist(), first.tolist(), strict=True):
        words_of_patch = places[at]
        name = words_of_patch[0] if len(set(words_of_patch)) == 1 else "-".join(words_of_patch)
        rank = [WORDS.index(word) for word in words_of_patch]
        result[colour] = (at != p, rank, at, SELF if at == p else name)
    return {colour: key[3] for colour, key in sorted(result.items(), key=lambda item: item[1])}


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

    Parameters
    ----------
    areas : int array, shape (K, P)
    types : tuple of RowType
    local : bool
        Whether local areas, or global ones, are meant.

    Returns
    -------
    View or None
        None where there is no such patch.
    """
    result = reference(areas, local)
    if result is None:
        return None
    checked, p, k = as_areas(areas), result.patch, result.cluster
    row = next(number for number, kind in enumerate(types) if p in kind.patches)
    line = int(np.searchsorted(types[row].patches, p))
    first = int(feature_offsets(checked)[k])
    words_of_patch = types[row].features_seen(line)
    own = int(words_of_patch[first + checked[k, p]])
    return View(row, types[row].own_phi.index(own), own, int(words_of_patch[first]))
