"""Parameters of masked image modelling, by family, validated on construction."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from functools import lru_cache
from math import log, nan
from typing import Annotated, Any

import numpy as np
from numpy.typing import NDArray
from pydantic import BeforeValidator, model_validator
from pydantic.dataclasses import dataclass

from dynamics.parameter_fields import STRICT, Allowed, refusing, whole
from dynamics.validation import known_word, real, refuse
from theory.papers.masked_image_modeling.symmetry import one_cluster, reference, two_cluster_grid

FAMILIES: Mapping[str, tuple[str, ...]] = {
    "one_cluster": ("P", "C_global", "C_local"),
    "two_cluster_grid": ("b11", "b10", "C_local", "T"),
    "custom": ("areas",),
}
"""Family of partitions -> names of the parameters that define the partitions."""
ABSENT: Mapping[str, tuple[str, ...]] = {
    "one_cluster": ("b11", "b10", "T"),
    "two_cluster_grid": (),
    "custom": ("b11", "b10", "T"),
}
"""Family of partitions -> names of the parameters that the family lacks."""
USUAL: Mapping[str, Mapping[str, int]] = {
    "one_cluster": {"P": 256, "C_global": 128, "C_local": 4},
    "two_cluster_grid": {"b11": 8, "b10": 8, "C_local": 4, "T": 1},
    "custom": {},
}
TEXT = "areas are separated by commas and clusters by semicolons, as in '0,0,1,1;0,1,1,0'"
NOTHING = (None, 0, ())
"""Values accepted for a parameter that a family lacks."""
ROUNDING = 1e-12
LEAST_LATENT, MOST_LATENT = 1e-3, 1e3
"""Bounds of a latent z. A common factor of all z changes the ratio of correlations Ups and Phi."""


def _family(value: object) -> str:
    return known_word("family", value, tuple(FAMILIES))


def _numbers(name: str, value: object, **bounds: float) -> tuple[float, ...]:
    """Tuple of numbers within bounds, from one number, a sequence, or text with commas."""
    allowed = "positive numbers, separated by commas"
    parts: Sequence[Any] = [value]
    if isinstance(value, str):
        try:
            parts = [float(part) for part in value.split(",")]
        except ValueError:
            refuse(name, value, "is not a list of numbers", allowed, "1.0")
    elif isinstance(value, (Sequence, np.ndarray)):
        parts = list(value)
    if not parts:
        refuse(name, value, "is empty", allowed, "1.0")
    return tuple(real(name, part, **bounds) for part in parts)


def _latents(value: object) -> tuple[float, ...]:
    return _numbers("z", value, at_least=LEAST_LATENT, at_most=MOST_LATENT)


def _odds(value: object) -> tuple[float, ...]:
    missing = value is None or (isinstance(value, (Sequence, np.ndarray)) and len(value) == 0)
    return () if missing else _numbers("odds", value, above=0.0)


def _areas(value: object) -> tuple[tuple[int, ...], ...]:
    """Areas of the patches, one tuple for each cluster, from a list or text."""
    if value is None:
        return ()
    allowed = f"a list of area numbers for each cluster ({TEXT})"
    rows: Any = value
    if isinstance(value, str):
        rows = [part.split(",") for part in value.split(";")] if value else []
    elif not isinstance(value, (Sequence, np.ndarray)):
        refuse("areas", value, "is not a list", allowed, "'0,0,1,1'")
    areas_of_rows = []
    for row in rows:
        try:
            numbers = [float(entry) for entry in row]
        except (TypeError, ValueError, OverflowError):
            numbers = [nan]
        if not all(entry.is_integer() for entry in numbers):
            refuse("areas", value, "is not a list of whole numbers", allowed, "'0,0,1,1'")
        areas_of_rows.append(tuple(map(int, numbers)))
    return tuple(areas_of_rows)


@refusing
@dataclass(frozen=True, config=STRICT, kw_only=True)
class Parameters:
    """Partitions, masks and latents of masked image modelling.

    Attributes
    ----------
    family : str
        ``"one_cluster"``: one partition into a global area of C_global patches and local areas of
        C_local. ``"two_cluster_grid"``: two partitions; b11 patches are global in both, b10 only in
        the first and b10 only in the second (consecutive runs of C_local of them are local areas in
        the other partition), and T grids of C_local x C_local have rows as local areas in
        the first, columns in the second. ``"custom"``: any partitions, in ``areas``.
    P : int
        Number of patches.
    C_global, C_local : int
        Number of patches of the global area, and of a local one (if local areas differ in size, of
        the reference area of the events, see `theory.papers.masked_image_modeling.symmetry`);
        C_local divides P - C_global, and is None without a local area.
    b11, b10, T : int
        Sizes of ``"two_cluster_grid"``; None in other families.
    areas : tuple of tuple of int
        Partitions of ``"custom"``: for each cluster the area of each patch, numbered from 0, the
        global one, as 0,0,1,1, with clusters separated by semicolons; empty in other families.
    masked : int
        Number of masked patches, at least one and not all; default half.
    z : tuple of float
        Values of the latent of an area: a number from 1e-3 to 1e3, or a list.
    odds : tuple of float
        Probabilities of the values of z, with sum 1; default equal.
    d : int
        Dimension of a patch; at least, and by default, the number of features and positions.
    """

    family: Annotated[str, BeforeValidator(_family), Allowed(", ".join(FAMILIES))] = "one_cluster"
    P: whole(2, optional=True) = None  # type: ignore[valid-type]
    C_global: whole(1, optional=True) = None  # type: ignore[valid-type]
    C_local: whole(1, optional=True) = None  # type: ignore[valid-type]
    b11: whole(0, optional=True) = None  # type: ignore[valid-type]
    b10: whole(0, optional=True) = None  # type: ignore[valid-type]
    T: whole(0, optional=True) = None  # type: ignore[valid-type]
    areas: Annotated[Any, BeforeValidator(_areas)] = ()
    masked: whole(0, optional=True) = None  # type: ignore[valid-type]
    z: Annotated[Any, BeforeValidator(_latents)] = (1.0,)
    odds: Annotated[Any, BeforeValidator(_odds)] = ()
    d: whole(1, optional=True) = None  # type: ignore[valid-type]

    @model_validator(mode="after")
    def _together(self) -> Parameters:
        for name, usual in USUAL[self.family].items():
            if getattr(self, name) is None:
                self._set(name, usual)
        follow = {
            "one_cluster": self._one_cluster,
            "two_cluster_grid": self._grid,
            "custom": self._custom,
        }[self.family]()
        for name, entry in follow.items():
            parts = getattr(self, name)
            if parts not in ((None, entry) if entry else NOTHING):
                near = entry or "left out"
                allowed = f"{near}, in this family"
                refuse(name, parts, f"does not fit family={self.family!r}", allowed, near)
            self._set(name, entry)
        if self.masked is None:
            self._set("masked", self.P // 2)
        if not 0 < self.masked < self.P:
            what, near = ("nothing", 1) if self.masked == 0 else ("all patches", self.P - 1)
            refuse("masked", self.masked, f"masks {what}", f"1 to {self.P - 1} patches", near)
        self._law()
        return self

    def _set(self, name: str, value: Any) -> None:
        object.__setattr__(self, name, value)

    def _one_cluster(self) -> dict[str, Any]:
        left = self.P - self.C_global
        if left < 1:
            allowed = f"1 to {self.P - 1}, so that local areas remain"
            refuse("C_global", self.C_global, f"is not below P={self.P}", allowed, self.P // 2)
        if left % self.C_local:
            sizes = [c for c in range(1, left + 1) if left % c == 0]
            near = min(sizes, key=lambda c: (abs(c - self.C_local), c))
            problem = f"does not divide P - C_global = {left}: areas do not partition the patches"
            refuse("C_local", self.C_local, problem, ", ".join(map(str, sizes)), near)
        return dict.fromkeys(ABSENT[self.family]) | {"areas": ()}

    def _grid(self) -> dict[str, Any]:
        size = self.C_local
        if self.b10 % size:
            problem = f"is not a multiple of C_local={size}: areas do not partition the patches"
            near = size * max(1, round(self.b10 / size))
            refuse("b10", self.b10, problem, f"a multiple of {size}", near)
        if self.b11 + self.b10 == 0:
            refuse("b11", 0, "leaves no global area", "at least 1 where b10=0", 1)
        if self.b10 + self.T == 0:
            refuse("T", 0, "leaves no local area", "at least 1 where b10=0", 1)
        follow = {"P": self.b11 + 2 * self.b10 + self.T * size**2, "C_global": self.b11 + self.b10}
        return follow | {"areas": ()}

    def _custom(self) -> dict[str, Any]:
        clusters = self.areas
        if not clusters or not clusters[0]:
            refuse("areas", "", "has no cluster", f"one or more ({TEXT})", "'0,0,1,1'")
        count = len(clusters[0])
        if count < 2:
            refuse("areas", clusters, "has one patch", "two patches or more", "'0,1'")
        for k, row in enumerate(clusters):
            ids = set(row)
            if len(row) != count or min(ids) < 0 or max(ids) >= len(ids):
                problem = f"does not partition {count} patches in cluster {k + 1}"
                allowed = "areas 0, 1, ... without a gap, 0 the global one, one for each patch"
                refuse("areas", [list(r) for r in clusters], problem, allowed, list(range(count)))
        near = reference(clusters, local=True)
        sizes = {"P": count, "C_global": clusters[0].count(0), "C_local": None}
        if near is not None:
            sizes |= {"C_global": near.globally, "C_local": near.own}
        return sizes | dict.fromkeys(ABSENT[self.family])

    def _law(self) -> None:
        if len(set(self.z)) < len(self.z):
            refuse("z", self.z, "has a value twice", "each value once", sorted(set(self.z)))
        many = len(self.z)
        if not self.odds:
            self._set("odds", (1.0 / many,) * many)
        if len(self.odds) != many:
            allowed = f"{many} probabilities, one for each z"
            refuse("odds", self.odds, f"has {len(self.odds)} entries", allowed, [1 / many] * many)
        if abs(sum(self.odds) - 1.0) > ROUNDING:
            total = sum(self.odds)
            near = [round(part / total, 6) for part in self.odds]
            refuse("odds", self.odds, f"sums to {total:g}", "probabilities of sum 1", near)
        least = self.P + self.features
        if self.d is None:
            self._set("d", least)
        if self.d < least:
            problem = f"has no room for {self.features} features and {self.P} positions"
            allowed = f"at least {least}, so that they can be orthonormal"
            refuse("d", self.d, problem, allowed, least)

    @property
    def absent(self) -> tuple[str, ...]:
        """Names of the parameters that the family lacks; these parameters are None."""
        return ABSENT[self.family]

    @property
    def area_ids(self) -> NDArray[np.int64]:
        """Area of each patch in each cluster, shape (K, P); area 0 is the global area."""
        if self.family == "one_cluster":
            return np.asarray(one_cluster(self.P, self.C_global, self.C_local), dtype=np.int64)
        if self.family == "two_cluster_grid":
            grid = two_cluster_grid(self.b11, self.b10, self.C_local, self.T)
            return np.asarray(grid, dtype=np.int64)
        return np.array(self.areas, dtype=np.int64)

    @property
    def features(self) -> int:
        """Number of features v_{k,a}, summed over all clusters."""
        size = self.C_local
        if self.family == "one_cluster":
            return int(1 + (self.P - self.C_global) // size)
        if self.family == "two_cluster_grid":
            return int(2 * (1 + self.b10 // size + self.T * size))
        return sum(max(row) + 1 for row in self.areas)

    @property
    def K(self) -> int:  # noqa: N802 (the paper's letter)
        """Number of clusters."""
        return {"one_cluster": 1, "two_cluster_grid": 2}.get(self.family, len(self.areas))

    @property
    def gamma(self) -> float:
        """Share of masked patches."""
        return float(self.masked / self.P)

    @property
    def L(self) -> float:  # noqa: N802 (the paper's letter)
        """Smallest value of a latent."""
        return float(min(self.z))

    @property
    def U(self) -> float:  # noqa: N802 (the paper's letter)
        """Largest value of a latent."""
        return float(max(self.z))

    @property
    def kappa_c(self) -> float:
        """Exponent of the global area, ln C_global / ln P."""
        return log(self.C_global) / log(self.P)

    @property
    def kappa_s(self) -> float:
        """Exponent of a local area, ln C_local / ln P; NaN without a local area."""
        return nan if self.C_local is None else log(self.C_local) / log(self.P)

    @property
    def Delta(self) -> float:  # noqa: N802 (the paper's letter)
        """Information gap (4.1), with area exponents: (1 - kappa_s) - 2 (1 - kappa_c), or NaN."""
        return (1 - self.kappa_s) - 2 * (1 - self.kappa_c)

    @property
    def Delta_eff(self) -> float:  # noqa: N802 (the paper's letter)
        """Information gap at finite size, ln rho(0) / ln P; NaN if no local area has a pair."""
        return _information_gap(self)


@lru_cache(maxsize=256)
def _information_gap(parameters: Parameters) -> float:
    from theory.papers.masked_image_modeling.information_gap import rho_at_start

    areas = parameters.area_ids
    near = reference(areas, local=True)
    if near is None or near.own == 1:
        return nan
    law = parameters.z, parameters.odds
    rho0 = rho_at_start(areas, near.cluster, near.patch, parameters.masked, law)
    return log(rho0) / log(parameters.P)
