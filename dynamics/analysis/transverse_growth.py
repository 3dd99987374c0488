r"""Bound on the growth of perturbations off the closed space of a model, along a reduced run.

Small perturbations xi obey d xi / d time = -H xi with the Hessian H of the risk. Orthogonal to the
closed space, their growth rate is at most minus the least eigenvalue of H, found by Lanczos
iteration on Hessian-vector products. The exponential of the integrated rate bounds their growth,
and that of rounding errors.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dynamics.problem import FloatArray
from dynamics.results.trajectory import Trajectory
from theory.summary import summarized

RECORDS = 64
"""Number of states of a run at which the least transverse curvature is computed."""
DENSE = 48
"""Maximum number of entries for which the whole Hessian is computed; above it, Lanczos iteration
finds the least eigenvalue."""
TOLERANCE = 1e-6
"""Error of the least curvature by Lanczos iteration, relative to the largest absolute curvature."""


@summarized
@dataclass(frozen=True)
class TransverseGrowth:
    """Least transverse curvature along a reduced run, and a bound on growth of perturbations."""

    time: FloatArray
    """Time of each record, shape (records,)."""
    least: FloatArray
    """Least Hessian eigenvalue orthogonal to the closed space; negative if the space repels."""
    amplification: FloatArray
    """Bound on the growth factor of a perturbation since the start, shape (records,)."""

    @classmethod
    def of(cls, time: FloatArray, least: FloatArray) -> TransverseGrowth:
        """Growth along a run from record times and the least curvature at each record."""
        return cls(time, least, _growth(time, least))

    @property
    def halved(self) -> float:
        """Last `amplification` if only every second record is used, to estimate its error."""
        half = np.unique(np.append(np.arange(0, len(self.time), 2), len(self.time) - 1))
        return float(_growth(self.time[half], self.least[half])[-1])


def transverse_growth(
    reduced: Any, full: Any, run: Trajectory, records: int = RECORDS
) -> TransverseGrowth:
    """Least curvature orthogonal to the closed space at `records` states of a reduced run.

    The full problem must come from the same model file as the reduced problem, and must have the
    method ``hessian_product``.

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
    """Exponential of the integral of the largest growth rate, by the trapezoidal rule."""
    from scipy.integrate import cumulative_trapezoid

    growth = cumulative_trapezoid(np.maximum(-least, 0.0), time, initial=0.0)
    return np.exp(np.minimum(growth, 700.0))


def least_curvature(full: Any, state: FloatArray) -> float:
    """Least eigenvalue of the Hessian orthogonal to the closed space, at a full state.

    The result is infinite if the closed space is the whole space. With more than `DENSE` entries
    the error is at most `TOLERANCE` times the largest curvature.
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
        # The unit is the largest curvature, because the solver's tolerance has an absolute floor.
        # Transverse eigenvalues are lowered by 1, below the eigenvalue 0 of the closed space.
        plain = np.asarray(vector, dtype=np.float64).ravel()
        return product(plain) / scale - full.outside(plain)

    operator = LinearOperator((size, size), matvec=shifted, dtype=np.float64)
    least = eigsh(operator, k=1, which="SA", v0=start, tol=TOLERANCE, return_eigenvectors=False)
    return (float(least[0]) + 1.0) * scale


def _largest(product: Any, start: FloatArray) -> float:
    """Rough largest absolute eigenvalue of the linear map `product`, by power iteration."""
    image, size = start, float(np.linalg.norm(start))
    for _ in range(12):
        if size == 0.0:
            return 0.0
        image = product(image / size)
        size = float(np.linalg.norm(image))
    return 1.5 * size
