r"""Whether a verdict rests on rounding: what training makes of :math:`10^{-15}` of its start.

Steps above the stability limit, and those of a full model that leaves its symmetric states, amplify
rounding, and rounding differs from processor to processor. A check that such training decides has
measured chance. It is made again from starts changed by `PERTURBATION` of themselves, and where
its verdict or its measured value follows, nothing is decided.

`dynamics.verdicts.verify` does so once for every check at parameters of the user. A claim whose own
laws train near the limit says so (``near_limit``), and is measured again several times, at any
parameters; that all others have the same verdicts at their own laws is a test.
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
"""Relative change of the start that shows what a run makes of rounding."""
PERTURBATIONS = 4
"""Perturbed starts of a check near the stability limit: rounding may leave one where it was."""
SAME = 0.02
"""Part of a measured value by which a perturbation of the start may change it."""
PROBLEMS = ("ReducedPopulation", "FullPopulation", "FullEmpirical")


def perturbed(state: NDArray[np.float64], seed: int = 0) -> NDArray[np.float64]:
    """A state changed by `PERTURBATION` of itself, with random signs.

    `seed`: of the signs. Returns float array: entries that are zero differ by `PERTURBATION` of the
    largest; of 1 where all are zero.
    """
    signs = np.random.default_rng(seed).choice((-1.0, 1.0), state.shape)
    size = np.abs(state)
    size[size == 0.0] = size.max(initial=0.0) or 1.0
    return np.asarray(state + PERTURBATION * signs * size)


def perturbed_system(system: System, seed: int) -> System:
    """The system with every problem at a perturbed start.

    `seed`: of the signs.
    """
    moved = (_moved(make, seed) for make in _problems(system))
    return replace(system, **dict(zip(PROBLEMS, moved, strict=True)))


def _problems(system: System) -> list[Any]:
    return [getattr(system, name) for name in PROBLEMS]


@lru_cache(maxsize=64)
def _moved(make: Any, seed: int) -> Any:
    """The problem with a perturbed start, one class for each so that runs of it are shared."""
    start = property(lambda self: perturbed(make.initial_state.__get__(self), seed))
    return type(make.__name__, (make,), {"initial_state": start})


def screened(
    finding: Finding, check: Check, system: System, protocol: Protocol, times: int = 1
) -> Finding:
    """The finding of a check, undecided where a perturbed start changes it.

    `finding`: of the check; `check`: ``(system, protocol) -> Finding``; `times`: perturbed starts.
    """
    if finding.holds is None or not all(isinstance(make, type) for make in _problems(system)):
        return finding
    values = []
    for seed in range(times):
        other = check(perturbed_system(system, seed), protocol)
        values.append(f"{other.measured:.3g}")
        if other.holds is not finding.holds or not _same(finding.measured, other.measured):
            reason = (
                f"training here is unstable, or the measurement: {finding.measured:.3g}, and "
                f"{', '.join(values)} from starts changed by {PERTURBATION:g} of themselves; "
                f"{finding.reason}"
            )
            return replace(finding, holds=None, reason=reason, missing=("precision",))
    return finding


def _same(measured: float, other: float) -> bool:
    if isnan(measured) and isnan(other):  # nothing was measured, from either start
        return True
    return measured == other or abs(measured - other) <= SAME * max(1.0, abs(measured))
