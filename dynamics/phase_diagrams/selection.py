"""Quantities of a sweep, and slices of it: one quantity over one or two axes.

A sweep is a dataset whose dimensions are the swept parameters. ``"time_T1"`` is a number of each
run. ``"patch_association>=1"``, ``"time_T1<1e4"`` and ``"reached(T1)"`` are 1 where the sentence is
true, 0 where it is false, NaN where nothing is known.

What is known of a run depends on its outcome. A run that converged or reached its horizon decides
everything: an event without a time was not reached, and counts as later than every number. A run
that failed on its way (oscillating, diverged, interrupted, killed) decides only the events that it
reached; its last values are those of another time and are left out.

In a slice, dimensions that are neither an axis nor held are reduced: one of length 1 is dropped,
seeds are combined. Of a number the median is taken, of a yes or no the share of the seeds that say
yes; seeds without a value do not count. A slice that would hide any other dimension is refused.
"""

from __future__ import annotations

import json
import operator
import re
import warnings
from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from difflib import get_close_matches
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dynamics.phase_diagrams.axis import Axis
from dynamics.problem import FloatArray
from dynamics.results.outcome import CONVERGED, HORIZON, INVALID, PENDING, POINT_KINDS
from dynamics.results.presentation import Presentation
from dynamics.validation import InvalidRequest, real, refuse

if TYPE_CHECKING:
    import xarray

OUTCOME, SEED = "outcome", "seed"
COMPLETE = (CONVERGED, HORIZON)
TIME = "time_"
RELATIONS = {
    "<=": operator.le, ">=": operator.ge, "==": operator.eq, "!=": operator.ne,
    "<": operator.lt, ">": operator.gt,
}  # fmt: skip
NEAR = 1e-9
"""Relative distance up to which a value that is held is the one in the grid."""
NAME = r"([A-Za-z_]\w*)"
REACHED = re.compile(rf"\s*reached\(\s*{NAME}\s*\)\s*")
COMPARED = re.compile(rf"\s*{NAME}\s*({'|'.join(RELATIONS)})\s*(\S+)\s*")


@dataclass(frozen=True)
class Quantity:
    """A number, or a yes or no, of every run.

    Attributes
    ----------
    text : str
        As it was requested.
    name : str
        The variable.
    relation : str
        ``""`` for the variable itself, one of `RELATIONS`, or ``"reached"``.
    number : float
        What it is compared with; NaN where it is not.
    """

    text: str
    name: str
    relation: str = ""
    number: float = float("nan")

    @property
    def yes_no(self) -> bool:
        """Whether it is a yes or no."""
        return bool(self.relation)

    @property
    def is_time(self) -> bool:
        """Whether the variable is the time of an event."""
        return self.name.startswith(TIME)

    @classmethod
    def read(cls, text: str, dataset: xarray.Dataset) -> Quantity:
        """A quantity of a dataset from its text.

        Raises
        ------
        InvalidRequest
            If there is no such variable or event, or the text is none of the three forms.
        """
        there = [str(name) for name in dataset.data_vars if name != OUTCOME]
        if match := REACHED.fullmatch(text):
            events = [name.removeprefix(TIME) for name in there if name.startswith(TIME)]
            _known("quantity", text, match[1], events, "reached(NAME) with NAME", "reached({})")
            return cls(text, TIME + match[1], "reached")
        if match := COMPARED.fullmatch(text):
            name, relation, written = match.groups()
            _known("quantity", text, name, there, "a comparison of", "{}" + relation + written)
            try:
                number = float(written)
            except ValueError:
                refuse(
                    "quantity", text, f"compares with {written}, which is no number",
                    "NAME, NAME <= NUMBER (or <, >=, >, ==, !=) or reached(NAME)", name,
                )  # fmt: skip
            return cls(text, name, relation, number)
        name = text.strip()
        _known("quantity", text, name, there, "one of, or a yes or no about,", "{}")
        return cls(text, name)

    def of(self, dataset: xarray.Dataset) -> FloatArray:
        """Its value in every run, on all dimensions; NaN where nothing is known."""
        values, outcome = everywhere(dataset, self.name), outcomes(dataset)
        whole = complete(outcome, kinds(dataset))
        known = (whole | (self.is_time & (outcome >= 0))) & ~np.isnan(values)
        if not self.yes_no:
            return np.where(known, values, np.nan)
        if self.is_time:
            values = np.where(whole & np.isnan(values), np.inf, values)
            known |= whole
        if self.relation == "reached":
            answer = np.isfinite(values)
        else:
            answer = RELATIONS[self.relation](values, self.number)
        return np.where(known, answer, np.nan)


def outcomes(dataset: xarray.Dataset) -> NDArray[np.int64]:
    """How every run ended: an index into `kinds`, or `PENDING`, or `INVALID`.

    Raises
    ------
    InvalidRequest
        If the dataset is not that of a sweep.
    """
    if OUTCOME not in dataset.data_vars:
        raise InvalidRequest("the dataset has no variable 'outcome': it is not that of a sweep")
    return dataset[OUTCOME].values.astype(np.int64)


def kinds(dataset: xarray.Dataset) -> tuple[str, ...]:
    """The kinds of outcome that ``outcome`` counts."""
    return tuple(_unpacked(dataset.attrs.get("kinds", POINT_KINDS)))


def complete(outcome: NDArray[np.int64], names: Sequence[str]) -> NDArray[np.bool_]:
    """Whether runs went to their end: what they did not reach is not reached."""
    return np.isin(outcome, [code for code, kind in enumerate(names) if kind in COMPLETE])


def described(dataset: xarray.Dataset, name: str) -> Mapping[str, Any]:
    """An attribute that is a JSON object: ``fixed`` or ``derived``; empty where there is none."""
    return dict(_unpacked(dataset.attrs.get(name, {})))


def presentation_of(dataset: xarray.Dataset) -> Presentation:
    """How the dataset is shown; names are written out where it does not say."""
    title = str(dataset.attrs.get("system", ""))
    return Presentation.from_attributes(dataset.attrs) or Presentation.empty(title)


def numbers(held: Mapping[str, Any]) -> dict[str, float]:
    """Those of the held values that are numbers."""
    return {
        name: value
        for name, value in held.items()
        if isinstance(value, (int, float)) and not isinstance(value, bool)
    }


def everywhere(dataset: xarray.Dataset, name: str) -> FloatArray:
    """A variable or coordinate on all dimensions, in the order of those of ``outcome``."""
    import xarray

    outcome = dataset[OUTCOME]
    spread, _ = xarray.broadcast(dataset[name], outcome)
    return np.array(spread.transpose(*outcome.dims).values, dtype=np.float64)


def _unpacked(attribute: Any) -> Any:
    """An attribute that may be JSON, as it is in a file."""
    return json.loads(attribute) if isinstance(attribute, str) else attribute


def _known(parameter: str, text: str, name: str, names: list[str], before: str, form: str) -> None:
    """Refuse a name that is not among the known ones."""
    if name not in names:
        near = get_close_matches(name, names, 1, 0.0)
        refuse(
            parameter, text, f"asks for {name or 'nothing'}, which is not in the dataset",
            f"{before} {', '.join(names)}", form.format(near[0]) if near else "none",
        )  # fmt: skip


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
        Index into ``kinds``, or `PENDING`, or `INVALID`; of several seeds the
        most frequent one.
    kinds : tuple of str
    held : mapping
        What is the same in every run: name -> value.
    derived : mapping
        Parameters that follow from others: name -> formula.
    seeds : int
        How many seeds were combined; 0 where that was not done.
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
    """A slice of a sweep: one quantity over one or two axes.

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

    Examples
    --------
    >>> import xarray
    >>> dataset = xarray.Dataset(
    ...     {"risk": ("D", [0.3, 0.1]), "outcome": ("D", [1, 1])}, {"D": [4.0, 8.0]}
    ... )
    >>> select(dataset, "risk<0.2", x="D").values.ravel()
    array([0., 1.])
    """
    question = Quantity.read(quantity, dataset)
    outcomes(dataset)
    dims = [str(dim) for dim in dataset[OUTCOME].dims]
    axes = {"facet": facet, "y": y, "x": x}
    _check_axes(axes, dims)
    positions, held = hold(dataset, at or {})
    chosen = {role: name for role, name in axes.items() if name is not None}
    for role, name in chosen.items():
        if name in positions:
            refuse(
                f"at {name}", held[name], f"holds what is the {role} axis",
                f"any of {', '.join(d for d in dims if d not in chosen.values()) or 'none'}",
                "to leave it out",
            )  # fmt: skip
    held |= _dropped(dataset, dims, [*chosen.values(), *positions])
    seeds = dataset.sizes[SEED] if SEED in dims and SEED not in {*chosen.values(), *held} else 0
    order = [*chosen.values(), *([SEED] if seeds else [])]
    values = _arranged(question.of(dataset), dims, positions, order)
    outcome = _arranged(outcomes(dataset), dims, positions, order)
    made: dict[str, Axis | None] = dict.fromkeys(axes)
    for number, (role, name) in enumerate(chosen.items()):
        along = dataset[name].values.astype(np.float64)
        made[role] = Axis.of(name, along)
        values = np.take(values, np.argsort(along, kind="stable"), axis=number)
        outcome = np.take(outcome, np.argsort(along, kind="stable"), axis=number)
    shape = tuple(len(axis.values) if axis else 1 for axis in made.values())
    shape += (max(seeds, 1),)
    values, outcome = values.reshape(shape), outcome.reshape(shape)
    if question.is_time and not question.yes_no:
        values = np.where(complete(outcome, kinds(dataset)) & np.isnan(values), np.inf, values)
    middle, low, high = _over_seeds(values, share=question.yes_no)
    assert made["x"] is not None
    return Slice(
        system=str(dataset.attrs.get("system", "")),
        presentation=presentation_of(dataset),
        quantity=question,
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
    """Where dimensions are held: name -> index along it, and name -> its own value there.

    A parameter that is fixed in the whole sweep may be named with the value that it has.

    Parameters
    ----------
    dataset : xarray.Dataset
    at : mapping
        Name -> value.

    Returns
    -------
    dict, dict

    Raises
    ------
    InvalidRequest
        If a name is no dimension, or a value is not one of its own.
    """
    dims = [str(dim) for dim in dataset[OUTCOME].dims]
    fixed = numbers(described(dataset, "fixed"))
    positions: dict[str, int] = {}
    held: dict[str, float] = {}
    for name, given in at.items():
        value = real(f"at {name}", given)
        if name not in dims and name not in fixed:
            near = get_close_matches(name, dims, 1, 0.0)[0]
            refuse("at", name, "is no axis of the sweep", ", ".join(dims), near)
        own = np.atleast_1d(dataset[name].values if name in dims else fixed[name])
        own = own.astype(np.float64)
        index = int(np.abs(own - value).argmin())
        if not np.isclose(own[index], value, rtol=NEAR, atol=0.0):
            values = ", ".join(f"{each:.10g}" for each in own)
            refuse(f"at {name}", given, "is not in the sweep", values, f"{own[index]:.10g}")
        if name in dims:
            positions[name], held[name] = index, float(own[index])
    return positions, held


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
    values: NDArray[Any], dims: list[str], positions: Mapping[str, int], order: list[str]
) -> NDArray[Any]:
    """Values of all runs, held where they are held, with dimensions in an order."""
    cut = values[tuple(positions.get(name, slice(None)) for name in dims)]
    left = [name for name in dims if name not in positions]
    single = tuple(k for k, name in enumerate(left) if name not in order)
    left = [name for name in left if name in order]
    return np.transpose(cut.squeeze(axis=single), [left.index(name) for name in order])


def _over_seeds(values: FloatArray, share: bool) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Median (or mean, of a yes or no), least and greatest along the last axis."""
    middle = np.nanmean if share else np.nanmedian
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # "All-NaN slice": it stays NaN
        reduced = [rule(values, axis=-1) for rule in (middle, np.nanmin, np.nanmax)]
    middles, low, high = (np.where(np.isfinite(each), each, np.nan) for each in reduced)
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
