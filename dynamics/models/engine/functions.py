r"""Compiled functions of one program: embedding, gradient, order parameters, steps of descent.

An *embedding* maps reduced coordinates to every trained entry. In a class of :math:`n_k` equal
entries, each entry is plus or minus the coordinate :math:`z_k`, and a step changes :math:`z_k` by
:math:`-\eta\,(1/n_k)\,\partial R/\partial z_k`. In a linear space, the entries are :math:`\theta(0)
+ U z` with orthonormal columns of U, and a step changes the coordinates z by :math:`-\eta\,\partial
R/\partial z`. The compiled functions take data and embedding as an argument, the ``payload``, so
problems at other real constants, or with other classes of the same sizes, reuse the compiled code.
"""

from __future__ import annotations

from functools import lru_cache, partial
from typing import Any, NamedTuple

import numpy as np

from dynamics.cache import compiled_program, jax
from dynamics.models.engine.loop import Loop
from dynamics.models.engine.program import Program, evaluated
from theory.closure.linear import LinearSpace
from theory.closure.partition import EntryClasses
from theory.law import FloatArray


class Embedding(NamedTuple):
    """Arrays that map reduced coordinates to every trained entry.

    For a linear space, `matrix` has shape (n, count), and `offset`, shape (n,), is the start. For
    classes, `matrix` is empty; `labels` has the number of the coordinate of each entry, and `signs`
    its sign, 0 for a frozen entry; `offset` has the values of the frozen entries. `share` has the
    factors that turn derivatives of the risk by coordinates into the gradient of descent.
    """

    offset: Any
    matrix: Any
    labels: Any
    signs: Any
    share: Any

    def lift(self, state: Any) -> Any:
        """Every trained entry, shape (n,), at reduced coordinates; traced by JAX."""
        if self.matrix.shape[0]:
            return self.offset + self.matrix @ state
        return self.offset + self.signs * state[self.labels]

    def tangent(self, rate: Any) -> Any:
        """Change of every entry, shape (n,), from a change of the coordinates; traced by JAX."""
        if self.matrix.shape[0]:
            return self.matrix @ rate
        return self.signs * rate[self.labels]

    def along(self, vector: Any) -> Any:
        """Class means, or projections on directions, of one number per entry; traced by JAX."""
        if self.matrix.shape[0]:
            return self.share * (self.matrix.T @ vector)
        count = self.share.shape[0]
        return self.share * jax.ops.segment_sum(self.signs * vector, self.labels, count)

    def project(self, flat: Any) -> Any:
        """Reduced coordinates of a state of every entry; traced by JAX."""
        return self.along(flat - self.offset)


def class_embedding(classes: EntryClasses) -> Embedding:
    """Embedding with one coordinate for each class of equal entries."""
    moving = classes.labels >= 0
    offset = np.where(moving, 0.0, classes.start)
    labels = np.where(moving, classes.labels, 0)
    signs = np.where(moving, classes.signs, 0.0)
    return Embedding(offset, np.zeros((0, 0)), labels, signs, 1.0 / classes.sizes)


def linear_embedding(classes: EntryClasses, space: LinearSpace) -> Embedding:
    """Embedding with one coordinate for each orthonormal direction of a linear space."""
    matrix = classes.tangent(space.directions(classes).T).T
    nothing = np.zeros(0)
    return Embedding(
        classes.start, np.ascontiguousarray(matrix), nothing, nothing, np.ones(matrix.shape[1])
    )


Columns = tuple[tuple[str, Any], ...]
"""Pairs (kind, key), one for each order parameter. A "state" or "rate" column has the number of a
coordinate as key, an "entry" or "entry_rate" the number and name of a trained entry. An
"observable" or "observable_rate" has its name as key, the "risk" has "", and a "ratio" has a pair
of columns. A ratio is the absolute value of the first column divided by that of the second, or NaN
if the second is 0."""
WATCHED: Columns = (("rate", 0),)
"""Order parameter of every problem, to detect oscillations: the rate of coordinate 0."""


class Functions:
    """Compiled gradient, order parameters, observables and descent loop of one kind of problem.

    A state of length `size` has the coordinates of the embedding if `reduced`, else every entry. If
    `batched`, each step has its own samples; with `rows_of_all`, order parameters then still use
    all samples. `compiled_slope` returns the gradient per entry, `compiled_row` the order
    parameters, `compiled_jacobian` the Jacobian matrix of the gradient, `compiled_product` the
    product of this matrix with a direction.
    """

    def __init__(
        self,
        program: Program,
        reduced: bool,
        columns: Columns,
        size: int,
        batched: bool,
        rows_of_all: bool = False,
    ) -> None:
        self.program, self.reduced, self.columns = program, reduced, columns
        slope = self.slope
        self.compiled_slope = slope_of(program, reduced)
        self.compiled_row = compiled_program(self.row)
        self.compiled_jacobian = compiled_program(jax.jacfwd(slope))

        def observables(states: Any, payload: Any) -> Any:
            return jax.lax.map(lambda state: self.observables(state, payload), states)

        def product(state: Any, direction: Any, payload: Any) -> Any:
            return jax.jvp(lambda s: slope(s, payload), (state,), (direction,))[1]

        self.compiled_observables = compiled_program(observables)
        self.compiled_product = compiled_program(product)
        of_a_step = _samples_of_a_step if batched else None
        self.loop = Loop(slope, self.row, size, of_a_step, rows_of_all)

    def flat(self, state: Any, payload: Any) -> Any:
        """Every entry at a state; a full problem uses the dtype of its samples; traced by JAX."""
        return payload[1].lift(state) if self.reduced else state.astype(payload[0].weights.dtype)

    def slope(self, state: Any, payload: Any) -> Any:
        """Gradient per entry: the change in a descent step, divided by -eta; traced by JAX."""
        return _slope(self.program, self.reduced, state, payload)

    def row(self, state: Any, slope: Any, payload: Any) -> Any:
        """Order parameters at a state, shape (columns,); traced by JAX."""
        data, embedding = payload
        flat = self.flat(state, payload)

        def observe(flat: Any) -> dict[str, Any]:
            """Observables as floats, so that integer counts have time derivatives."""
            values = self.program.observables(flat, data)
            return {n: jax.numpy.asarray(v, dtype=state.dtype) for n, v in values.items()}

        plain = [each for column in self.columns for each in _parts(column)]
        kinds = {kind for kind, _ in plain}
        values: dict[str, Any] = {}
        if "state" in kinds:
            values["state"] = state if self.reduced else embedding.project(state)
        if "rate" in kinds:
            values["rate"] = -slope if self.reduced else -embedding.along(slope)
        velocity: Any = None
        if kinds & {"observable_rate", "entry_rate"}:
            velocity = embedding.tangent(-slope) if self.reduced else -slope.astype(flat.dtype)
        if "observable_rate" in kinds:
            values["observable"], values["observable_rate"] = jax.jvp(observe, (flat,), (velocity,))
        elif "observable" in kinds:
            values["observable"] = observe(flat)
        if "risk" in kinds:
            values["risk"] = {"": self.program.risk(flat, data)}
        for kind, vector in (("entry", flat), ("entry_rate", velocity)):
            if kind in kinds:
                keys = [key for each, key in plain if each == kind]
                values[kind] = {key: vector[key[0]] for key in keys}

        def value(column: tuple[str, Any]) -> Any:
            if column[0] != "ratio":
                return values[column[0]][column[1]]
            one, other = (jax.numpy.abs(value(part)) for part in column[1])
            return one / jax.numpy.where(other == 0, np.nan, other)

        row = [jax.numpy.asarray(value(column), dtype=state.dtype) for column in self.columns]
        return jax.numpy.stack(row)

    def observables(self, state: Any, payload: Any) -> dict[str, Any]:
        """Risk and observables at a state, and for a full state its coordinates; traced by JAX."""
        data, embedding = payload
        flat = self.flat(state, payload)
        values = {
            "risk": self.program.risk(flat, data),
            "observables": self.program.observables(flat, data),
        }
        if not self.reduced and embedding is not None:
            inside = embedding.project(flat)
            values["scalars"] = inside
            values["outside"] = jax.numpy.abs(flat - embedding.lift(inside)).max()
        return values

    def observed(self, states: FloatArray, payload: Any) -> dict[str, Any]:
        """Risk, observables and coordinates at states, shape (records, n), as numpy arrays."""
        # At least two states: XLA rounds a loop over a single state differently.
        rows = states if len(states) != 1 else np.repeat(states, 2, axis=0)
        found = evaluated(self.compiled_observables, rows, payload)
        return dict(jax.tree.map(lambda values: values[: len(states)], found))


def _parts(column: tuple[str, Any]) -> tuple[tuple[str, Any], ...]:
    """Columns that a column is made of: the two of a ratio, else the column itself."""
    return column[1] if column[0] == "ratio" else (column,)


def _slope(program: Program, reduced: bool, state: Any, payload: Any) -> Any:
    data, embedding = payload
    if not reduced:
        kind = data.weights.dtype
        return program.value_and_gradient(lambda z: z.astype(kind), state, data)[1]
    return program.value_and_gradient(embedding.lift, state, data)[1] * embedding.share


def _samples_of_a_step(payload: Any, index: Any) -> Any:
    """Payload with the samples of one step, equally weighted; an index of -1 is padding."""
    data, embedding = payload
    there = index >= 0
    weights = jax.numpy.where(there, 1.0 / there.sum(), 0.0).astype(data.weights.dtype)
    samples = jax.tree.map(lambda part: part[jax.numpy.maximum(index, 0)], data.samples)
    return data._replace(weights=weights, samples=samples), embedding


@lru_cache(maxsize=256)
def slope_of(program: Program, reduced: bool) -> Any:
    """Compiled function (state, payload) -> gradient per entry, the change in a step over -eta."""
    return compiled_program(partial(_slope, program, reduced))


@lru_cache(maxsize=256)
def functions_of(
    program: Program,
    reduced: bool,
    columns: Columns,
    size: int,
    batched: bool = False,
    rows_of_all: bool = False,
) -> Functions:
    """Compiled `Functions` of a program; equal arguments give the same object."""
    return Functions(program, reduced, columns, size, batched, rows_of_all)
