"""Lemmas 4.1, 4.2, 4.3 and Simplification 3.1: the three scalars, and what moves them.

Lemma 4.1 is measured on gradient descent over every entry of A; Lemma 4.2 on samples, where the
orthogonal part of the gradient must vanish with their number; Lemma 4.3 along the reduced flow, by
the constants that it hides.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from dynamics.papers.positional_attention.gram import GramEmpirical
from dynamics.papers.positional_attention.reduced import derived_observables
from dynamics.results.outcome import DIVERGED
from dynamics.results.power_law import exponent
from dynamics.verdicts.claim import TIME, Also, Case, Picture, descent, flow_to, reduced_flow
from dynamics.verdicts.findings import Finding, Undecided
from dynamics.verdicts.positional_attention.grid import REGIME, claim, law
from dynamics.verdicts.rules import growth

HORIZON, LONG = 1e5, 1e7
ROUNDING = 1e-12
COUNTS, SEEDS = (1000, 4000, 16_000, 64_000), 8
"""Samples, and how many draws of each, for the gradient by v orthogonal to w*."""
STEEP = -0.35
"""Exponent of N up to which a gradient vanishes like the noise of a sample, N^(-1/2)."""
CHECKPOINTS = 120
TINY = 1e-300
"""Stands for a constant of |rho| that is not positive."""
BETAS = (0.3, 1.0, 2.0)


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
    if run.outcome.kind == DIVERGED:  # entries of 1e14 are equal to no digit
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
    """The gradient by v orthogonal to w*, at v in span(w*): it must fall as N^-1/2."""
    parameters, (alpha, gamma, rho) = case.parameters, case.run.final_state
    counts = COUNTS[:3] if parameters.D * parameters.d > 1024 else COUNTS
    sizes = []
    for count in counts:
        squares = []
        for seed in range(case.seed, case.seed + SEEDS):
            problem = case.system.FullEmpirical(
                parameters, count, seed, start="symmetric", test_samples=1
            )
            same = problem.partition.labels[:, None] == problem.partition.labels[None, :]
            matrix = np.where(same, gamma, rho)
            np.fill_diagonal(matrix, parameters.beta)
            slope = problem.layout.part(problem.gradient((alpha * problem.feature, matrix)), "v")
            across = slope - (slope @ problem.feature) * problem.feature
            squares.append(float(across @ across))
        sizes.append(float(np.sqrt(np.mean(squares))))
    row: dict[str, Any] = {"first": sizes[0], "last": sizes[-1]}
    if max(sizes) < 1e-15:
        text = "no direction is orthogonal to w*, or no noise is in it: v stays in span(w*)"
        return row | {"value": -np.inf, "text": text}
    half = np.sqrt(counts[0] / np.array(counts)) * sizes[0]
    curves = {"measured": (counts, sizes), "$N^{-1/2}$": (counts, half)}
    return row | {"value": exponent(counts, sizes), "curves": curves}


def _slowly(rows: list[dict[str, Any]], finding: Finding) -> Finding:
    """Whether the largest constants grow more slowly along D than every power of it."""
    if finding.holds is not True:
        return finding
    if len(rows) == 1:
        reason = f"{finding.reason}; whether they grow with D takes several sizes"
        return replace(finding, holds=None, reason=reason)
    sizes = [row["D"] for row in rows]
    laws = {
        name: growth(sizes, [max(row[f"most_{name}"], TINY) for row in rows], 0.0, upper=True)
        for name in ("gamma", "rho")
    }
    decided = [each.holds for each in laws.values()]
    words = ", ".join(f"of {name} {each}" for name, each in laws.items())
    return replace(
        finding, holds=False if False in decided else None if None in decided else True,
        reason=f"{finding.reason}; largest constants over D: {words}",
    )  # fmt: skip


@claim(
    "Lemma 4.3", f"least constant in the increment of gamma, time up to {HORIZON:g}", ">", 0.0,
    laws=REGIME, thorough=(law(256, 14.0), law(512, 14.0)), require=None, run=flow_to(HORIZON),
    conclude=_slowly,
    words="constant of gamma {value:.1e} (time {time:.3g}) to {most_gamma:.2g}, of |rho| at most "
    "{most_rho:.2g}",
    picture=Picture(TIME, r"$\kappa_\gamma$", {"0": 0.0}, ("log", "symlog")),
)  # fmt: skip
def lemma_4_3(case: Case) -> dict[str, Any]:
    """The constants hidden in the two increments, from the gradient that moves the state."""
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
    """Whether association is learned at several entries on the diagonal, which stays fixed."""
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
    """The gradient at v = 0, with the linear part of the activation and all but without it."""
    tiny = 1e-12 * case.parameters.nu
    rates = [
        -float(case.system.ReducedPopulation(each).gradient(np.zeros(3))[0])
        for each in (case.parameters, replace(case.parameters, nu=tiny))
    ]
    return {"value": rates[0], "without": rates[1], "tiny": tiny}


@claim(
    "Parametrization 3.1, Gaussian positions", "largest |A_ii / sigma_A - 1| of a draw", "<", 0.5,
    also=(Also("apart", "<", 0.5, "mean of A_ij^2 D / sigma_A^2, less 1, in size"),),
    laws=tuple({"D": D, "C": 4, "d": 2} for D in (64, 256, 1024)), shown=("D", "beta"),
    words="A_ii / sigma_A within {value:.2g} of 1, A_ij sqrt(D) / sigma_A of mean square "
    "1 +- {apart:.2g}",
)  # fmt: skip
def gaussian_positions(case: Case) -> dict[str, Any]:
    """A = P^T P at the start, P of N(0, sigma_A / D): its diagonal, and the rest in 1 / sqrt(D)."""
    problem = GramEmpirical(case.parameters, 1, case.seed, test_samples=1)
    matrix = problem.matrices(problem.initial_state[None])[0] / case.parameters.beta
    off = matrix[~np.eye(len(matrix), dtype=bool)]
    return {
        "value": float(np.abs(np.diag(matrix) - 1).max()),
        "apart": abs(float(len(matrix) * (off**2).mean()) - 1),
    }  # fmt: skip
