r"""Is the symmetric manifold attracting? The flow linearised across it.

A risk that a permutation group of its parameters leaves unchanged has a gradient tangent to the
states that the group fixes, so a symmetric start stays symmetric for ever. A start that is a little
off moves, to first order, by

.. math:: \frac{d\xi}{d\tau} = -H_\perp(\tau)\,\xi,

with :math:`H_\perp` the Hessian of the risk on the orthogonal complement of the fixed directions,
along the symmetric run. The Hessian commutes with the group, so the two parts do not mix. Negative
eigenvalues of :math:`H_\perp` repel. The *amplification* :math:`\Phi(\tau)` is the operator norm of
the propagator: the factor by which the worst deviation has grown. :math:`H_\perp` at different
times need not commute, so the matrix itself is propagated, by the exponential of the mean of the
Hessian at both ends of each interval (second order in its length).

For a model of one's own the least eigenvalue alone is computed
(`dynamics.analysis.transverse_growth`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from typing import Protocol

import numpy as np
from numpy.typing import ArrayLike

from dynamics.problem import FloatArray
from dynamics.results.trajectory import Trajectory
from theory.summary import summarized
from theory.symmetry import PermutationGroup

BEYOND, LARGEST_STEP = 1e100, 300.0
"""Amplification from which on it counts as infinite, and its largest logarithm in one interval."""
EQUAL = 1e-6
"""Eigenvalues that differ by less, relative to the largest, are one."""


class Manifold(Protocol):
    """Symmetric states, and the Hessian at them."""

    @property
    def symmetry(self) -> PermutationGroup:
        """The group, acting on the trained entries."""
        ...

    @property
    def sectors(self) -> Mapping[str, FloatArray]:
        """Spanning columns of named subspaces that the group maps onto themselves."""
        ...

    def hessian(self, state: ArrayLike) -> FloatArray:
        """Hessian by the trained entries at a reduced state."""
        ...


@summarized
@dataclass(frozen=True)
class Transverse:
    """The transverse spectrum along a run.

    `run`: the symmetric run; `eigenvalues`, shape (records, m): of the transverse Hessian,
    ascending; `shares`: sector -> share of each eigenvector in it, shape (records, m); `symmetric`,
    shape (records, k): eigenvalues on the fixed directions, ascending: those of the reduced
    problem; `amplification`, shape (records,): operator norm of the
    propagator from the start of the run; `typical`, shape (records,): root mean square growth of a
    random start that prefers no direction: Frobenius norm of the propagator over sqrt(m); `worst`,
    shape (n,): the unit deviation at the start that has grown most at the time of the peak.
    """

    run: Trajectory
    eigenvalues: FloatArray
    shares: Mapping[str, FloatArray]
    symmetric: FloatArray
    amplification: FloatArray
    typical: FloatArray
    worst: FloatArray

    @property
    def time(self) -> FloatArray:
        """Time of each record."""
        return self.run.time

    @property
    def negative(self) -> np.ndarray:
        """How many directions repel, shape (records,)."""
        return (self.eigenvalues < 0).sum(axis=1)

    @property
    def peak(self) -> float:
        """Largest amplification along the run."""
        return float(self.amplification.max())

    @property
    def attracting_from(self) -> float:
        """Time from which on no direction repels; infinite where one does at the end."""
        repelling = np.flatnonzero(self.negative)
        if repelling.size == 0:
            return float(self.time[0])
        k = int(repelling[-1])
        if k + 1 == self.time.size:
            return float("inf")
        before, after = self.eigenvalues[k, 0], self.eigenvalues[k + 1, 0]
        return float(np.interp(0.0, [before, after], self.time[k : k + 2]))

    def at(self, time: float) -> int:
        """Index of the record nearest to a time."""
        return int(np.abs(self.time - time).argmin())

    def multiplicity(self, record: int) -> int:
        """Number of eigenvectors of the least eigenvalue at a record."""
        values = self.eigenvalues[record]
        return int((values - values[0] <= EQUAL * np.abs(values).max()).sum())

    def branches(self, sectors: Sequence[str]) -> dict[str, FloatArray]:
        """Eigenvalues by the first of some sectors that holds more than half of the eigenvector.

        `sectors`: for branches that are continuous in time, first those that hold all or nothing.
        Returns dict: sector -> float array, shape (records, count), ascending in each record.
        Raises ValueError if an eigenvector is in none, or if a sector holds more of them at some
        times.
        """
        inside = np.array([self.shares[name] > 0.5 for name in sectors])
        first = np.where(inside.any(axis=0), inside.argmax(axis=0), -1)
        values = {}
        for k, name in enumerate(sectors):
            counts = (first == k).sum(axis=1)
            if (first < 0).any() or (counts != counts[0]).any():
                raise ValueError(f"eigenvectors leave or enter the sectors {', '.join(sectors)}")
            values[name] = self.eigenvalues[first == k].reshape(len(counts), counts[0])
        return values


def transverse(manifold: Manifold, run: Trajectory) -> Transverse:
    """Spectrum across a symmetric manifold, and the growth of deviations from it, along a run.

    Parameters
    ----------
    manifold : Manifold
    run : Trajectory
        Of the reduced problem. Its records are the intervals of the propagator: 240 or more,
        logarithmically spaced, give the peak to about a per cent.

    Returns
    -------
    Transverse

    Examples
    --------
    Positional attention of 8 patches repels deviations at first, and attracts them in the end:

    >>> import dynamics
    >>> from dynamics.papers.positional_attention.manifold import Manifold
    >>> system = dynamics.load_system("positional_attention")
    >>> parameters = system.Parameters(D=8, C=2)
    >>> times = np.concatenate([[0.0], np.geomspace(1e-2, 1e4, 40)])
    >>> run = dynamics.flow(system.ReducedPopulation(parameters), time=1e4, record=times)
    >>> spectrum = transverse(Manifold(parameters), run)
    >>> spectrum.eigenvalues.shape
    (41, 54)
    >>> print(f"grow {spectrum.peak:.1e} times, attracting from {spectrum.attracting_from:.0f} on")
    grow 1.2e+02 times, attracting from 2202 on
    """
    from scipy.linalg import orth

    fixed, across = split(manifold.symmetry)
    bases = {name: across.T @ orth(basis, rcond=1e-10) for name, basis in manifold.sectors.items()}
    parts, spectra = [], []
    shares: dict[str, list[FloatArray]] = {name: [] for name in bases}
    for state in run.states:
        matrix = manifold.hessian(state)
        parts.append(across.T @ matrix @ across)
        values, vectors = eigenvectors(parts[-1])
        along = np.linalg.eigvalsh(fixed.T @ matrix @ fixed)
        spectra.append((values, along))
        for name, basis in bases.items():
            shares[name].append(((basis.T @ vectors) ** 2).sum(axis=0))
    spectrum, symmetric = (np.array(column, float) for column in zip(*spectra, strict=True))
    amplification, typical, worst = propagate(run.time, parts)
    return Transverse(
        run=run,
        eigenvalues=spectrum,
        shares={name: np.array(share) for name, share in shares.items()},
        symmetric=symmetric,
        amplification=amplification,
        typical=typical,
        worst=across @ worst,
    )


def propagate(
    time: FloatArray, hessians: Sequence[FloatArray]
) -> tuple[FloatArray, FloatArray, FloatArray]:
    r"""Growth of deviations under :math:`d\xi/d\tau = -H(\tau)\xi`.

    `time`, shape (records,): ascending; `hessians`, shape (m, m): symmetric, one for each time.
    Returns amplification, typical, worst, shape (records,), (records,), (m,): as in `Transverse`;
    infinite from 1e100 on.
    """
    size = len(hessians[0])
    growth, worst = np.eye(size), np.eye(size)[0]
    largest, spread = [1.0], [1.0]
    for k, interval in enumerate(np.diff(time)):
        values, vectors = eigenvectors((hessians[k] + hessians[k + 1]) / 2)
        rates = np.minimum(-interval * values, LARGEST_STEP)
        growth = (vectors * np.exp(rates)) @ (vectors.T @ growth)
        if np.abs(growth).max() > BEYOND:
            rest = [np.inf] * (len(time) - 1 - k)
            return np.array(largest + rest), np.array(spread + rest), worst
        # Not an SVD: what has decayed to 1e-200 can keep it from converging.
        squares, starts = eigenvectors(growth.T @ growth)
        length = float(np.sqrt(squares[-1]))
        if length > max(largest):
            worst = starts[:, -1]
        largest.append(length)
        spread.append(float(np.linalg.norm(growth) / np.sqrt(size)))
    return np.array(largest), np.array(spread), worst


def eigenvectors(matrix: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Eigenvalues of a symmetric matrix, ascending, and eigenvectors, by columns.

    By iterations of QR: divide and conquer, as of numpy, gives up on rare matrices with many equal
    eigenvalues, and relatively robust representations lose vectors where values differ by 1e300.

    `matrix`, shape (m, m).
    """
    from scipy.linalg import eigh

    values, vectors = eigh(matrix, driver="ev", check_finite=False)
    return values, vectors


def split(group: PermutationGroup) -> tuple[FloatArray, FloatArray]:
    """Orthonormal bases of the directions that a group fixes, and of their complement.

    `group`: acting on n entries. Returns float arrays, shape (n, k) and (n, n - k): the normalised
    indicators of the k orbits; any basis of the rest.
    """
    from scipy.sparse import coo_array
    from scipy.sparse.csgraph import connected_components

    points = np.tile(np.arange(group.size), len(group.generators))
    edges = (points, np.concatenate(group.generators))
    graph = coo_array((np.ones(points.size), edges), shape=(group.size, group.size))
    count, label = connected_components(graph, directed=False)
    indicators = (label[:, None] == np.arange(count)).astype(np.float64)
    fixed = indicators / np.sqrt(indicators.sum(axis=0))
    return fixed, np.linalg.qr(fixed, mode="complete")[0][:, count:]
