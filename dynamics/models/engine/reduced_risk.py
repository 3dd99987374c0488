"""Risk of a model on its scalars as a table of distinct values, and programs built from it.

JAX traces the loss of every class of samples once, with the scalars of the closure in place of the
entries, and the trace becomes a table of values (`theory.program`). Scalars, real constants and the
weights of the law are inputs of the table; samples and untrained arrays are constants. Samples with
equal values of loss and observables form one class.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property, lru_cache
from typing import Any

import numpy as np

from dynamics.cache import jax
from dynamics.loops import compiled
from dynamics.loops.kernels import program as kernel
from dynamics.loops.kernels.program import List
from dynamics.models.engine.functions import Columns, Embedding
from dynamics.models.engine.program import Data, Program
from dynamics.models.engine.real_constants import Reading, symbol
from theory.law import FloatArray
from theory.model import HELD_OUT
from theory.program import ONE, Values, adjoints, build, read, run_floats, tangents
from theory.program import Program as ReducedProgram
from theory.program.algebra import Algebra
from theory.program.evaluate import gross
from theory.program.numbering import Ids


@lru_cache(maxsize=32)
def _kept(key: str) -> dict[str, Any]:
    """Dictionary in which `reduced_risk` caches its result; equal keys give the same one."""
    return {}


LEAST_TERMS = 1e-5
"""A gradient error is divided by the sum of the component's absolute terms, or by this fraction of
the largest such sum over all states if that is larger."""


def reduced_risk(
    program: Program, data: Data, embedding: Embedding, names: Sequence[str]
) -> ReducedRisk:
    """Cached `ReducedRisk` of a program; data with other real constants or weights share it."""
    digest = hashlib.sha256(repr((id(program), tuple(names), tuple(data.reals))).encode())
    for leaf in jax.tree.leaves((data.samples, data.fixed, data.held_out, tuple(embedding))):
        array = np.ascontiguousarray(leaf)
        digest.update(f"{array.shape}{array.dtype}".encode() + array.tobytes())
    place = _kept(digest.hexdigest())
    if "risk" not in place:
        place["program"] = program  # keeps the id in use
        place["risk"] = ReducedRisk(program, data, embedding, names)
    return place["risk"]


class ReducedRisk:
    """Risk on the coordinates of a closed space, as a table of distinct values.

    `data` has all samples, or representatives with their weights. `arrays` has a `Reading` in the
    real constants for each array of the data and for `Embedding.offset`; None in place of a reading
    makes every entry of the array an input. Without `arrays`, all arrays are constants.

    Inputs of the table are `scalars`, `reals` (real constant or function of real constants -> id),
    `free` (entry of an array -> id) and `weights`, one for each class of samples. `classes`, shape
    (samples,), has the class of each sample; `rows`, shape (classes, values), has the ids of loss
    and observables of each class; `entries`, shape (n,), has the id of each trained entry. `held`
    says whether the gradient was compared with JAX. Raises NoProgram if an operation cannot be
    traced or the table is too large.
    """

    def __init__(
        self,
        program: Program,
        data: Data,
        embedding: Embedding,
        names: Sequence[str],
        arrays: Sequence[Reading | None] | None = None,
        values: Values | None = None,
    ) -> None:
        self.values = values = Values() if values is None else values
        self._algebra = Algebra(values)
        self.scalars = values.inputs(names)
        reals = values.inputs(sorted(data.reals))
        self.reals = dict(zip(sorted(data.reals), reals.tolist(), strict=True))
        self.share = np.asarray(embedding.share, dtype=float)
        self.free: dict[str, int] = {}
        own = [*jax.tree.leaves((data.samples, data.fixed, data.held_out)), embedding.offset]
        *leaves, offset = (
            map(self._algebra.number, own) if arrays is None else self._read(own, arrays)
        )
        self.entries = flat = _entries(self._algebra, self.scalars, embedding, offset)
        rows = read(values, traced(program, data), [flat, *leaves, *reals])
        names, averaged = program.observed_names
        first = 1 + len(averaged)
        if not program.has_law:
            self.classes, self.weights = np.zeros(0, dtype=np.int64), np.zeros(0, dtype=np.int64)
            self.rows = self.losses = rows[0].reshape(1)
            self.risk = int(self.losses[0])
        else:
            table = np.stack(rows[:first], axis=1)
            distinct, self.classes = np.unique(table, axis=0, return_inverse=True)
            self.classes = self.classes.reshape(-1)
            self.weights = values.inputs([f"P_{k + 1}" for k in range(len(distinct))])
            self.rows, self.losses = distinct, distinct[:, 0]
            self.risk = self._mean(self.losses, self.weights)
        self.held = False
        self.lists: dict[Any, tuple[List, ...]] = {}
        self.observed = dict(zip(names, map(int, rows[first:]), strict=False))
        if averaged:
            self.observed |= self._averages(averaged, self.rows.T[1:], self.weights)
        if data.held_out is not None:
            losses, *others = rows[first + len(names) :]
            weights = leaves[len(jax.tree.leaves((data.samples, data.fixed)))]
            held_out = {"risk": self._mean(losses, weights)}
            held_out |= self._averages(averaged, others, weights)
            self.observed |= {HELD_OUT + name: value for name, value in held_out.items()}

    def _read(self, own: Sequence[Any], arrays: Sequence[Reading | None]) -> Iterator[Ids]:
        """Yield the table ids of each array, from its reading or, without one, as new inputs."""
        given = {symbol(name): value for name, value in self.reals.items()}
        for array, reading in zip(own, arrays, strict=True):
            if reading is None:
                names = [f"sample[{len(self.free) + k}]" for k in range(array.size)]
                ids = self.values.inputs(names)
                self.free |= zip(names, ids.tolist(), strict=True)
                yield ids.reshape(array.shape)
            else:
                yield reading.entered(self.values, given)
        self.reals = given

    def _sum(self, ids: Ids) -> Ids:
        return self._algebra.dot(np.ones((1, ids.size)), ids)[0]

    def _mean(self, ids: Ids, weights: Ids) -> int:
        """Table id of the sum over samples of weight times value."""
        return int(self._sum(self._algebra.mul(ids, weights)))

    def _averages(self, names: Sequence[str], rows: Iterable[Ids], weights: Ids) -> dict[str, int]:
        """Name -> table id of the weighted mean of a row of values, one value per sample."""
        total = self._sum(weights)
        means = (self._mean(row, weights) for row in rows)
        return {
            n: int(self._algebra.op("div", m, total)) for n, m in zip(names, means, strict=True)
        }

    @cached_property
    def gradient(self) -> Ids:
        """Table ids of the gradient per entry: the change in a descent step, divided by -eta."""
        slopes = adjoints(self.values, {self.risk: ONE}, self.scalars)
        return self._algebra.mul(slopes, self._algebra.number(self.share))

    @cached_property
    def directions(self) -> Ids:
        """Table ids of the inputs that hold a direction, one for each coordinate."""
        names = [self.values.names[int(k)] for k in self.scalars]
        return self.values.inputs([f"d_{name}" for name in names])

    def along(self, roots: Ids) -> Ids:
        """Table ids of the derivatives of values in the direction of the inputs `directions`."""
        pairs = zip(self.scalars.tolist(), self.directions.tolist(), strict=True)
        return tangents(self.values, roots, dict(pairs))

    def program(self, outputs: Mapping[str, Any], directed: bool = False) -> ReducedProgram:
        """Program that computes `outputs`, name -> ids; `directed` adds the inputs `directions`."""
        first = [*self.scalars, *(self.directions if directed else ())]
        others = [*self.reals.values(), *self.free.values(), *self.weights]
        return build(self.values, [*first, *others], outputs)

    def listed(self, ids: Ids, directed: bool = False) -> List:
        """Program of some table values, with its constants, in the format of compiled loops."""
        made = self.program({"": ids}, directed)
        outputs = made.outputs[""].astype(np.int64)
        index = made.index.astype(np.uint32)  # faster: numba tests signed indices for < 0
        arrays = (made.constants, made.instructions, index, made.count, outputs)
        return List(*arrays, made.size)

    def departures(self, states: FloatArray, expected: FloatArray, data: Data) -> FloatArray:
        """Relative errors of the table's gradient at some states, shape (states, n).

        An error is divided by the sum of absolute terms of its component, but by no less than
        `LEAST_TERMS` times the largest such sum over the states. All errors are 0 at a state with a
        gradient that is not finite, because nothing is compared there.
        """
        program, numbers = self.program({"": self.gradient}), self.numbers(data)
        places = program.outputs[""]
        found = [run_floats(program, np.concatenate([state, numbers])) for state in states]
        terms = np.array([gross(program, values)[places] for values in found])
        off = np.abs(np.array([values[places] for values in found]) - expected)
        # A component may differ by rounding of entries although all its terms vanish at a state.
        least = LEAST_TERMS * np.nanmax(np.where(np.isfinite(terms), terms, 0.0), axis=0)
        known = np.isfinite(off).all(axis=1, keepdims=True)
        return np.where(known, off / np.maximum(terms, least + 1e-300), 0.0)

    def numbers(self, data: Data) -> FloatArray:
        """Values of the real constants, then the weight of each class of samples."""
        reals = [float(data.reals[name]) for name in self.reals]
        weights = np.asarray(data.weights, dtype=float)[: self.classes.size]
        return np.concatenate([reals, np.bincount(self.classes, weights, self.weights.size)])


def _entries(algebra: Algebra, scalars: Ids, embedding: Embedding, offset: Ids) -> Ids:
    """Table ids of the values of every entry, shape (n,)."""
    labels, signs = np.asarray(embedding.labels), np.asarray(embedding.signs)
    if labels.size:
        return np.where(signs == 0, offset, algebra.mul(scalars[labels], algebra.number(signs)))
    matrix = np.asarray(embedding.matrix)
    index = np.concatenate([np.tile(scalars, (len(matrix), 1)), offset[:, None]], axis=1)
    return algebra.dot(np.concatenate([matrix, np.ones((len(matrix), 1))], axis=1), index)


def traced(program: Program, data: Data) -> Any:
    """Jaxpr that returns loss and `observe` per sample, `observables`, then held-out values."""
    names, of_samples = program.observed_names

    def one(flat: Any, sample: Any, here: Data) -> tuple[Any, ...]:
        values = [program.sample_loss(flat, sample, here)]
        if of_samples:
            said = program.call("observe", program.theta(flat, here.fixed), sample, here)
            values += [said[name] for name in of_samples]
        return tuple(jax.numpy.asarray(v, flat.dtype) for v in values)

    def all_of(flat: Any, samples: Any, fixed: Any, held_out: Any, reals: Any) -> list[Any]:
        here = data._replace(fixed=fixed, reals=reals)
        if program.has_law:
            rows = list(jax.vmap(lambda sample: one(flat, sample, here))(samples))
        else:
            rows = list(one(flat, None, here))
        if names:
            said = program.call("observables", program.theta(flat, fixed), None, here)
            rows += [jax.numpy.asarray(said[name], flat.dtype) for name in names]
        if held_out is not None:
            rows += jax.vmap(lambda sample: one(flat, sample, here))(held_out[1])
        return rows

    with jax.enable_x64(True):
        flat = np.zeros(program.size)
        reals = {name: float(value) for name, value in data.reals.items()}
        return jax.make_jaxpr(all_of)(flat, data.samples, data.fixed, data.held_out, reals)


def order_parameters(risk: ReducedRisk, columns: Columns) -> Ids:
    """Table ids of order parameters; a rate is minus the derivative along the gradient."""
    algebra = Algebra(risk.values)

    def rate(value: int) -> int:
        return int(algebra.linear((-1, risk.along(np.array([value]))))[0])

    found = []
    for kind, key in columns:
        if kind in ("state", "rate"):
            value = int(risk.scalars[key])
        elif kind in ("entry", "entry_rate"):
            value = int(risk.entries[key[0]])
        elif kind in ("observable", "observable_rate"):
            value = risk.observed[key]
        else:
            value = risk.risk
        found.append(rate(value) if kind.endswith("rate") else value)
    return np.array(found, dtype=np.int64)


class CompiledRisk:
    """Programs of a reduced problem, with their constants, for compiled loops.

    `data` has the programs of gradient, order parameters and Hessian products; `names` has the
    names of the columns that `rows` returns.
    """

    def __init__(self, risk: ReducedRisk, columns: Columns, data: Data) -> None:
        if columns not in risk.lists:
            slope = risk.gradient
            risk.lists[columns] = (
                risk.listed(slope),
                risk.listed(order_parameters(risk, columns), True),
                risk.listed(risk.along(slope), True),
                risk.listed(np.array([risk.risk, *risk.observed.values()])),
            )
        numbers = risk.numbers(data)
        lists = [
            part._replace(given=np.concatenate([numbers, part.given]))
            for part in risk.lists[columns]
        ]
        self.data = kernel.ProgramData(*lists[:3])
        self._records, self.names = lists[3], ("risk", *risk.observed)
        self._rows_of = compiled(kernel.rows_of)

    def rows(self, states: FloatArray) -> FloatArray:
        """Risk and observables at states, shape (records, names)."""
        out = np.empty((len(states), len(self.names)))
        self._rows_of(np.array(states, dtype=float), self._records, out)
        return out
