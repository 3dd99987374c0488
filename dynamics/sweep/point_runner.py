"""One point of a sweep: its problem is constructed, trained, and summarized as a row of numbers.

A row holds ``outcome`` (an index into `dynamics.results.outcome.POINT_KINDS`), ``end_time``, and
the final values of the scalars and observables. For each reached event the row has
``time_<event>``, and for flows also ``uncertainty_<event>``. An optional *path* holds the scalars
and observables at logarithmically spaced times.
"""

from __future__ import annotations

import threading
import traceback
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from functools import cached_property
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynamics.problem import Problem
from dynamics.registry import load_unchanged
from dynamics.results.outcome import INVALID, KILLED, POINT_KINDS
from dynamics.results.trajectory import Trajectory
from dynamics.system import System
from dynamics.training.descent import descend
from dynamics.training.flow import flow
from dynamics.training.rules import check_rule, requested
from dynamics.training.settings import check_flow, check_settings
from dynamics.validation import InvalidRequest, integer
from theory.law import error_text

CLOSURE_SIZES = ("scalars", "free", "sample_classes")
"""Columns of a sweep result with the sizes of the closed reduced system of a user's model."""

Row = dict[str, float]
Path = dict[str, list[float]]
Measured = tuple[Row, Path, str]
"""Row and path of a point; reason why the point is invalid, or ``""`` for a valid point."""

_ONE_AT_A_TIME = threading.Lock()


@dataclass(frozen=True)
class PointRunner:
    """System and common settings of the points of a sweep; runs the points."""

    reference: str
    """Name of the system, or path of its model file."""
    words: Mapping[str, str]
    """Option or parameter with text values -> its value, such as ``full`` -> ``empirical``."""
    records: int = 0
    """Number of records of the path after the record at the start; 0 for no path."""
    digests: Mapping[str, str] = field(default_factory=dict)
    """Part of the model -> its hash; empty for a library system."""
    loaded: System | None = field(default=None, compare=False, repr=False)
    """The system, if it is already loaded; a pickled runner does not contain the system."""

    def __reduce__(self) -> tuple[Any, ...]:
        return PointRunner, (self.reference, self.words, self.records, self.digests)

    @cached_property
    def system(self) -> System:
        """The system, loaded on first use; an InvalidRequest is raised if its model has changed."""
        return self.loaded or load_unchanged(self.reference, self.digests)

    def parts(self, point: Mapping[str, Any]) -> tuple[dict[str, Any], dict[str, Any]]:
        """Split the entries of a point into parameters of the system and all other entries."""
        names = self.system.Parameters.__dataclass_fields__
        entries = {**point, **self.words}
        parameters = {name: value for name, value in entries.items() if name in names}
        options = {name: value for name, value in entries.items() if name not in names}
        return parameters, options

    def problem(self, point: Mapping[str, Any]) -> Any:
        """The problem of a point; raises InvalidRequest if the point's parameters are invalid."""
        parameters, options = self.parts(point)
        made = self.system.Parameters(**parameters)
        return self.system.problem(made, options.get("full"), options)

    def _how(self, options: Mapping[str, Any]) -> dict[str, Any]:
        """Rule, schedule and stages in the options of a run; empty for a flow."""
        return {} if "time" in options else requested(options, self.system.default_runs["run"])

    def check_rule(self, problem: Problem, point: Mapping[str, Any]) -> None:
        """Refuse a schedule or stages that are invalid for a problem at a point."""
        options = self.parts(point)[1]
        if how := self._how(options):
            check_rule(problem, int(options["steps"]), **how)

    def invalid_reason(self, point: Mapping[str, Any]) -> str:
        """Reason why a point's numbers are invalid, found without training; ``""`` if valid."""
        parameters, options = self.parts(point)
        try:
            self.system.Parameters(**parameters)
            _check_run(options, self.system.flows)
            self._how(options)
        except InvalidRequest as error:
            return str(error)
        return ""

    def measure(self, points: Sequence[Mapping[str, Any]]) -> list[Measured]:
        """Run points one after the other; return row, path and reason of each point.

        The reason states why the point is invalid; it is empty for a valid point.
        """
        return list(map(self._measured, points))

    def _measured(self, point: Mapping[str, Any]) -> Measured:
        try:
            options = self.parts(point)[1]
            run = _trained(self.problem(point), options, self.records, self._how(options))
            return _row(run), _path(run, self.records), ""
        except BaseException as error:
            return _failed(error)

    def refusal(self, point: Mapping[str, Any]) -> str:
        """Reason why a point is invalid, found by running it; ``""`` for a valid point."""
        return self.measure([point])[0][2]


def measure_points(runner: PointRunner, points: Sequence[Mapping[str, Any]]) -> list[Measured]:
    """Run points, each a mapping of all parameters and settings, in the calling process.

    Raises InvalidRequest if the system cannot be loaded or its model has changed, and RuntimeError
    with a traceback for any other exception.
    """
    with _ONE_AT_A_TIME:
        try:
            _ = runner.system
            return runner.measure(points)
        except InvalidRequest:
            raise
        except Exception:
            # The traceback is passed as text, because not every exception can be pickled.
            raise RuntimeError(f"a worker failed:\n{traceback.format_exc()}") from None


def killed() -> Measured:
    """Result of a point that has killed its worker."""
    return {"outcome": float(POINT_KINDS.index(KILLED))}, {}, KILLED


def _failed(error: BaseException) -> Measured:
    """Result of a point that raised an error; an interruption is raised again."""
    if isinstance(error, KeyboardInterrupt):
        raise error
    if isinstance(error, MemoryError):
        return killed()
    reason = str(error) if isinstance(error, InvalidRequest) else f"raises {error_text(error)}"
    return {"outcome": INVALID}, {}, reason


def _check_run(options: Mapping[str, Any], flows: bool) -> None:
    if "time" in options:
        check_flow(options["time"], options.get("rtol", 1e-8), flows)
    else:
        check_settings(options["eta"], options["steps"], "log")
    if "samples" in options:
        integer("samples", options["samples"], at_least=1, at_most=10**8)
    if "seed" in options:
        integer("seed", options["seed"], at_least=0, at_most=2**63 - 1)


def _trained(
    problem: Problem, options: Mapping[str, Any], records: int, how: Mapping[str, Any]
) -> Trajectory:
    """Train the problem of a point to the end of the run."""
    if "time" in options:
        horizon = float(options["time"])
        times = np.append(0.0, _spaced(min(1e-2, 1e-3 * horizon), horizon, records))
        return flow(problem, horizon, options.get("rtol", 1e-8), record=times if records else 2)
    steps = int(options["steps"])
    at = np.rint(_spaced(1.0, steps, records)) if records else np.array([steps])
    return descend(problem, options["eta"], steps, record=np.unique(at).astype(np.int64), **how)


def _spaced(first: float, last: float, count: int) -> NDArray[np.float64]:
    """Geometrically spaced values from `first` to `last`, or only `last` if `count` is 1."""
    values = np.geomspace(first, last, count)
    values[-1:] = last
    return values


def _row(run: Trajectory) -> Row:
    row: Row = {
        "outcome": float(POINT_KINDS.index(run.outcome.kind)),
        "end_time": float(run.outcome.time),
    }
    for name, event in run.events.items():
        if event:
            row[f"time_{name}"] = float(event.time)
            if event.step is None:
                row[f"uncertainty_{name}"] = float(event.uncertainty)
    closure = run.settings.get("closure", {})
    row |= {name: float(closure[name]) for name in CLOSURE_SIZES if name in closure}
    return row | {name: float(series[-1]) for name, series in run.scalars.items()}


def _path(run: Trajectory, records: int) -> Path:
    """Series of the time, the scalars and the observables, with NaN after the end of the run."""
    if not records:
        return {}
    series = {"time": run.time} | run.scalars
    path = {name: values[: records + 1].tolist() for name, values in series.items()}
    missing = float("nan")
    return {f"path_{n}": [*v, *[missing] * (records + 1 - len(v))] for n, v in path.items()}
