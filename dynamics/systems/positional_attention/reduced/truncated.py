r"""The truncated expectation: the most probable configurations, and a bound on what is left out.

A truncation is safe early in training and wrong late: then the gradient itself is carried by rare
configurations (a random set that is all -1 has probability (q/2)^C), and a fixed truncation lets
alpha turn up again where the exact dynamics falls. So the bound goes along: where it is no longer
small beside the gross gradient, the certificate is lost, and the run ends and says so.
"""

from __future__ import annotations

import dataclasses
from dataclasses import dataclass
from functools import cache, lru_cache
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import NDArray
from scipy.special import gammaln

from dynamics import codegen
from dynamics.systems.positional_attention.kernels import truncated as truncate_kernels
from dynamics.systems.positional_attention.reduced import weighted_sum
from dynamics.systems.positional_attention.reduced.configurations import (
    Configurations,
    assemble,
    multinomial_weights,
    type_compositions,
    type_probabilities,
)
from dynamics.systems.positional_attention.reduced.weighted_sum import WeightedSum
from theory.systems.positional_attention import recursion

if TYPE_CHECKING:
    from dynamics.systems.positional_attention.parameters import Parameters

FloatArray = NDArray[np.float64]

MAX_ENTRIES = 60_000_000
"""Largest number of sets in all configurations together (about one gigabyte)."""
MAX_CONFIGURATIONS = 5_000_000
COARSEST, FINEST = 3, 60
"""Powers of ten of the mass left out, from the first that is tried to the last."""
STEP = 0.5
"""Factor by which the threshold is lowered until the mass left out is small enough."""


@dataclass(frozen=True)
class Kept:
    """The most probable configurations: types, shape (n, L-1), weights, and the mass left out."""

    types: NDArray[np.int64]
    weights: FloatArray
    dropped: float


def keep(patches: int, set_size: int, q: float, dropped: float) -> Kept | None:
    """The configurations above a threshold that leaves out at most ``dropped``; None if too many.

    Parameters
    ----------
    patches, set_size : int
        D and C.
    q : float
        q.
    dropped : float
        Probability that may be left out.
    """
    sets = patches // set_size - 1
    limit = min(MAX_CONFIGURATIONS, MAX_ENTRIES // (sets + 1))
    if limit < 1:
        return None
    law = type_probabilities(type_compositions(set_size), q)
    order = np.argsort(-law, kind="stable")
    order = order[law[order] > 0]
    tail = np.cumsum(law[order][::-1])[::-1]
    functions, threshold = _compiled(), np.log(dropped)
    factorials, single = gammaln(np.arange(sets + 1) + 1.0), np.log(law[order])
    chances = (single, np.log(tail), functions.completions(single, factorials))
    none, weights = np.empty((0, 0), dtype=np.int64), np.empty(limit)
    while True:
        count, left = functions.walk(chances, factorials, threshold, none, weights)
        if count > limit:
            return None
        if left <= dropped:
            break
        threshold += np.log(STEP)
    kinds = np.empty((count, sets), dtype=np.int64)
    functions.walk(chances, factorials, threshold, kinds, weights)
    types = order[kinds]
    return Kept(types, multinomial_weights(types, law), float(left))


@lru_cache(maxsize=16)
def configurations(
    patches: int, set_size: int, q: float, dropped: float
) -> tuple[Configurations, float] | None:
    """`keep`, laid out for the kernels, and the mass left out."""
    kept = keep(patches, set_size, q, dropped)
    if kept is None:
        return None
    return assemble(patches, set_size, kept.types, kept.weights), kept.dropped


@dataclass
class Truncated(WeightedSum):
    """A truncated sum with its certificate.

    Attributes
    ----------
    parameters : Parameters
    tolerance : float
        Largest bound relative to the gross, of any component of the gradient.
    dropped : float
        Probability left out.
    """

    parameters: Parameters = dataclasses.field(kw_only=True)
    tolerance: float = dataclasses.field(kw_only=True)
    dropped: float = dataclasses.field(kw_only=True)

    def observe(self, state: FloatArray) -> tuple[FloatArray, dict[str, float]]:
        """Gradient, risk and error of what is kept, and the bound relative to the gross."""
        slope, known = super().observe(state)
        return slope, known | {"certificate": self._worst()}

    def certify(self, state: FloatArray) -> dict[str, FloatArray]:
        """Value, gross and bound; the risk's bound takes the largest loss there is."""
        found = super().certify(state)
        share, certificate = self.data[1], self.data[5][5]
        self.module.gradient(state, self.data, np.empty(3))
        constants, _, latents, types, _, work = self.data
        self.module.patch_table(state, constants, latents, work[0])
        self.module.set_table(work[0][0], types, work[1])
        size = np.abs(work[1])
        sets, signal = self.configurations.index.shape[0] - 1, size[self._signal]
        loss = np.log(2.0) + (signal + sets * size.max(axis=0)).max()
        bound = np.append(certificate[2] * share, self.dropped * loss + found["bound"][3])
        return found | {"bound": bound}

    @property
    def _signal(self) -> int:
        return int(self.configurations.index[0, 0]) // self.configurations.totals.size

    def certificate(self, state: FloatArray) -> float:
        """Largest bound of a component of the gradient at a state, relative to its gross."""
        self.module.gradient(state, self.data, np.empty(3))
        return self._worst()

    def _worst(self) -> float:
        _, gross, bound = self.data[5][5]
        with np.errstate(divide="ignore", invalid="ignore"):
            ratio = np.where(bound > 0, bound / gross, 0.0)
        return float(ratio.max())

    def failure(self, state: FloatArray) -> str:
        """What is left out, and how far from enough that is."""
        worst = self.certificate(state)
        if worst <= self.tolerance:
            return ""
        return (
            f"the {self.dropped:.1e} of probability left out may change the gradient by {worst:.1e}"
            f" of its gross, more than the tolerance {self.tolerance:.0e}; leave out less, or take "
            "the spectral expectation"
        )


def certified(parameters: Parameters, tolerance: float, state: FloatArray) -> Truncated | None:
    """The coarsest truncation, by powers of ten, that meets a tolerance at a state.

    Parameters
    ----------
    parameters : Parameters
    tolerance : float
        See `Truncated`.
    state : float array, shape (3,)

    Returns
    -------
    Truncated or None
        The finest one that fits in memory where none meets the tolerance; None where none fits.
    """
    level, best = COARSEST, None
    while level <= FINEST:
        finer = truncated(parameters, tolerance, 10.0**-level)
        if finer is None:
            break
        best, certificate = finer, finer.certificate(state)
        if certificate <= tolerance or not np.isfinite(certificate):
            break
        level += max(1, int(np.ceil(np.log10(certificate / tolerance))))
    return best


def truncated(parameters: Parameters, tolerance: float, dropped: float) -> Truncated | None:
    """A truncation by the mass left out; None if it has too many configurations.

    Parameters
    ----------
    parameters : Parameters
    tolerance : float
        See `Truncated`.
    dropped : float
        Probability that may be left out.
    """
    made = configurations(parameters.D, parameters.C, parameters.q, dropped)
    if made is None:
        return None
    chosen, left = made
    reduction = recursion.derive(parameters.p)
    data = weighted_sum.arrays(chosen, reduction, parameters)
    certificate = (np.array([left, tolerance]), np.full(3, np.nan), np.zeros(3))
    settings = {"expectation": "truncated", "tolerance": tolerance, "dropped": left}
    return Truncated(
        "truncated",
        weighted_sum.compiled(parameters.p, chosen.threaded, certified=True),
        (*data[:5], (*data[5], certificate)),
        settings,
        chosen,
        parameters=parameters,
        tolerance=tolerance,
        dropped=left,
    )


@cache
def _compiled() -> codegen.CompiledModule:
    """The walk over configurations, the same for every problem."""
    title = "Positional attention: the most probable configurations."
    parts = [codegen.kernel_source(truncate_kernels.completions, truncate_kernels.walk)]
    return codegen.build(title, (), parts)
