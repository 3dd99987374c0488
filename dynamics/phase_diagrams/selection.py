"""Slices of a sweep: one quantity over one or two axes, for each panel.

Every dimension of length above 1 must be an axis or have a given value; otherwise the slice is
refused. Only seeds are combined: a number becomes its median over seeds, a yes-or-no answer the
share of yes among the known answers.

A position between two values of an axis is a fractional index: 1.5 is half way between the second
and the third value. On a logarithmic axis, fractional indices interpolate logarithms.
"""

from __future__ import annotations

import warnings
from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynamics.phase_diagrams.quantities import (
    OUTCOME,
    Quantity,
    complete,
    json_attribute,
    kinds,
    numbers,
    outcomes,
    presentation_of,
)
from dynamics.presentation import Presentation
from dynamics.problem import FloatArray
from dynamics.results.outcome import INVALID, PENDING
from dynamics.validation import InvalidRequest, known_word, real, refuse
from theory.summary import summarized

if TYPE_CHECKING:
    import xarray

SEED = "seed"
WIDE = 3.0
"""Minimum ratio of the last to the first value of an axis; below it the axis is linear."""
DECADE = 10.0
NEAR = 1e-9
"""Maximum relative difference of a requested value from the grid value that it selects."""


@summarized
@dataclass(frozen=True)
class Axis:
    """A parameter as an axis: its name and ascending values.

    The `values` have shape (n,); if `logarithmic`, positions are interpolated in the logarithm.
    """

    name: str
    values: FloatArray
    logarithmic: bool = False

    @classmethod
    def of(cls, name: str, values: ArrayLike) -> Axis:
        """Axis of values (n,); it is logarithmic if the logarithms are more evenly spaced."""
        ascending = np.sort(np.asarray(values, dtype=np.float64))
        return cls(name, ascending, _geometric(ascending))

    def at(self, index: ArrayLike) -> FloatArray:
        """Values at fractional indices."""
        numbers = np.arange(len(self.values), dtype=np.float64)
        fraction = np.asarray(index, dtype=np.float64)
        return self._back(np.interp(fraction, numbers, self._measured(self.values)))

    def index(self, values: ArrayLike) -> FloatArray:
        """Fractional indices of values; a value outside the axis has the index of the near end."""
        numbers = np.arange(len(self.values), dtype=np.float64)
        measured = self._measured(np.asarray(values, dtype=np.float64))
        return np.interp(measured, self._measured(self.values), numbers)

    @property
    def edges(self) -> FloatArray:
        """Edges of the cells around the values, shape (n + 1,)."""
        at = self._measured(self.values)
        if len(at) == 1:
            width = np.log(1.5) if self.logarithmic else max(abs(at[0]) / 4, 0.5)
            return self._back(np.array([at[0] - width, at[0] + width]))
        middle = (at[1:] + at[:-1]) / 2
        ends = 2 * at[0] - middle[0], 2 * at[-1] - middle[-1]
        return self._back(np.concatenate([[ends[0]], middle, [ends[1]]]))

    def _measured(self, values: FloatArray) -> FloatArray:
        return np.log(values) if self.logarithmic else values

    def _back(self, measured: FloatArray) -> FloatArray:
        return np.exp(measured) if self.logarithmic else np.asarray(measured)


@summarized
@dataclass(frozen=True)
class Slice:
    """Values of one quantity over one or two axes, for each panel.

    The name `system` may be empty, the axes `y` and `facet` (of the panels) None. The
    `presentation` has the labels of the dataset. The array `values`, shape (facets, y, x), holds
    the quantity, NaN if unknown; a missing axis has length 1. The arrays `low` and `high` are
    minimum and maximum over seeds. The array `outcome` holds indices into ``kinds``, `PENDING` or
    `INVALID`; several seeds give their most frequent outcome. The parameters in `held` are equal in
    all runs; `derived` has formulas of derived parameters. Without combined seeds, `seeds` is 0.
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
    """Slice of a sweep: one quantity over one or two axes, for each panel.

    The `dataset` has the results of a sweep over a grid. The `quantity` is a variable
    (``"time_T1"``), or a yes or no (``"time_T1<1e4"``, ``"reached(T1)"``). The axes and panels are
    the dimensions `x`, `y` and `facet`; `at` fixes other dimensions. Raises InvalidRequest if a
    name or value is not in the dataset, or a further dimension has several values.

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
    outcome = outcomes(dataset)
    dims = [str(dim) for dim in dataset[OUTCOME].dims]
    roles = {"facet": facet, "y": y, "x": x}
    names = [name for name in roles.values() if name is not None]
    positions, held = hold(dataset, at or {})
    _check_axes(roles, dims, held)
    single = _single(dataset, dims, [*names, *positions])
    held |= single
    seeds = dataset.sizes[SEED] if SEED in dims and SEED not in {*names, *held} else 0
    order = [*names, *([SEED] if seeds else [])]
    axes: dict[str, Any] = dict.fromkeys(roles)
    axes |= {role: Axis.of(n, dataset[n].values) for role, n in roles.items() if n is not None}
    indices: dict[str, Any] = positions | dict.fromkeys(single, 0)
    for name in names:
        indices[name] = np.argsort(dataset[name].values.astype(np.float64), kind="stable")
    shape = [*(len(axis.values) if axis else 1 for axis in axes.values()), max(seeds, 1)]
    values, outcome = (
        dataset[OUTCOME].copy(data=field).isel(indices).transpose(*order).values.reshape(shape)
        for field in (question.of(dataset), outcome)
    )
    if question.is_time and not question.yes_no:
        values = np.where(complete(outcome, kinds(dataset)) & np.isnan(values), np.inf, values)
    middle, low, high = _over_seeds(values, share=question.yes_no)
    return Slice(
        system=str(dataset.attrs.get("system", "")),
        presentation=presentation_of(dataset),
        quantity=question,
        **axes,
        values=middle,
        low=low,
        high=high,
        outcome=_most_frequent(outcome),
        kinds=kinds(dataset),
        held={**json_attribute(dataset, "fixed"), **held},
        derived=json_attribute(dataset, "derived"),
        seeds=seeds,
    )


def hold(
    dataset: xarray.Dataset, at: Mapping[str, float]
) -> tuple[dict[str, int], dict[str, float]]:
    """Index and exact value of each dimension in `at`, as two mappings by name.

    A parameter that is equal in all runs may also occur in `at`, with its value. Raises
    InvalidRequest if a name is not a dimension, or the dimension lacks the value.
    """
    dims = [str(dim) for dim in dataset[OUTCOME].dims]
    fixed = numbers(json_attribute(dataset, "fixed"))
    positions: dict[str, int] = {}
    held: dict[str, float] = {}
    for name, entry in at.items():
        value = real(f"at {name}", entry)
        if name not in fixed:
            known_word("at", name, dims, "is not an axis of the sweep")
        own = np.atleast_1d(dataset[name].values if name in dims else fixed[name])
        own = own.astype(np.float64)
        index = int(np.abs(own - value).argmin())
        if not np.isclose(own[index], value, rtol=NEAR, atol=0.0):
            values = ", ".join(f"{each:.10g}" for each in own)
            refuse(f"at {name}", entry, "is not in the sweep", values, f"{own[index]:.10g}")
        if name in dims:
            positions[name], held[name] = index, float(own[index])
    return positions, held


def _check_axes(axes: Mapping[str, str | None], dims: list[str], held: Mapping[str, float]) -> None:
    """Raise InvalidRequest if an axis is unknown, occurs twice, or has a value in `held`."""
    names = [name for name in axes.values() if name is not None]
    free = [dim for dim in dims if dim not in names]
    for role, name in axes.items():
        if name is None:
            continue
        what = "needs an unpaired sweep" if dims == ["point"] else "is not an axis of the sweep"
        known_word(role, name, dims, what)
        if names.count(name) > 1:
            refuse(role, name, "is two axes at once", ", ".join(dims), free[0] if free else "none")
        if name in held:
            allowed = f"any of {', '.join(free) or 'none'}"
            what = f"fixes the {role} axis"
            refuse(f"at {name}", held[name], what, allowed, "to leave it out")


def _single(dataset: xarray.Dataset, dims: list[str], used: list[str]) -> dict[str, float]:
    """Values of the dimensions not in `used`; raises InvalidRequest if one has several values."""
    left = [name for name in dims if name not in used]
    free = [name for name in left if dataset.sizes[name] > 1 and name != SEED]
    if free:
        values = "; ".join(
            f"{name} = " + ", ".join(f"{v:.6g}" for v in dataset[name].values) for name in free
        )
        raise InvalidRequest(
            f"at has no {', '.join(free)}, which the sweep varies; give a value of each, or make "
            f"one the facet: {values}"
        )
    return {name: float(dataset[name].values[0]) for name in left if dataset.sizes[name] == 1}


def _over_seeds(values: FloatArray, share: bool) -> tuple[FloatArray, FloatArray, FloatArray]:
    """Median (for a yes or no the mean), minimum and maximum along the last axis."""
    middle = np.nanmean if share else np.nanmedian
    with warnings.catch_warnings():
        warnings.simplefilter("ignore", RuntimeWarning)  # all seeds NaN: the result NaN is right
        reduced = [rule(values, axis=-1) for rule in (middle, np.nanmin, np.nanmax)]
    middles, low, high = (np.where(np.isfinite(each), each, np.nan) for each in reduced)
    return middles, low, high


def _most_frequent(outcome: NDArray[np.int64]) -> NDArray[np.int64]:
    """Most frequent outcome along the last axis, the seeds; in a tie, the largest index."""
    codes = range(int(outcome.max(initial=0)), -1, -1)
    counts = np.stack([(outcome == code).sum(axis=-1) for code in codes])
    most = np.array(codes)[counts.argmax(axis=0)]
    none = np.where((outcome == INVALID).all(axis=-1), INVALID, PENDING)
    return np.where(counts.any(axis=0), most, none)


def _geometric(values: FloatArray) -> bool:
    """Whether the logarithms of ascending values are more evenly spaced than the values."""
    if len(values) < 2 or values[0] <= 0 or values[-1] < WIDE * values[0]:
        return False
    if len(values) == 2:
        return bool(values[1] >= DECADE * values[0])
    plain, logs = np.diff(values), np.diff(np.log(values))
    return bool(logs.std() / logs.mean() < plain.std() / plain.mean())
