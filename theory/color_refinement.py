"""Colour refinement (1-WL) of a relational structure, with one vertex individualised at a time.

A `RelationalStructure` has vertices with kinds, and undirected edges. A colouring is *stable* if
vertices of one colour have equally many neighbours of every colour. Refinement with one vertex as
the *root* starts from the kinds as colours, with the root in a colour of its own. Refinement ends
in the coarsest stable colouring that separates the root from all other vertices. Colours are shared
by all roots: they are the colours of the coarsest stable colouring of the disjoint union of all
rooted copies. Roots whose colourings use every colour equally often have the same *type*.

- Vertices with the same kind and the same neighbours are *twins*. Exchanging twins is an
  automorphism, so one root of each class of twins is refined; the exchange gives the colouring of
  every other twin. Equal colours without a root are not enough: all vertices of the disjoint union
  of a triangle and a square have one colour, but their rooted colourings differ.
- All roots are refined at once on 64-bit hashes; a sum of hashes stands for a multiset of
  neighbours. Equal true colours have equal hashes, so a collision can only coarsen the result.
- The stability of the result is then checked in integers. Every stable colouring is at least as
  fine as the coarsest one, so a result that passes is the coarsest.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

IntArray = NDArray[np.int64]
HashArray = NDArray[np.uint64]

ATTEMPTS = 8
"""Number of hash functions tried before an ArithmeticError."""
BLOCK = 1 << 17
"""Number of colours processed at a time, small enough for a CPU cache."""


def by_appearance(labels: NDArray[Any]) -> tuple[IntArray, IntArray]:
    """Renumber labels as 0, 1, ... in the order of first appearance.

    Returns the new numbers, shape (n,), and the index of each number's first appearance.

    Examples
    --------
    >>> [part.tolist() for part in by_appearance(np.array([7, 3, 7]))]
    [[0, 1, 0], [0, 1]]
    """
    first, inverse = np.unique(labels, return_index=True, return_inverse=True)[1:]
    rank = np.empty_like(first)
    rank[np.argsort(first)] = np.arange(first.size)
    return rank[inverse], np.sort(first)


class RelationalStructure:
    """Vertices with kinds, and undirected edges.

    The array `kinds`, shape (n,), holds the kind of each vertex, at least 0. The array `edges`,
    shape (m, 2), holds the two different ends of each edge, each pair once. `rows` lists the
    vertices to individualise, and `columns` the vertices whose colours are needed; both default to
    all.
    """

    def __init__(
        self,
        kinds: ArrayLike,
        edges: ArrayLike,
        rows: IntArray | None = None,
        columns: IntArray | None = None,
    ) -> None:
        self.kinds = np.asarray(kinds, dtype=np.int64)
        self.edges = np.asarray(edges, dtype=np.int64).reshape(-1, 2)
        self.rows = np.arange(self.size) if rows is None else rows
        self.columns = np.arange(self.size) if columns is None else columns

    @property
    def size(self) -> int:
        """Number of vertices n."""
        return int(self.kinds.size)

    def adjacency(self) -> Any:
        """Sparse n x n matrix of ones for the edges."""
        from scipy.sparse import csr_array

        both = np.concatenate([self.edges, self.edges[:, ::-1]]).T
        ones = np.ones(both.shape[1], dtype=np.uint64)
        return csr_array((ones, tuple(both)), shape=(self.size, self.size))

    def twins(self) -> IntArray:
        """Index of the first row whose vertex is a twin of each row's vertex, shape (rows,)."""
        around: list[list[int]] = [[] for _ in range(self.size)]
        for a, b in self.edges.tolist():
            around[a].append(b)
            around[b].append(a)
        first: dict[tuple[int, tuple[int, ...]], int] = {}
        first_of = [
            first.setdefault((int(self.kinds[row]), tuple(sorted(around[row]))), position)
            for position, row in enumerate(self.rows.tolist())
        ]
        return np.array(first_of, dtype=np.int64)


@dataclass(frozen=True, eq=False)
class Refinement:
    """Stable colourings of a structure, one for each root.

    Each line of the array `refined`, shape (lines, n), is the colouring of one root; equal numbers
    are equal colours in all lines. `roots`, shape (lines,), holds these roots. `twin_of`, shape
    (rows,), holds the line whose root is a twin of each row's vertex.
    """

    structure: RelationalStructure
    twin_of: IntArray
    roots: IntArray
    refined: NDArray[np.int32]

    def colours(self, row: int) -> NDArray[np.int32]:
        """Colours of all vertices in the colouring whose root is a row's vertex, shape (n,)."""
        line = self.twin_of[row]
        colours = self.refined[line].copy()
        pair = [self.structure.rows[row], self.roots[line]]
        colours[pair] = colours[pair[::-1]]
        return colours

    @cached_property
    def types(self) -> IntArray:
        """Type of each row, numbered by first appearance, shape (rows,)."""
        distinct: dict[bytes, int] = {}
        lines = [
            distinct.setdefault(np.sort(line).tobytes(), len(distinct)) for line in self.refined
        ]
        return np.array(lines, dtype=np.int64)[self.twin_of]


def refine(structure: RelationalStructure) -> Refinement:
    """Stable colourings with each vertex of `structure.rows` as the root, in a common numbering.

    Raises ArithmeticError if hashes collide in all `ATTEMPTS`, which is improbable by chance.
    """
    first, twin_of = np.unique(structure.twins(), return_inverse=True)
    roots = structure.rows[first]
    adjacency = structure.adjacency()
    for salt in range(ATTEMPTS):
        refined = _refined(structure, adjacency, roots, salt)
        if refined is not None and is_stable(structure, roots, refined):
            return Refinement(structure, twin_of, roots, refined)
    raise ArithmeticError(f"hashes of colours collided {ATTEMPTS} times")


def _mix(values: HashArray, salt: int) -> HashArray:
    """Scramble 64 bits (finaliser of splitmix64), with a constant that depends on the salt."""
    mixed = values + _odd(salt)
    for shift, factor in ((30, 0xBF58476D1CE4E5B9), (27, 0x94D049BB133111EB)):
        mixed ^= mixed >> np.uint64(shift)
        mixed *= np.uint64(factor)
    mixed ^= mixed >> np.uint64(31)
    return mixed


def _odd(salt: int) -> np.uint64:
    return np.uint64((0x9E3779B97F4A7C15 * (2 * salt + 1)) % 2**64)


def _blocks(structure: RelationalStructure, roots: IntArray) -> list[slice]:
    """Slices of the roots, each for at most `BLOCK` colours or a single root."""
    width = max(1, BLOCK // max(1, structure.size))
    return [slice(begin, begin + width) for begin in range(0, roots.size, width)]


def _kinds(structure: RelationalStructure, roots: IntArray) -> HashArray:
    """Kind of each vertex, with a separate kind for the root of each line, shape (n, lines)."""
    kinds = np.tile(structure.kinds.astype(np.uint64)[:, None], (1, roots.size))
    kinds[roots, np.arange(roots.size)] += np.uint64(structure.kinds.max(initial=0) + 1)
    return kinds


def _refined(
    structure: RelationalStructure, adjacency: Any, roots: IntArray, salt: int
) -> NDArray[np.int32] | None:
    """Colours by hashing, shape (lines, n), or None if a collision of hashes is detected.

    New colours are collected from one root for each sum of hashes: equal sums mean equal colours.
    """
    blocks = _blocks(structure, roots)
    states = [_mix(_kinds(structure, roots[block]), salt) for block in blocks]
    own, factor = _mix(np.arange(2, dtype=np.uint64), salt) | np.uint64(1)
    counted = -1
    while True:
        keys = np.concatenate([state.sum(axis=0) for state in states])
        lines = np.sort(np.unique(keys, return_index=True)[1])
        which, column = np.divmod(lines, states[0].shape[1])
        pairs = zip(which.tolist(), column.tolist(), strict=True)
        hashes = np.concatenate([states[b][:, c] for b, c in pairs])
        distinct, first = np.unique(hashes, return_index=True)
        if distinct.size + lines.size == counted:
            break
        counted = distinct.size + lines.size
        for b, state in enumerate(states):
            states[b] = _mix(state * own + (adjacency @ state) * factor, salt)
    number_of = np.empty(distinct.size, dtype=np.int32)
    number_of[np.argsort(first)] = np.arange(distinct.size)
    refined = np.empty((roots.size, structure.size), dtype=np.int32)
    for block, state in zip(blocks, states, strict=True):
        position = np.minimum(np.searchsorted(distinct, state), distinct.size - 1)
        if (distinct[position] != state).any():
            return None
        refined[block] = number_of[position].T
    return refined


def is_stable(structure: RelationalStructure, roots: IntArray, refined: NDArray[np.int32]) -> bool:
    """Whether colourings are stable, separate the root from all others, and respect the kinds."""
    count = int(refined.max()) + 1
    kind_of, lists_of = np.full(count, -1, dtype=np.int64), np.empty((count, 2), dtype=np.int64)
    around = _Neighbours(structure, count)
    introducing: list[int] = []
    for line, colours in enumerate(refined):
        new = np.flatnonzero(kind_of[colours] < 0)
        if new.size:
            kind_of[colours[new]] = _kinds(structure, roots[line : line + 1])[new, 0]
            lists_of[colours[new]] = around.starts(new, len(introducing))
            introducing.append(line)
    distinct = np.concatenate([around.colours(refined[line]) for line in introducing])
    for line, colours in enumerate(refined):
        kinds = _kinds(structure, roots[line : line + 1])[:, 0]
        begins, lengths = lists_of[colours].T
        if (kind_of[colours] != kinds).any() or (lengths != around.degrees).any():
            return False
        if (distinct[around.along(begins)] != around.colours(colours)).any():
            return False
    return True


class _Neighbours:
    """Sorted colours of the neighbours of each vertex, concatenated over vertices."""

    def __init__(self, structure: RelationalStructure, count: int) -> None:
        both = np.concatenate([structure.edges, structure.edges[:, ::-1]])
        order = np.argsort(both[:, 0], kind="stable")
        self._vertex, self._other = both[order].T
        self._bound = count
        self.degrees = np.bincount(self._vertex, minlength=structure.size)
        self._begins = np.cumsum(self.degrees) - self.degrees

    def colours(self, colours: NDArray[np.int32]) -> IntArray:
        """Sorted colours of the neighbours of each vertex, concatenated, shape (2 * edges,)."""
        entries = self._vertex * self._bound + colours[self._other]
        entries.sort()
        return entries - self._vertex * self._bound

    def starts(self, vertices: IntArray, copy: int) -> IntArray:
        """Start and length of vertices' neighbours in list number `copy` of concatenated lists."""
        begins = self._begins[vertices] + copy * self._vertex.size
        return np.column_stack([begins, self.degrees[vertices]])

    def along(self, begins: IntArray) -> IntArray:
        """Indices of all neighbours, if those of vertex k begin at `begins[k]`."""
        return np.repeat(begins - self._begins, self.degrees) + np.arange(self._vertex.size)
