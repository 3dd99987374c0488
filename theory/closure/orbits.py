r"""Classes of entries from a stated symmetry: orbits under signed permutations of index sets.

If a data law can only be sampled, a finite draw has no exact symmetry, so the user states the
symmetry. ``axes`` gives the index set of each axis of each array, or None for an axis that no
generator permutes. Each generator maps index sets to permutations, or to pairs (permutation,
signs). The generator maps an entry :math:`A_{ij}` to :math:`\sigma_i \tau_j A_{\pi(i)\pi'(j)}`,
with signs :math:`\sigma` and :math:`\tau` and permutations :math:`\pi` and :math:`\pi'`. An entry
that is mapped to minus itself stays 0.
"""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from functools import reduce
from typing import Any

import numpy as np

from theory.closure.partition import FROZEN, EntryClasses
from theory.color_refinement import IntArray, by_appearance
from theory.law import FloatArray, ModelError

LONGEST = 60
"""Maximum number of characters of a permutation in a message; the rest is cut off."""


@dataclass(frozen=True)
class Generator:
    """Signed permutation: entry k maps to `images[k]`, times `signs[k]`; messages quote `text`."""

    images: IntArray
    signs: FloatArray
    text: str

    def moved(self, state: FloatArray) -> FloatArray:
        """Image of a state under the generator, shape (n,)."""
        out = np.empty_like(state)
        out[self.images] = self.signs * state
        return out


def generators_of(
    stated: Any, axes: Mapping[str, Any], shapes: Mapping[str, tuple[int, ...]]
) -> list[Generator]:
    """Generators of a model as signed permutations of its flat state.

    A stated generator is a mapping from index sets to permutations or pairs (permutation, signs).
    If there is only one index set, a generator can be the permutation alone. `axes` holds the index
    set of each axis of each array; `shapes` holds the shape of each array, in the order of the flat
    state. Raises ModelError if `axes` lacks an array, or if an entry of a generator is not a
    permutation of its index set.
    """
    for name, shape in shapes.items():
        if name not in axes:
            raise ModelError(f"axes does not name the array {name}; axes can have {name!r}: (...)")
        if len(_axes(axes[name])) != len(shape):
            raise ModelError(f"axes of {name} are {axes[name]!r}, but the array has {len(shape)}")
    sets = list(dict.fromkeys(a for name in shapes for a in _axes(axes[name]) if a is not None))
    items: Iterable[Any] = getattr(stated, "generators", stated)
    generators = []
    for k, item in enumerate(items):
        if not isinstance(item, Mapping):
            if len(sets) != 1:
                raise ModelError(
                    f"generator {k} of symmetry does not say which of {sets} it permutes"
                )
            item = {sets[0]: item}
        generators.append(_generator(k, item, axes, shapes))
    return generators


def _axes(entry: Any) -> tuple[Any, ...]:
    return tuple(entry) if isinstance(entry, (tuple, list)) else (entry,)


def _generator(
    number: int,
    item: Mapping[str, Any],
    axes: Mapping[str, Any],
    shapes: Mapping[str, tuple[int, ...]],
) -> Generator:
    index_sets = {a for name in shapes for a in _axes(axes[name])}
    for name in item:
        if name not in index_sets:
            raise ModelError(f"generator {number} of symmetry permutes {name!r}, not in axes")
    images: list[IntArray] = []
    signs: list[FloatArray] = []
    first = 0
    for array, shape in shapes.items():
        parts = [
            _parts(number, index_set, None if index_set is None else item.get(index_set), size)
            for index_set, size in zip(_axes(axes[array]), shape, strict=True)
        ]
        numbers = first + np.arange(int(np.prod(shape, dtype=int))).reshape(shape)
        images.append(numbers[np.ix_(*[permutation for permutation, _ in parts])].ravel())
        signs.append(reduce(np.multiply.outer, [sign for _, sign in parts], np.ones(())).ravel())
        first += numbers.size
    text = ", ".join(f"{name}: {_brief(entry)}" for name, entry in item.items())
    return Generator(np.concatenate(images), np.concatenate(signs), f"generator {number} ({text})")


def _brief(entry: Any) -> str:
    """Permutation in one line, shortened to `LONGEST` characters."""
    parts = entry if isinstance(entry, (tuple, list)) else (entry,)
    text = " ".join(str(np.asarray(part).tolist()) for part in parts) if parts else ""
    return text if len(text) <= LONGEST else f"{text[:LONGEST]} ..."


def _parts(number: int, index_set: Any, entry: Any, size: int) -> tuple[IntArray, FloatArray]:
    if entry is None:
        return np.arange(size), np.ones(size)
    signed = isinstance(entry, (tuple, list)) and len(entry) == 2 and np.ndim(entry[0]) == 1
    permutation = np.asarray(entry[0] if signed else entry)
    sign = np.asarray(entry[1] if signed else np.ones(size), dtype=np.float64)
    good = permutation.shape == (size,) and permutation.dtype.kind in "iu"
    if not good or not np.array_equal(np.sort(permutation), np.arange(size)):
        raise ModelError(
            f"generator {number} of symmetry is not a permutation of 0..{size - 1} on {index_set!r}"
        )
    if sign.shape != (size,) or not np.isin(sign, (-1.0, 1.0)).all():
        raise ModelError(f"generator {number} of symmetry has signs other than 1 and -1")
    return permutation.astype(np.int64), sign


def orbit_classes(start: FloatArray, generators: Sequence[Generator]) -> EntryClasses:
    """Orbits of the entries under the generators, or ModelError if one changes the start."""
    for generator in generators:
        moved = generator.moved(start)
        if not np.allclose(moved, start, rtol=1e-12, atol=0.0):
            entry = int(np.flatnonzero(moved != start)[0])
            raise ModelError(f"the start is not symmetric: {generator.text} moves entry {entry}")
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    # Vertex k of the graph is entry k, and vertex n + k is minus entry k.
    n = start.size
    images = np.array([g.images for g in generators], dtype=np.int64).reshape(-1, n)
    turned = n * (np.array([g.signs for g in generators]).reshape(-1, n) < 0)
    sources = np.broadcast_to(np.arange(n), images.shape)
    tails = np.concatenate([sources.ravel(), sources.ravel() + n])
    heads = np.concatenate([(images + turned).ravel(), (images + n - turned).ravel()])
    graph = coo_array((np.ones(tails.size, dtype=np.int8), (tails, heads)), shape=(2 * n, 2 * n))
    own, opposite = connected_components(graph, directed=False)[1].reshape(2, n)
    moving = np.flatnonzero(own != opposite)
    labels, signs = np.full(n, FROZEN, dtype=np.int64), np.zeros(n)
    labels[moving], first = by_appearance(np.minimum(own, opposite)[moving])
    signs[moving] = np.where(own[moving] == own[moving[first]][labels[moving]], 1.0, -1.0)
    return EntryClasses(labels, signs, start)
