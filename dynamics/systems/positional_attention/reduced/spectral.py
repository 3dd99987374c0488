r"""The spectral expectation: exact to a requested tolerance, polynomial in D for every q.

The sum over types is replaced, for each sum z of the random sets, by one contour integral (for the
logistic) and one discrete Fourier transform (for the coupling through z); see `spectral_kernels`.
All choices are automatic. The tolerance is relative to the *gross* contributions, in which every
term counts with its absolute value: on the slow manifold the net gradient of alpha is smaller than
its gross by 1e-9 to 1e-15, so a tolerance relative to the net would mean nothing.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cache, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dynamics import codegen
from dynamics.codegen.kernels.advance import advance
from dynamics.systems.positional_attention.kernels import spectral as spectral_kernels
from dynamics.systems.positional_attention.reduced.configurations import (
    type_compositions,
    type_probabilities,
)
from dynamics.systems.positional_attention.reduced.expectation import Expectation
from dynamics.systems.positional_attention.reduced.weighted_sum import constants_and_shares
from theory.systems.positional_attention import recursion

if TYPE_CHECKING:
    from dynamics.systems.positional_attention.parameters import Parameters
    from theory.reduction import ReducedSystem

FloatArray = NDArray[np.float64]

BUDGET = 2e9
"""Largest number of nodes (omega times zeta) of one gradient; some seconds."""
SECONDS_PER_SCAN, SECONDS_PER_TYPE = 9.8e-6, 0.21e-6
"""Predicted time of the scan of one sum, fitted to measurements on one core."""
SCANS = 6.0
"""A gradient takes about so many times what its scan of the sums takes."""
NEGLIGIBLE = 1e-60
"""Sums less likely than this are left out."""
INSIDE = (0.03, 0.08, 0.15, 0.25, 0.35, 0.45, 0.55, 0.65, 0.75, 0.85, 0.94)
BEYOND = (1.05, 1.2, 1.4, 1.7, 1.9)


def contours() -> tuple[FloatArray, tuple[int, int]]:
    """The grid of kappa, with the poles -1, 0, 1 in it, and the range that may carry a contour."""
    half = [*INSIDE, 1.0, *BEYOND]
    grid = np.array([*(-k for k in reversed(half)), 0.0, *half])
    return grid, (int(np.argmax(grid > -1.0)), int(np.argmax(grid >= 1.0)) - 1)


def sum_law(patches: int, q: float) -> FloatArray:
    """Distribution of the sum of so many patches, from -patches to patches."""
    law, step = np.array([1.0]), np.array([q / 2, 1 - q, q / 2])
    while patches:
        if patches % 2:
            law = np.convolve(law, step)
        step = np.convolve(step, step)
        patches //= 2
    return law


@dataclass
class Spectral(Expectation):
    """The spectral expectation of one problem.

    Its work arrays, which a call fills, are values, gross, bounds, and (nodes, over budget).
    """

    def observe(self, state: FloatArray) -> tuple[FloatArray, dict[str, float]]:
        """Gradient, risk, and the bound relative to the gross."""
        found = self.certify(state)
        value, bound, gross = found["value"], found["bound"][:3], found["gross"][:3]
        ratio = np.divide(bound, gross, out=np.zeros(3), where=gross > 0)
        return value[:3], {"risk": float(value[3]), "certificate": float(ratio.max())}

    def certify(self, state: FloatArray) -> dict[str, FloatArray]:
        """Value, gross and bound, from one set of weights."""
        value = np.empty(4)
        self.module.gradient(state, self.data, value[:3])
        value[3] = np.nan if self._report[1] else self.data[5][2][3]
        share = np.append(self.data[1], 1.0)
        return {"value": value, "gross": self.data[5][3] * share, "bound": self.data[5][4] * share}

    @property
    def _report(self) -> FloatArray:
        return self.data[5][5]

    def failure(self, state: FloatArray) -> str:
        """Why there is no number: cancellation, overflow, or nodes above the budget."""
        self.module.gradient(state, self.data, np.empty(3))
        if self._report[1] == 0.0:
            return ""
        if self._report[1] == 2.0:
            return (
                "the integrals of the spectral expectation overflow here: |F| is too large with "
                "both signs; take the exact expectation or start elsewhere"
            )
        if self._report[1] == 3.0:
            return (
                "the integrals of the spectral expectation cancel here until no digit is left; "
                "take the exact or the sampled expectation or start elsewhere"
            )
        return (
            f"the spectral expectation needs more than {self._report[0]:.1e} nodes for one gradient"
            f" here, above its budget of {self.data[4][4]:.1e}; loosen the tolerance or start "
            "elsewhere"
        )


def predicted_seconds(parameters: Parameters) -> float:
    """Time of one gradient, from the number of sums within three standard deviations."""
    spread = 3.0 * np.sqrt((parameters.D - parameters.C) * parameters.q)
    columns = min(2.0 * spread + 1.0, 2.0 * (parameters.D - parameters.C) + 1.0)
    kinds = (parameters.C + 1) * (parameters.C + 2) // 2
    return float(SCANS * (SECONDS_PER_SCAN + SECONDS_PER_TYPE * kinds) * columns)


def spectral(parameters: Parameters, tolerance: float) -> Spectral:
    """The spectral expectation of a problem, ready to run.

    Parameters
    ----------
    parameters : Parameters
    tolerance : float
        Relative to the gross contributions.
    """
    reduction = recursion.derive(parameters.p)
    return Spectral(
        "spectral",
        compiled(parameters.p),
        arrays(reduction, parameters, tolerance, BUDGET),
        {"expectation": "spectral", "tolerance": tolerance},
    )


@lru_cache(maxsize=16)
def law(set_size: int, sets: int, q: float) -> tuple[Any, Any, FloatArray]:
    """What depends on the data law alone: types, sums z that are kept, compositions.

    Parameters
    ----------
    set_size, sets : int
        C, and the number L-1 of random sets.
    q : float
        q.
    """
    composition = type_compositions(set_size)
    probability = type_probabilities(composition, q)
    sums = composition[:, 0] - composition[:, 1]
    whole, less = sum_law(sets * set_size, q), sum_law((sets - 1) * set_size, q)
    z = np.arange(-sets * set_size, sets * set_size + 1)
    kept = np.flatnonzero(whole > NEGLIGIBLE)
    place = z[kept, None] - sums[None, :] + (sets - 1) * set_size
    inside = (place >= 0) & (place < less.size)
    chance_less = np.where(inside, less[np.clip(place, 0, less.size - 1)], 0.0) * probability
    window = (z[kept], whole[kept], chance_less, np.argsort(-whole[kept], kind="stable"))
    return (probability, sums, sets), window, composition.astype(float)


def arrays(
    reduction: ReducedSystem, parameters: Parameters, tolerance: float, budget: float
) -> tuple[Any, ...]:
    """What the compiled functions need beside the state, in the order of the kernels."""
    size = parameters.C
    types, window, composition = law(size, parameters.L - 1, parameters.q)
    columns, sums = window[0].size, types[1]
    values = np.array([1.0, -1.0, 0.0])
    latents = (values, np.arange(-size, size + 1.0), window[0] + float(size))
    work = (
        np.empty((4, 3, 2 * size + 1, columns)),
        np.empty((4, sums.size, columns)),
        *(np.empty(4) for _ in range(3)),
        np.empty(2),
        np.array([tolerance]),
    )
    return (
        *constants_and_shares(reduction, parameters),
        latents,
        (composition, (sums + size).astype(np.uint64)),
        (types, window, *contours(), budget),
        work,
    )


@cache
def compiled(degree: int) -> codegen.CompiledModule:
    """The generated file for one p."""
    reduction = recursion.derive(degree)
    blocks = ["patch", *(f"patch_{theta.name}" for theta in reduction.state)]
    second = [name for name in reduction.blocks if name.count("_") == 2]
    own = spectral_kernels
    entries = (own.gradient, own.hessian, own.order_parameters, own.summary, advance)
    parts = [
        codegen.tabulate("patch_table", blocks, reduction),
        codegen.tabulate("curvature_table", [*blocks, *second], reduction),
        codegen.evaluate("order", list(reduction.order_parameters.values()), reduction),
        codegen.evaluate("reported", list(reduction.observables.values()), reduction),
        codegen.kernel_source(*entries),
    ]
    title = f"Positional attention, reduced population problem, spectral, p = {degree}."
    return codegen.build(title, [s.name for s in reduction.state], parts)
