r"""The spectral expectation: exact to a requested tolerance, polynomial in D for every q.

The sum over types is replaced, for each sum z of the random sets, by one contour integral (for the
logistic) and one discrete Fourier transform (for the coupling through z); see `spectral_kernels`.
All choices are automatic. The tolerance is relative to the *gross* contributions, in which every
term counts with its absolute value: on the slow manifold the net gradient of alpha is smaller than
its gross by 1e-9 to 1e-15, so a tolerance relative to the net would mean nothing.
"""

from __future__ import annotations

from functools import cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dynamics import codegen
from dynamics.kernels import exponential
from dynamics.kernels.advance import advance
from dynamics.kernels.exponential import exponentials
from dynamics.systems.positional_attention import kernels
from dynamics.systems.positional_attention.expectation import contour_kernels, spectral_kernels
from dynamics.systems.positional_attention.expectation.configurations import (
    constants_and_shares,
    type_compositions,
    type_probabilities,
)
from theory.systems.positional_attention import recursion

if TYPE_CHECKING:
    from dynamics.systems.positional_attention.parameters import Parameters
    from theory.reduction import ReducedSystem

BUDGET = 2e9
"""Largest number of nodes (omega times zeta) of one gradient; about two seconds."""
NEGLIGIBLE = 1e-60
"""Sums less likely than this are left out."""
INSIDE = (0.03, 0.08, 0.15, 0.25, 0.35, 0.45, 0.55, 0.65, 0.75, 0.85, 0.94)
BEYOND = (1.05, 1.2, 1.4, 1.7, 1.9)


def contours() -> tuple[NDArray[np.float64], tuple[int, int]]:
    """The grid of kappa, with the poles -1, 0, 1 in it, and the range that may carry a contour."""
    half = [*INSIDE, 1.0, *BEYOND]
    grid = np.array([*(-k for k in reversed(half)), 0.0, *half])
    return grid, (int(np.argmax(grid > -1.0)), int(np.argmax(grid >= 1.0)) - 1)


def sum_law(patches: int, q: float) -> NDArray[np.float64]:
    """Distribution of the sum of so many patches, from -patches to patches."""
    law, step = np.array([1.0]), np.array([q / 2, 1 - q, q / 2])
    while patches:
        if patches % 2:
            law = np.convolve(law, step)
        step = np.convolve(step, step)
        patches //= 2
    return law


def arrays(reduction: ReducedSystem, parameters: Parameters, tolerance: float) -> tuple[Any, ...]:
    """What the compiled functions need beside the state, in the order of the kernels."""
    size, sets = parameters.C, parameters.L - 1
    composition = type_compositions(size)
    probability = type_probabilities(composition, parameters.q)
    sums = composition[:, 0] - composition[:, 1]
    law, less = sum_law(sets * size, parameters.q), sum_law((sets - 1) * size, parameters.q)
    z = np.arange(-sets * size, sets * size + 1)
    kept = np.flatnonzero(law > NEGLIGIBLE)
    place = z[kept, None] - sums[None, :] + (sets - 1) * size
    inside = (place >= 0) & (place < less.size)
    chance_less = np.where(inside, less[np.clip(place, 0, less.size - 1)], 0.0) * probability
    grid, ends = contours()
    problem = (
        (probability, sums, sets),
        (z[kept], law[kept], chance_less, np.argsort(-law[kept], kind="stable")),
        grid,
        ends,
        BUDGET,
    )
    values, columns = np.array([1.0, -1.0, 0.0]), kept.size
    latents = (values, np.arange(-size, size + 1.0), z[kept] + float(size))
    work = (
        np.empty((4, 3, 2 * size + 1, columns)),
        np.empty((4, sums.size, columns)),
        *(np.empty(4) for _ in range(3)),
        np.empty(2),
        np.array([tolerance]),
    )
    types = (composition.astype(float), (sums + size).astype(np.uint64))
    return (*constants_and_shares(reduction, parameters), latents, types, problem, work)


@cache
def compiled(degree: int) -> codegen.CompiledModule:
    """The generated file for one p."""
    reduction = recursion.derive(degree)
    blocks = ["patch", *(f"patch_{theta.name}" for theta in reduction.state)]
    inline, parts, choice = codegen.inline, spectral_kernels, contour_kernels
    return codegen.build(
        f"Positional attention, reduced population problem, spectral, p = {degree}.",
        [s.name for s in reduction.state],
        [
            codegen.constants(exponential, "LOG2_E", "LN2_HIGH", "LN2_LOW", "ROUNDING"),
            codegen.constants(choice, "LARGEST_TILT", "TINY", "UNSEEN", "ROUNDING_UNIT"),
            codegen.constants(parts, "LARGEST_TABLE", "PASSES"),
            codegen.tabulate("patch_table", blocks, reduction),
            codegen.evaluate("order", list(reduction.order_parameters.values()), reduction),
            codegen.evaluate("reported", list(reduction.observables.values()), reduction),
            inline(kernels.set_table),
            inline(exponentials, "exact_kernel"),
            inline(choice.newton),
            inline(choice.tilt),
            inline(choice.survey),
            inline(choice.plan),
            inline(choice.transform_length),
            inline(parts.transform),
            inline(parts.integrate),
            inline(parts.waves_of),
            inline(parts.prepare),
            inline(parts.weigh_sum),
            inline(parts.collect),
            inline(parts.spectrum),
            inline(parts.tables_at),
            inline(parts.gradient),
            inline(parts.order_parameters),
            inline(parts.summary),
            inline(advance, "exact_kernel"),
        ],
    )
