"""Refinement of the boundaries of a sweep by further runs; results of the sweep are reused.

Each batch of new points is stored as a sweep at ``STORE.refined/QUESTION/...``, so a repeated
refinement runs only missing points.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import numpy as np

from dynamics.phase_diagrams.boundaries import Refined, refine
from dynamics.phase_diagrams.quantities import Quantity
from dynamics.phase_diagrams.selection import Slice, hold, select
from dynamics.problem import FloatArray
from dynamics.results.outcome import INTERRUPTED
from dynamics.sweep import Sweep, load, sweep
from dynamics.sweep.axes import PAIRED
from dynamics.sweep.plan import planned, whole_names
from dynamics.validation import InvalidRequest
from theory.summary import summarized


@summarized
@dataclass(frozen=True)
class Refinement:
    """A refined boundary and the number of its runs.

    The number `runs` counts points run in this call, `stored` points reused from the sweep or an
    earlier call. The mapping `held` gives the value of each parameter that is equal in all runs.
    """

    refined: Refined
    runs: int
    stored: int
    held: Mapping[str, Any]


@summarized
@dataclass(frozen=True)
class Question:
    """A yes-or-no quantity over two axes of a sweep, with the lattices of its refinement.

    An example of a `quantity` is ``"patch_association>=1"`` or ``"reached(T1)"``. The names of the
    two axes are `x` and `y`; `at` maps the name of every other axis to a fixed value. Each side has
    `coarse` points in the first lattice, and `cells` cells in the finest. The error of the
    boundary, relative to the length of each axis, is at most `tolerance`.
    """

    quantity: str
    x: str
    y: str
    at: Mapping[str, float]
    coarse: int = 9
    cells: int = 64
    tolerance: float | None = None

    @property
    def folder(self) -> str:
        """Name of the folder for the runs of the question; it does not depend on the lattice."""
        text = repr((self.quantity, self.x, self.y, sorted(self.at.items())))
        return "".join(c if c.isalnum() else "-" for c in self.quantity) + (
            "-" + hashlib.sha256(text.encode()).hexdigest()[:8]
        )


def refinement(
    store: Sweep, question: Question, out: Path, workers: int | None = None,
    scheduler: str | None = None,
) -> Refinement:  # fmt: skip
    """Refine the boundary of a yes-or-no quantity of a sweep between the ends of two axes.

    The runs are stored in the folder `out`; `workers` and `scheduler` are those of
    `dynamics.sweep`. Raises InvalidRequest if the question is invalid, or the sweep is paired.
    Raises KeyboardInterrupt if interrupted; finished runs stay stored.
    """
    if store.plan.grid.paired:
        raise InvalidRequest("refine needs a sweep over a grid; this sweep is paired")
    if not Quantity.read(question.quantity, store.dataset).yes_no:
        raise InvalidRequest(
            f"quantity={question.quantity!r} is a number; refine needs a yes or no, as "
            f"{question.quantity}<1 or reached(NAME)"
        )
    for name in (question.x, question.y):
        if name in whole_names(store.plan.runner.system):
            raise InvalidRequest(f"{name} is a whole number; refine needs two continuous axes")
    slice_ = select(store.dataset, question.quantity, question.x, question.y, question.at)
    if slice_.seeds > 1:
        raise InvalidRequest("refine needs one seed; select it by --at seed=0")
    assert slice_.y is not None
    waves = _Waves(store, question, slice_, out / question.folder, workers, scheduler)
    at = [(x, y) for y in slice_.y.values for x in slice_.x.values]
    known = np.column_stack([np.array(at), slice_.values[0].ravel()])
    lattice = question.coarse, question.cells, question.tolerance
    refined = refine(waves, slice_.x, slice_.y, *lattice, known[~np.isnan(known[:, 2])])
    return Refinement(refined, waves.runs, waves.stored, slice_.held)


class _Waves:
    """Answers at batches of points, from the stored sweep if possible, else from new sweeps."""

    def __init__(
        self,
        store: Sweep,
        question: Question,
        slice_: Slice,
        folder: Path,
        workers: int | None,
        scheduler: str | None,
    ) -> None:
        self.store, self.question, self.folder = store, question, folder
        self.workers, self.scheduler = workers, scheduler
        self.held = hold(store.dataset, question.at)[1]
        self.runs = self.stored = 0
        self.answers: dict[tuple[str, str], float] = {}
        self._add_earlier()
        assert slice_.y is not None
        points = ((x, y) for y in slice_.y.values for x in slice_.x.values)
        self._add(points, slice_.values[0].ravel())

    def _add(self, points: Iterable[tuple[float, float]], answers: FloatArray) -> None:
        """Store known answers at points."""
        for point, answer in zip(points, answers, strict=True):
            if not np.isnan(answer):
                self.answers[_key(*point)] = float(answer)

    def __call__(self, points: FloatArray) -> FloatArray:
        answers = np.array([self.answers.get(_key(x, y), np.nan) for x, y in points])
        new = np.isnan(answers)
        self.stored += int((~new).sum())
        if new.any():
            answers[new] = self._run(points[new])
        return answers

    def _request(self, points: FloatArray) -> dict[str, Any]:
        """Request of the paired sweep that runs a batch of points."""
        grid = self.store.plan.grid
        axes = {self.question.x: points[:, 0], self.question.y: points[:, 1]}
        free = [axis for axis in grid.axes if axis.name not in axes]
        others = {axis.name: self.held.get(axis.name, axis.values[0]) for axis in free}
        derived = {name: str(formula) for name, formula in grid.derived.items()}
        return {**grid.fixed, **self.store.plan.runner.words, **derived, **others, **axes}

    def _add_earlier(self) -> None:
        """Add the answers of earlier batches with the same question, settings and versions."""
        for file in sorted(self.folder.glob("*/zarr.json")):
            try:
                wave = load(file.parent)
            except InvalidRequest:
                continue
            own = wave.plan.description
            x, y = (np.array(own["axes"].get(n, [])) for n in (self.question.x, self.question.y))
            points = np.column_stack([x, y])
            system = self.store.plan.runner.system
            request = planned(system, self._request(points), True, 0).description
            same = ("system", "model", "fixed", "derived", "versions")
            if all(own.get(name) == request.get(name) for name in same):
                self._add(map(tuple, points), self._read(wave))

    def _run(self, points: FloatArray) -> FloatArray:
        content = hashlib.sha256(np.ascontiguousarray(points).tobytes()).hexdigest()[:16]
        ran = sweep(
            self.store.plan.runner.system, self._request(points), self.folder / content,
            paired=True, workers=self.workers, scheduler=self.scheduler,
        )  # fmt: skip
        if ran.interrupted:
            raise KeyboardInterrupt(INTERRUPTED)
        self.runs += len(points)
        values = self._read(ran)
        return np.where(np.isnan(values), -1.0, values)

    def _read(self, wave: Sweep) -> FloatArray:
        """Answers of the runs of a batch, NaN if unknown."""
        quantity, data = Quantity.read(self.question.quantity, self.store.dataset), wave.dataset
        if quantity.name not in data:
            nowhere = np.full(data["outcome"].shape, np.nan)
            data = data.assign({quantity.name: (data["outcome"].dims, nowhere)})
        values = quantity.of(data)
        assert values.shape == (data.sizes[PAIRED],)
        return values


def _key(x: float, y: float) -> tuple[str, str]:
    """Key of a point: both coordinates to nine digits, so that rounding does not matter."""
    return f"{x:.9g}", f"{y:.9g}"
