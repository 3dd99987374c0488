"""Plan of a sweep: its points, its blocks, and the request that identifies it.

A block consists of the grid points with given indices in the first dimensions, a range of indices
in one dimension, and any indices in the last dimensions. Each block is one chunk of the store, and
progress is recorded by block. Several workers share the points of a block.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from functools import cached_property
from math import ceil, prod
from numbers import Real
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynamics.presentation import Presentation
from dynamics.results.expression import Expression
from dynamics.results.storage import differences, versions
from dynamics.sweep.axes import PAIRED, Axis, Grid, grid, switched
from dynamics.sweep.point_runner import PointRunner
from dynamics.system import EXPECTATION_OPTIONS, FULL, SAMPLING_OPTIONS, System
from dynamics.training import progress
from dynamics.training.rules import check_rated, default_words, in_words
from dynamics.validation import InvalidRequest, brief, integer, known_word, refuse
from theory.update_rules import OPTIONS

BLOCKS, MOST_IN_BLOCK = 32, 256
"""Approximate number of blocks of a sweep, and maximum number of points of a block."""
LOOKED_AT = 512
"""Maximum number of points of a grid that is validated completely before the run; a larger grid is
validated block by block."""
TRIED = 5
"""Maximum number of problems that are constructed to validate options and letters of formulas."""
MODEL = "model"
"""Name of the entry of `Plan.description` that maps each part of a user's model to its hash."""
OBSERVED = "observed_"
"""Prefix of a quantity whose name is also that of a swept option, such as ``spread``."""
WORDS = ("full", "expectation", "rule", "schedule", "stages")
"""Options whose values are words, not numbers."""
CONSTANTS = tuple(name for name in OPTIONS if name not in WORDS)
RUN = ("time", "rtol", "eta", "steps", "tolerance", *SAMPLING_OPTIONS, *CONSTANTS)
"""Numerical settings of a run, which may be axes of a sweep."""

Index = tuple[int, ...]


@dataclass(frozen=True)
class Plan:
    """The points of a sweep, divided into blocks."""

    grid: Grid
    runner: PointRunner
    block: tuple[int, ...] = field(default=())
    """Number of points of a block along each dimension."""
    presentation: Presentation | None = field(default=None, compare=False, repr=False)
    """Labels of the results, or None for a store without labels."""

    def __post_init__(self) -> None:
        if not self.block:
            object.__setattr__(self, "block", block_shape(self.grid.shape))

    @property
    def description(self) -> dict[str, Any]:
        """All settings and versions that determine the values in the store, in JSON types."""
        grid = self.grid
        model = {MODEL: dict(self.runner.digests)} if self.runner.digests else {}
        return {
            "system": self.runner.reference,
            **model,
            "axes": {axis.name: list(axis.values) for axis in grid.axes},
            "fixed": {**grid.fixed, **dict(sorted(self.runner.words.items()))},
            "derived": {name: str(formula) for name, formula in grid.derived.items()},
            "paired": grid.paired,
            "records": self.runner.records,
            "block": list(self.block),
            "versions": versions(),
        }

    @cached_property
    def blocks(self) -> tuple[Index, ...]:
        """Position of every block in the grid of blocks."""
        counts = (ceil(n / b) for n, b in zip(self.grid.shape, self.block, strict=True))
        return tuple(itertools.product(*map(range, counts)))

    def box(self, number: int) -> tuple[slice, ...]:
        """Slices of the grid that the block with this number covers."""
        corner = zip(self.blocks[number], self.block, self.grid.shape, strict=True)
        return tuple(slice(k * b, min(k * b + b, n)) for k, b, n in corner)

    def indices(self, number: int) -> Iterator[Index]:
        """Indices of the points of a block, in order."""
        return itertools.product(*(range(s.start, s.stop) for s in self.box(number)))

    def size(self, number: int) -> int:
        """Number of points of a block."""
        return prod(part.stop - part.start for part in self.box(number))

    @cached_property
    def _reasons(self) -> dict[Index, str]:
        """Point -> why it is invalid, "" if valid; a large grid keeps only invalid points."""
        return {}

    def invalid_reason(self, index: Index) -> str:
        """Reason why a point is invalid, or "" for a valid point."""
        if index in self._reasons:
            return self._reasons[index]
        try:
            reason = self.runner.invalid_reason(self.grid.at(index))
        except InvalidRequest as error:
            reason = str(error)
        if reason or self.grid.size <= LOOKED_AT:
            self._reasons[index] = reason
        return reason

    @cached_property
    def invalid_reasons(self) -> Mapping[Index, str]:
        """Index of an invalid point -> reason; every point of the grid is validated.

        Raises InvalidRequest if all points are invalid.
        """
        with progress.bar("check", self.grid.size, unit="points") as bar:
            for index in self.grid:
                self.invalid_reason(index)
                bar.update(1)
        invalid = {index: reason for index, reason in self._reasons.items() if reason}
        if len(invalid) == self.grid.size:
            raise InvalidRequest(invalid[next(iter(self.grid))])
        return invalid

    @cached_property
    def first_valid(self) -> Index:
        """Index of a valid point; the ends of blocks are tried before all other points.

        Raises InvalidRequest if all points are invalid.
        """
        for number in range(len(self.blocks)):
            for index in self._ends(number):
                if not self.invalid_reason(index):
                    return index
        return next(index for index in self.grid if index not in self.invalid_reasons)

    def _ends(self, number: int) -> list[Index]:
        """Points validated for a block: all points of a small grid, else the first and the last."""
        if self.grid.size <= LOOKED_AT:
            return list(self.indices(number))
        box = self.box(number)
        return [tuple(part.start for part in box), tuple(part.stop - 1 for part in box)]

    def column(self, quantity: str) -> str:
        """Name of a quantity in the store, prefixed if an axis or a formula has the same name."""
        taken = any(quantity == axis.name for axis in self.grid.axes)
        return OBSERVED + quantity if taken or quantity in self.grid.derived else quantity

    @cached_property
    def frame(self) -> dict[str, tuple[tuple[str, ...], NDArray[Any]]]:
        """Name of an axis or derived parameter -> dimensions and values, NaN where undefined."""
        grid = self.grid
        axes = {
            a.name: (grid.dims if grid.paired else (a.name,), np.array(a.values)) for a in grid.axes
        }
        paired = {PAIRED: ((PAIRED,), np.arange(grid.size))} if grid.paired else {}
        derived = {name: (grid.dims, grid.table(name)) for name in grid.derived}
        return {**axes, **paired, **derived}

    def check(self) -> None:
        """Check text options by constructing a problem, and letters of expressions by their names.

        Raises InvalidRequest if no problem of the first `TRIED` points can be constructed, or a
        letter has the name of a quantity.
        """
        system = self.runner.system
        allowed = {*(f.name for f in fields(system.Parameters)), *RUN, *system.empirical_options}
        grid = self.grid
        named = [*(axis.name for axis in grid.axes), *grid.derived, *grid.fixed]
        letters = [name for name in named if name not in allowed]
        if not self.runner.words and not letters:
            return
        ends = itertools.chain.from_iterable(map(self._ends, range(len(self.blocks))))
        valid = (index for index in ends if not self.invalid_reason(index))
        refusal = ""
        for index in [*itertools.islice(valid, TRIED)] or [self.first_valid]:
            try:
                problem = self.runner.problem(grid.at(index))
                self.runner.check_rule(problem, grid.at(index))
                break
            except Exception as error:
                refusal = refusal or str(error)
        else:
            raise InvalidRequest(refusal)
        quantities = {"done", "block", "record", "point", "outcome", "end_time"}
        if letters:
            quantities |= {*problem.layout.names, *problem.observables(problem.initial_state)}
        for name in letters:
            if name in quantities or name.startswith(("time_", "path_", "uncertainty_", OBSERVED)):
                refuse("let", name, "is the name of a quantity", "any other name", f"{name}_")


def different_entries(stored: Mapping[str, Any], request: Mapping[str, Any]) -> list[str]:
    """Differences between two descriptions of `Plan.description`, as texts."""
    pairs = [
        f"{name}: stored {_shortened(before)}, requested {_shortened(now)}"
        for name, before, now in differences(_by_name(stored), _by_name(request))
    ]
    if not pairs and list(stored["axes"]) != list(request["axes"]):
        orders = " and ".join(",".join(axes) for axes in (stored["axes"], request["axes"]))
        pairs = [f"order of axes: {orders}"]
    return pairs


def _by_name(request: Mapping[str, Any]) -> dict[str, Any]:
    """Flatten a description: an entry for each parameter, program version and part of the model."""
    entries: dict[str, Any] = {}
    for name, value in request.items():
        if name == "versions":
            entries |= {f"version of {program}": version for program, version in value.items()}
        elif name == MODEL:
            entries |= {f"{part} of the model": digest for part, digest in value.items()}
        else:
            entries |= value if isinstance(value, dict) else {name: value}
    return entries


def _shortened(value: Any) -> str:
    if value is None:
        return "not given"
    if isinstance(value, list) and len(value) > 3:
        return f"{value[0]:g} ... {value[-1]:g} ({len(value)} values)"
    if isinstance(value, list):
        return ",".join(f"{entry:g}" for entry in value)
    return f"{value:g}" if isinstance(value, float) else brief(str(value))


def planned(system: System, entries: Mapping[str, Any], paired: bool, records: int) -> Plan:
    """Make the plan of a request; the axes follow the order of the parameters.

    Names in `entries` are parameters, settings of the run (`RUN`), options of the empirical problem
    and letters for use in expressions; their entries are numbers, sequences or text. An option such
    as ``full`` has one word, a parameter with list values one list, for all points. Each point
    stores `records` records of its path. Raises InvalidRequest for unused names, conflicting
    settings, or an invalid entry.
    """
    parameters: dict[str, Any] = {f.name: f.default for f in fields(system.Parameters)}
    switches = {name for name, default in parameters.items() if isinstance(default, bool)}
    switches |= {"nesterov", "rule.nesterov"} - parameters.keys()
    entries = in_words(entries, parameters)
    entries = {n: switched(v) if n in switches else v for n, v in entries.items()}
    words = {
        name: _listed(value) if isinstance(parameters.get(name), tuple) else value
        for name, value in entries.items()
        if _is_word(name, value, system, parameters)
    }
    for name, value in words.items():
        many = not isinstance(value, str) or "," in value
        if many and isinstance(parameters.get(name), str):
            raise InvalidRequest(f"{name}={value!r} is not one word; {name} cannot be an axis")
    numbers = {n: v for n, v in entries.items() if n not in words}
    full = words.get("full")
    if full is not None:
        known_word("full", full, FULL)
    sampled = full == "empirical" or words.get("expectation") == "sampled"
    for name in SAMPLING_OPTIONS:
        own = name in parameters or name in system.sampling_options
        if name in numbers and not sampled and not own:
            raise InvalidRequest(f"{name} needs {system.sampling_hint}")
    for name in EXPECTATION_OPTIONS:
        if name in entries and full is None and name not in system.expectation_options:
            raise InvalidRequest(f"{name} is not an option of the reduced problem of {system.name}")
    words, numbers = _with_run(system, words, numbers)
    defaults = {n: switched(value) for n, value in parameters.items() if isinstance(value, Real)}
    order = {name: k for k, name in enumerate((*parameters, *RUN))}
    points = grid(defaults | numbers, paired)
    fixed = dict(sorted(points.fixed.items(), key=lambda item: (order.get(item[0], 99), item[0])))
    points = replace(points, fixed=fixed)
    used = {name for expression in points.derived.values() for name in expression.names}
    allowed = [*parameters, *RUN, *system.empirical_options]
    for name in numbers:
        if name not in used:
            known_word("name", name, allowed, "is unknown, and no formula uses it")
    count = integer("trajectory", records, at_least=0)
    runner = PointRunner(system.reference, words, count, dict(system.digests), system)
    return Plan(points, runner, presentation=system.presentation)


def whole_names(system: System) -> set[str]:
    """Names of the parameters and settings that are integers."""
    own = {f.name for f in fields(system.Parameters) if isinstance(f.default, int)}
    return own | {"d", "steps", *SAMPLING_OPTIONS}


def _is_word(name: str, value: Any, system: System, parameters: Mapping[str, Any]) -> bool:
    """Whether an entry is a word, not a number, axis or formula."""
    if name in WORDS or isinstance(parameters.get(name), (str, tuple)):
        return True
    return name in system.empirical_options and isinstance(value, str) and value.isidentifier()


def _listed(value: Any) -> str:
    """Canonical text of a list: commas between entries, semicolons between rows."""
    rows: Any = [[value]]
    if isinstance(value, str):
        rows = [row.split(",") for row in value.split(";")]
    elif isinstance(value, (Sequence, np.ndarray)):
        nested = any(isinstance(row, (Sequence, np.ndarray)) for row in value)
        rows = value if nested else [value]
    many = [row if isinstance(row, (Sequence, np.ndarray)) else [row] for row in rows]
    return ";".join(",".join(map(_written, row)) for row in many)


def _written(entry: Any) -> str:
    try:
        number = float(entry)
    except (TypeError, ValueError, OverflowError):
        return str(entry).strip()
    return str(int(number)) if number.is_integer() else repr(number)


def _with_run(
    system: System, words: dict[str, Any], numbers: Mapping[str, Any]
) -> tuple[dict[str, Any], dict[str, Any]]:
    """Add a system's default run settings to the text options and the numbers of a request."""
    own = {field.name for field in fields(system.Parameters)}
    given = {n: v for n, v in {**numbers, **words}.items() if n not in own}
    descent, full = [n for n in ("eta", "steps", *OPTIONS) if n in given], words.get("full")
    if "time" in numbers and descent:
        raise InvalidRequest(f"give {descent[0]} (descent) or time (flow), not both")
    if "rtol" in numbers and descent:
        raise InvalidRequest(f"give rtol (flow) or {descent[0]} (descent), not both")
    default = system.default_runs["empirical" if full == "empirical" else "run"]
    settings = {"samples": default.samples} if full == "empirical" else {}
    if "time" in numbers:
        return words, settings | dict(numbers)
    check_rated(given, default)
    usual = default_words(default)
    if descent or full or usual or not system.flows:
        usual_run = {"eta": default.eta, "steps": default.steps}
        return usual | words, settings | usual_run | dict(numbers)
    return words, {"time": default.eta * default.steps} | dict(numbers)


def restored(request: Mapping[str, Any], presentation: Presentation | None = None) -> Plan:
    """Make the plan of a stored request; the system is loaded only when needed."""
    words = {n: v for n, v in request["fixed"].items() if isinstance(v, str)}
    fixed = {n: v for n, v in request["fixed"].items() if n not in words}
    axes = tuple(Axis(name, tuple(values)) for name, values in request["axes"].items())
    derived = {name: Expression(text, name) for name, text in request["derived"].items()}
    points = Grid(axes, fixed, derived, request["paired"])
    digests = request.get(MODEL, {})
    runner = PointRunner(request["system"], words, request["records"], digests)
    return Plan(points, runner, tuple(request["block"]), presentation)


def block_shape(shape: Sequence[int]) -> tuple[int, ...]:
    """Shape of a block: first dimensions 1, one dimension in part, last dimensions complete."""
    left = min(MOST_IN_BLOCK, ceil(prod(shape) / BLOCKS))
    parts: list[int] = []
    for length in reversed(shape):
        parts.append(min(length, left))
        left = max(1, left // length)
    return tuple(reversed(parts))
