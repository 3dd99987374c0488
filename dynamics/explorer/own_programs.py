"""Programs of a reduced problem of a model in a page, and its trained arrays by class."""

from __future__ import annotations

from collections.abc import Callable
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynamics.explorer.real_constants import Reading, Readings
from dynamics.explorer.tables import Tables
from dynamics.explorer.traced_program import javascript
from dynamics.models.engine.functions import functions_of
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
    slope = jax.jit(functions.slope)
    names = problem.realization.observable_names
    data, embedding = problem.payload
    constant = problem.embedding
    if constant.labels.size:  # constant positions need no product with a matrix
        constant = constant._replace(matrix=np.zeros((0, 0)))

    def gradient(state: Any, data: Any, offset: Any) -> Any:
        return slope(state, (data, constant._replace(offset=offset)))

    def order(state: Any, rate: Any, data: Any, offset: Any) -> Any:
        return functions.row(state, rate, (data, constant._replace(offset=offset)))

    def observables(state: Any, data: Any, offset: Any) -> Any:
        values = functions.observables(state, (data, constant._replace(offset=offset)))
        own = [values["observables"][name] for name in names]
        return [jnp.asarray(value, jnp.float64) for value in (values["risk"], *own)]

    state = np.zeros(size)
    printed_functions: list[tuple[Callable[..., Any], int]] = [
        (gradient, 1),
        (order, 2),
        (observables, 1),
    ]
    if size <= MOST_JACOBIAN:
        printed_functions.append((jax.jacfwd(gradient), 1))
    with jax.enable_x64(True):
        texts = [
            javascript(jax.make_jaxpr(f)(*[state] * called, data, embedding.offset), called, tables)
            for f, called in printed_functions
        ]
    return (*texts, None) if size > MOST_JACOBIAN else tuple(texts)


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
        result[name] = Matrix(np.array(numbers).reshape(own.shape), base, along, tuple(moving))
    return result
