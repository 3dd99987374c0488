"""How many samples: trials, and N50 along rows of growing N.

A trial trains on N samples until the training loss is zero; it succeeds if the test loss, the mean
hinge on fresh samples over the margin, is below 1e-3. A row of growing N ends after two N at which
all trials succeed. Training is on patterns, without noise: gradient descent on few vectors.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynamics.phase_diagrams.threshold import Threshold, threshold
from dynamics.problem import FloatArray
from dynamics.results.power_law import PowerLaw, power_law
from dynamics.system import System
from dynamics.verdicts.shallow_vit import runs
from dynamics.verdicts.study import computed_once

SUCCESS = 1e-3
"""Test loss below which a trial succeeds (Section 4.1)."""
COUNTS = (2, 4, 6, 8, 12, 16, 24, 32, 48, 64, 96, 128)
TRIALS = 20
NEURONS = 300  # N50 does not depend on m from here on
ETA, STEPS = 0.5, 2000
FIRST_STEPS = 150
"""Most runs have stopped by then, and nothing moves after that: the full length is for the rest."""
FULL = 2
"""Numbers of samples at 100 % after which a row ends."""
AT_ONCE = 3
"""Numbers of samples of one sweep, after which rows that have ended are left out."""
LAW = {"m": NEURONS, "L": 100, "data": "fixed_disc"}
FIGURE_1B = {"m": NEURONS, "L": 50, "alpha_star": 0.3, "alpha_confusion": 0.2, "data": "fixed_disc"}


@dataclass(frozen=True, eq=False)
class Rows:
    """Trials over laws and numbers of samples."""

    counts: NDArray[np.int64]
    """N, ascending, shape (counts,)."""
    loss: FloatArray
    """Test loss at the end, shape (rows, counts, trials); infinite where a run diverged, which is
    no success; NaN where a row had ended."""
    steps: FloatArray
    """Steps to zero training loss, same shape; NaN where it was not reached."""

    @property
    def share(self) -> FloatArray:
        """Share of trials that succeed, shape (rows, counts); NaN where a row had ended."""
        finite = ~np.isnan(self.loss)
        with np.errstate(invalid="ignore"):
            return np.asarray((self.loss < SUCCESS).sum(axis=2) / finite.sum(axis=2))

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
        return np.array([n50.value for n50 in self.thresholds])

    @property
    def errors(self) -> FloatArray:
        """Standard errors of ln N50; infinite where there is only a bound."""
        return np.array([n50.error for n50 in self.thresholds])

    @property
    def medians(self) -> FloatArray:
        """Median steps of the trials of every row, shape (rows,)."""
        medians = [np.nanmedian(row) if np.isfinite(row).any() else np.nan for row in self.steps]
        return np.array(medians)

    def growth(self, variable: FloatArray) -> PowerLaw:
        """Power law of N50 in a variable, shape (rows,)."""
        return power_law(variable, self.values, self.errors)

    def cut(self) -> Rows:
        """The rows without what lies beyond their ends, however much was run."""
        loss, steps = self.loss.copy(), self.steps.copy()
        for k, share in enumerate(self.share.tolist()):
            end = next((n for n in range(1, len(share)) if ended(share[:n])), len(share))
            loss[k, end:], steps[k, end:] = np.nan, np.nan
        return Rows(self.counts, loss, steps)

    def __str__(self) -> str:
        return ", ".join(map(str, self.thresholds))


def ended(share: Sequence[float]) -> bool:
    """Whether a row of shares at growing N has ended: the last ones are all 1."""
    return len(share) >= FULL and all(value == 1 for value in share[-FULL:])


def trials_of(
    system: System,
    laws: Sequence[Any],
    seed: int = 0,
    trials: int = TRIALS,
    counts: Sequence[int] = COUNTS,
    eta: float = ETA,
) -> Rows:
    """Run every row, N by N, in this process; a law is run once for all checks.

    Parameters
    ----------
    system : System
    laws : sequence of Parameters
    seed : int
        Of the first trial; every law and N has the trials of the same seeds.
    trials : int
    counts : sequence of int
        N, ascending.
    eta : float
        The steps are as many more as it is less than `ETA`.
    """
    rows = [_row(system, law, seed, trials, tuple(counts), eta) for law in laws]
    loss, steps = (np.stack(part) for part in zip(*rows, strict=True))
    return Rows(np.array(counts), loss, steps)


@computed_once(256)
def _row(
    make: Any, law: Any, seed: int, trials: int, counts: tuple[int, ...], eta: float
) -> tuple[FloatArray, FloatArray]:
    loss, steps = np.full((2, len(counts), trials), np.nan)
    shares: list[float] = []
    horizons = [round(steps * ETA / eta) for steps in (FIRST_STEPS, STEPS)]
    for i, samples in enumerate(counts):
        for j in range(trials):
            problem = make(law, samples=samples, seed=seed + j)
            run = runs.descend_in_parts(problem, eta, horizons)
            loss[i, j] = np.inf if run.outcome.failed else run["test_loss"][-1]
            stop = run.events["t_zero"].step
            if stop is not None:
                steps[i, j] = stop
        shares.append(float((loss[i] < SUCCESS).mean()))
        if ended(shares):
            break
    return loss, steps


def stored_trials(
    system: System,
    law: Any,
    axes: Mapping[str, Any],
    axis: str,
    counts: Sequence[int],
    path: Path,
    workers: int,
) -> Rows:
    """The trials of `trials_of` in sweeps that are stored, each row until it has ended.

    Parameters
    ----------
    system : System
    law : Parameters
    axes : mapping
        ``seed``, the ``axis`` with its values, and formulas.
    axis : str
        Name of what differs from row to row.
    counts : sequence of int
        N, ascending.
    path : Path
        Beginning of the names of the stores.
    workers : int
        Processes.
    """
    shape = len(axes[axis]), len(counts), len(axes["seed"])
    loss, steps = np.full((2, *shape), np.nan)
    going = list(range(len(axes[axis])))
    rows = Rows(np.array(counts), loss, steps)
    for first in range(0, len(counts), AT_ONCE):
        part = slice(first, min(first + AT_ONCE, len(counts)))
        request = {
            **axes, axis: [axes[axis][k] for k in going], "samples": list(counts[part]),
            "eta": ETA, "steps": STEPS,
        }  # fmt: skip
        store = path.with_name(f"{path.name}-{counts[first]}.zarr")
        result = runs.stored_sweep(system, law, request, store, workers)
        ends = runs.values(result, "test_loss", (axis, "samples", "seed"))
        loss[going, part] = np.where(np.isnan(ends), np.inf, ends)
        steps[going, part] = runs.values(result, "time_t_zero", (axis, "samples", "seed")) / ETA
        share = rows.share[:, : part.stop].tolist()
        lengths = range(2, part.stop + 1)
        going = [k for k in going if not any(ended(share[k][:n]) for n in lengths)]
        if not going:
            break
    return rows.cut()
