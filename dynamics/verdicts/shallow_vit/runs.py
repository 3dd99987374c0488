r"""Laws and training runs that claims of the shallow ViT share, and the hypothesis of Theorem 1.

The paper has the margin 1 and output weights :math:`\pm 1/\sqrt m`. The paper's proof has output
weights :math:`\pm 1/m`, which is equivalent to the margin :math:`\sqrt m` at the same step size.
Equation (1) prints output weights :math:`a_{(l)}` for each position l
(``output_weights="per_position"``), but in the proof a neuron has one sign, as by default here.
Claims on patterns assume tokens without noise.

The hypothesis is that all weights are trained with the hinge max{1 - y F, 0} of (2), and that the
sizes meet the conditions of Theorem 1 at tau = 0. For other laws a claim is undecided.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import asdict, replace
from functools import lru_cache, partial
from math import ceil, exp, pi, sqrt
from typing import Any

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynamics.problem import FloatArray
from dynamics.results.trajectory import Trajectory
from dynamics.training.descent import descend
from dynamics.verdicts.cases import Case, Run
from dynamics.verdicts.claim import claim as any_claim
from dynamics.verdicts.findings import Undecided
from dynamics.verdicts.rules import ERRORS
from dynamics.verdicts.wording import listed
from theory.papers.shallow_vit.attention import PARTS, attention
from theory.papers.shallow_vit.conditions import least_neurons, least_share

ETA, STEPS = 0.1, 3000
"""Learning rate, and maximum number of steps; training stops at zero hinge loss."""
SAMPLES, POSITIONED = 200, 40
"""Number of samples in Section 4.1 (first), and with output weights per position (second)."""
FEWEST = 3
"""Minimum number of points of a line fit."""
ONCE = ("step size", "seed")
CLEARLY = 2.0
"""Slope, in standard errors, above which growth is significant; a contradiction needs `ERRORS`."""
LINEAR = ("linear", "linear")
LARGEST_DELTA = 0.5
"""Upper limit of delta in Assumption 1."""
SHOWN = (
    "alpha_star", "alpha_confusion", "L", "M", "d", "m", "sigma", "delta", "noise", "data",
    "margin", "output",
)  # fmt: skip
"""Names of the parameters that every verdict prints."""
ROOT = {"margin": sqrt(1000)}
MARGINS: tuple[dict[str, Any], ...] = ({}, ROOT)
"""Laws with margin 1, and with the margin of the proof at m = 1000."""


def without_noise(law: Any) -> list[Any]:
    """List with the law without token noise, for training on patterns."""
    return [replace(law, noise=0.0)]


claim_on_tokens = partial(any_claim, shown=SHOWN)
claim = partial(claim_on_tokens, family=without_noise)


def _outside(law: Any, reason: str, missing: str = "law") -> Undecided:
    return Undecided(f"outside of the hypothesis: {reason}", missing, parameters=asdict(law))


def enough_neurons(law: Any) -> None:
    """Raise Undecided if m neurons are too few for `SAMPLES`, or sigma is at least pi / M."""
    least = least_neurons(law.M, SAMPLES, law.sigma)
    if law.sigma >= pi / law.M:
        raise _outside(law, f"sigma = {law.sigma:g} must be below pi / M = {pi / law.M:.3g}")
    if law.m <= least:
        condition = "m >= epsilon^-2 M^2 log N with 1 - epsilon - sigma M / pi > 0 is not met by m"
        least_words = f"{ceil(least)} neurons are needed at N = {SAMPLES}"
        raise _outside(law, f"{condition} = {law.m}: {least_words}", "size")


def other_training(law: Any) -> str:
    """Sentence that names frozen weights and a loss other than the hinge of (2), or empty text."""
    verb = {"attention": "is", "values": "are"}.get(law.frozen)
    here = [f"{law.frozen} {verb} frozen"] if verb else []
    here += [] if law.loss == "hinge" else [f"the loss is {law.loss}"]
    words = "the claim assumes all weights, trained with the hinge max(1 - y F, 0); here "
    return words + " and ".join(here) if here else ""


def all_trained(law: Any) -> None:
    """Raise Undecided if a law freezes weights or has a loss other than the hinge."""
    if words := other_training(law):
        raise _outside(law, words)


def theorem_1(law: Any) -> None:
    """Raise Undecided if a law is outside the hypothesis of Theorem 1."""
    all_trained(law)
    sizes_of_theorem_1(law)


def sizes_of_theorem_1(law: Any) -> None:
    """Raise Undecided, naming an admissible size, if sizes violate Theorem 1's hypothesis."""
    if law.delta >= LARGEST_DELTA:
        raise _outside(law, f"delta = {law.delta:g} must be below {LARGEST_DELTA:g}")
    enough_neurons(law)
    least = least_share(law.alpha_confusion, law.sigma, law.delta)
    if law.alpha_star <= least:
        most = law.alpha_star * (1 - law.sigma) * exp(-law.delta) / 2
        raise _outside(
            law,
            f"(8) is not met by alpha_* = {law.alpha_star:g} with alpha_# = "
            f"{law.alpha_confusion:g}: needs alpha_* above {least:.3g}, or alpha_# below "
            f"{most:.3g}",
        )


def step_of_rest(problem: Any, run: Trajectory) -> int | None:
    """Step at which the hinge loss is zero and training stops; None if there is none."""
    return run.events["t_zero"].step if problem.parameters.loss == "hinge" else None


def descend_in_parts(
    problem: Any, eta: float, horizons: Iterable[int], record: int | None = None
) -> Trajectory:
    """Gradient descent to the first of several numbers of steps at which training has stopped.

    `horizons`: ascending numbers of steps; the last is used if training does not stop; `record`:
    steps between records; by default only the end is recorded.
    """
    for steps in horizons:
        run = descend(problem, eta, steps, record=record or [steps])
        if step_of_rest(problem, run) is not None:
            break
    return run


def to_rest(eta: float = ETA) -> Run:
    """Gradient descent on patterns until training stops, with every step recorded; cached."""

    def run(case: Case) -> tuple[Any, Trajectory]:
        at = case.rate(eta), case.steps(STEPS), max(1, round(1 / case.repeat.eta_factor))
        make: Any = case.system.ReducedPopulation
        return _rested(make, case.parameters, case.seed, *at)

    return run


@lru_cache(maxsize=16)
def _rested(
    make: Any, law: Any, seed: int, eta: float, steps: int, every: int
) -> tuple[Any, Trajectory]:
    samples = SAMPLES if law.output_weights == "shared" else POSITIONED
    problem = make(law, samples=samples, seed=seed)
    step = step_of_rest(problem, descend_in_parts(problem, eta, (steps // 3, steps)))
    return problem, descend(problem, eta, steps if step is None else max(1, step), record=every)


def attention_of(case: Case, record: int) -> FloatArray:
    """Attention of each of the S distinct training vectors at a record, shape (S, M, M)."""
    scores = case.run["K"][record].T @ case.run["Q"][record]
    return attention(scores, case.problem.vectors.counts)


def lucky(case: Case, record: int) -> NDArray[np.bool_]:
    """Masks, shape (2, m), of the neurons whose gates put them in W or U (`shallow_vit.lemmas`)."""
    hidden, values, keys, queries = (case.run[name][record] for name in PARTS)
    pair = attention(keys.T @ queries, case.problem.reader.pair)
    inputs = [hidden @ values @ one[:, j] for j, one in enumerate(pair)]
    positive = case.problem.start.a > 0
    return np.array([positive & (inputs[0] > 0), ~positive & (inputs[1] > 0)])


def possible(law: Any, points: Iterable[tuple[float, float]]) -> list[Any]:
    """Distinct laws at those (alpha_*, alpha_#) that L whole tokens realize with n_* > n_#."""
    laws: dict[Any, Any] = {}
    for alpha, confusion in points:
        try:
            one = replace(law, alpha_star=alpha, alpha_confusion=confusion)
        except ValueError:
            continue
        iid = law.data == "iid"
        laws.setdefault((alpha, confusion) if iid else (one.n_star, one.n_confusion), one)
    return list(laws.values())


def laws_along(case: Case, name: str, values: Iterable[float]) -> list[Any]:
    """Laws with several values of a parameter; undecided if one is outside Theorem 1."""
    laws = [replace(case.parameters, **{name: value}) for value in values]
    for law in laws:
        theorem_1(law)
    return laws


def alphas(laws: Sequence[Any]) -> FloatArray:
    """Realized alpha_* of laws."""
    return np.array([law.alpha_star for law in laws])


def gaps(laws: Sequence[Any]) -> FloatArray:
    """Differences alpha_* - alpha_# that whole tokens realize, one for each law."""
    return np.array([(law.n_star - law.n_confusion) / law.L for law in laws])


def line(x: ArrayLike, y: ArrayLike) -> tuple[float, float, float]:
    """Slope, intercept and R^2 of a line; NaN with few points, or if x or y is constant."""
    from scipy.stats import linregress

    if np.size(x) < FEWEST or np.ptp(x) == 0 or np.ptp(y) == 0:
        return np.nan, np.nan, np.nan
    fit = linregress(x, y)
    return float(fit.slope), float(fit.intercept), float(fit.rvalue) ** 2


def growth_row(name: str, x: Sequence[float], values: ArrayLike) -> dict[str, Any]:
    """Row of a claim that values, shape (n, seeds), grow with x: their slope in standard errors."""
    every = np.asarray(values, dtype=np.float64)
    slopes, means = np.polyfit(x, every, 1)[0], every.mean(axis=1)
    slope, error = float(slopes.mean()), float(slopes.std(ddof=1) / sqrt(slopes.size))
    errors = slope / error if error else float(np.copysign(np.inf, slope)) if slope else 0.0
    words = f"{listed(means, 4)} at {name} = {listed(x)}: slope {slope:.2g} +- {error:.1g}"
    return {"value": errors, "holds": significant(errors), "missing": "size", "told": words,
            "curves": {name: (x, means)}}  # fmt: skip


def significant(errors: float) -> bool | None:
    """Whether a slope, given in standard errors, supports growth; None for a slope in between."""
    return True if errors > CLEARLY else False if errors < -ERRORS else None
