r"""Theorems 5.1 and 5.2: the value vector is fine-tuned on a new feature, with frozen attention.

The downstream law has the same sets. Neither the law nor gradient descent depends on which unit
vector is the feature w*, so fine-tuning is gradient descent on samples, from a small random v, with
A fixed. Errors are rescaled: 0 is the irreducible error, and 1 is the error of sign(Z), which needs
no attention. Uniform attention gives a linear rule, so its rescaled error is at least 1. Errors are
medians over seeds, because from one sample v may learn -w* in place of w*.

An algorithm that does not know the sets applies sign(Z) to the leading direction of all patches.
One sample has about C + q(D - C) patches with a feature; this number is the feature's eigenvalue in
the second moments of the patches. The eigenvalue of the noise is at most :math:`(1 +
\sqrt{D/d})^2`, so one sample shows the feature at every D. The error of sign(Z) remains; with few
samples it is the minimum over all algorithms (`least_samples`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import ceil, log2
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dynamics.problem import FloatArray
from dynamics.system import System
from dynamics.training.descent import descend
from dynamics.training.flow import flow
from dynamics.verdicts.cases import Case
from dynamics.verdicts.claim import Picture
from dynamics.verdicts.findings import Finding, Undecided
from dynamics.verdicts.positional_attention.grid import SHOWN, claim, law
from dynamics.verdicts.wording import in_percent
from theory.papers.positional_attention.attention import own_attention, same_set, softmax
from theory.papers.positional_attention.data_law import bayes_error
from theory.papers.positional_attention.linear_rules import (
    least_samples,
    sign_rule_error,
    walk_law,
)
from theory.papers.positional_attention.samples import assumption_1, samples
from theory.symmetry import Partition

PRE_TRAINING = 100.0
"""Time of pre-training, divided by D^2."""
START, STEPS = 0.016, 2000
"""Spread of v at the start, multiplied by D (first), and steps of fine-tuning (second)."""
SHARE = 0.25
"""Maximum rescaled error of fine-tuning at which attention counts as transferred."""
GAP = 5e-3
"""Minimum difference of sign(Z)'s error and the irreducible error at which attention matters."""
LARGEST, LARGEST_LEADING, LARGEST_BOUND = 1 << 16, 1 << 20, 1 << 13
"""Maximum D d for fine-tuning, maximum D d for `leading_error`, maximum D for `least_samples`."""
FAR = 1e3
"""A logit of minus this number, divided by the softmax scale, makes attention 0."""
ERROR, SEEDS = 0.05, 9
"""Maximum test error that counts as small (first), seeds of the leading direction (second)."""
TRANSFER = tuple(law(D, 8) for D in (16, 32, 64))
VANISHING = tuple(law(D, 2 * C, C) for D, C in ((64, 4), (256, 8), (1024, 16)))
"""Laws with q (D - C) = 2 C and C growing like log D, so that the error of sign(Z) falls."""
CONSTANT = tuple(law(D, 16) for D in (64, 256))
"""Laws with q (D - C) = C^2, where the error of sign(Z) is constant."""


def orbit_logits(law: Any, state: ArrayLike) -> FloatArray:
    """Matrix A, shape (D, D): beta on the diagonal, gamma inside sets, rho between sets."""
    _, gamma, rho = np.asarray(state)
    matrix = np.where(same_set(Partition.contiguous([law.C] * law.L)), gamma, rho)
    np.fill_diagonal(matrix, law.beta)
    return matrix


def attentions(system: System, law: Any) -> tuple[dict[str, FloatArray], dict[str, float]]:
    """Logits A, shape (D, D), by name: for the true sets, for two pre-trained states, uniform.

    The second mapping has, for each of these A, the share G/D of the attention inside the own set.
    """
    time, own = PRE_TRAINING * law.D**2, replace(law, beta=0.0)
    run = flow(system.ReducedPopulation(law), time, record=[0.0, time / 100, time])
    logits = {
        "true sets": orbit_logits(own, (0.0, 0.0, -FAR / law.scale)),
        "learned": orbit_logits(law, run.final_state),
        "learned, early": orbit_logits(law, run.states[1]),
        "uniform": orbit_logits(own, np.zeros(3)),
    }
    sets = Partition.contiguous([law.C] * law.L)
    return logits, {
        kind: own_attention(softmax(matrix, law.scale), sets) / law.D
        for kind, matrix in logits.items()
    }


def fine_tuned(
    system: System, law: Any, logits: Mapping[str, FloatArray], count: int, seeds: range
) -> dict[str, FloatArray]:
    """Test errors after fine-tuning v, one for each seed, by the name of the frozen attention.

    `logits`: name of the attention -> A, shape (D, D); `count`: number of downstream samples.
    """
    spread = law.q * (law.D - law.C)
    linear = 0.3 / (law.D ** (2 / 3) * (law.C**2 + spread))
    errors: dict[str, list[float]] = {kind: [] for kind in logits}
    for seed in seeds:
        problem = system.FullEmpirical(replace(law, omega=START / law.D), count, seed)
        start = problem.initial_state
        for kind, matrix in logits.items():
            problem.layout.part(start, "A")[:] = matrix  # writes into start
            rate = linear if np.ptp(matrix) == 0 else 0.1 / law.D**2
            run = descend(problem, (rate, 0.0), STEPS, record=[STEPS], initial=start)
            errors[kind].append(float(run["test_error"][-1]))
    return {kind: np.array(each) for kind, each in errors.items()}


@claim(
    "Theorem 5.1", "largest share of the way from the irreducible error to that of sign(Z)", "<=",
    SHARE, laws=TRANSFER, thorough=(law(128, 8),), shown=(*SHOWN, "d"),
    words="A of the population flow at time {time:g}, frozen, G/D = {inside:.2f}: {few} downstream "
    "samples leave a median error of {error:.3g} (true sets {true:.3g}, irreducible {least:.2g}, "
    "sign(Z) {linear:.3g}, uniform {uniform:.3g}); at a hundredth of that time G/D = "
    "{inside_early:.2f} and {early:.3g}; seeds that learn -w*: {lost_one} with one sample, "
    "{lost_few} with {few}",
    picture=Picture("downstream samples", "median test error"),
)  # fmt: skip
def theorem_5_1(case: Case) -> dict[str, Any]:
    """Error after fine-tuning v on log2 D samples with the attention learned by pre-training."""
    law, few = case.parameters, ceil(log2(case.parameters.D))
    linear = float(sign_rule_error(law.D, law.C, law.q).error)
    least = bayes_error(law.set_law, law.L)
    if law.D * law.d > LARGEST:
        raise Undecided(f"fine-tuning many seeds at D={law.D}, d={law.d} takes too long")
    if linear - least < GAP:
        raise Undecided("sign(Z) is as good as the best rule, so attention cannot help")
    logits, inside = attentions(case.system, law)
    seeds = range(case.seed, case.seed + (24 if case.thorough else 12))
    one = fine_tuned(case.system, law, {"learned": logits["learned"]}, 1, seeds)["learned"]
    found = fine_tuned(case.system, law, logits, few, seeds)
    middle = {kind: float(np.median(errors)) for kind, errors in found.items()}
    share, of_true = ((middle[k] - least) / (linear - least) for k in ("learned", "true sets"))
    row = {
        "value": share, "time": PRE_TRAINING * law.D**2, "few": few, "error": middle["learned"],
        "true": middle["true sets"], "early": middle["learned, early"], "linear": linear,
        "uniform": middle["uniform"], "least": least, "inside": inside["learned"],
        "inside_early": inside["learned, early"],
        "curves": {case.label: ([1, few], [float(np.median(one)), middle["learned"]])},
    }  # fmt: skip
    for name, errors in (("one", one), ("few", found["learned"])):
        row[f"lost_{name}"] = in_percent(int((errors > 0.5).sum()), len(seeds))
    away = np.ptp(logits["learned"][0, 1:]) and logits["learned"][0, 1] < logits["learned"][0, -1]
    decided = away or (of_true <= SHARE and inside["learned"] >= 0.5)
    return row if decided else row | {"open": "size"}


def leading_error(law: Any, count: int, seed: int) -> float:
    """Exact error of sign(Z) along the leading direction of all patches of `count` samples."""
    from scipy.linalg import eigh
    from scipy.stats import norm

    X, y = samples(assumption_1(law), law.d, count, np.random.default_rng(seed))
    patches = X.reshape(-1, law.d)
    v = eigh(patches.T @ patches, subset_by_index=[law.d - 1] * 2)[1][:, 0]
    along = float(v[0] * np.sign(y @ (X.sum(axis=1) @ v)))  # w* is the first unit vector
    across = law.sigma * np.sqrt(max(law.D * (1 - along**2), 1e-300))
    Z = np.arange(2 * law.C - law.D, law.D + 1)  # values of sum Z given y = +1
    return float(walk_law(law.D - law.C, law.q) @ norm.cdf(-along * Z / across))


def _along_size(rows: list[dict[str, Any]], finding: Finding) -> Finding:
    """Leave a finding undecided if there is one law only, because the error must vanish with D."""
    alone = finding.holds is False and len(rows) == 1
    return replace(finding, holds=None) if alone else finding


@claim(
    "Theorem 5.2", "median test error without the sets after one downstream sample", ">", ERROR,
    laws=(*VANISHING, *CONSTANT), shown=(*SHOWN, "d"), conclude=_along_size,
    words="the leading direction of all patches errs with {value:.2g} (sign(Z) {linear:.2g}); for "
    f"an error of {ERROR:g} any algorithm without the sets needs at least {{least}} samples, "
    "{later} at 4 D",
)  # fmt: skip
def theorem_5_2(case: Case) -> dict[str, Any]:
    """Error of one algorithm that does not know the sets, and bound on all such algorithms."""
    law = case.parameters
    D, C, q = law.D, law.C, law.q
    if D * law.d > LARGEST_LEADING or 4 * D > LARGEST_BOUND:
        raise Undecided(f"the leading direction at D={D}, or the bound at 4 D, takes too long")
    errors = [leading_error(law, 1, seed) for seed in range(case.seed, case.seed + SEEDS)]
    least, later = (least_samples(size, C, q * (D - C) / (size - C), ERROR) for size in (D, 4 * D))
    return {
        "value": float(np.median(errors)), "linear": float(sign_rule_error(D, C, q).error),
        "least": least, "later": later,
    }  # fmt: skip
