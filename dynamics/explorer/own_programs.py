"""Programs of a reduced problem for a page, and the trained arrays by class."""

from __future__ import annotations

from collections.abc import Sequence
from contextlib import suppress
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import sympy
from numpy.typing import NDArray

from dynamics.explorer.declared import Unheld
from dynamics.explorer.tables import Tables
from dynamics.models.engine.functions import Columns
from dynamics.models.engine.problem import ModelProblem
from dynamics.models.engine.program import Data
from dynamics.models.engine.program import Program as Traced
from dynamics.models.engine.readings import Readings
from dynamics.models.engine.real_constants import Reading
from dynamics.models.engine.reduced_risk import ReducedRisk, order_parameters
from theory.program import NoProgram, Program

LONG = 250_000
"""Maximum number of terms of lists that sum over all samples; above it, the lists compute the terms
of a single sample, and the page runs them once for each sample."""
LONGEST = 1_000_000
"""Maximum product of the numbers of a gradient's terms and of scalars; above it, a page has no
directional derivatives."""


class Source(NamedTuple):
    """Functions and data from which lists of instructions are made."""

    program: Traced
    """Traced functions of a model."""
    data: Data
    embedding: Any
    names: Sequence[str]
    """Names of the coordinates of the reduced problem."""
    order: Columns
    """Definitions of the order parameters."""
    reported: Columns
    """Definitions of the reported quantities."""


def source_of(problem: ModelProblem) -> Source:
    """Functions and data from which the instruction lists of a reduced problem are made."""
    made, (data, embedding) = problem.realization, problem.payload
    reported = (("risk", ""), *(("observable", name) for name in made.observable_names))
    return Source(made.program, data, embedding, problem.scalars, problem.columns, reported)


@dataclass(frozen=True)
class Lists:
    """Programs of a page, and all their inputs except state and direction of a derivative."""

    programs: tuple[Program, ...]
    """Programs of the gradient, order parameters, observables and, if short, a directional
    derivative."""
    by_row: tuple[NDArray[np.bool_], ...]
    """Mask, for each program, of the outputs that depend on the inputs in `rows`."""
    given: tuple[sympy.Expr, ...]
    """Inputs that are functions of the real constants."""
    rows: tuple[Reading, ...]
    """Inputs by row: values and weight of each sample, or one row with the weights of all
    samples."""
    one_by_one: bool
    """Whether the programs compute the terms of one sample, so each sample is a row of inputs."""

    def documents(self, tables: Tables) -> list[dict[str, int]]:
        """Convert the programs to JSON-ready values; `tables` collects the programs' arrays."""
        return [
            document(program, by_row, tables)
            for program, by_row in zip(self.programs, self.by_row, strict=True)
        ]


def document(program: Program, by_row: NDArray[np.bool_], tables: Tables) -> dict[str, int]:
    """Convert a program to JSON-ready values; for `by_row` and `tables` see `Lists`."""
    counts, which = np.unique(program.count, return_inverse=True)
    arrays = {
        "constants": program.constants,
        "instructions": program.instructions,
        "index": _steps(program),
        "counts": counts,
        "which": which,
        "outputs": program.outputs[""],
        "by_row": by_row,
    }
    return {"size": program.size} | {k: tables.number(array) for k, array in arrays.items()}


def _steps(program: Program) -> NDArray[np.int64]:
    """Differences between the operand indices of successive results; they compress well."""
    index, at = program.index.astype(np.int64), 0
    steps = index.copy()
    for _, first, last, length in program.instructions.tolist():
        end = at + (last - first) * length
        steps[at + length : end] -= index[at : end - length]
        at = end
    return steps


@dataclass(frozen=True)
class Matrix:
    """A trained array by its classes of equal entries."""

    labels: NDArray[np.int64]
    """Class of each entry, shape (rows, columns), -1 for an entry that never moves."""
    base: Reading
    """Value of the entries of each class if all scalars of the reduction are 0."""
    along: NDArray[np.float64]
    """Derivatives of the entries of each class by the scalars, shape (classes, scalars)."""
    classes: tuple[tuple[int, float], ...]
    shape: tuple[int, ...]
    """Shape of the whole array; the matrix may be a slice of the array."""


def lists_of(source: Source, read: Readings, drawn: bool) -> Lists:
    """Make the lists of a problem; `drawn` tells whether the problem's law can only be sampled.

    Raises NoProgram if the model has an operation that lists of instructions cannot express.
    """
    whole = None if drawn else _lists(source, read, False)
    if whole is not None:
        terms = sum(program.index.size for program in whole.programs)
        if not source.program.has_law or terms <= LONG:
            return whole
    with suppress(NoProgram):  # raised if the model uses a sample as an index
        return _lists(source, read, True)
    return whole or _lists(source, read, False)


def _lists(source: Source, read: Readings, one_by_one: bool) -> Lists:
    import jax

    data = source.data
    weights, *leaves = read.inputs[: -1 - len(data.reals)]
    samples = leaves[: len(jax.tree.leaves(data.samples))] if one_by_one else []
    if one_by_one:
        first = jax.tree.map(lambda part: part[:1], data.samples)
        data = data._replace(weights=data.weights[:1], samples=first)
    arrays = [*[None] * len(samples), *leaves[len(samples) :], read.inputs[-1]]
    risk = ReducedRisk(source.program, data, source.embedding, source.names, arrays)
    slope = risk.gradient
    programs = [
        risk.program({"": slope}),
        risk.program({"": order_parameters(risk, source.order)}, True),
        risk.program({"": order_parameters(risk, source.reported)}),
    ]
    if programs[0].index.size * len(source.names) <= LONGEST:
        programs.append(risk.program({"": risk.along(slope)}, True))
    if one_by_one:
        count = weights.shape[0]
        rows = (*samples, Reading((count,), ((sympy.Integer(1), np.ones(count)),)))
    else:
        rows = (weights.added(risk.classes, risk.weights.size),)
    row = len(risk.free) + 1 if one_by_one else 0
    by_row = tuple(_depends(each, len(each.inputs) - row) for each in programs)
    return Lists(tuple(programs), by_row, tuple(risk.reals), rows, one_by_one)


def _depends(program: Program, first: int) -> NDArray[np.bool_]:
    """Mask of the outputs of a program that depend on inputs from index `first` on."""
    moved = np.zeros(program.size, dtype=bool)
    moved[first : len(program.inputs)] = True
    for _, results, index, _ in program.rows():
        moved[results] = moved[index].any(axis=1)
    return moved[program.outputs[""]]


def matrices_of(problem: ModelProblem, read: Readings) -> dict[str, Matrix]:
    """Trained arrays as matrices of classes; of arrays with three or more axes, only one slice.

    The last entry of ``read.inputs`` is the constant term of the map from scalars to entries.
    """
    if isinstance(problem, Unheld):
        return problem.matrices()
    closure, embedding, offset = problem.closure, problem.embedding, read.inputs[-1]
    labels, signs, first = closure.classes.labels, closure.classes.signs, 0
    result = {}
    for name, shape in closure.shapes.items():
        count = int(np.prod(shape))
        own = np.arange(first, first + count).reshape(shape)
        first += count
        while own.ndim > 2:
            own = own[0]
        if not own.size or not (labels[own] >= 0).any():
            continue
        own = np.atleast_2d(own)
        pairs = [(int(labels[k]), float(signs[k])) for k in own.reshape(-1)]
        first_entry: dict[tuple[int, float], int] = {}
        for pair, k in zip(pairs, own.reshape(-1), strict=True):
            if pair[0] >= 0:
                first_entry.setdefault(pair, int(k))
        moving, entries = list(first_entry), list(first_entry.values())
        numbers = [moving.index(pair) if pair in first_entry else -1 for pair in pairs]
        if problem.coordinates == "linear":
            along = np.asarray(embedding.matrix[entries])
        else:
            along = np.zeros((len(moving), problem.layout.size))
            along[range(len(moving)), [label for label, _ in moving]] = [sign for _, sign in moving]
        base = Reading((len(moving),), tuple((f, table[entries]) for f, table in offset.parts))
        labeled = np.array(numbers).reshape(own.shape)
        result[name] = Matrix(labeled, base, along, tuple(moving), shape)
    return result
