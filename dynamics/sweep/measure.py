"""One point of a sweep: a problem is made, trained, and reduced to a row of numbers.

A row holds ``outcome`` (an index into `dynamics.results.outcome.POINT_KINDS`), ``end_time``,
``time_<event>`` (left out where the event was not reached), on flows ``uncertainty_<event>``, and
what stands at the end: the scalar parts of the state and every observable. A *path*, on request,
holds the same scalars at logarithmically spaced times.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from pydantic import ValidationError

from dynamics.problem import FloatArray
from dynamics.registry import System, load_unchanged
from dynamics.results.outcome import INVALID, POINT_KINDS
from dynamics.results.trajectory import Trajectory
from dynamics.training.flow import check_flow, flow
from dynamics.training.gradient_descent import check_settings, descend
from dynamics.validation import InvalidRequest, first_problem, integer

CLOSED = ("scalars", "free", "sample_classes")
"""What is kept of the closure of a model of one's own."""

Row = dict[str, float]
Path = dict[str, list[float]]


@dataclass(frozen=True)
class Work:
    """What is done at every point.

    Attributes
    ----------
    reference : str
        What the system is found by: its name, or the path of its model file.
    words : mapping
        Options that are words: ``full``, ``expectation``, those of the empirical problem, and
        parameters that are words.
    records : int
        Records of the path after the start; 0 for no path.
    digests : mapping
        Part of the model -> short hash; empty for a built-in system.
    loaded : System or None
        The system itself, where it is known; else it is loaded when it is needed.
    """

    reference: str
    words: Mapping[str, str]
    records: int = 0
    digests: Mapping[str, str] = field(default_factory=dict)
    loaded: System | None = field(default=None, compare=False, repr=False)

    @cached_property
    def system(self) -> System:
        """The system.

        Raises
        ------
        InvalidRequest
            If it has to be loaded and cannot be, or its model is not what it was.
        """
        return self.loaded or load_unchanged(self.reference, self.digests)

    def parts(self, point: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """Parameters, and options of the run; free letters are in neither."""
        names, given = _names(self.system), {**point, **self.words}
        parameters = {name: value for name, value in given.items() if name in names}
        options = {name: value for name, value in given.items() if name not in names}
        return parameters, options

    def objection(self, point: Mapping[str, Any]) -> str:
        """Why a point cannot be run, before anything is made; empty if nothing is wrong."""
        parameters, options = self.parts(point)
        try:
            self.system.Parameters(**parameters)
            _check_run(options, self.system.flows)
        except ValidationError as error:
            return first_problem(error)
        except InvalidRequest as error:
            return str(error)
        return ""

    def measure(self, point: Mapping[str, Any]) -> tuple[Row, Path, str]:
        """Row and path of a point, and why it could not be made (then both are bare)."""
        system = self.system
        parameters, options = self.parts(point)
        try:
            problem = system.problem(system.Parameters(**parameters), options.get("full"), options)
        except (InvalidRequest, ValidationError) as error:
            reason = first_problem(error) if isinstance(error, ValidationError) else str(error)
            return {"outcome": INVALID}, {}, reason
        run = _trained(problem, options, self.records)
        return _row(run), _path(run, self.records), ""


def _names(system: System) -> tuple[str, ...]:
    return tuple(system.Parameters.__dataclass_fields__)


def _check_run(options: Mapping[str, Any], flows: bool) -> None:
    if "time" in options:
        check_flow(options["time"], options.get("rtol", 1e-8), flows)
    else:
        check_settings(options["eta"], options["steps"], "log")
    if "samples" in options:
        integer("samples", options["samples"], at_least=1, at_most=10**8)
    if "seed" in options:
        integer("seed", options["seed"], at_least=0, at_most=2**63 - 1)


def _trained(problem: Any, options: Mapping[str, Any], records: int) -> Trajectory:
    if "time" in options:
        horizon = float(options["time"])
        spaced = np.geomspace(min(1e-2, 1e-3 * horizon), horizon, records) if records else None
        times = 2 if spaced is None else np.append(0.0, spaced)
        return flow(problem, horizon, options.get("rtol", 1e-8), record=times)
    steps = int(options["steps"])
    at = np.rint(np.geomspace(1, steps, records)) if records else np.array([steps])
    return descend(problem, options["eta"], steps, np.unique(at).astype(np.int64))


def _scalars(run: Trajectory) -> dict[str, FloatArray]:
    """Series of the scalar parts of the state, then of the observables."""
    found = {
        name: run[name]
        for name, shape in zip(run.layout.names, run.layout.shapes, strict=True)
        if shape == ()
    }
    return found | {name: s for name, s in run.observables.items() if name not in found}


def _row(run: Trajectory) -> Row:
    row: Row = {
        "outcome": float(POINT_KINDS.index(run.outcome.kind)),
        "end_time": float(run.outcome.time),
    }
    for name, event in run.events.items():
        if event is not None:
            row[f"time_{name}"] = float(event.time)
            if event.step is None:
                row[f"uncertainty_{name}"] = float(event.uncertainty)
    closure = run.settings.get("closure", {})
    row |= {name: float(closure[name]) for name in CLOSED if name in closure}
    return row | {name: float(series[-1]) for name, series in _scalars(run).items()}


def _path(run: Trajectory, records: int) -> Path:
    """Series of equal length: a run that ended early is filled with NaN."""
    if not records:
        return {}
    series = {"time": run.time} | _scalars(run)
    return {f"path_{name}": filled(values, records + 1) for name, values in series.items()}


def filled(values: Sequence[float] | FloatArray, length: int) -> list[float]:
    """A series with NaN after its end."""
    return [*map(float, values[:length]), *[float("nan")] * (length - len(values))]
