r"""Classes of equal parameters: orbits of index pairs under a permutation group.

Let :math:`A` hold the attention logits of D patches, and let :math:`P_\pi` be the matrix of a
permutation :math:`\pi`. If the population risk has :math:`R(P_\pi A P_\pi^T) = R(A)` for every
:math:`\pi` in a group :math:`H`, the gradient is equivariant, and gradient descent from a symmetric
start keeps :math:`A_{ij} = A_{\pi(i)\pi(j)}` at every step. The entries of A that stay equal are
the orbits of :math:`H` on index pairs. An orbit is a connected component of the graph on the
:math:`D^2` pairs with an edge :math:`(i, j) - (\pi(i), \pi(j))` for each *generator* :math:`\pi` of
the group; the group itself is never enumerated.

Without a group, colour refinement of a relational structure (`theory.color_refinement`) finds
classes of index pairs; their entries stay equal if the gradient depends on stable colours only.
Every orbit of the structure's automorphisms lies in one class of the refinement.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import cached_property

import numpy as np

from theory.color_refinement import IntArray, RelationalStructure, by_appearance, refine
from theory.summary import summarized


@summarized
@dataclass(frozen=True)
class PermutationGroup:
    """Group of permutations of ``range(size)``, given by generators.

    Attributes
    ----------
    size : int
        Number of points (patches).
    generators : tuple of int arrays, shape (size,)
        ``generator[i]`` is the image of point ``i``.

    Raises
    ------
    ValueError
        If a generator is not a permutation of ``range(size)``.

    Examples
    --------
    >>> import numpy as np
    >>> from theory import PermutationGroup, classes
    >>> classes(PermutationGroup(3, (np.array([1, 0, 2]),))).count
    5
    """

    size: int
    generators: tuple[IntArray, ...]

    def __post_init__(self) -> None:
        points = np.arange(self.size)
        for generator in self.generators:
            if not np.array_equal(np.sort(generator), points):
                raise ValueError(f"a generator is not a permutation of 0..{self.size - 1}")


@summarized
@dataclass(frozen=True)
class Partition:
    """Partition of the patches into sets of any sizes, contiguous or not.

    Attributes
    ----------
    labels : int array, shape (D,)
        ``labels[i]`` is the set of patch ``i``; sets are numbered 0, 1, ... without a gap.

    Raises
    ------
    ValueError
        If the labels are not 0, 1, ..., L-1 with each at least once.

    Examples
    --------
    >>> from theory import Partition
    >>> Partition.contiguous((2, 3)).labels.tolist()
    [0, 0, 1, 1, 1]
    """

    labels: IntArray

    def __post_init__(self) -> None:
        labels = np.asarray(self.labels, dtype=np.int64)
        object.__setattr__(self, "labels", labels)
        if labels.ndim != 1 or labels.size == 0:
            raise ValueError("a partition is one label per patch")
        if not np.array_equal(np.unique(labels), np.arange(labels.max() + 1)):
            raise ValueError("labels of a partition are 0, 1, ..., L-1, each at least once")

    @classmethod
    def contiguous(cls, sizes: Sequence[int]) -> Partition:
        """Partition into consecutive runs of these sizes: ``(2, 3)`` is {0, 1}, {2, 3, 4}."""
        return cls(np.repeat(np.arange(len(sizes)), sizes))

    @classmethod
    def grid(cls, rows: int, columns: int, height: int, width: int) -> Partition:
        """Partition of a rows x columns grid into blocks of height x width, which tile the grid."""
        if rows % height or columns % width:
            raise ValueError(f"blocks of {height} x {width} do not tile a grid {rows} x {columns}")
        down, along = np.indices((rows, columns)).reshape(2, -1)
        return cls(down // height * (columns // width) + along // width)

    def shuffled(self, generator: np.random.Generator) -> Partition:
        """Partition into sets of the same sizes with random members."""
        return Partition(generator.permutation(self.labels))

    @property
    def size(self) -> int:
        """Number of patches D."""
        return int(self.labels.size)

    @cached_property
    def sets(self) -> tuple[IntArray, ...]:
        """Members of each set, ascending."""
        return tuple(np.flatnonzero(self.labels == k) for k in range(self.labels.max() + 1))

    def group(self) -> PermutationGroup:
        """Group of permutations that map sets onto sets: product of wreath products S_c wr S_m.

        For each size ``c`` that occurs ``m`` times, the generators are a transposition and a cycle
        inside the first set of that size, a swap of the first two sets of that size and a cycle
        through all of them. Conjugation by the cycle of sets gives permutations inside other sets.
        """
        by_size: dict[int, list[IntArray]] = {}
        for members in self.sets:
            by_size.setdefault(members.size, []).append(members)
        generators: list[IntArray] = []
        for alike in by_size.values():
            first = alike[0]
            inside = [moved for moved in (first[:2], first) if moved.size > 1]
            among = [sets for sets in (alike[:2], alike) if len(sets) > 1]
            generators += [self._moving([moved], [np.roll(moved, -1)]) for moved in inside]
            generators += [self._moving(sets, sets[1:] + sets[:1]) for sets in among]
        unique = {generator.tobytes(): generator for generator in generators}
        return PermutationGroup(self.size, tuple(unique.values()))

    def _moving(self, sources: list[IntArray], images: list[IntArray]) -> IntArray:
        permutation = np.arange(self.size)
        permutation[np.concatenate(sources)] = np.concatenate(images)
        return permutation


@summarized
@dataclass(frozen=True)
class Classes:
    """Classes of index pairs that stay equal under training.

    The array `labels` holds the class of each pair, numbered by first appearance row by row. The
    shape of `labels` is (D, D), or (rows, columns) of a relational structure.
    """

    labels: IntArray

    @property
    def count(self) -> int:
        """Number of classes."""
        return int(self.labels.max()) + 1

    @cached_property
    def sizes(self) -> IntArray:
        """Number of pairs in each class, shape (count,)."""
        return np.bincount(self.labels.ravel(), minlength=self.count)

    @cached_property
    def representatives(self) -> list[tuple[int, int]]:
        """First pair (i, j) of each class."""
        first = np.unique(self.labels.ravel(), return_index=True)[1]
        return [divmod(int(k), self.labels.shape[1]) for k in first]


def classes(structure: object) -> Classes:
    """Classes of index pairs whose entries stay equal by the symmetry of a structure.

    Parameters
    ----------
    structure : PermutationGroup, Partition or RelationalStructure
        A group or partition gives orbits; a relational structure is refined.

    Returns
    -------
    Classes
        Orbits of the ordered pairs (i, j), the diagonal included; for a relational structure, the
        type of row i and the stable colour of column j with row i individualised.

    Raises
    ------
    TypeError
        For an object of another type.

    Notes
    -----
    Lemma 4.1 of Jelassi et al. (2022) is the case of L sets of equal size C: three classes,
    (i, i), same set, different sets, of sizes D, D(C-1), D(D-C).

    Examples
    --------
    >>> from theory import Partition, classes
    >>> classes(Partition.contiguous((2, 2))).sizes.tolist()
    [4, 4, 8]
    """
    if isinstance(structure, RelationalStructure):
        refined = refine(structure)
        count = int(refined.refined.max(initial=0)) + 1
        rows = [
            kind * count + refined.colours(row)[structure.columns]
            for row, kind in enumerate(refined.types.tolist())
        ]
        labels = np.stack(rows)
    elif isinstance(structure, (Partition, PermutationGroup)):
        group = structure.group() if isinstance(structure, Partition) else structure
        labels = _orbits(group)
    else:
        raise TypeError(f"classes: no symmetry of a {type(structure).__name__} is known")
    return Classes(by_appearance(labels.ravel())[0].reshape(labels.shape))


def _orbits(group: PermutationGroup) -> IntArray:
    """Orbit of every pair under a group, as components of the graph of the generators."""
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    label = np.arange(group.size**2).reshape(group.size, group.size)
    for generator in group.generators:
        ends = label.ravel(), label[np.ix_(generator, generator)].ravel()
        shape = (int(label.max()) + 1,) * 2
        graph = coo_array((np.ones(label.size, dtype=np.int8), ends), shape=shape)
        label = connected_components(graph, directed=False)[1].astype(np.int64)[label]
    return label
