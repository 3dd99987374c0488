r"""Bound on the growth of perturbations off the closed space of a model, along its reduced run.

Perturbations obey :math:`d\xi/d\tau = -H_\perp(\tau)\,\xi`, as in
`dynamics.analysis.transverse_stability`, so their growth rate is at most minus the least eigenvalue
of :math:`H_\perp`. That eigenvalue is computed by Lanczos iteration on Hessian-vector products. The
exponential of its integral bounds the growth of rounding.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dynamics.problem import FloatArray
from dynamics.results.trajectory import Trajectory
from theory.summary import summarized

RECORDS = 64
"""Number of states of a run at which the least curvature is computed."""
DENSE = 48
"""Most entries for which the whole Hessian is computed."""
TOLERANCE = 1e-6
"""Error of the least curvature by Lanczos, relative to the largest curvature or to itself."""


@summarized
@dataclass(frozen=True)
class TransverseGrowth:
    """Most negative transverse curvature along a reduced run.

    `time`, shape (records,); `least`, shape (records,): least eigenvalue of the Hessian orthogonal
    to the closed space, negative if it repels; `amplification`, shape (records,): bound on the
    growth of a perturbation since the start: exp of the integral of the growth rate, by the
    trapezoidal rule.

    Notes
    -----
    The error of the rule is about the difference between `halved` and the last ``amplification``.
    """

    time: FloatArray
    least: FloatArray
    amplification: FloatArray

    @classmethod
    def of(cls, time: FloatArray, least: FloatArray) -> TransverseGrowth:
        """Growth along a run from its least curvatures.

        `time`, `least`, shape (records,).
        """
        return cls(time, least, _growth(time, least))

    @property
    def halved(self) -> float:
        """Last ``amplification`` computed from every second record, for an error estimate."""
        half = np.unique(np.append(np.arange(0, len(self.time), 2), len(self.time) - 1))
        return float(_growth(self.time[half], self.least[half])[-1])


def transverse_growth(
    reduced: Any, full: Any, run: Trajectory, records: int = RECORDS
) -> TransverseGrowth:
    """Most negative curvature orthogonal to the closed space, along a run.

    Parameters
    ----------
    reduced : ReducedPopulation
        Reduced problem of a user's model.
    full : FullPopulation
        Full problem of the same model, with ``hessian_product``.
    run : Trajectory
        Run of the reduced problem.
    records : int
        Number of states at which the curvature is computed.

    Examples
    --------
    >>> import dynamics
    >>> system = dynamics.load_system("deep_linear")
    >>> parameters = system.Parameters(D=2)
    >>> reduced, full = system.ReducedPopulation(parameters), system.FullPopulation(parameters)
    >>> run = dynamics.flow(reduced, time=10)
    >>> growth = transverse_growth(reduced, full, run, records=5)
    >>> print(f"{growth.least[0]:.2f} at the start, {abs(growth.least[-1]):.2f} in the end")
    -4.00 at the start, 0.00 in the end
    """
    indices = np.unique(np.linspace(0, len(run.time) - 1, records).astype(int))
    time, states = run.time[indices], full.lift(run.states[indices], reduced.scalars)
    least = np.array([least_curvature(full, state) for state in states])
    return TransverseGrowth.of(time, least)


def _growth(time: FloatArray, least: FloatArray) -> FloatArray:
    """Exp of the integral of the largest growth rate, by the trapezoidal rule."""
    from scipy.integrate import cumulative_trapezoid

    growth = cumulative_trapezoid(np.maximum(-least, 0.0), time, initial=0.0)
    return np.exp(np.minimum(growth, 700.0))


def least_curvature(full: Any, state: FloatArray) -> float:
    """Least eigenvalue of the Hessian orthogonal to the closed space.

    `full`: as for `transverse_growth`; `state`, shape (entries,): full state. Returns float:
    infinite if the closed space is the whole space. With more than 48 entries its error is at most
    1e-6 of the largest curvature.
    """
    size = state.size
    if len(full.scalars) == size:
        return float("inf")

    def product(vector: FloatArray) -> FloatArray:
        across = full.outside(np.asarray(vector, dtype=np.float64).ravel())
        return np.asarray(full.outside(full.hessian_product(state, across)))

    if size <= DENSE:
        matrix = np.column_stack([product(row) for row in np.eye(size)])
        basis = np.column_stack([full.outside(row) for row in np.eye(size)])
        vectors, lengths, _ = np.linalg.svd(basis)
        across = vectors[:, lengths > 0.5]
        return float(np.linalg.eigvalsh(across.T @ (matrix + matrix.T) @ across / 2).min())
    from scipy.sparse.linalg import LinearOperator, eigsh

    start = full.outside(np.random.default_rng(0).standard_normal(size))
    scale = _largest(product, start) + abs(float(start @ product(start)) / float(start @ start))
    if scale == 0.0:
        return 0.0

    def shifted(vector: FloatArray) -> FloatArray:
        # In units of the largest curvature, because the solver's tolerance has an absolute floor.
        # The closed directions, with eigenvalue 0, are shifted above the least eigenvalue.
        plain = np.asarray(vector, dtype=np.float64).ravel()
        return product(plain) / scale - full.outside(plain)

    operator = LinearOperator((size, size), matvec=shifted, dtype=np.float64)
    least = eigsh(operator, k=1, which="SA", v0=start, tol=TOLERANCE, return_eigenvectors=False)
    return (float(least[0]) + 1.0) * scale


def _largest(product: Any, start: FloatArray) -> float:
    """Rough size of the largest eigenvalue, by power iteration."""
    image, size = start, float(np.linalg.norm(start))
    for _ in range(12):
        if size == 0.0:
            return 0.0
        image = product(image / size)
        size = float(np.linalg.norm(image))
    return 1.5 * size
