"""What the checks of the idealised problem share: runs along the paper's regime, read by state.

The regime of Assumption 2 at finite size: C = 4 and q (D - C) = 14, with D growing.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np

from dynamics.problem import FloatArray
from dynamics.results.trajectory import Trajectory
from dynamics.systems.positional_attention.empirical.sampling import assumption_1
from dynamics.training.flow import flow

if TYPE_CHECKING:
    from dynamics.experiments.verify import Protocol
    from dynamics.registry import System

REGIME = (32, 64, 128)
THOROUGH = (*REGIME, 256, 512)
SIGNAL = 14.0
"""q (D - C) of the regime, near C^2: sign(Z) errs more than 1/8 there (Theorem 3.1)."""
HORIZON = 1e5
DRAWS = 400_000
CHUNK = 4_000_000


def regime(system: System, protocol: Protocol) -> list[Any]:
    """The user's parameters, or those of the regime."""
    if protocol.parameters is not None:
        return [protocol.parameters]
    sizes = THOROUGH if protocol.thorough else REGIME
    return [system.Parameters(D=D, C=4, q=SIGNAL / (D - 4)) for D in sizes]


def population_flow(system: System, parameters: Any, time: float) -> tuple[Any, Trajectory]:
    """The reduced problem and its gradient flow to a time; kept, because checks share runs."""
    make: Any = system.ReducedPopulation
    return _flow(make, parameters, time)


@lru_cache(maxsize=64)
def _flow(make: Callable[..., Any], parameters: Any, time: float) -> tuple[Any, Trajectory]:
    problem = make(parameters)
    return problem, flow(problem, time)


def sizes_of(parameters: Any) -> dict[str, Any]:
    """The parameters that a verdict is about, as plain values."""
    return {name: getattr(parameters, name) for name in ("D", "C", "q", "p", "nu", "beta")}


def attention(parameters: Any, states: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Gamma and G of states (records, 3), by the definitions of Section 4.1."""
    alpha, gamma, rho = states.T
    top = np.maximum(np.maximum(parameters.beta, gamma), rho) * parameters.scale
    own = np.exp(parameters.scale * parameters.beta - top)
    same = np.exp(parameters.scale * gamma - top)
    other = np.exp(parameters.scale * rho - top)
    size, inside = parameters.D, parameters.C - 1
    total = own + inside * same + (size - parameters.C) * other
    return same / total, size * (own + inside * same) / total


def sampled_error(parameters: Any, state: FloatArray, seed: int) -> tuple[float, float]:
    """Population error of a symmetric state from draws of the law, and its standard error.

    Ties count half, as they do in the irreducible error and in that of sign(Z).

    Parameters
    ----------
    parameters : Parameters
    state : float array, shape (3,)
        (alpha, gamma, rho).
    seed : int
    """
    law, generator = assumption_1(parameters), np.random.default_rng(seed)
    within, own = (float(part[0]) for part in attention(parameters, state[None, :]))
    size = parameters.D
    inside = parameters.C - 1
    alone = own / size - inside * within
    between = (1 - own / size) / (size - parameters.C)
    wrong, drawn = 0.0, 0
    while drawn < DRAWS:
        count = min(DRAWS - drawn, max(1, CHUNK // size))
        x, y = law.values(count, generator)
        z = x.reshape(count, -1, parameters.C).sum(axis=2).repeat(parameters.C, axis=1)
        total = x.sum(axis=1, keepdims=True)
        inner = size * state[0] * (alone * x + within * (z - x) + between * (total - z))
        terms = inner**parameters.p + parameters.nu * inner
        margin = y * terms.sum(axis=1)
        tie = np.abs(margin) <= 1e-13 * np.abs(terms).sum(axis=1)
        wrong += float(((margin < 0) & ~tie).sum() + 0.5 * tie.sum())
        drawn += count
    error = wrong / DRAWS
    return error, float(np.sqrt(max(error, 1 / DRAWS) / DRAWS))


def polylogs(problem: Any, states: FloatArray) -> FloatArray:
    """The hidden constants of Lemma 4.3 at states (records, 3): of gamma, and of |rho|.

    From the gradient that moves the state, not from what the problem reports of itself.
    """
    parameters, (alpha, _, rho) = problem.parameters, states.T
    within, own = attention(parameters, states)
    slopes = np.array([problem.gradient(state) for state in states])
    power, size = alpha**parameters.p, parameters.D
    strength = within * own ** (parameters.p - 1)
    gamma = -slopes[:, 1] / (power * strength)
    outward = -slopes[:, 2] * np.where(rho == 0, np.sign(-slopes[:, 2]), np.sign(rho))
    return np.stack([gamma, outward / (power * (1 + strength) / size)], axis=1)
