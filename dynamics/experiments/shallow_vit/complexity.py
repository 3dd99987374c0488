r"""How many samples: Theorem 1, Figure 1a, Proposition 1, Remarks 1 and 3.

A trial trains on N samples until the training loss is zero; it succeeds if the test loss, the mean
hinge on fresh samples over the margin, is below 1e-3. A row of growing N ends after two N at which
all trials succeed. Training is on patterns, without noise: gradient descent on few vectors.

N50 over alpha_* in two families: the other tokens a fixed half, so that :math:`\alpha_\# = 1/2 -
\alpha_*` (Figure 1a), and :math:`\alpha_\#` a fifth of :math:`\alpha_*`, as the theorem asks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, dataclass, replace
from functools import cached_property
from pathlib import Path
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynamics.experiments.measurement import Study, Undecided, computed_once, listed, measures
from dynamics.experiments.shallow_vit import runs
from dynamics.experiments.verify import Check, Finding
from dynamics.phase_diagrams.threshold import Threshold, threshold
from dynamics.problem import FloatArray
from dynamics.registry import System
from dynamics.results.power_law import PowerLaw, power_law
from dynamics.results.trajectory import Trajectory
from dynamics.training.gradient_descent import descend

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
GAPS = (0.06, 0.1, 0.14, 0.18, 0.24, 0.3)
"""Half of alpha_* - alpha_# over alpha_* + alpha_#, in the family of Figure 1a."""
SHARES = (0.05, 0.1, 0.15, 0.2, 0.3)
"""alpha_* where alpha_# is in proportion."""
PROPORTION = 0.2
SIGMAS = (0.0, 0.2, 0.4, 0.6, 0.8)
WITHIN = 2.0
"""Standard errors within which an exponent is the claimed one."""
ALPHA = r"$1/\alpha_*$"


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
    """
    rows = [_row(system, law, seed, trials, tuple(counts)) for law in laws]
    loss, steps = (np.stack(part) for part in zip(*rows, strict=True))
    return Rows(np.array(counts), loss, steps)


@computed_once(256)
def _row(
    make: Any, law: Any, seed: int, trials: int, counts: tuple[int, ...]
) -> tuple[FloatArray, FloatArray]:
    loss, steps = np.full((2, len(counts), trials), np.nan)
    shares: list[float] = []
    for i, samples in enumerate(counts):
        for j in range(trials):
            run = _trained(make(law, samples=samples, seed=seed + j))
            loss[i, j] = np.inf if run.outcome.failed else run["test_loss"][-1]
            stop = run.events["t_zero"]
            if stop is not None and stop.step is not None:
                steps[i, j] = stop.step
        shares.append(float((loss[i] < SUCCESS).mean()))
        if ended(shares):
            break
    return loss, steps


def _trained(problem: Any) -> Trajectory:
    """A run until it stands still, or to the last step."""
    run = descend(problem, ETA, FIRST_STEPS, record=[FIRST_STEPS])
    if runs.step_of_rest(problem, run) is None:
        run = descend(problem, ETA, STEPS, record=[STEPS])
    return run


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


def figure_laws(study: Study) -> list[Any]:
    """Laws with a fixed share of non-discriminative tokens: a half, or the user's."""
    law = study.law(**LAW)
    total = 0.5 if study.parameters is None else law.alpha_star + law.alpha_confusion
    shares = [round(total * (0.5 + gap), 6) for gap in GAPS]
    return _enough(runs.possible(law, ((a, round(total - a, 6)) for a in shares)))


def theorem_laws(study: Study, **changed: Any) -> list[Any]:
    """Laws with alpha_# in proportion to alpha_*, a fifth of it or the user's, with changes."""
    law = study.law(**LAW)
    ratio = law.alpha_confusion / law.alpha_star if study.parameters else PROPORTION
    return runs.possible(replace(law, **changed), ((a, round(a * ratio, 9)) for a in SHARES))


def _enough(laws: list[Any]) -> list[Any]:
    """The laws; undecided where samples are so short that few alpha_* have a majority."""
    if len(laws) < runs.FEWEST:
        reason = (
            f"fewer than {runs.FEWEST} of the alpha_* have whole numbers of tokens and a majority"
        )
        raise Undecided(reason, **({"parameters": asdict(laws[0])} if laws else {}))
    return laws


def _run(study: Study, laws: Sequence[Any]) -> Rows:
    return trials_of(study.system, laws, study.seed, (3 if study.thorough else 1) * TRIALS)


def _measurable(study: Study, laws: Sequence[Any]) -> Rows:
    """Trials; undecided where N50 is a number in too few rows."""
    rows = _run(study, laws)
    if np.isfinite(rows.values).sum() < runs.FEWEST:
        span = f"{rows.counts[0]} to {rows.counts[-1]}"
        reason = f"N50 lies inside N = {span} in too few rows: {rows}"
        raise Undecided(reason, parameters=asdict(laws[0]))
    return rows


def _table(laws: Sequence[Any], rows: Rows) -> list[dict[str, Any]]:
    return [
        {
            "alpha_star": law.alpha_star, "alpha_confusion": law.alpha_confusion,
            "sigma": law.sigma, "N50": n50.value, "low": n50.low, "high": n50.high,
            "shares": n50.shares.tolist(), "N": n50.levels.tolist(), "steps": float(steps),
        }
        for law, n50, steps in zip(laws, rows.thresholds, rows.medians, strict=True)
    ]  # fmt: skip


def _conclude(
    study: Study, value: float, reason: str, holds: Any, laws: Sequence[Any], x_label: str,
    x: FloatArray, tables: Mapping[str, tuple[Rows, float]],
) -> Finding:  # fmt: skip
    """A finding with N50 of every table over x, and the claimed power of each in the picture."""
    for name, (rows, claimed) in tables.items():
        finite = np.isfinite(rows.values)
        study.curve(name, x[finite], rows.values[finite])
        if finite.any():
            law = x[finite] ** claimed
            level = np.exp(np.mean(np.log(rows.values[finite] / law)))
            study.curve(f"claimed: power {claimed:g}", x[finite], level * law)
    study.draw(x_label, "samples $N_{50}$")
    table = {name: _table(laws, rows) for name, (rows, _) in tables.items()}
    parameters = asdict(laws[0])
    return study.conclude(value, reason, holds=bool(holds), parameters=parameters, table=table)


@measures("least share of successful trials at the most samples of a row", ">=", 0.99)
def generalization(study: Study) -> Finding:
    """Whether enough samples make every trial succeed."""
    laws = theorem_laws(study) if study.parameters is None else [study.parameters]
    rows = _run(study, laws)
    shares = [share[~np.isnan(share)] for share in rows.share]
    least = float(min(share[-1] for share in shares))
    most = [int(rows.counts[len(share) - 1]) for share in shares]
    reason = (
        f"{least:.0%} of {rows.loss.shape[2]} trials reach a test loss below 1e-3 with N = "
        f"{listed(most)} (alpha_* = {listed(runs.alphas(laws))}); N50 = {rows}"
    )
    for law, share in zip(laws, shares, strict=True):
        study.curve(rf"$\alpha_* = {law.alpha_star:g}$", rows.counts[: len(share)], share)
    study.draw("samples $N$", "share of successful trials", y_scale="linear")
    table = _table(laws, rows)
    return study.conclude(least, reason, parameters=asdict(laws[0]), table=table)


def _exponent_check(claimed: float, frozen: str = "none") -> Check:
    """A check of the exponent of N50 in 1/alpha_*, at alpha_# in proportion."""
    name = "trained" if frozen == "none" else "attention frozen"
    suffix = "" if frozen == "none" else f", {name}"

    @measures("exponent of N50 in 1/alpha_*" + suffix, "==", claimed)
    def check(study: Study) -> Finding:
        laws = _enough(theorem_laws(study, frozen=frozen))
        rows = _measurable(study, laws)
        x = 1 / runs.alphas(laws)
        fit = rows.growth(x)
        reason = f"N50 = {rows} at alpha_* = {listed(runs.alphas(laws))}: exponent {fit}"
        if fit.exponent < claimed:
            reason += "; fewer samples than stated do not contradict the bound, only its power"
        if frozen != "none":
            trained = _run(study, theorem_laws(study, frozen="none"))
            ratios = listed(rows.medians / trained.medians, 2)
            reason += f"; steps over those with attention {ratios}"
        holds, tables = abs(fit.exponent - claimed) <= WITHIN * fit.error, {name: (rows, claimed)}
        return _conclude(study, fit.exponent, reason, holds, laws, ALPHA, x, tables)

    return check


samples = _exponent_check(2.0)
proposition_1 = _exponent_check(4.0, "attention")


@measures("exponent in 1/alpha_* of N50 without over N50 with trained attention", "==", 2.0)
def remark_1(study: Study) -> Finding:
    """N50 without over N50 with trained attention, along alpha_*."""
    laws = _enough(theorem_laws(study, frozen="none"))
    trained = _run(study, laws)
    frozen = _run(study, theorem_laws(study, frozen="attention"))
    ratio, errors = frozen.values / trained.values, np.hypot(trained.errors, frozen.errors)
    finite = np.isfinite(ratio)
    if finite.sum() < runs.FEWEST:
        reason = f"N50 is a number in too few rows: {trained}; frozen {frozen}"
        raise Undecided(reason, parameters=asdict(laws[0]))
    x = 1 / runs.alphas(laws)
    fit = power_law(x, ratio, errors)
    above = (np.log(ratio[finite]) > -WITHIN * errors[finite]).all() and fit.prefactor > 0
    mean = float(np.exp(np.average(np.log(ratio[finite]), weights=errors[finite] ** -2)))
    reason = (
        f"frozen attention needs {listed(ratio[finite], 2)} times as many samples at alpha_* = "
        f"{listed(runs.alphas(laws)[finite])}: exponent {fit}"
    )
    holds = above and mean > 1 and abs(fit.exponent - 2) <= WITHIN * fit.error
    tables = {"trained": (trained, 2.0), "attention frozen": (frozen, 4.0)}
    return _conclude(study, fit.exponent, reason, holds, laws, ALPHA, x, tables)


@measures("exponent of N50 in 1/alpha_*, the other tokens a fixed share", "==", 2.0)
def figure_1a_check(study: Study) -> Finding:
    """N50 against alpha_*^-2 and against (alpha_* - alpha_#)^-2."""
    laws = figure_laws(study)
    rows = _measurable(study, laws)
    inverse = 1 / runs.alphas(laws), 1 / runs.gaps(laws)
    by_alpha, by_gap = (rows.growth(x) for x in inverse)
    finite = np.isfinite(rows.values)
    r2_alpha, r2_gap = (runs.line(x[finite] ** 2, rows.values[finite]).r2 for x in inverse)
    holds = abs(by_alpha.exponent - 2) <= WITHIN * by_alpha.error and not r2_gap > r2_alpha
    reason = (
        f"N50 = {rows} at alpha_* = {listed(runs.alphas(laws))}: exponent {by_alpha} in 1/alpha_*, "
        f"{by_gap} in 1/(alpha_* - alpha_#); R^2 of a line {r2_alpha:.2f} over alpha_*^-2 and "
        f"{r2_gap:.3f} over (alpha_* - alpha_#)^-2"
    )
    tables, value = {"trained": (rows, 2.0)}, by_alpha.exponent
    return _conclude(study, value, reason, holds, laws, ALPHA, inverse[0], tables)


@measures("exponent of N50 in 1/(1 - sigma)", "==", 2.0)
def remark_3(study: Study) -> Finding:
    """N50 and steps over the error sigma of the initial values."""
    law = study.law(**FIGURE_1B)
    laws = [replace(law, sigma=sigma) for sigma in SIGMAS]
    rows = _measurable(study, laws)
    x = 1 / (1 - np.array(SIGMAS))
    fit = rows.growth(x)
    reason = (
        f"N50 = {rows} at sigma = {listed(SIGMAS)}: exponent {fit}, claimed is 2; steps "
        f"{listed(rows.medians)}"
    )
    holds, tables = fit.exponent > WITHIN * fit.error, {"trained": (rows, 2.0)}
    return _conclude(study, fit.exponent, reason, holds, laws, r"$1/(1 - \sigma)$", x, tables)
