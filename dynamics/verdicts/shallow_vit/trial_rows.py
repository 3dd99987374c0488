"""Rows of trials at growing numbers of samples N, and N50, where half of the trials succeed.

A trial trains on N samples until the training loss is zero. It succeeds if the test loss (mean
hinge loss on fresh samples, divided by the margin) is below 1e-3.
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
"""A trial succeeds if its test loss is below this (Section 4.1)."""
COUNTS = (2, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128)
TRIALS, MORE = 20, 3
"""Trials at each number of samples (first), multiplied by the second with --thorough."""
ETA, STEPS = 0.5, 2000
RESTED = 5.0
"""Time, multiplied by alpha_* - alpha_#, at which most runs have zero training loss and stop."""
FULL = 2
"""A row ends after this number of consecutive N at which all trials succeed."""


@dataclass(frozen=True)
class Trials:
    """Trials of one law at growing numbers of samples, until all trials succeed (see `ended`).

    `loss`, shape (counts, trials): test loss at the end, infinite for a diverged run (a failure);
    `steps`, same shape: steps to zero training loss, NaN if not reached.
    """

    loss: FloatArray
    steps: FloatArray
    n50: Threshold

    @property
    def median(self) -> float:
        """Median number of steps to zero training loss."""
        return float(np.nanmedian(self.steps)) if np.isfinite(self.steps).any() else np.nan


def ended(loss: FloatArray) -> bool:
    """Whether all trials succeed at the last `FULL` numbers of samples."""
    return len(loss) >= FULL and bool((loss[-FULL:] < SUCCESS).all())


def of_trials(counts: Sequence[int], loss: FloatArray, steps: FloatArray) -> Trials:
    """Build `Trials`, cut where the row ends; `loss` is NaN at an N that was not run."""
    run = int((~np.isnan(loss)).all(axis=1).sum())
    end = next((k for k in range(run + 1) if ended(loss[:k])), run)
    n50 = threshold(counts[:end], (loss[:end] < SUCCESS).sum(axis=1), loss.shape[1])
    return Trials(loss[:end], steps[:end], n50)


@lru_cache(maxsize=256)
def trials_of(
    make: Any, law: Any, seed: int, trials: int = TRIALS, counts: tuple[int, ...] = COUNTS,
    eta: float = ETA,
) -> Trials:  # fmt: skip
    """Run the trials of a law at growing N; cached, because claims share rows.

    `make`: class of the reduced problem; `seed`: seed of the first trial (all laws and N use the
    same seeds); `eta`: learning rate; below `ETA` a run takes proportionally more steps.
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
