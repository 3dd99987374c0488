r"""Success over laws and numbers of samples N: trials, where a row ends, N50.

A trial trains on N samples until the training loss is zero; it succeeds if the test loss, the mean
hinge on fresh samples over the margin, is below 1e-3. A row of growing N ends after two N at which
all trials succeed. Training is on patterns, without noise: gradient descent on few vectors.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from functools import cached_property, lru_cache
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dynamics.experiments.shallow_vit.runs import stands
from dynamics.phase_diagrams.threshold import Threshold, threshold
from dynamics.problem import FloatArray
from dynamics.results.trajectory import Event, Trajectory
from dynamics.training.gradient_descent import descend

if TYPE_CHECKING:
    from dynamics.registry import System

SUCCESS = 1e-3
"""Test loss below which a trial succeeds (Section 4.1)."""
COUNTS = (2, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128)
TRIALS = 20
NEURONS = 300
"""N50 does not depend on m from here on."""
ETA, STEPS = 0.5, 2000
FIRST_STEPS = 150
"""Most runs have stopped by then, and nothing moves after that: the full length is for the rest."""
FULL = 2
"""Numbers of samples at 100 % after which a row ends."""


@dataclass(frozen=True, eq=False)
class Rows:
    """Trials over laws and numbers of samples.

    Attributes
    ----------
    counts : int array, shape (counts,)
        N, ascending.
    loss : float array, shape (rows, counts, trials)
        Test loss at the end; infinite where a run diverged, which is no success; NaN where a row
        had ended.
    steps : float array, same shape
        Steps to zero training loss; NaN where it was not reached.
    """

    counts: NDArray[np.int64]
    loss: FloatArray
    steps: FloatArray

    @property
    def share(self) -> FloatArray:
        """Share of trials that succeed, shape (rows, counts); NaN where a row had ended."""
        known = ~np.isnan(self.loss)
        with np.errstate(invalid="ignore"):
            return np.asarray((self.loss < SUCCESS).sum(axis=2) / known.sum(axis=2))

    @cached_property
    def thresholds(self) -> tuple[Threshold, ...]:
        """N50 of every row."""
        return tuple(
            threshold(self.counts, (row < SUCCESS).sum(axis=1), (~np.isnan(row)).sum(axis=1))
            for row in self.loss
        )

    @property
    def values(self) -> FloatArray:
        """N50 of every row; NaN where there is only a bound."""
        return np.array([found.value for found in self.thresholds])

    @property
    def errors(self) -> FloatArray:
        """Standard errors of ln N50; infinite where there is only a bound."""
        return np.array([found.error for found in self.thresholds])

    @property
    def medians(self) -> FloatArray:
        """Median steps of the trials of every row, shape (rows,)."""
        return np.array([np.nanmedian(row) if np.isfinite(row).any() else np.nan
                         for row in self.steps])  # fmt: skip


def ended(share: Sequence[float]) -> bool:
    """Whether a row of shares at growing N has ended: the last ones are all 1."""
    return len(share) >= FULL and all(value == 1 for value in share[-FULL:])


def cut(rows: Rows) -> Rows:
    """The rows without what lies beyond their ends, however much was run."""
    loss, steps = rows.loss.copy(), rows.steps.copy()
    for k, share in enumerate(rows.share.tolist()):
        for last in range(1, len(share) + 1):
            if ended(share[:last]):
                loss[k, last:], steps[k, last:] = np.nan, np.nan
                break
    return Rows(rows.counts, loss, steps)


def climb(
    system: System,
    laws: Sequence[Any],
    seed: int = 0,
    trials: int = TRIALS,
    counts: Sequence[int] = COUNTS,
) -> Rows:
    """Run every row, N by N, in this process; kept, because checks share rows.

    Parameters
    ----------
    system : System
    laws : sequence of Parameters
    seed : int
        Of the first trial; every law and N has the trials of the same seeds.
    trials : int
    counts : sequence of int
        N, ascending.
    """
    make: Any = system.ReducedPopulation
    rows = [_row(make, law, seed, trials, tuple(counts)) for law in laws]
    loss, steps = (np.stack(part) for part in zip(*rows, strict=True))
    return Rows(np.array(counts), loss, steps)


@lru_cache(maxsize=256)
def _row(
    make: Callable[..., Any], law: Any, seed: int, trials: int, counts: tuple[int, ...]
) -> tuple[FloatArray, FloatArray]:
    loss, steps = np.full((2, len(counts), trials), np.nan)
    shares: list[float] = []
    for i, samples in enumerate(counts):
        for j in range(trials):
            problem = make(law, samples=samples, seed=seed + j)
            run, stop = _trained(problem)
            loss[i, j] = np.inf if run.outcome.failed else run["test_loss"][-1]
            if stop is not None and stop.step is not None:
                steps[i, j] = stop.step
        shares.append(float((loss[i] < SUCCESS).mean()))
        if ended(shares):
            break
    return loss, steps


def _trained(problem: Any) -> tuple[Trajectory, Event | None]:
    """A run until it stands still, or to the last step, and the event of zero training loss."""
    for steps in (FIRST_STEPS, STEPS):
        run = descend(problem, ETA, steps, record=[steps])
        stop = run.events["t_zero"]
        if stands(problem, run) is not None:
            break
    return run, stop
