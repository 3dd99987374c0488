r"""How much a deviation from the closed space of a model may grow along its reduced run.

Deviations obey :math:`d\xi/d\tau = -H_\perp(\tau)\,\xi`, as in
`dynamics.analysis.transverse_stability`, so none grows faster than minus the least eigenvalue of
:math:`H_\perp`. For any model that eigenvalue follows by Lanczos iteration on Hessian-vector
products; the exponential of its integral bounds what rounding becomes.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np

from dynamics.problem import FloatArray
from dynamics.results.trajectory import Trajectory
from theory.summary import summarized

RECORDS = 64
"""States of a run at which the least curvature is computed."""
DENSE = 48
"""Entries up to which the Hessian is taken whole."""
TOLERANCE = 1e-6
"""Error of the least curvature of more entries, as a part of the largest, or of its own size."""


@summarized
@dataclass(frozen=True)
class TransverseGrowth:
    """The most negative transverse curvature along a reduced run.

    `time`, shape (records,); `least`, shape (records,): least eigenvalue of the Hessian across the
    closed space; negative repels; `amplification`, shape (records,): bound on the growth of a
    deviation since the start, exp of the integral of the largest rate, by the trapezoidal rule over
    the records.

    Notes
    -----
    The rule errs by about as much as `halved` differs from the last of ``amplification``.
    """

    time: FloatArray
    least: FloatArray
    amplification: FloatArray

    @classmethod
    def of(cls, time: FloatArray, least: FloatArray) -> TransverseGrowth:
        """The growth along a run from its least curvatures.

        `time`, `least`, shape (records,).
        """
        return cls(time, least, _growth(time, least))

    @property
    def halved(self) -> float:
        """The last of ``amplification`` from every second record, and the last."""
        half = np.unique(np.append(np.arange(0, len(self.time), 2), len(self.time) - 1))
        return float(_growth(self.time[half], self.least[half])[-1])


def transverse_growth(
    reduced: Any, full: Any, run: Trajectory, records: int = RECORDS
) -> TransverseGrowth:
    """The most negative curvature across the closed space, along a run.

    Parameters
    ----------
    reduced : ReducedPopulation
        Of a model of one's own.
    full : FullPopulation
        Of the same, with ``hessian_product``.
    run : Trajectory
        Of the reduced problem.
    records : int
        States at which it is computed.

    Returns
    -------
    TransverseGrowth

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
    """Exp of the integral of the largest rate, by the trapezoidal rule."""
    from scipy.integrate import cumulative_trapezoid

    growth = cumulative_trapezoid(np.maximum(-least, 0.0), time, initial=0.0)
    return np.exp(np.minimum(growth, 700.0))


def least_curvature(full: Any, state: FloatArray) -> float:
    """Least eigenvalue of the Hessian across the closed space.

    `full`: as in `transverse_growth`; `state`, shape (entries,): a state of every entry. Returns
    float: infinite where the space has no complement. Of more than 48 entries it errs by 1e-6 of
    the largest curvature in size at most.
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
        # In units of the largest curvature, as tolerances are not below some absolute ones; and
        # the closed directions, which have eigenvalue 0, are shifted to be never the least.
        plain = np.asarray(vector, dtype=np.float64).ravel()
        return product(plain) / scale - full.outside(plain)

    operator = LinearOperator((size, size), matvec=shifted, dtype=np.float64)
    least = eigsh(operator, k=1, which="SA", v0=start, tol=TOLERANCE, return_eigenvectors=False)
    return (float(least[0]) + 1.0) * scale


def _largest(product: Any, start: FloatArray) -> float:
    """Size of the largest eigenvalue, roughly: a power iteration."""
    image, size = start, float(np.linalg.norm(start))
    for _ in range(12):
        if size == 0.0:
            return 0.0
        image = product(image / size)
        size = float(np.linalg.norm(image))
    return 1.5 * size
