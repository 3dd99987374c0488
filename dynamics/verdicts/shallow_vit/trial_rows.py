"""Rows of trials at growing numbers of samples N, and N50, where half of them succeed.

A trial trains on N samples until the training loss is zero; it succeeds if the test loss, the mean
hinge on fresh samples over the margin, is below 1e-3. A row of growing N ends after two N at which
all trials succeed.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from functools import lru_cache
from math import inf
from typing import Any

import numpy as np

from dynamics.phase_diagrams.threshold import Threshold, threshold
from dynamics.problem import FloatArray
from dynamics.verdicts.shallow_vit import runs
from dynamics.verdicts.shallow_vit.runs import gaps

SUCCESS = 1e-3
"""Test loss below which a trial succeeds (Section 4.1)."""
COUNTS = (2, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128)
TRIALS, MORE = 20, 3
"""Trials of a cell, and times as many in thorough requests."""
ETA, STEPS = 0.5, 2000
RESTED = 5.0
"""Time, times alpha_* - alpha_#, by which most runs stand still: nothing moves after that."""
FULL = 2
"""Numbers of samples at 100 % after which a row ends."""


@dataclass(frozen=True)
class Trials:
    """Trials of one law at growing numbers of samples, up to where the row ends.

    `loss`, shape (counts, trials): test loss at the end; infinite where a run diverged, which is no
    success; `steps`, same shape: steps to zero training loss; NaN where it was not reached.
    """

    loss: FloatArray
    steps: FloatArray
    n50: Threshold

    @property
    def median(self) -> float:
        """Median of the steps."""
        return float(np.nanmedian(self.steps)) if np.isfinite(self.steps).any() else np.nan


def ended(loss: FloatArray) -> bool:
    """Whether a row has ended: all trials of the last numbers of samples succeed."""
    return len(loss) >= FULL and bool((loss[-FULL:] < SUCCESS).all())


def of_trials(counts: Sequence[int], loss: FloatArray, steps: FloatArray) -> Trials:
    """Trials without the numbers of samples beyond the end of the row.

    `counts`: N, ascending; `loss`, `steps`, shape (counts, trials): as of `Trials`; NaN in ``loss``
    where a number of samples was not run.
    """
    run = int((~np.isnan(loss)).all(axis=1).sum())
    end = next((k for k in range(run + 1) if ended(loss[:k])), run)
    n50 = threshold(counts[:end], (loss[:end] < SUCCESS).sum(axis=1), loss.shape[1])
    return Trials(loss[:end], steps[:end], n50)


@lru_cache(maxsize=256)
def trials_of(
    make: Any, law: Any, seed: int, trials: int = TRIALS, counts: tuple[int, ...] = COUNTS,
    eta: float = ETA,
) -> Trials:  # fmt: skip
    """Run a row N by N; claims share rows.

    `make`: the reduced problem; `seed`: of the first trial; every law and N has the trials of the
    same seeds; `counts`: N, ascending; `eta`: the steps are as many more as it is less than `ETA`.
    """
    loss, steps = np.full((2, len(counts), trials), np.nan)
    most = round(STEPS * ETA / eta)
    first = RESTED / (eta * float(gaps([law])[0]))
    horizons = sorted({round(min(most, first * part)) for part in (1, 3, inf)})
    for i, samples in enumerate(counts):
        for j in range(trials):
            run = runs.descend_in_parts(make(law, samples=samples, seed=seed + j), eta, horizons)
            loss[i, j] = np.inf if run.outcome.failed else run["test_loss"][-1]
            steps[i, j] = np.nan if (stop := run.events["t_zero"].step) is None else stop
        if ended(loss[: i + 1]):
            break
    return of_trials(counts, loss, steps)
