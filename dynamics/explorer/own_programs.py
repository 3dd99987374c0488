"""What a page computes of a reduced problem of a model: its programs, and its matrices by class."""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynamics.explorer.real_constants import Reading, Readings
from dynamics.explorer.traced_program import Tables, javascript
from dynamics.models.engine.functions import functions_of, slope_of
from dynamics.models.engine.problem import ModelProblem

MOST_JACOBIAN = 64
"""Scalars up to which the Jacobian is printed."""


@dataclass(frozen=True)
class Matrix:
    """A trained array by its classes of equal entries.

    Attributes
    ----------
    labels : int array, shape (rows, columns)
        -1 for an entry that never moves.
    base : Reading
        Values of the classes where the coordinates are 0, shape (classes,).
    along : float array, shape (classes, scalars)
        Their derivatives by the coordinates.
    classes : tuple of (number of the class, sign)
    """

    labels: NDArray[np.int64]
    base: Reading
    along: NDArray[np.float64]
    classes: tuple[tuple[int, float], ...]


def printed(problem: ModelProblem, tables: Tables) -> tuple[str | None, ...]:
    """Gradient, order parameters, observables and Jacobian of a reduced problem as JavaScript.

    Their inputs are the state (and the gradient, for the order parameters), and the arrays of
    `dynamics.explorer.real_constants.Readings`.

    Parameters
    ----------
    problem : ModelProblem
    tables : Tables

    Returns
    -------
    tuple of str or None
        None for a Jacobian that is too large.
    """
    import jax
    import jax.numpy as jnp

    program = problem.realization.program
    size = problem.layout.size
    functions = functions_of(program, True, problem.columns, size)
    slope = slope_of(program, True)
    names = problem.realization.observable_names
    data, embedding = problem.payload
    known = problem.embedding
    if known.labels.size:  # positions that are known at printing need no product with a matrix
        known = known._replace(matrix=np.zeros((0, 0)))

    def payload(data: Any, offset: Any) -> Any:
        return data, known._replace(offset=offset)

    def gradient(state: Any, data: Any, offset: Any) -> Any:
        return slope(state, payload(data, offset))

    def order(state: Any, rate: Any, data: Any, offset: Any) -> Any:
        return functions.row(state, rate, payload(data, offset))

    def observables(state: Any, data: Any, offset: Any) -> Any:
        values = functions.observables(state, payload(data, offset))
        observed = [values["observables"][name] for name in names]
        return [jnp.asarray(value, jnp.float64) for value in (values["risk"], *observed)]

    state = np.zeros(size)
    rest = (data, embedding.offset)
    with jax.enable_x64(True):
        texts: list[str | None] = [
            javascript(jax.make_jaxpr(gradient)(state, *rest), 1, tables),
            javascript(jax.make_jaxpr(order)(state, state, *rest), 2, tables),
            javascript(jax.make_jaxpr(observables)(state, *rest), 1, tables),
        ]
        if size > MOST_JACOBIAN:
            return (*texts, None)
        derivative = jax.make_jaxpr(jax.jacfwd(gradient))(state, *rest)
        return (*texts, javascript(derivative, 1, tables))


def matrices_of(problem: ModelProblem, read: Readings) -> dict[str, Matrix]:
    """The trained arrays of a problem by their classes; of three axes and more a slice.

    Parameters
    ----------
    problem : ModelProblem
    read : Readings
        Of the problem; the last input is the offset of its embedding.
    """
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
        pairs = list(dict.fromkeys(
            (int(labels[k]), float(signs[k])) for k in own.reshape(-1) if labels[k] >= 0
        ))  # fmt: skip
        numbers = {pair: k for k, pair in enumerate(pairs)}
        shown = [numbers.get((int(labels[k]), float(signs[k])), -1) for k in own.reshape(-1)]
        entries = [
            next(int(k) for k in own.reshape(-1) if (labels[k], signs[k]) == pair) for pair in pairs
        ]
        if problem.coordinates == "linear":
            along = np.asarray(embedding.matrix[entries])
        else:
            along = np.zeros((len(pairs), problem.layout.size))
            along[range(len(pairs)), [label for label, _ in pairs]] = [sign for _, sign in pairs]
        base = Reading((len(pairs),), tuple((f, table[entries]) for f, table in offset.parts))
        result[name] = Matrix(np.array(shown).reshape(own.shape), base, along, tuple(pairs))
    return result
