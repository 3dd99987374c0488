"""Results of a sweep: read from the store, counted, and exported as CSV or NetCDF."""

from __future__ import annotations

import os
from collections import Counter
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cached_property
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dynamics.presentation import Presentation
from dynamics.results.outcome import FAILURES, INVALID, KILLED, PENDING, POINT_KINDS
from dynamics.sweep.contents import RECORD, TIME, Contents, empty, layout
from dynamics.sweep.plan import Plan, restored
from dynamics.sweep.store import BLOCK, DONE, read, read_request, stored_attributes
from dynamics.training import progress
from dynamics.validation import InvalidRequest, path_of
from theory.summary import summarized

if TYPE_CHECKING:
    import xarray

OUTCOMES = {PENDING: "not run", INVALID: "invalid"} | dict(enumerate(POINT_KINDS))
"""Value of the variable ``outcome`` -> name of the outcome."""


@summarized
@dataclass(frozen=True)
class Sweep:
    """A sweep, complete or not.

    Attributes
    ----------
    dataset : xarray.Dataset
        One variable for each quantity over the swept dimensions, NaN where unknown. ``outcome`` is
        an index into the attribute ``kinds``, -1 for a point that has not run, -2 for an invalid
        point. ``done`` is the manifest, with one entry for each block.
    plan : Plan
        The points, the blocks and the request of the sweep.
    refusals : mapping
        Index of a point -> reason why its problem could not be constructed in this call.
    interrupted : bool
        Whether the call was interrupted; the same call resumes the sweep.

    Examples
    --------
    >>> import dynamics
    >>> grid = {"D": 8, "C": "2,3", "q": 0.5, "time": 50}
    >>> result = dynamics.sweep("positional_attention", grid, workers=0)
    >>> result.outcomes, result.complete
    ({'reached horizon': 1, 'invalid': 1}, True)
    >>> result.reasons[1,]
    'C=3 does not divide D=8; C can be 2, 4; nearest: 2'
    """

    dataset: xarray.Dataset
    plan: Plan
    refusals: Mapping[tuple[int, ...], str] = field(default_factory=dict)
    interrupted: bool = False

    @cached_property
    def reasons(self) -> Mapping[tuple[int, ...], str]:
        """Index of an invalid point -> reason; the system is loaded to find the reasons.

        A problem that an earlier call could not construct is constructed again, to find the reason.
        """
        invalid = list(map(tuple, np.argwhere(self.dataset["outcome"].values == INVALID).tolist()))
        reasons = {}
        with progress.bar("reasons", len(invalid), unit="points") as bar:
            for index in invalid:
                why = self.refusals.get(index) or self.plan.invalid_reason(index)
                reasons[index] = why or self.plan.runner.refusal(self.plan.grid.at(index))
                bar.update(1)
        return {index: why for index, why in reasons.items() if why}

    @property
    def presentation(self) -> Presentation:
        """Labels of the results, or plain names if the store has no labels."""
        return self.plan.presentation or Presentation.empty(self.plan.runner.reference)

    @property
    def outcomes(self) -> dict[str, int]:
        """Outcome -> number of points, including ``"invalid"`` and ``"not run"``."""
        return _counts(Counter(self.dataset["outcome"].values.ravel().tolist()))

    def overview(self) -> dict[str, Any]:
        """Names and values of the printed summary: axes, fixed values, and outcomes."""
        grid, hidden = self.plan.grid, ("outcome", DONE)
        return {
            "system": self.plan.runner.reference,
            "axes": [f"{a.name} ({len(a.values)} from {min(a.values)} to {max(a.values)})"
                     for a in grid.axes],
            "fixed": {**grid.fixed, **grid.derived, **self.plan.runner.words},
            "points": grid.size,
            "outcomes": self.outcomes,
            "quantities": [name for name in map(str, self.dataset.data_vars) if name not in hidden],
            "complete": self.complete,
        }  # fmt: skip

    @property
    def complete(self) -> bool:
        """Whether every block of the sweep is done."""
        return bool((self.dataset[DONE].values != 0).all())


def dataset(plan: Plan, contents: Contents, attributes: Mapping[str, Any]) -> xarray.Dataset:
    """Convert the contents and attributes of a store to an xarray dataset."""
    import xarray

    # Include events that no run has reached. If the store has no labels, the system names them.
    events = (plan.presentation or plan.runner.system.presentation).event_latex
    times = {f"{TIME}{name}": empty(plan, TIME) for name in events}
    values = dict(sorted({**times, **contents.values}.items()))
    variables = {name: (layout(plan, name)[2], array) for name, array in values.items()}
    done = {DONE: ((BLOCK,), contents.done)}
    return xarray.Dataset({**plan.frame, **variables, **done}, attrs=attributes)


def _counts(codes: Mapping[int, int]) -> dict[str, int]:
    return {OUTCOMES[code]: codes[code] for code in sorted(codes, reverse=True) if codes[code]}


def load(path: str | os.PathLike[str]) -> Sweep:
    """Read a sweep, complete or not, from its zarr store.

    Raises InvalidRequest if the store is missing, damaged, or of another format.

    Examples
    --------
    >>> import tempfile, dynamics
    >>> grid = {"D": 8, "C": 2, "q": "0.2,0.4", "time": 50}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = dynamics.sweep("positional_attention", grid, f"{folder}/q.zarr", workers=0)
    ...     result = load(f"{folder}/q.zarr")
    >>> result.dataset["q"].values
    array([0.2, 0.4])
    """
    path = path_of("path", path)
    plan = restored(*read_request(path))
    contents = read(path, plan)
    if contents.damage:
        number, why = next(iter(contents.damage.items()))
        raise InvalidRequest(
            f"{os.fspath(path)!r} is damaged in {len(contents.damage)} of its blocks (block "
            f"{number}: {why}); the same attdyn sweep runs them again"
        )
    return Sweep(dataset(plan, contents, stored_attributes(path)), plan)


def status(path: str | os.PathLike[str]) -> dict[str, Any]:
    """Progress of the sweep in a zarr store: request, and counts of blocks, points and outcomes.

    Raises InvalidRequest if the store is missing, or of another format.

    Examples
    --------
    >>> import tempfile, dynamics
    >>> grid = {"D": 8, "C": 2, "q": "0.2,0.4", "time": 50}
    >>> with tempfile.TemporaryDirectory() as folder:
    ...     _ = dynamics.sweep("positional_attention", grid, f"{folder}/q.zarr", workers=0)
    ...     state = status(f"{folder}/q.zarr")
    >>> state["blocks"], state["done"], state["diverged"]
    (2, 2, 0)
    """
    path = path_of("path", path)
    request, presentation = read_request(path)
    plan = restored(request, presentation)
    contents = read(path, plan)
    counts = _counts(contents.outcomes)
    return {
        "system": request["system"],
        "points": plan.grid.size,
        "blocks": len(contents.done),
        "done": len(contents.done) - len(contents.pending),
        "diverged": sum(counts.get(kind, 0) for kind in (*FAILURES, KILLED)),
        "outcomes": counts,
        "damaged": {str(number): why for number, why in contents.damage.items()},
        "request": request,
    }


def write_csv(sweep: Sweep, path: Path) -> None:
    """Write a CSV line for each point: axes, outcome, and all numbers (empty if unknown)."""
    data = sweep.dataset.drop_dims([BLOCK, RECORD], errors="ignore")
    table = data.to_dataframe(dim_order=sweep.plan.grid.dims)
    outcome = table.pop("outcome").map(OUTCOMES)
    table = table[sorted(table)]
    table.insert(0, "outcome", outcome)
    table.to_csv(path, lineterminator="\r\n")


def write_netcdf(sweep: Sweep, path: Path) -> None:
    """Write the dataset of a sweep as NetCDF 4, without the manifest.

    Raises InvalidRequest if h5netcdf is not installed.
    """
    try:
        import h5netcdf  # noqa: F401 (used by xarray)
        import h5py  # noqa: F401 (used by h5netcdf)
    except ImportError:
        raise InvalidRequest("NetCDF needs h5netcdf; pip install -e '.[netcdf]'") from None
    sweep.dataset.drop_dims(BLOCK).to_netcdf(path, engine="h5netcdf")


EXPORTS: Mapping[str, Callable[[Sweep, Path], None]] = {"csv": write_csv, "netcdf": write_netcdf}
