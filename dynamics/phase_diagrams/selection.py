"""A slice of a sweep: one quantity over one or two axes, everything else said.

Dimensions that are neither an axis nor held are reduced: one of length 1 is dropped, seeds are put
together. Of a number the median is taken, of a yes or no the share of the seeds that say yes; a
seed in which an event was not reached counts as later than every other, and seeds without a value
(failed, not computed yet) do not count. A slice that would hide any other dimension is refused.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dynamics.phase_diagrams.axis import Axis
from dynamics.phase_diagrams.quantity import (
    OUTCOME,
    Quantity,
    complete,
    described,
    kinds,
    numbers,
    outcomes,
    presentation_of,
)
from dynamics.problem import FloatArray
from dynamics.results.outcome import INVALID, PENDING
from dynamics.results.presentation import Presentation
from dynamics.validation import InvalidRequest, real, refuse

if TYPE_CHECKING:
    import xarray

SEED = "seed"
NEAR = 1e-9
"""Relative distance up to which a value that is held is the one in the grid."""


@dataclass(frozen=True)
class Slice:
    """One quantity over one or two axes.

    Attributes
    ----------
    system : str
        Name of the system; empty where the dataset has none.
    presentation : Presentation
        That of the dataset.
    quantity : Quantity
    x : Axis
    y, facet : Axis or None
        The second axis, and the axis of the panels.
    values : float array, shape (facets, y, x)
        NaN where there is none; a missing axis has length 1.
    low, high : float array, same shape
        Least and greatest of the seeds; as ``values`` where there is one.
    outcome : int array, same shape
        Index into ``kinds``, or `quantity.PENDING`, or `quantity.INVALID`; of several seeds the
        most frequent one.
    kinds : tuple of str
    held : mapping
        What is the same in every run: name -> value.
    derived : mapping
        Parameters that follow from others: name -> formula.
    seeds : int
        How many seeds were put together; 0 where that was not done.
    """

    system: str
    presentation: Presentation
    quantity: Quantity
    x: Axis
    y: Axis | None
    facet: Axis | None
    values: FloatArray
    low: FloatArray
    high: FloatArray
    outcome: NDArray[np.int64]
    kinds: tuple[str, ...]
    held: Mapping[str, Any]
    derived: Mapping[str, str]
    seeds: int = 0


def select(
    dataset: xarray.Dataset,
    quantity: str,
    x: str,
    y: str | None = None,
    at: Mapping[str, float] | None = None,
    facet: str | None = None,
) -> Slice:
    """Take a slice of a sweep.

    Parameters
    ----------
    dataset : xarray.Dataset
        Of a sweep over a grid.
    quantity : str
        A variable (``"time_T1"``), or a yes or no (``"time_T1<1e4"``, ``"reached(T1)"``).
    x, y, facet : str
        Dimensions: the axes, and that of the panels.
    at : mapping, optional
        Dimension -> the value at which it is held, one of its own.

    Returns
    -------
    Slice

    Raises
    ------
    InvalidRequest
        If a name or a value is not in the dataset, or a dimension is left free.
    """
    asked = Quantity.read(quantity, dataset)
    outcomes(dataset)
    dims = [str(dim) for dim in dataset[OUTCOME].dims]
    axes = {"facet": facet, "y": y, "x": x}
    _check_axes(axes, dims)
    places, held = hold(dataset, at or {})
    chosen = {role: name for role, name in axes.items() if name is not None}
    for role, name in chosen.items():
        if name in places:
            refuse(
                f"at {name}", held[name], f"holds what is the {role} axis",
                f"any of {', '.join(d for d in dims if d not in chosen.values()) or 'none'}",
                "to leave it out",
            )  # fmt: skip
    held |= _dropped(dataset, dims, [*chosen.values(), *places])
    seeds = dataset.sizes[SEED] if SEED in dims and SEED not in {*chosen.values(), *held} else 0
    order = [*chosen.values(), *([SEED] if seeds else [])]
    values = _arranged(asked.of(dataset), dims, places, order)
    outcome = _arranged(outcomes(dataset), dims, places, order)
    made: dict[str, Axis | None] = dict.fromkeys(axes)
    for number, (role, name) in enumerate(chosen.items()):
        along = dataset[name].values.astype(np.float64)
        made[role] = Axis.of(name, along)
        values = np.take(values, np.argsort(along, kind="stable"), axis=number)
        outcome = np.take(outcome, np.argsort(along, kind="stable"), axis=number)
    shape = tuple(len(axis.values) if axis else 1 for axis in made.values())
    shape += (max(seeds, 1),)
    values, outcome = values.reshape(shape), outcome.reshape(shape)
    if asked.is_time and not asked.yes_no:
        values = np.where(complete(outcome, kinds(dataset)) & np.isnan(values), np.inf, values)
    middle, low, high = _together(values, share=asked.yes_no)
    assert made["x"] is not None
    return Slice(
        system=str(dataset.attrs.get("system", "")),
        presentation=presentation_of(dataset),
        quantity=asked,
        x=made["x"],
        y=made["y"],
        facet=made["facet"],
        values=middle,
        low=low,
        high=high,
        outcome=_most_frequent(outcome),
        kinds=kinds(dataset),
        held={**described(dataset, "fixed"), **held},
        derived=described(dataset, "derived"),
        seeds=seeds,
    )


def hold(
    dataset: xarray.Dataset, at: Mapping[str, float]
) -> tuple[dict[str, int], dict[str, float]]:
    """Where dimensions are held: name -> place along it, and name -> its own value there.

    A parameter that is fixed in the whole sweep may be named with the value that it has.

    Raises
    ------
    InvalidRequest
        If a name is no dimension, or a value is not one of its own.
    """
    dims = [str(dim) for dim in dataset[OUTCOME].dims]
    fixed = numbers(described(dataset, "fixed"))
    places: dict[str, int] = {}
    held: dict[str, float] = {}
    for name, wanted in at.items():
        value = real(f"at {name}", wanted)
        if name not in dims and name not in fixed:
            near = get_close_matches(name, dims, 1, 0.0)[0]
            refuse("at", name, "is no axis of the sweep", ", ".join(dims), near)
        own = np.atleast_1d(dataset[name].values if name in dims else fixed[name])
        own = own.astype(np.float64)
        place = int(np.abs(own - value).argmin())
        if not np.isclose(own[place], value, rtol=NEAR, atol=0.0):
            there = ", ".join(f"{each:.10g}" for each in own)
            refuse(f"at {name}", wanted, "is not in the sweep", there, f"{own[place]:.10g}")
        if name in dims:
            places[name], held[name] = place, float(own[place])
    return places, held


def _check_axes(axes: Mapping[str, str | None], dims: list[str]) -> None:
    given = [name for name in axes.values() if name is not None]
    for role, name in axes.items():
        if name is not None and name not in dims:
            near = get_close_matches(str(name), dims, 1, 0.0)[0]
            what = "a paired sweep has no grid" if dims == ["point"] else "is no axis of the sweep"
            refuse(role, name, what, ", ".join(dims), near)
        if name is not None and given.count(name) > 1:
            free = [dim for dim in dims if dim not in given]
            refuse(role, name, "is two axes at once", ", ".join(dims), free[0] if free else "none")


def _dropped(dataset: xarray.Dataset, dims: list[str], used: list[str]) -> dict[str, float]:
    """Values of the dimensions of length 1; refuses what would be left free."""
    left = [name for name in dims if name not in used]
    single = {name: float(dataset[name].values[0]) for name in left if dataset.sizes[name] == 1}
    free = [name for name in left if name not in single and name != SEED]
    if free:
        values = "; ".join(
            f"{name} = " + ", ".join(f"{v:.6g}" for v in dataset[name].values) for name in free
        )
        raise InvalidRequest(
            f"at has no {', '.join(free)}, which the sweep varies; give a value of each, or make "
            f"one the facet: {values}"
        )
    return single


def _arranged(
    values: NDArray[Any], dims: list[str], places: Mapping[str, int], order: list[str]
) -> NDArray[Any]:
    """Values of all runs, held where they are held, with dimensions in an order."""
    taken = values[tuple(places.get(name, slice(None)) for name in dims)]
    left = [name for name in dims if name not in places]
    single = tuple(k for k, name in enumerate(left) if name not in order)
    left = [name for name in left if name in order]
    return np.transpose(taken.squeeze(axis=single), [left.index(name) for name in order])


def _together(values: FloatArray, share: bool) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Median (or mean, of a yes or no), least and greatest along the last axis."""
    middle = np.nanmean if share else np.nanmedian
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # "All-NaN slice": it stays NaN
        found = [rule(values, axis=-1) for rule in (middle, np.nanmin, np.nanmax)]
    middles, low, high = (np.where(np.isfinite(each), each, np.nan) for each in found)
    return middles, low, high


def _most_frequent(outcome: NDArray[np.int64]) -> NDArray[np.int64]:
    """The most frequent outcome along the last axis, of equals the last kind.

    Only where no seed was computed is it pending, and only where all are invalid, invalid.
    """
    codes = range(int(outcome.max(initial=0)), -1, -1)
    counts = np.stack([(outcome == code).sum(axis=-1) for code in codes])
    most = np.array(codes)[counts.argmax(axis=0)]
    none = np.where((outcome == INVALID).all(axis=-1), INVALID, PENDING)
    return np.where(counts.any(axis=0), most, none)
