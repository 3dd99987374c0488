r"""Off the closed space: how fast deviations from a reduced run grow.

A small deviation of every entry moves by :math:`\dot\xi = -H_\perp \xi`, with :math:`H_\perp` the
Hessian of the risk on the complement of the closed space, along the reduced run. Its most negative
eigenvalue, by Lanczos iteration on Hessian-vector products, is the rate at which rounding grows
there. So a reduced run that parts from the full one is either on a manifold that repels, where the
gradient of every entry still lies in the space, or a wrong reduction, where it does not.

For positional attention the whole transverse spectrum is known
(`dynamics.analysis.transverse_stability`); this works
for any model.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dynamics.problem import FloatArray
from dynamics.results.trajectory import Trajectory

if TYPE_CHECKING:
    from dynamics.results.comparison import Comparison

RECORDS = 32
DENSE = 48
"""Entries up to which the Hessian is taken whole."""
ROUNDING = 1e-11
"""Deviations below this need no explanation."""
TOLERANCE = 1e-6


@dataclass(frozen=True)
class TransverseGrowth:
    """The most negative transverse curvature along a reduced run.

    Attributes
    ----------
    time : float array, shape (records,)
    least : float array, shape (records,)
        Least eigenvalue of the Hessian across the closed space; negative repels.
    amplification : float array, shape (records,)
        Bound on the growth of a deviation since the start, exp of the integral of the largest rate.
    """

    time: FloatArray
    least: FloatArray
    amplification: FloatArray


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
    """
    chosen = np.unique(np.linspace(0, len(run.time) - 1, records).astype(int))
    time = run.time[chosen]
    states = reduced.lift(run.states[chosen])
    least = np.array([least_curvature(reduced, full, state) for state in states])
    rate = np.maximum(-least, 0.0)
    grown = np.concatenate([[0.0], np.cumsum(np.diff(time) * (rate[1:] + rate[:-1]) / 2)])
    return TransverseGrowth(time, least, np.exp(np.minimum(grown, 700.0)))


def least_curvature(reduced: Any, full: Any, state: FloatArray) -> float:
    """Least eigenvalue of the Hessian across the closed space at a state of every entry.

    Infinite where the space has no complement.
    """
    size = state.size
    if len(reduced.scalars) == size:
        return float("inf")

    def product(vector: FloatArray) -> FloatArray:
        across = reduced.outside(np.asarray(vector, dtype=np.float64).ravel())
        return np.asarray(reduced.outside(full.hessian_product(state, across)))

    if size <= DENSE:
        matrix = np.column_stack([product(row) for row in np.eye(size)])
        basis = np.column_stack([reduced.outside(row) for row in np.eye(size)])
        vectors, lengths, _ = np.linalg.svd(basis)
        across = vectors[:, lengths > 0.5]
        return float(np.linalg.eigvalsh(across.T @ (matrix + matrix.T) @ across / 2).min())
    from scipy.sparse.linalg import LinearOperator, eigsh

    start = reduced.outside(np.random.default_rng(0).standard_normal(size))
    # The closed directions have eigenvalue 0 here: shifted, so that they are never the least.
    scale = abs(float(start @ product(start)) / float(start @ start)) + 1.0
    bound = _largest(product, start) + scale

    def shifted(vector: FloatArray) -> FloatArray:
        plain = np.asarray(vector, dtype=np.float64).ravel()
        return product(plain) - bound * reduced.outside(plain)

    operator = LinearOperator((size, size), matvec=shifted, dtype=np.float64)
    least = eigsh(operator, k=1, which="SA", v0=start, tol=TOLERANCE, return_eigenvectors=False)
    return float(least[0]) + bound


def _largest(product: Any, start: FloatArray) -> float:
    """Size of the largest eigenvalue, roughly."""
    vector, size = start / np.linalg.norm(start), 0.0
    for _ in range(12):
        image = product(vector)
        size = float(np.linalg.norm(image))
        if size == 0.0:
            return 0.0
        vector = image / size
    return 1.5 * size


def explanation(result: Comparison, reduced: Any, full: Any) -> str:
    """Why a reduced run parts from the full one; empty where it does not.

    Parameters
    ----------
    result : Comparison
    reduced, full : problems
        Of a model of one's own.

    Returns
    -------
    str
        Either that the reduction is wrong, with the entry that leaves it, or that rounding grows on
        a manifold that repels, with the rate measured and the rate of the linearised flow.
    """
    scale = max(1.0, float(np.abs(result.reduced.states).max()))
    outside = result.full.observables.get("outside", np.zeros(1))
    largest = max(*result.deviation.values(), float(outside.max()))
    if not largest > ROUNDING * scale:
        return ""
    run = result.reduced
    chosen = np.unique(np.linspace(0, len(result.time) - 1, RECORDS).astype(int))
    leaving = reduced.realization.first_leaving(reduced.closure, reduced.lift(run.states[chosen]))
    if leaving is not None:
        number, entry = leaving
        return (
            f"the reduction is wrong: at time {run.time[chosen[number]]:.4g} the gradient of "
            f"{reduced.realization.entry_name(entry)} is another than that of its class"
        )
    growth = transverse_growth(reduced, full, run)
    measured = _measured_rate(result)
    rate = float(max(0.0, -growth.least.min()))
    first = (
        f"the runs part by {largest:.1e}, and the reduction holds (the gradient of every entry "
        "lies in its class along the run): "
    )
    if rate * float(run.time[-1]) < 1.0:
        return first + "no direction across the classes repels; the deviation is rounding"
    return first + (
        f"rounding grows on a manifold that repels, at a rate of {measured:.3g} per unit of time "
        f"(largest rate of the linearised flow {rate:.3g})"
    )


def _measured_rate(result: Comparison) -> float:
    """Rate at which the deviation grew, from its least to its largest value on a log scale."""
    outside = result.full.observables.get("outside")
    total = np.max(list(result.deviations.values()), axis=0)
    if outside is not None:
        total = outside[: total.size]
    good = (total > 0) & (total < 0.1 * total.max())
    if np.count_nonzero(good) < 3:
        return float("nan")
    time, size = result.time[good], np.log(total[good])
    late = size > size.max() - 0.7 * (size.max() - size.min())
    if np.count_nonzero(late) < 3:
        late = np.ones_like(late)
    return float(np.polyfit(time[late], size[late], 1)[0])
