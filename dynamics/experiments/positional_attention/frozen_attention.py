"""Attention matrices S to be frozen: the ideal, none, and those that pre-training learns.

`block` attends to the own set, `uniform` to every patch alike. `of_orbits` is the S of an A with
three values (Lemma 4.1), which the flow of the reduced population problem gives at any time;
`trained` that of a full empirical run, in which v and every entry of A are trained.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from dynamics.problem import FloatArray
from dynamics.systems.positional_attention.full import own_attention, softmax
from dynamics.training.gradient_descent import descend
from theory.symmetry import Partition

if TYPE_CHECKING:
    from dynamics.registry import System
    from dynamics.results.trajectory import Trajectory
    from dynamics.systems.positional_attention.parameters import Parameters


def sets(parameters: Parameters) -> Partition:
    """The true sets: consecutive patches."""
    return Partition.contiguous([parameters.C] * parameters.L)


def block(parameters: Parameters) -> FloatArray:
    """1/C inside the true sets, shape (D, D)."""
    labels = sets(parameters).labels
    return (labels[:, None] == labels[None, :]) / parameters.C


def uniform(parameters: Parameters) -> FloatArray:
    """1/D everywhere, shape (D, D)."""
    return np.full((parameters.D, parameters.D), 1 / parameters.D)


def of_orbits(parameters: Parameters, state: ArrayLike) -> FloatArray:
    """S of the A with beta, gamma and rho on its orbits.

    Parameters
    ----------
    parameters : Parameters
    state : float array, shape (3,)
        (alpha, gamma, rho); alpha is not used.
    """
    _, gamma, rho = np.asarray(state, dtype=np.float64)
    labels = sets(parameters).labels
    matrix = np.where(labels[:, None] == labels[None, :], gamma, rho)
    np.fill_diagonal(matrix, parameters.beta)
    return softmax(matrix, parameters.scale)


def inside(parameters: Parameters, weights: FloatArray) -> float:
    """Share of the attention that falls inside the own set, G/D."""
    return own_attention(weights, sets(parameters)) / parameters.D


def trained(
    system: System, parameters: Parameters, samples: int, time: float, **other: Any
) -> tuple[FloatArray, Trajectory]:
    """S of a full empirical run, and the run: v and A trained on N samples from a random start.

    Parameters
    ----------
    system : System
    parameters : Parameters
    samples : int
        N.
    time : float
        eta times steps.
    **other
        ``eta`` (default 0.02), and what `FullEmpirical` takes: ``seed``, ``dtype``.
    """
    eta = other.pop("eta", 0.02)
    problem = system.FullEmpirical(parameters, samples=samples, **other)
    steps = max(1, round(time / eta))
    run = descend(problem, eta=eta, steps=steps, record=np.array([0, steps]))
    matrix = problem.layout.part(run.final_state, "A")
    return softmax(np.asarray(matrix), parameters.scale), run
