r"""The rotation-invariant form of training: six matrices of inner products, beside a pattern run.

:math:`H = W_O V`, :math:`B = K^\top Q`, :math:`G_V = V^\top V`, :math:`G_K = K^\top K`,
:math:`G_Q = Q^\top Q` and :math:`J = W_O W_O^\top` close on themselves, with terms in
:math:`\eta^2`: it is a recursion of gradient descent, of which no gradient exists. The step is the
one that `theory.systems.shallow_vit.recursion.gram` derives. All that attention has are three
M x M matrices; d has disappeared.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from functools import cache
from typing import Any

import numpy as np

from dynamics.problem import FloatArray
from dynamics.systems.shallow_vit.full.projection import PARTS
from dynamics.systems.shallow_vit.reduced.population import ReducedPopulation
from dynamics.systems.shallow_vit.reduced.slopes import Slopes
from dynamics.validation import integer, real, refuse

NAMES = ("H", "B", "G_V", "G_K", "G_Q", "J")


@dataclass(frozen=True)
class Beside:
    """A recursion laid beside a run on patterns.

    Attributes
    ----------
    deviations : mapping
        Name -> largest absolute distance of an entry, at every step; shape (steps + 1,).
    values : mapping
        Name -> what the recursion ends at.
    """

    deviations: Mapping[str, FloatArray]
    values: Mapping[str, Any]

    @property
    def deviation(self) -> float:
        """The largest of all."""
        return max(float(series.max()) for series in self.deviations.values())


def inner_products(parts: tuple[FloatArray, ...]) -> dict[str, FloatArray]:
    """The six matrices of W_O, V, K, Q."""
    hidden, values, keys, queries = parts
    return {
        "H": hidden @ values,
        "B": keys.T @ queries,
        "G_V": values.T @ values,
        "G_K": keys.T @ keys,
        "G_Q": queries.T @ queries,
        "J": hidden @ hidden.T,
    }


def parts_of(problem: ReducedPopulation, state: FloatArray) -> tuple[FloatArray, ...]:
    """W_O, V, K, Q of a flat state."""
    return tuple(problem.layout.part(state, name) for name in PARTS)


def gram(problem: ReducedPopulation, eta: float, steps: int) -> Beside:
    """Advance the six matrices from the start of a problem, and the problem beside them.

    Parameters
    ----------
    problem : ReducedPopulation
        With all weights trained, or with attention frozen.
    eta : float
        Learning rate of all weights.
    steps : int

    Raises
    ------
    InvalidRequest
        If the values are frozen: then V does not follow from inner products.
    """
    if problem.parameters.frozen == "values":
        refuse("frozen", "values", "is no step of the inner products", "none or attention", "none")
    slopes = Slopes(problem.instance)
    rate, many = real("eta", eta, above=0.0), integer("steps", steps, at_least=1, at_most=10**7)
    state = problem.initial_state
    found = inner_products(parts_of(problem, state))
    gaps: dict[str, list[float]] = {name: [0.0] for name in NAMES}
    for reached, step in stepping(problem, state, rate, many):
        by_response, by_score = slopes.of(found["H"], found["B"], step)
        found = _step()(found, by_response, by_score, rate)
        for name, exact in inner_products(parts_of(problem, reached)).items():
            gaps[name].append(float(np.abs(found[name] - exact).max()))
    return Beside({name: np.array(gap) for name, gap in gaps.items()}, found)


def stepping(
    problem: ReducedPopulation, state: FloatArray, eta: float, steps: int
) -> Iterator[tuple[FloatArray, int]]:
    """The states of a run after every step, each with the number of the step that led there."""
    rates = np.full(state.size, eta)
    none = np.empty(0, dtype=np.int64), np.empty((0, state.size))
    rows = np.empty((1, len(problem.order_names)))
    for step in range(steps):
        problem.advance(state, rates, step, step + 1, (rows, *none))
        yield state, step


@cache
def _step() -> Callable[..., dict[str, FloatArray]]:
    """One step of the six matrices, compiled from the derivation, for orthonormal patterns."""
    import sympy

    from theory.systems.shallow_vit import recursion

    plain = recursion.gram()
    names = {str(matrix): matrix for matrix in plain}
    arguments = [*[names[name] for name in NAMES], recursion.E, recursion.T, recursion.eta]
    steps = [
        plain[names[name]].subs(recursion.GAMMA, sympy.Identity(recursion.M)) for name in NAMES
    ]
    compiled = sympy.lambdify(arguments, [step.doit() for step in steps], "numpy")

    def step(
        found: Mapping[str, FloatArray], by_response: FloatArray, by_score: FloatArray, eta: float
    ) -> dict[str, FloatArray]:
        values = compiled(*[found[name] for name in NAMES], by_response, by_score, eta)
        return {name: np.asarray(value) for name, value in zip(NAMES, values, strict=True)}

    return step
