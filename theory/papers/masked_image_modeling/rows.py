r"""Maps between the full matrix Q and the reduced state: row types and their classes of entries.

The trained entries of Q are :math:`\Upsilon_{p \to q} = e_p^\top Q e_q` and :math:`\Phi_{p \to v} =
e_p^\top Q v`. A scalar of the reduced problem is named ``<row>_Ups_<class>`` or
``<row>_Phi_<class>``, where ``<row>`` is the name of a row type. With one cluster, row types are
named ``local`` and ``global``. With several clusters, a row type is named ``B`` and a digit for
each cluster: 1 if its patches are global in it, else 0. A type with patches global only in cluster
1 and patches global only in cluster 2 is ``B10``. A type whose patches are global in different
numbers of clusters is named ``patch``. Equal names get numbers, as in ``local_1``.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from fractions import Fraction
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from theory.law import FloatArray
from theory.notation import Notation, NotationEntry
from theory.papers.masked_image_modeling.model import (
    fully_masked,
    latent_moment,
    unavoidable_error,
)
from theory.papers.masked_image_modeling.notation import NOTATION, entries_of_row, row_in_latex
from theory.papers.masked_image_modeling.symmetry import RowType, View, feature_offsets, view

IntArray = NDArray[np.int64]

REPORTED = (
    ("excess", r"L - L^\star", "loss above the floor, of all patches"),
    ("spread", r"\mathrm{spread}", "largest spread of entries that one scalar stands for"),
    ("dead", r"|v^\top Q|", "largest entry of Q from a feature, which never moves"),
)
"""Observables that are not in the notation table, each as (name, LaTeX, meaning)."""


@dataclass(frozen=True)
class Rows:
    """Row types of a problem: names and sizes of their scalars, and their unavoidable loss."""

    parameters: Any
    types: tuple[RowType, ...]

    @cached_property
    def names(self) -> tuple[str, ...]:
        """Name of every row type."""
        areas = self.parameters.area_ids
        plain = []
        for row in self.types:
            inside = areas[:, row.patches] == 0
            pattern = "B" + "".join("1" if one else "0" for one in inside[:, 0])
            one_cluster = "global" if inside[0, 0] else "local"
            mixed = np.ptp(inside.sum(axis=0)) > 0
            plain.append("patch" if mixed else one_cluster if len(inside) == 1 else pattern)
        return tuple(
            name if plain.count(name) == 1 else f"{name}_{plain[: k + 1].count(name)}"
            for k, name in enumerate(plain)
        )

    @cached_property
    def scalars(self) -> tuple[str, ...]:
        """Names of the scalars Ups and Phi of every row type, in the order of the state."""
        names: list[str] = []
        for row, kind in zip(self.names, self.types, strict=True):
            names += [f"{row}_Ups_{_word(name)}" for name in kind.ups_names]
            names += [f"{row}_Phi_{_word(name)}" for name in kind.phi_names]
        return tuple(names)

    @cached_property
    def notation(self) -> Notation:
        """Notation of the system, extended by the scalars and observables of these row types."""
        letters = dict(NOTATION)
        for row, kind in zip(self.names, self.types, strict=True):
            entries = entries_of_row(row, kind.ups_names, kind.phi_names)
            attentions = [_attention(row, name) for name in kind.phi_names]
            for letter in (*entries, *attentions, *_numbers(row)):
                letters.setdefault(letter.name, letter)
        for name, latex, meaning in REPORTED:
            letters.setdefault(name, NotationEntry(name, name, latex, meaning))
        return Notation(NOTATION.source, tuple(letters.values()))

    @cached_property
    def starts(self) -> tuple[int, ...]:
        """Index of the first scalar of every row type in the state, then the number of scalars."""
        sizes = [len(row.ups_names) + len(row.phi_names) for row in self.types]
        return tuple(int(index) for index in np.cumsum([0, *sizes]))

    @cached_property
    def sizes(self) -> IntArray:
        """Number of entries with the value of each scalar in one row of Q, shape (n,)."""
        parts = [np.concatenate([row.ups_sizes, row.phi_sizes]) for row in self.types]
        return np.concatenate(parts).astype(np.int64)

    @cached_property
    def many(self) -> FloatArray:
        """Number of patches of every row type."""
        return np.array([float(row.patches.size) for row in self.types])

    @cached_property
    def own_sizes(self) -> IntArray:
        """Size of the area of a row type's patches in every cluster, shape (row types, K)."""
        areas = self.parameters.area_ids
        sizes = [np.bincount(cluster) for cluster in areas]
        return np.array(
            [
                [sizes[k][cluster[row.patches[0]]] for k, cluster in enumerate(areas)]
                for row in self.types
            ],
            dtype=np.int64,
        )

    @cached_property
    def hidden(self) -> FloatArray:
        """Probability that the area of a masked patch is fully masked, shape (row types, K)."""
        law = self.parameters
        mask_chance = Fraction(law.masked, law.P)
        chances = [
            [float(fully_masked(law.P, law.masked, size) / mask_chance) for size in sizes]
            for sizes in self.own_sizes.tolist()
        ]
        return np.array(chances)

    @cached_property
    def floors(self) -> FloatArray:
        """Unavoidable loss L*_p of a patch of every row type, shape (row types,)."""
        law = self.parameters
        square = latent_moment(law.z, law.odds, 2)
        floors = [
            float(unavoidable_error(law.P, law.masked, sizes, square))
            for sizes in self.own_sizes.tolist()
        ]
        return np.array(floors)

    @property
    def floor(self) -> float:
        """Unavoidable loss of all patches, the sum of L*_p over all patches p."""
        return float(self.many @ self.floors)

    @cached_property
    def mates(self) -> FloatArray:
        """Probability that the area of a masked patch has an unmasked patch, shape (row types,)."""
        return np.asarray(1.0 - self.hidden.mean(axis=1))

    @cached_property
    def views(self) -> tuple[View | None, View]:
        """Row types that represent local areas (None if no area is local) and global areas."""
        areas = self.parameters.area_ids
        far = view(areas, self.types, local=False)
        assert far is not None
        return view(areas, self.types, local=True), far

    @cached_property
    def references(self) -> IntArray:
        """State indices of a local row's Phi_m and Phi_0; indices of local and global row type.

        The own area is m, the global area 0. The first three indices are -1 if no area is local.
        """
        near, far = self.views
        if near is None:
            return np.array([-1, -1, -1, far.row], dtype=np.int64)
        phi = self._first_phi(near.row)
        indices = [phi + near.own, phi + near.globally, near.row, far.row]
        return np.array(indices, dtype=np.int64)

    def roles(self, local: bool) -> tuple[str, str, list[str]]:
        """Names: local or global row type of `views`, its Phi of the own area, its other scalars.

        Phi of the global area is not among the other scalars of a local row type.
        """
        view = self.views[0 if local else 1]
        assert view is not None
        phi = self._first_phi(view.row)
        leading = {phi + view.own, phi + view.globally}
        states = range(self.starts[view.row], self.starts[view.row + 1])
        others = [self.scalars[k] for k in states if k not in leading]
        return self.names[view.row], self.scalars[phi + view.own], others

    def attention_map(self, state: FloatArray, cluster: int = 0, z: float = 1.0) -> FloatArray:
        """Attention between all patches on an unmasked image of a cluster, shape (P, P).

        Every query p is a masked patch, with its position e_p as token, because only masked patches
        add to the loss. Every latent has the value z; `state` is a state of the reduced problem.
        """
        areas, P = self.parameters.area_ids, self.parameters.P
        feature, scores = feature_offsets(areas)[cluster] + areas[cluster], np.empty((P, P))
        for kind, start in zip(self.types, self.starts, strict=False):
            ups, phi = state[start:], state[start + len(kind.ups_names) :]
            scores[kind.patches] = ups[kind.ups_of] + z * phi[kind.phi_of[:, feature]]
        weights = np.exp(scores - scores.max(axis=1, keepdims=True))
        return np.asarray(weights / weights.sum(axis=1, keepdims=True))

    def _first_phi(self, row: int) -> int:
        return self.starts[row] + len(self.types[row].ups_names)

    def pairs(self, kind: int, index: int) -> IntArray:
        """Pairs (p, feature) whose Phi is the scalar `index` of the state, shape (pairs, 2).

        The index of the row type is `kind`; the result is empty if `kind` is -1 (no row type).
        """
        if kind < 0:
            return np.empty((0, 2), dtype=np.int64)
        row = self.types[kind]
        labels = row.phi_of == index - self._first_phi(kind)
        patch, feature = np.nonzero(labels)
        return np.column_stack([row.patches[patch], feature]).astype(np.int64)

    def attention(self, mass: FloatArray) -> dict[str, FloatArray]:
        """Attention of every row type to each class of areas and to masked patches."""
        result: dict[str, FloatArray] = {}
        for name, kind, start in zip(self.names, self.types, self.starts, strict=False):
            first = start + len(kind.ups_names)
            ups, phi = mass[:, start:first], mass[:, first : first + len(kind.phi_names)]
            for letter, values in zip(kind.phi_names, phi.T, strict=True):
                result[f"{name}_A_{_word(letter)}"] = values
            result[f"{name}_masked"] = ups.sum(axis=1) - phi.sum(axis=1)
        return result

    def orbit_values(self, positions: FloatArray, features: FloatArray) -> Mapping[str, FloatArray]:
        """Mapping from each scalar to the entries of Q it stands for, shape (records, entries).

        The arrays `positions`, shape (records, P, P), and `features`, shape (records, P, features),
        hold the correlations Ups_{p -> q} and Phi_{p -> v} at the recorded steps of a run.
        """
        result: dict[str, FloatArray] = {}
        names = iter(self.scalars)
        for row in self.types:
            for labels, entries, count in (
                (row.ups_of, positions, len(row.ups_names)),
                (row.phi_of, features, len(row.phi_names)),
            ):
                part = entries[:, row.patches]
                for k in range(count):
                    result[next(names)] = part[:, labels == k]
        return result


def _attention(row: str, name: str) -> NotationEntry:
    """Notation for the attention of a row type to the unmasked patches of a class of areas."""
    word = name.replace("_", r"\ ")
    latex = rf"A^{{\mathrm{{{row_in_latex(row)}}}}}_{{\mathrm{{{word}}}}}"
    said = row.replace("_", " ")
    meaning = f"attention of a masked {said} patch on unmasked patches: {name}"
    return NotationEntry(f"{row}_A_{_word(name)}", f"A({row}→{name})", latex, meaning)


def _numbers(row: str) -> tuple[NotationEntry, ...]:
    """Notation for a row type's excess loss and its attention to own and to masked patches."""
    up, said = rf"^{{\mathrm{{{row_in_latex(row)}}}}}", row.replace("_", " ")
    return (
        NotationEntry(
            f"{row}_gap", f"gap({row})", rf"(L_p - L_p^\star){up}", f"gap of a {said} patch"
        ),
        NotationEntry(
            f"{row}_own_attention", f"A_own({row})", rf"A_{{\mathrm{{own}}}}{up}",
            f"attention of a {said} patch on its own area, given that a mate is unmasked",
        ),
        NotationEntry(
            f"{row}_masked", f"A_masked({row})", rf"A_{{\mathrm{{masked}}}}{up}",
            f"attention of a masked {said} patch on masked patches",
        ),
    )  # fmt: skip


def _word(name: str) -> str:
    return name.replace("-", "_")
