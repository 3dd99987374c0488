"""Test whether rounding decides a verdict, by training again from perturbed starts.

Rounding differs between processors. Learning rates above the stability limit amplify rounding, and
so does a full model that leaves its symmetric states. A check is therefore repeated from starts
with a relative change of `PERTURBATION`: once for a user's parameters (`dynamics.verdicts.verify`),
and `PERTURBATIONS` times for a claim with ``near_limit``. A claim is undecided if its verdict or
its measured value changes.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from math import isnan
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynamics.system import System
from dynamics.verdicts.findings import Check, Finding, Protocol

PERTURBATION = 1e-15
"""Relative change of the initial state, to test whether a verdict depends on rounding."""
PERTURBATIONS = 4
"""Number of perturbed starts for a check near the stability limit; a single one can miss it."""
SAME = 0.02
"""Maximum change of a measured value, relative to max(1, value); above it, rounding decides."""
PROBLEMS = ("ReducedPopulation", "FullPopulation", "FullEmpirical")


def perturbed(state: NDArray[np.float64], seed: int = 0) -> NDArray[np.float64]:
    """Multiply each entry of a state by 1 + `PERTURBATION` or 1 - `PERTURBATION`, at random.

    A zero entry changes by `PERTURBATION` times the largest entry, or times 1 if all are zero.
    """
    signs = np.random.default_rng(seed).choice((-1.0, 1.0), state.shape)
    size = np.abs(state)
    size[size == 0.0] = size.max(initial=0.0) or 1.0
    return np.asarray(state + PERTURBATION * signs * size)


def perturbed_system(system: System, seed: int) -> System:
    """The system with the start of every problem perturbed as by `perturbed`."""
    moved = (_moved(make, seed) for make in _problems(system))
    return replace(system, **dict(zip(PROBLEMS, moved, strict=True)))


def _problems(system: System) -> list[Any]:
    return [getattr(system, name) for name in PROBLEMS]


@lru_cache(maxsize=64)
def _moved(make: Any, seed: int) -> Any:
    """Problem class with a perturbed start; cached, because cached runs are keyed by the class."""
    start = property(lambda self: perturbed(make.initial_state.__get__(self), seed))
    return type(make.__name__, (make,), {"initial_state": start})


def screened(
    finding: Finding, check: Check, system: System, protocol: Protocol, times: int = 1
) -> Finding:
    """The finding of a check; undecided if one of `times` perturbed starts changes it."""
    if finding.holds is None or not all(isinstance(make, type) for make in _problems(system)):
        return finding
    values = []
    for seed in range(times):
        other = check(perturbed_system(system, seed), protocol)
        values.append(f"{other.measured:.3g}")
        if other.holds is not finding.holds or not _same(finding.measured, other.measured):
            reason = (
                f"sensitive to rounding: measured {finding.measured:.3g}, and "
                f"{', '.join(values)} from starts changed by a relative {PERTURBATION:g}; "
                f"{finding.reason}"
            )
            return replace(finding, holds=None, reason=reason, missing=("precision",))
    return finding


def _same(measured: float, other: float) -> bool:
    if isnan(measured) and isnan(other):  # NaN from both starts
        return True
    return measured == other or abs(measured - other) <= SAME * max(1.0, abs(measured))
