r"""Lemmas 4.1, 4.2, 4.3 and Simplification 3.1: the three scalars and their rates.

Lemma 4.1 is measured on gradient descent over every entry of A. Lemma 4.2 is measured on samples:
the part of the gradient orthogonal to w* must vanish as their number N grows. Lemma 4.3 is measured
along the reduced flow by the constants that its bounds hide. With :math:`\kappa` the largest
absolute mean of the values in a random set, the three scalars can classify all samples of L sets
iff :math:`(L-1)\,\kappa^p < 1` (`theory.papers.positional_attention.separability`). The error at
full attention is measured at sizes that meet this criterion and at others.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from dynamics.papers.positional_attention.gram import GramEmpirical
from dynamics.papers.positional_attention.reduced import derived_observables
from dynamics.results.outcome import DIVERGED
from dynamics.results.power_law import exponent
from dynamics.verdicts.cases import Case, descent, flow_to, reduced_flow
from dynamics.verdicts.claim import TIME, Also, Picture
from dynamics.verdicts.findings import Finding, Undecided
from dynamics.verdicts.positional_attention.grid import REGIME, claim, law
from dynamics.verdicts.positional_attention.transfer import orbit_logits
from dynamics.verdicts.rules import growth
from theory.papers.positional_attention.data_law import MIXED
from theory.papers.positional_attention.separability import criterion

HORIZON, LONG = 1e5, 1e7
ROUNDING = 1e-12
COUNTS, SEEDS = (1000, 4000, 16_000, 64_000), 8
"""Numbers N of samples, and number of draws at each N, for the gradient orthogonal to w*."""
STEEP = -0.35
"""Maximum exponent in N at which a gradient vanishes like sampling noise, N^(-1/2)."""
CHECKPOINTS = 120
TINY = 1e-300
"""Lower limit of a constant in Lemma 4.3, so that a constant below 0 has a logarithm."""
BETAS = (0.3, 1.0, 2.0)
FAR = 1e3
"""Difference of logits, (beta - rho) times softmax scale, at which attention between sets is 0."""
CHECKED = ((8, 2, 3), (9, 3, 3), (12, 3, 3), (15, 3, 3), (16, 4, 3), (20, 2, 3), (16, 4, 5))
"""Sizes (D, C, p); some meet the criterion (L-1) kappa^p < 1 of this module, others do not."""


@claim(
    "Lemma 4.1", "largest spread of A inside an orbit, 3000 steps on every entry", "<=", ROUNDING,
    laws=({"D": 8, "C": 2},), require=None, run=descent(0.02, 3000, "FullPopulation"),
    words="entries that the lemma calls equal differ by {value:.1e} at most, while their means "
    "reach {gamma:.3g} and {rho:.3g}",
    picture=Picture("step", "standard deviation of A in an orbit", {"rounding": ROUNDING},
                    ("log", "symlog")),
)  # fmt: skip
def lemma_4_1(case: Case) -> dict[str, Any]:
    """Spread of A inside each orbit along gradient descent on every entry."""
    run = case.run
    if run.outcome.kind == DIVERGED:  # entries are too large to compare
        raise Undecided(f"gradient descent has {run.outcome}", "step size")
    parts = {"inside sets": run["gamma_spread"], "between sets": run["rho_spread"]}
    return {
        "value": max(part.max() for part in parts.values()), "gamma": run["gamma"][-1],
        "rho": run["rho"][-1],
        "curves": {label: (run.steps[1:], part[1:]) for label, part in parts.items()},
    }  # fmt: skip


@claim(
    "Lemma 4.2", "exponent in N (noise: -1/2) of the gradient by v orthogonal to w*", "<=", STEEP,
    laws=({"D": 16, "C": 4, "q": 0.25},), require=None, run=flow_to(100.0),
    words="{first:.1e} with the fewest samples, {last:.1e} with the most, root mean square",
    picture=Picture("samples $N$", "gradient by $v$ orthogonal to $w^*$"),
)  # fmt: skip
def lemma_4_2(case: Case) -> dict[str, Any]:
    """Exponent in N of the part of v's gradient orthogonal to w*; sampling noise has -1/2."""
    law, (alpha, *_) = case.parameters, case.run.final_state
    counts, matrix = COUNTS[: 4 - (law.D * law.d > 1024)], orbit_logits(law, case.run.final_state)
    sizes = []
    for count in counts:
        squares = []
        for seed in range(case.seed, case.seed + SEEDS):
            more = {"start": "symmetric", "test_samples": 1}
            problem = case.system.FullEmpirical(law, count, seed, **more)
            slope = problem.layout.part(problem.gradient((alpha * problem.feature, matrix)), "v")
            across = slope - (slope @ problem.feature) * problem.feature
            squares.append(float(across @ across))
        sizes.append(float(np.sqrt(np.mean(squares))))
    row: dict[str, Any] = {"first": sizes[0], "last": sizes[-1]}
    if max(sizes) < 1e-15:
        text = "without noise orthogonal to w*, v stays in span(w*)"
        return row | {"value": -np.inf, "text": text}
    half = np.sqrt(counts[0] / np.array(counts)) * sizes[0]
    curves = {"measured": (counts, sizes), "$N^{-1/2}$": (counts, half)}
    return row | {"value": exponent(counts, sizes), "curves": curves}


def _slowly(rows: list[dict[str, Any]], finding: Finding) -> Finding:
    """Let the lemma hold only if its largest constants do not grow as a power of D."""
    if finding.holds is not True:
        return finding
    if len(rows) == 1:
        reason = f"{finding.reason}; growth with D needs several sizes"
        return replace(finding, holds=None, reason=reason)
    sizes, words, holds = [row["D"] for row in rows], [], set()
    for name in ("gamma", "rho"):
        most = [max(row[f"most_{name}"], TINY) for row in rows]
        found = growth(sizes, most, 0.0, upper=True)
        words.append(f"of {name} {found}")
        holds.add(found.holds)
    reason = f"{finding.reason}; largest constants over D: {', '.join(words)}"
    worst = False if False in holds else None if None in holds else True
    return replace(finding, holds=worst, reason=reason)


@claim(
    "Lemma 4.3", f"least constant in the increment of gamma, time up to {HORIZON:g}", ">", 0.0,
    laws=REGIME, thorough=(law(256, 14.0), law(512, 14.0)), require=None, run=flow_to(HORIZON),
    conclude=_slowly,
    words="constant of gamma {value:.1e} (time {time:.3g}) to {most_gamma:.2g}, of |rho| at most "
    "{most_rho:.2g}",
    picture=Picture(TIME, r"$\kappa_\gamma$", {"0": 0.0}, ("log", "symlog")),
)  # fmt: skip
def lemma_4_3(case: Case) -> dict[str, Any]:
    """Constants that the lemma hides in the increments of gamma and rho, along the flow."""
    records = np.unique(np.linspace(0, len(case.run.states) - 1, CHECKPOINTS).astype(int))
    states, time = case.run.states[records], case.run.time[records]
    slopes = np.array([case.problem.gradient(state) for state in states])
    found = derived_observables(states, slopes, case.parameters)
    gamma, least = found["polylog_gamma"], int(found["polylog_gamma"].argmin())
    return {
        "value": gamma[least], "time": time[least], "most_gamma": gamma.max(),
        "most_rho": found["polylog_rho"].max(), "curves": {case.label: (time[1:], gamma[1:])},
    }  # fmt: skip


@claim(
    "Simplification 3.1", "kinds of ends among the diagonals beta, with association and without",
    "==", 1.0, laws=({"D": 16, "C": 4, "q": 0.73},), words="gamma - rho at time "
    f"{LONG:g} and beta = {', '.join(map(str, BETAS))}: {{gaps}}",
    picture=Picture(TIME, r"$\gamma - \rho$", {"0": 0.0}, ("log", "symlog")),
)  # fmt: skip
def simplification_3_1(case: Case) -> dict[str, Any]:
    """Association at the end of flows with several values beta of the fixed diagonal."""
    ends, curves = [], {}
    for beta in BETAS:
        parameters = replace(case.parameters, beta=beta)
        _, run = reduced_flow(case.system.ReducedPopulation, parameters, LONG)
        gap = run["gamma"] - run["rho"]
        ends.append(float(gap[-1]))
        curves[rf"$\beta={beta:g}$"] = (run.time[1:], gap[1:])
    kinds = {end > 0 for end in ends}
    return {"value": len(kinds), "gaps": ", ".join(f"{x:.3g}" for x in ends), "curves": curves}


@claim(
    "Section 3, role of nu", "rate of alpha at alpha = 0 and A = beta I", ">", 0.0,
    laws=REGIME, words="{value:.2g}, and {without:.1g} at nu = {tiny:g}",
)  # fmt: skip
def role_of_nu(case: Case) -> dict[str, Any]:
    """Rate of alpha at v = 0, with the linear part nu of the activation and with almost none."""
    tiny = 1e-12 * case.parameters.nu
    value, without = (
        -float(case.system.ReducedPopulation(each).gradient(np.zeros(3))[0])
        for each in (case.parameters, replace(case.parameters, nu=tiny))
    )
    return {"value": value, "without": without, "tiny": tiny}


@claim(
    "Parametrization 3.1, Gaussian positions", "largest |A_ii / sigma_A - 1| of a draw", "<", 0.5,
    also=(Also("apart", "<", 0.5, "mean of A_ij^2 D / sigma_A^2, less 1, in size"),),
    laws=tuple({"D": D, "C": 4, "d": 2} for D in (64, 256, 1024)), shown=("D", "beta"),
    words="A_ii / sigma_A within {value:.2g} of 1, A_ij sqrt(D) / sigma_A of mean square "
    "1 +- {apart:.2g}",
)  # fmt: skip
def gaussian_positions(case: Case) -> dict[str, Any]:
    """Diagonal and other entries of A = P^T P at the start, if P has entries N(0, sigma_A / D)."""
    problem = GramEmpirical(case.parameters, 1, case.seed, test_samples=1)
    matrix = problem.matrices(problem.initial_state[None])[0] / case.parameters.beta
    off = matrix[~np.eye(len(matrix), dtype=bool)]
    return {
        "value": float(np.abs(np.diag(matrix) - 1).max()),
        "apart": abs(float(len(matrix) * (off**2).mean()) - 1),
    }  # fmt: skip


def mixed_with_zeros(parameters: Any) -> None:
    """Raise Undecided unless the claim's hypothesis holds: random sets are mixed, and q < 1."""
    if parameters.random_sets != MIXED:
        raise Undecided("the claim assumes random_sets=mixed", "law")
    if parameters.q == 1:
        raise Undecided("without zeros (q=1) the worst random set differs", "law")


@claim(
    "Zero error", "largest error at full attention where the criterion is below 1", "<=", 0.0,
    laws=[{"D": D, "C": C, "p": p, "random_sets": MIXED} for D, C, p in CHECKED],
    require=mixed_with_zeros,
    also=(Also("from_1", ">", 0.0, "least error at full attention where it is at least 1"),),
    words="criterion {criterion:.3f}: error {error:.2g} at full attention",
)  # fmt: skip
def zero_error(case: Case) -> dict[str, Any]:
    """Error at full attention; alpha is so large that the part of degree p dominates."""
    law = case.parameters
    number = criterion(law.set_law, law.L, law.p)
    # Above this alpha, F's part of degree p exceeds its linear part at the worst sample.
    needed = 2 * law.nu * law.L / max(1 - number, 1e-6)
    alpha = (1 + needed) ** (1 / (law.p - 1)) / law.D
    full = np.array([alpha, law.beta, law.beta - FAR / law.scale])
    measured = case.system.ReducedPopulation(law).observables(full)
    if np.isnan(error := measured.get("error", np.nan)):
        raise Undecided("no exact error can be computed at this size")
    value, from_1 = (error, 1.0) if number < 1 else (0.0, error)
    return {"value": value, "from_1": from_1, "criterion": number, "error": error}
