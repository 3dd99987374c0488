r"""How the arrays of a model depend on its real constants, read off by running it on symbols.

The functions of a model that are plain Python, ``law``, ``sample``, ``start`` and ``fixed``, are
called once with symbols for all real constants. Each array that they return is then

.. math:: \sum_j f_j(\mathrm{constants})\, T_j

with few functions :math:`f_j`, which are printed, and tables :math:`T_j`. A model that compares a
constant, or passes it to a function of floats, cannot be read so; `Readings.unread` names the
function. `holds` compares readings with the model at other values of the constants.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass
from itertools import islice
from numbers import Real
from typing import TYPE_CHECKING, Any

import numpy as np
import sympy
from numpy.typing import NDArray

from theory.law import ModelError
from theory.program import ONE, Values
from theory.program.algebra import Algebra
from theory.program.numbering import Ids

if TYPE_CHECKING:
    from dynamics.models.engine.problem import ModelProblem
    from dynamics.models.engine.realization import Realization

MOST_FUNCTIONS = 200
"""Functions of the constants in one array, at most."""
MOST_SAMPLES = 40_000
"""Samples of a law that is read by symbols."""
TOLERANCE = 1e-13
"""Deviation from the model, relative to the largest entry."""
UNREADABLE = (ModelError, TypeError, ValueError, AttributeError, ArithmeticError, IndexError)
ROLES = ("law", "sample", "start", "fixed")
"""Functions of a model that are plain Python."""


class Constant(sympy.Symbol):  # type: ignore[misc]
    """A real constant; times a truth value it is itself or zero, as a float would be."""

    def __mul__(self, other: Any) -> Any:
        return super().__mul__(_plain(other))

    def __rmul__(self, other: Any) -> Any:
        return super().__rmul__(_plain(other))


def _plain(other: Any) -> Any:
    return int(other) if isinstance(other, bool | np.bool_) else other


def symbol(name: str) -> Constant:
    """The symbol of a real constant."""
    return Constant(name, real=True)


@dataclass(frozen=True)
class Reading:
    """An array as a sum of functions of the real constants times tables.

    Attributes
    ----------
    shape : tuple of int
    parts : tuple of (function, table)
        A sympy expression in the constants, and a float array, shape (size,).
    """

    shape: tuple[int, ...]
    parts: tuple[tuple[sympy.Expr, NDArray[np.float64]], ...]

    def at(self, constants: Mapping[str, Any]) -> NDArray[np.float64]:
        """The array at some constants; NaN where a formula has no real value, as 0 / 0.

        Parameters
        ----------
        constants : mapping
            Name -> value; whole ones may be among them.
        """
        total = np.zeros(int(np.prod(self.shape)))
        values = {symbol(name): sympy.Float(value, 17) for name, value in constants.items()
                  if isinstance(value, float)}  # fmt: skip
        for function, table in self.parts:
            value = function.xreplace(values)
            total += (float(value) if value.is_extended_real else np.nan) * table
        return total.reshape(self.shape)

    def added(self, labels: NDArray[np.int64], count: int) -> Reading:
        """The sums of the entries of each label, shape (count,)."""
        sums = np.zeros((len(self.parts), count))
        for row, (_, table) in zip(sums, self.parts, strict=True):
            np.add.at(row, labels, table)
        return Reading(
            (count,), tuple((f, row) for (f, _), row in zip(self.parts, sums, strict=True))
        )

    def entered(self, values: Values, given: dict[sympy.Expr, int]) -> Ids:
        """Ids of the entries: constants, and sums of constants times inputs.

        Parameters
        ----------
        values : Values
        given : dict
            Function of the constants -> its input; gains those of the array.
        """
        size = int(np.prod(self.shape))
        fixed, index, columns = np.zeros(size), [ONE], []
        for function, table in self.parts:
            if not function.free_symbols:
                fixed = fixed + float(function) * table
                continue
            if function not in given:
                (given[function],) = values.inputs([str(function)]).tolist()
            index.append(given[function])
            columns.append(table)
        table = np.stack([fixed, *columns], axis=1)
        return Algebra(values).dot(table, np.array(index)).reshape(self.shape)

    @property
    def constant(self) -> bool:
        """Whether no constant is in it."""
        return all(not function.free_symbols for function, _ in self.parts)


def reading(entries: Any) -> Reading:
    """An array of numbers and expressions, split into functions and tables.

    Parameters
    ----------
    entries : array
        Of floats, or objects.

    Raises
    ------
    ValueError
        If it has too many functions of the constants.
    """
    array = np.asarray(entries)
    if array.dtype != object:
        return Reading(array.shape, ((sympy.Integer(1), array.astype(float).reshape(-1)),))
    tables: dict[sympy.Expr, NDArray[np.float64]] = {}
    split: dict[Any, list[tuple[float, sympy.Expr]]] = {}
    for k, entry in enumerate(array.reshape(-1)):
        expression = sympy.sympify(entry.item() if isinstance(entry, np.generic) else entry)
        if expression not in split:
            parts = (term.as_coeff_Mul() for term in sympy.Add.make_args(expression))
            split[expression] = [(float(number), rest) for number, rest in parts]
        for number, rest in split[expression]:
            if number:
                tables.setdefault(rest, np.zeros(array.size))[k] += number
        if len(tables) > MOST_FUNCTIONS:
            raise ValueError(f"more than {MOST_FUNCTIONS} functions of the constants")
    return Reading(array.shape, tuple(tables.items()))


@dataclass(frozen=True)
class Readings:
    """The arrays of a reduced problem.

    Attributes
    ----------
    inputs : tuple of Reading
        Leaves of the data in the order of `jax.tree.leaves`, and the offset of the embedding.
    start : Reading
        The scalars at step 0.
    unread : tuple of str
        Functions of the model that cannot be read by symbols; theirs are numbers.
    """

    inputs: tuple[Reading, ...]
    start: Reading
    unread: tuple[str, ...]


def readings(
    problem: ModelProblem, draws: tuple[int, int] = (0, 0), roles: Sequence[str] = ROLES
) -> Readings:
    """The arrays of a reduced problem as functions of the real constants.

    Parameters
    ----------
    problem : ModelProblem
    draws : (samples, seed)
        Of a law that can only be sampled.
    roles : sequence of str
        Functions of the model that are read by symbols; what the others give are numbers.
    """
    import jax

    made, unread = problem.realization, []
    data = problem.payload[0]
    parts: dict[str, Any] = {
        "weights": data.weights, "samples": data.samples, "fixed": data.fixed,
        "start": made.flat_start,
    }  # fmt: skip
    for role in roles:
        if not any(name in made.reals for name in made.model.arguments.get(role, ())):
            continue
        try:
            symbolic = READERS[role](problem, draws)
            if any(_shapes(part) != _shapes(parts[name]) for name, part in symbolic.items()):
                raise ValueError("arrays of other shapes")
            parts |= symbolic
        except UNREADABLE:
            unread.append(role)
    flat = parts["start"]
    linear = problem.coordinates == "linear"
    moving = problem.closure.classes.labels >= 0
    offset = flat if linear else np.where(moving, 0, flat)
    first = problem.closure.classes.first
    start = np.zeros(len(problem.scalars)) if linear else flat[first]
    leaves = [parts["weights"], *jax.tree.leaves(parts["samples"], is_leaf=_is_leaf)]
    leaves += jax.tree.leaves(parts["fixed"], is_leaf=_is_leaf)
    reals = [np.array(symbol(name), dtype=object) for name in sorted(made.reals)]
    return Readings(
        tuple(reading(np.asarray(leaf)) for leaf in [*leaves, *reals, offset]),
        reading(start),
        tuple(unread),
    )


def _is_leaf(part: Any) -> bool:
    """Whether a part of a sample is an array: also a row of numbers, as in `theory.law`."""
    if isinstance(part, list):
        return all(isinstance(entry, Real | sympy.Basic) for entry in part)
    return isinstance(part, np.ndarray | sympy.Basic)


def _symbolic(made: Realization) -> dict[str, Any]:
    return {n: symbol(n) if n in made.reals else value for n, value in made.constants.items()}


def _shapes(part: Any) -> list[tuple[int, ...]]:
    """Shapes of the arrays of a part of the data."""
    import jax

    return [np.shape(leaf) for leaf in jax.tree.leaves(part, is_leaf=_is_leaf)]


def _start(problem: ModelProblem, draws: tuple[int, int]) -> dict[str, Any]:
    """All trained entries at step 0, in symbols."""
    made = problem.realization
    arrays = made.model.call("start", constants=_symbolic(made))
    return {"start": np.concatenate([np.asarray(arrays[name]).reshape(-1) for name in made.shapes])}


def _fixed(problem: ModelProblem, draws: tuple[int, int]) -> dict[str, Any]:
    """The arrays that are not trained, in symbols."""
    arrays = problem.realization.model.call("fixed", constants=_symbolic(problem.realization))
    return {"fixed": {name: np.asarray(array) for name, array in arrays.items()}}


def _law(problem: ModelProblem, draws: tuple[int, int]) -> dict[str, Any]:
    """Weights and samples of the classes, in symbols."""
    made, groups = problem.realization, problem.closure.sample_groups
    law = made.law
    assert law is not None
    if law.size > MOST_SAMPLES:
        raise ValueError("too many samples for symbols")
    positive = (
        (p, s) for p, s in made.model.call("law", constants=_symbolic(made))
        if not (isinstance(p, int | float | sympy.Number) and p == 0)
    )  # fmt: skip
    pairs = list(islice(positive, law.size + 1))
    if len(pairs) != law.size:
        raise ValueError("other samples have a probability")
    labels = np.arange(law.size) if groups is None else groups.labels
    terms: list[Counter[Any]] = [Counter() for _ in range(int(labels.max()) + 1)]
    for label, (probability, _) in zip(labels, pairs, strict=True):
        terms[label][sympy.sympify(_plain(probability))] += 1
    weights = [sympy.Add(*(n * value for value, n in term.items())) for term in terms]
    first = np.unique(labels, return_index=True)[1]
    return {
        "weights": np.array(weights, dtype=object),
        "samples": _stacked(pairs[k][1] for k in first),
    }


def _samples(problem: ModelProblem, draws: tuple[int, int]) -> dict[str, Any]:
    """Samples in symbols, of equal weights."""
    count, seed = draws
    generator, model = np.random.default_rng(seed), problem.realization.model
    constants = _symbolic(problem.realization)
    samples = [model.call("sample", generator, constants=constants) for _ in range(count)]
    return {"weights": np.full(count, 1 / count), "samples": _stacked(samples)}


READERS = {"law": _law, "sample": _samples, "start": _start, "fixed": _fixed}
"""Function of a model -> what reads the arrays that it gives, in symbols."""


def _stacked(samples: Iterable[Any]) -> Any:
    """Samples of one structure, each part of them as one array."""
    import jax

    return jax.tree.map(
        lambda *leaves: np.stack(list(map(np.asarray, leaves))), *samples, is_leaf=_is_leaf
    )


def holds(read: Readings, problems: Sequence[ModelProblem]) -> bool:
    """Whether readings give the arrays of compiled problems of the same classes.

    Parameters
    ----------
    read : Readings
    problems : sequence of ModelProblem
        At any real constants.
    """
    import jax

    for problem in problems:
        data, embedding = problem.payload
        arrays = [*jax.tree.leaves(data), embedding.offset, problem.initial_state]
        for own, leaf in zip([*read.inputs, read.start], arrays, strict=True):
            value, array = own.at(problem.realization.constants), np.asarray(leaf, dtype=float)
            size = float(np.abs(array).max(initial=0.0)) or 1.0
            if value.shape != array.shape:
                return False
            if np.abs(value - array).max(initial=0.0) > TOLERANCE * size:
                return False
    return True
