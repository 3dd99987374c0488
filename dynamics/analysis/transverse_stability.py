r"""Stability of a symmetric manifold, by the flow linearized orthogonal to the manifold.

If the risk is invariant under a group of permutations, a symmetric start stays symmetric. To first
order, a small perturbation :math:`\xi` of the start obeys

.. math:: \frac{d\xi}{d\tau} = -H_\perp(\tau)\,\xi,

where :math:`H_\perp` is the Hessian of the risk along the symmetric run, on the orthogonal
complement of the space that the group fixes. Directions with negative eigenvalues of the Hessian
repel. The *amplification* :math:`\Phi(\tau)` is the operator norm of the propagator: the largest
growth factor of a perturbation. Because Hessians at different times need not commute, the
propagator is a product of exponentials of the mean Hessian of each interval. The error of the
propagator is of second order in the length of the intervals.

For a user's model only the Hessian's least eigenvalue is computed (`transverse_growth`).
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
"""An amplification above `BEYOND` counts as infinite. The logarithm of the growth factor in one
interval is limited to `LARGEST_STEP`."""
EQUAL = 1e-6
"""Eigenvalues count as equal if their difference is below this fraction of the largest
eigenvalue."""


class Manifold(Protocol):
    """Symmetric states of a problem, and the Hessian of the risk at these states."""

    @property
    def symmetry(self) -> PermutationGroup:
        """The symmetry group, acting on the trained entries."""
        ...

    @property
    def sectors(self) -> Mapping[str, FloatArray]:
        """Columns that span a subspace invariant under the symmetry group, by sector name."""
        ...

    def hessian(self, state: ArrayLike) -> FloatArray:
        """Hessian of the risk with respect to the trained entries, at a reduced state."""
        ...


@summarized
@dataclass(frozen=True)
class Transverse:
    """Transverse spectrum along a symmetric run of `records` records."""

    run: Trajectory
    """The symmetric run."""
    eigenvalues: FloatArray
    """Eigenvalues of the transverse Hessian, ascending, shape (records, m)."""
    shares: Mapping[str, FloatArray]
    """Share of each transverse eigenvector in a sector, shape (records, m), by sector name."""
    symmetric: FloatArray
    """Hessian eigenvalues on the fixed directions, ascending, shape (records, k)."""
    amplification: FloatArray
    """Operator norm of the propagator from the start to each record, shape (records,)."""
    typical: FloatArray
    """Root mean square growth of an isotropic random perturbation, shape (records,)."""
    worst: FloatArray
    """Initial unit perturbation, shape (n,), that grows by the factor `peak`."""

    @property
    def time(self) -> FloatArray:
        """Time of each record."""
        return self.run.time

    @property
    def negative(self) -> np.ndarray:
        """Number of negative transverse eigenvalues at each record, shape (records,)."""
        return (self.eigenvalues < 0).sum(axis=1)

    @property
    def peak(self) -> float:
        """Largest amplification of a perturbation along the run."""
        return float(self.amplification.max())

    @property
    def attracting_from(self) -> float:
        """Time after which no direction repels, or infinity if a direction repels at the end."""
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
        """Group eigenvalues by sector name into ascending arrays of shape (records, count).

        An eigenvalue belongs to the first of `sectors` that contains more than half of its
        eigenvector. For branches that are continuous in time, list first the sectors that contain
        whole eigenvectors. Raises ValueError if an eigenvector is in no sector, or a sector's
        number of eigenvectors changes.
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
    """Spectrum orthogonal to a symmetric manifold, and growth of perturbations, along a run.

    The intervals of the propagator lie between the records of `run`, a run of the reduced problem.
    With 240 logarithmically spaced records the peak has an error of about one per cent.

    Examples
    --------
    Positional attention with 8 patches first repels perturbations and finally attracts them:

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
    r"""Growth of perturbations under :math:`d\xi/d\tau = -H(\tau)\xi`, with symmetric H.

    The matrices `hessians`, each of shape (m, m), belong to the ascending times. Returns the arrays
    ``amplification`` and ``typical``, shape (records,), and ``worst``, shape (m,), of `Transverse`;
    values above 1e100 are infinite.
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
        # An SVD may fail to converge if components have decayed to 1e-200.
        squares, starts = eigenvectors(growth.T @ growth)
        length = float(np.sqrt(squares[-1]))
        if length > max(largest):
            worst = starts[:, -1]
        largest.append(length)
        spread.append(float(np.linalg.norm(growth) / np.sqrt(size)))
    return np.array(largest), np.array(spread), worst


def eigenvectors(matrix: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Eigenvalues of a symmetric matrix, ascending, and eigenvector columns, by QR iterations.

    The divide-and-conquer method of numpy fails for rare matrices with many equal eigenvalues. The
    method of relatively robust representations loses eigenvectors if eigenvalues differ by a factor
    of 1e300.
    """
    from scipy.linalg import eigh

    values, vectors = eigh(matrix, driver="ev", check_finite=False)
    return values, vectors


def split(group: PermutationGroup) -> tuple[FloatArray, FloatArray]:
    """Orthonormal bases of the space that a group fixes, and of the orthogonal complement.

    For a group that acts on n entries with k orbits, the bases have the shapes (n, k) and (n, n -
    k). The first basis consists of the normalized indicators of the orbits.
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
