"""A sweep before it is run: its points, the blocks they are done in, and what identifies it.

A block is a box of the grid, a part of its last dimensions. It is one task and one chunk of the
store, so that what is done is known block by block. The dearest blocks come first, by predicted
cost, so that a sweep does not end with one of them.
"""

from __future__ import annotations

import itertools
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, field, fields, replace
from difflib import get_close_matches
from functools import cached_property
from math import ceil, prod
from numbers import Real
from typing import Any

import numpy as np

from dynamics.registry import DRAWN, FULL, System
from dynamics.results.expression import Expression
from dynamics.results.presentation import Presentation
from dynamics.results.versions import versions
from dynamics.sweep.axes import Axis, Grid, grid
from dynamics.sweep.measure import Work
from dynamics.validation import InvalidRequest, integer, refuse

BLOCKS, MOST_IN_BLOCK = 64, 256
"""A sweep has about so many blocks, unless they would hold more points than this."""
FLOW_GRADIENTS = 3000.0
WORDS = ("full", "expectation")
"""Options whose values are words."""
RUN = ("time", "rtol", "eta", "steps", "tolerance", "dropped", *DRAWN)
"""Settings of a run that are numbers, and may be axes."""

Index = tuple[int, ...]


@dataclass(frozen=True)
class Plan:
    """What is to be done.

    Attributes
    ----------
    grid : Grid
    work : Work
    block : tuple of int
        Points of a block along each dimension.
    presentation : Presentation or None
        How its results are shown; None for stores that do not say.
    """

    grid: Grid
    work: Work
    block: tuple[int, ...] = field(default=())
    presentation: Presentation | None = field(default=None, compare=False, repr=False)

    def __post_init__(self) -> None:
        if not self.block:
            object.__setattr__(self, "block", block_shape(self.grid.shape))

    @property
    def description(self) -> dict[str, Any]:
        """All that the values in the store rest on, as plain values."""
        grid = self.grid
        own = {"model": dict(self.work.digests)} if self.work.digests else {}
        return {
            "system": self.work.reference,
            **own,
            "axes": {axis.name: list(axis.values) for axis in grid.axes},
            "fixed": {**grid.fixed, **dict(sorted(self.work.words.items()))},
            "derived": {name: str(formula) for name, formula in grid.derived.items()},
            "paired": grid.paired,
            "records": self.work.records,
            "block": list(self.block),
            "versions": versions(),
        }

    @cached_property
    def blocks(self) -> tuple[Index, ...]:
        """Position of every block among the blocks."""
        counts = (ceil(n / b) for n, b in zip(self.grid.shape, self.block, strict=True))
        return tuple(itertools.product(*map(range, counts)))

    def box(self, number: int) -> tuple[slice, ...]:
        """Where a block stands in the grid."""
        corner = zip(self.blocks[number], self.block, self.grid.shape, strict=True)
        return tuple(slice(k * b, min(k * b + b, n)) for k, b, n in corner)

    def indices(self, number: int) -> Iterator[Index]:
        """The points of a block, in order."""
        return itertools.product(*(range(s.start, s.stop) for s in self.box(number)))

    def objection(self, index: Index) -> str:
        """Why a point cannot be run; empty if nothing is wrong."""
        try:
            return self.work.objection(self.grid.at(index))
        except InvalidRequest as error:
            return str(error)

    @cached_property
    def objections(self) -> Mapping[Index, str]:
        """The points that cannot be run, and why.

        Raises
        ------
        InvalidRequest
            If none can.
        """
        told = {index: self.objection(index) for index in self.grid}
        found = {index: why for index, why in told.items() if why}
        if len(found) == self.grid.size:
            raise InvalidRequest(next(iter(found.values())))
        return found

    def cost(self, index: Index) -> float:
        """Predicted seconds of a point; 0 for one that cannot be run."""
        if index in self.objections:
            return 0.0
        system = self.work.system
        parameters, options = self.work.parts(self.grid.at(index))
        steps = FLOW_GRADIENTS if "time" in options else float(options["steps"])
        made = system.Parameters(**parameters)
        return steps * system.seconds(made, options.get("full"), options)

    def check(self) -> None:
        """Make the cheapest problem where words or free letters have to be seen to be right.

        Raises
        ------
        InvalidRequest
            If it cannot be made; then no other can.
        """
        letters = [axis.name for axis in self.grid.axes if axis.name not in self._known()]
        if not self.work.words and not letters:
            return
        index = min((i for i in self.grid if i not in self.objections), key=self.cost)
        parameters, options = self.work.parts(self.grid.at(index))
        system = self.work.system
        problem = system.problem(system.Parameters(**parameters), options.get("full"), options)
        taken = {"done", "block", "record", "point", "outcome", "end_time"}
        if letters:
            taken |= {*problem.layout.names, *problem.observables(problem.initial_state)}
        for name in letters:
            if name in taken or name.startswith(("time_", "path_", "uncertainty_")):
                refuse("let", name, "is the name of a quantity", "any other name", f"{name}_")

    def _known(self) -> set[str]:
        """Names that are not free letters."""
        system = self.work.system
        return {*(f.name for f in fields(system.Parameters)), *RUN, *system.realistic}

    def order(self, numbers: Sequence[int]) -> list[int]:
        """Blocks, the dearest first."""
        costs = {number: sum(map(self.cost, self.indices(number))) for number in numbers}
        return sorted(numbers, key=lambda number: (-costs[number], number))


def planned(system: System, given: Mapping[str, Any], paired: bool, records: int) -> Plan:
    """The plan of a request; axes are in the order of the parameters, however they are given.

    Parameters
    ----------
    system : System
    given : mapping
        Name -> number, values or text, for parameters, settings of the run (`RUN`), options of the
        empirical problem, and free letters that expressions use; words for ``full`` and such; one
        list, or its text, for a parameter that is a list.
    paired : bool
        Walk all axes together.
    records : int
        Records of a path at every point; 0 for none.

    Raises
    ------
    InvalidRequest
        For a name that nothing uses, settings that exclude each other, or an entry that is wrong.
    """
    parameters: dict[str, Any] = {f.name: f.default for f in fields(system.Parameters)}
    words = {
        name: _listed(value) if isinstance(parameters.get(name), tuple) else value
        for name, value in given.items()
        if _is_word(name, value, system, parameters)
    }
    numbers = {n: v for n, v in given.items() if n not in words}
    full = words.get("full")
    if full not in (None, *FULL):
        near = get_close_matches(full, FULL, 1, 0.0)[0]
        refuse("full", full, "is unknown", ", ".join(FULL), near)
    sampled = full == "empirical" or words.get("expectation") == "sampled"
    for name in DRAWN:
        if name in numbers and not sampled and name not in system.drawn:
            raise InvalidRequest(f"{name} is of {system.draws}")
    numbers = _with_run(system, full, numbers)
    usual = {name: value for name, value in parameters.items() if isinstance(value, Real)}
    order = {name: k for k, name in enumerate((*parameters, *RUN))}
    made = grid(usual | numbers, paired)
    fixed = dict(sorted(made.fixed.items(), key=lambda item: (order.get(item[0], 99), item[0])))
    made = replace(made, fixed=fixed)
    used = {name for expression in made.derived.values() for name in expression.names}
    known = [*parameters, *RUN, *system.realistic]
    for name in numbers:
        if name not in known and name not in used:
            near = get_close_matches(name, known, 1, 0.0)[0]
            refuse("name", name, "is unknown, and no formula uses it", ", ".join(known), near)
    count = integer("trajectory", records, at_least=0)
    work = Work(system.reference, words, count, dict(system.digests), system)
    return Plan(made, work, presentation=system.presentation)


def whole_names(system: System) -> set[str]:
    """Parameters and settings that are whole numbers."""
    own = {f.name for f in fields(system.Parameters) if isinstance(f.default, int)}
    return own | {"d", "steps", *DRAWN}


def _is_word(name: str, value: Any, system: System, parameters: Mapping[str, Any]) -> bool:
    """Whether an entry is a word of an option or a parameter, not a number or a formula.

    A parameter that is a list, as its default is, is one word, and never an axis.
    """
    if name in WORDS or isinstance(parameters.get(name), (str, tuple)):
        return True
    return name in system.realistic and isinstance(value, str) and value.isidentifier()


def _listed(value: Any) -> str:
    """A list as text, equal for equal lists: entries with commas, rows with semicolons."""
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


def _with_run(system: System, full: str | None, numbers: Mapping[str, Any]) -> dict[str, Any]:
    """Settings of the run beside those given: what the system does by default."""
    descent = [name for name in ("eta", "steps") if name in numbers]
    if "time" in numbers and descent:
        raise InvalidRequest(f"{descent[0]} is of gradient descent and time of the flow; give one")
    if "rtol" in numbers and descent:
        raise InvalidRequest(f"rtol is of the flow and {descent[0]} of gradient descent; give one")
    usual = system.showcases["empirical" if full == "empirical" else "run"]
    found = dict(numbers)
    if full == "empirical":
        found.setdefault("samples", usual.samples)
    if "time" in numbers:
        return found
    if descent or full or not system.flows:
        return {"eta": usual.eta, "steps": usual.steps} | found
    return {"time": usual.eta * usual.steps} | found


def restored(description: Mapping[str, Any], presentation: Presentation | None = None) -> Plan:
    """The plan that a store describes; its system is loaded when something needs it."""
    words = {n: v for n, v in description["fixed"].items() if isinstance(v, str)}
    fixed = {n: v for n, v in description["fixed"].items() if n not in words}
    axes = tuple(Axis(name, tuple(values)) for name, values in description["axes"].items())
    derived = {name: Expression(text, name) for name, text in description["derived"].items()}
    made = Grid(axes, fixed, derived, description["paired"])
    digests = description.get("model", {})
    work = Work(description["system"], words, description["records"], digests)
    return Plan(made, work, tuple(description["block"]), presentation)


def block_shape(shape: Sequence[int]) -> tuple[int, ...]:
    """Whole last dimensions and a part of the one before, about a `BLOCKS`-th of the points."""
    left = max(1, min(MOST_IN_BLOCK, ceil(prod(shape) / BLOCKS)))
    found: list[int] = []
    for length in reversed(shape):
        part = min(length, left)
        found.append(part)
        left = max(1, left // length)
    return tuple(reversed(found))
