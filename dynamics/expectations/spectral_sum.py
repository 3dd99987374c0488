"""Spectral expectation of positional attention: cost polynomial in D for every law of the data.

For each sum z of the random sets, one contour integral (for the logistic function) and one discrete
Fourier transform (for the coupling through z) replace the sum over types; see
`dynamics.expectations.spectral`. The tolerance is relative to the *gross*, the sum of absolute
contributions of all sets, because on the slow manifold the gradient by alpha is only 1e-9 to 1e-15
times its gross.
"""

from __future__ import annotations

from math import comb
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynamics.expectations import FLOOR, Expectation, FloatArray, spectral
from dynamics.loops import summary

BUDGET = 3e9
"""Maximum product of a gradient's nodes (in omega and zeta) and a set's types; a gradient above it
is refused. A gradient with this product takes about two seconds."""
NEGLIGIBLE = 1e-60
"""Sums z of the random sets with at most this probability are left out."""
FAULTS = {
    spectral.OVERFLOW: "the integrals of the spectral expectation overflow: |F| is too large "
    "with both signs; use the exact expectation or another start",
    spectral.CANCELLED: "the integrals of the spectral expectation cancel until no digit is "
    "left; use the exact or the sampled expectation or another start",
}


class SpectralSum(Expectation):
    """Expectation over the types of all sets of patches other than the signal set.

    The array `types`, shape (K, 2), holds the numbers of patches at +1 and at -1 in each type of a
    random set, and `probabilities`, shape (K,), the probability of each type, with a relative error
    of `chance_error`. `tolerance` is the allowed error over the sum of absolute contributions.
    """

    name = "spectral"

    def __init__(
        self, D: int, C: int, p: int, nu: float, beta: float, scale: float,
        types: ArrayLike, probabilities: ArrayLike,
        tolerance: float = 1e-10, chance_error: float = 2.0**-53,
    ) -> None:  # fmt: skip
        given, chances = np.asarray(types), np.asarray(probabilities, dtype=np.float64)
        self._arguments = D, C, p, nu, beta, scale, given, chances, tolerance, chance_error
        given, chances = given[chances > 0.0, :2], chances[chances > 0.0]
        sets, sums = D // C - 1, given[:, 0] - given[:, 1]
        each = np.bincount(sums + C, chances, 2 * C + 1).astype(np.float64)
        whole, less = law_of_sum(sets, each), law_of_sum(sets - 1, each)
        likely = np.flatnonzero(whole > NEGLIGIBLE)
        likely = likely[np.argsort(-whole[likely], kind="stable")]
        left = likely[:, None] - (sums + C)
        inside = (left >= 0) & (left < less.size)
        others = np.where(inside, less[np.clip(left, 0, less.size - 1)], 0.0) * chances
        self.data = spectral.SpectralData(
            constants=np.array([D, C, nu, beta, scale], dtype=np.float64),
            share=1.0 / np.array([1.0, D * (C - 1.0), D * (D - float(C))]),
            moments=central_moments(np.vstack([given, [C, 0]]), C, p),
            probability=chances,
            sums=np.append(sums, C).astype(np.int64),
            z=(likely - sets * C).astype(np.int64),
            chance=whole[likely],
            others=np.ascontiguousarray(others),
            n=int(sets),
            variance=float(chances @ (sums * sums)),
            tolerance=float(tolerance),
            budget=BUDGET / chances.size,
        )
        self.settings = {"expectation": "spectral", "tolerance": tolerance}
        self._left_out = float(whole[whole <= NEGLIGIBLE].sum())

    def __reduce__(self) -> tuple[Any, ...]:
        return type(self), self._arguments

    def _summary(self, state: FloatArray) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """Minus gradient by scalars, risk; sums of absolute terms; errors; nodes and fault code."""
        value, gross, error, why = summary(self.data, state, 16).reshape(4, 4)
        with np.errstate(all="ignore"):
            error = error + self._tail(state) + self.data.n * self._arguments[-1] * gross
        return value, gross, error, why[:2]

    def error_estimate(self, state: FloatArray) -> dict[str, FloatArray]:
        """Gradient and risk, `gross` (sums of absolute terms) and errors; NaN, inf if unknown."""
        value, gross, error, (_, fault) = self._summary(state)
        share = np.append(self.data.share, 1.0)
        if fault:
            value, error = np.full(4, np.nan), np.full(4, np.inf)
        value = np.array([-1.0, -1.0, -1.0, 1.0]) * share * value
        return {"value": value, "gross": gross * share, "estimate": error * share + FLOOR}

    def _tail(self, state: FloatArray) -> FloatArray:
        """Bound on the contribution of left out sums z; attention averages patches to [-1, 1]."""
        D, _, p, nu, _, scale = self._arguments[:6]
        inner = D * abs(state[0])
        steep = D * (p * inner ** (p - 1) + nu)
        turn = steep * inner * scale / 2.0
        loss = 1.0 + D * (inner**p + nu * inner)
        return self._left_out * np.array([steep * D, turn, turn, loss])

    def failure(self, state: FloatArray) -> str:
        """Reason why a state has no gradient (cancellation, overflow, too many nodes), or ""."""
        *_, (nodes, fault) = self._summary(state)
        if fault == spectral.TOO_MANY:
            return (
                f"the spectral expectation needs more than {nodes:.1e} nodes for one gradient, "
                f"above its budget of {self.data.budget:.1e}; loosen the tolerance or choose "
                "another start"
            )
        return FAULTS.get(fault, "")


def law_of_sum(sets: int, each: FloatArray) -> FloatArray:
    """Law of the sum of independent sets, each with the law `each`, by repeated squaring."""
    whole, step = np.array([1.0]), each
    while sets:
        if sets % 2:
            whole = np.convolve(whole, step)
        step = np.convolve(step, step)
        sets //= 2
    return whole


def central_moments(types: NDArray[Any], C: int, p: int) -> FloatArray:
    """Factors binom(p, k) S_k of (1) in `shares` for each type of a set, shape (p + 1, K).

    The array `types`, shape (K, 2), holds numbers of patches at +1 and at -1.
    """
    a, b = types.T.astype(float)
    mean = (a - b) / C
    sums = [
        a * (1 - mean) ** k + b * (-1 - mean) ** k + (C - a - b) * (-mean) ** k
        for k in range(p + 1)
    ]
    rows = [float(comb(p, k)) * total for k, total in enumerate(sums)]
    rows[0], rows[1] = np.full(a.size, float(C)), np.zeros(a.size)
    return np.array(rows)
