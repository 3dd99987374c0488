"""Lemmas 4.1, 4.2, 4.3, measured on the problems themselves.

Lemma 4.1 on gradient descent over every entry of A; Lemma 4.2 on samples, where the orthogonal part
of the gradient must vanish with their number; Lemma 4.3 along the reduced flow, by the constants
that it hides.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dynamics.experiments.curves import curve, exponent, over_time
from dynamics.experiments.positional_attention.population import (
    HORIZON,
    polylogs,
    population_flow,
    regime,
    sizes_of,
)
from dynamics.experiments.verify import Finding, Protocol
from dynamics.systems.positional_attention.full.population import brute_configurations
from dynamics.training.gradient_descent import descend

if TYPE_CHECKING:
    from dynamics.registry import System

STEPS = 3000
ROUNDING = 1e-12
LARGEST_BRUTE = 1_000_000
SAMPLES = (1000, 4000, 16_000, 64_000)
SEEDS = 8
CHECKPOINTS = 120
STEEP = -0.35
"""Exponent of N up to which a gradient vanishes like the noise of a sample, N^(-1/2)."""
LARGEST_EXPONENT = 0.25
"""Growth in D below which a constant passes for a polylog at these sizes."""


def lemma_4_1(system: System, protocol: Protocol) -> Finding:
    """Spread of A inside each orbit after 3000 steps on every entry."""
    parameters = protocol.parameters or system.Parameters(D=8, C=2)
    needed = brute_configurations(parameters.D, parameters.C)
    quantity = f"largest spread of A inside an orbit, {STEPS} steps on every entry"
    if needed > LARGEST_BRUTE:
        reason = f"{needed:,} configurations are too many to enumerate; try D=8, C=2"
        return Finding(
            None, quantity, float("nan"), ROUNDING, reason, {"parameters": sizes_of(parameters)}
        )
    run = descend(system.FullPopulation(parameters), 0.02, STEPS)
    spread = np.maximum(run["gamma_spread"], run["rho_spread"])
    largest = float(spread.max())
    reason = (
        f"entries that the lemma calls equal differ by {largest:.1e} at most, while their means "
        f"reach {run['gamma'][-1]:.3g} and {run['rho'][-1]:.3g}"
    )
    plot = {
        "x_label": "step", "y_label": "standard deviation of A in an orbit",
        "x_scale": "log", "y_scale": "symlog",
        "curves": [
            curve("inside sets", run.steps[1:], run["gamma_spread"][1:]),
            curve("between sets", run.steps[1:], run["rho_spread"][1:]),
        ],
        "lines": [{"label": "rounding", "y": ROUNDING}],
    }  # fmt: skip
    evidence = {"parameters": sizes_of(parameters), "outcome": str(run.outcome), "plot": plot}
    return Finding(largest <= ROUNDING, quantity, largest, ROUNDING, reason, evidence)


def lemma_4_2(system: System, protocol: Protocol) -> Finding:
    """The gradient by v orthogonal to w*, at v in span(w*): it must fall as N^-1/2."""
    parameters = protocol.parameters or system.Parameters(D=16, C=4, q=0.25)
    counts = SAMPLES[:3] if parameters.D * parameters.d > 1024 else SAMPLES
    state_of = population_flow(system, parameters, 100.0)[1].final_state
    sizes = []
    for count in counts:
        squares = []
        for seed in range(protocol.seed, protocol.seed + SEEDS):
            problem = system.FullEmpirical(
                parameters, count, seed, start="symmetric", test_samples=1
            )
            alpha, gamma, rho = state_of
            same = problem.partition.labels[:, None] == problem.partition.labels[None, :]
            matrix = np.where(same, gamma, rho)
            np.fill_diagonal(matrix, parameters.beta)
            slope = problem.layout.part(problem.gradient((alpha * problem.feature, matrix)), "v")
            across = slope - (slope @ problem.feature) * problem.feature
            squares.append(float(across @ across))
        sizes.append(float(np.sqrt(np.mean(squares))))
    quantity = "exponent in N (noise: -1/2) of the gradient by v orthogonal to w*"
    evidence = {"parameters": sizes_of(parameters), "samples": list(counts), "gradient": sizes}
    if parameters.d == 1 or max(sizes) < 1e-15:
        reason = "no direction is orthogonal to w*, or no noise is in it: v stays in span(w*)"
        return Finding(True, quantity, 0.0, STEEP, reason, evidence)
    measured = exponent(counts, sizes)
    reason = (
        f"{sizes[0]:.1e} at N={counts[0]:,} and {sizes[-1]:.1e} at N={counts[-1]:,} (root mean "
        f"square of {SEEDS} seeds): noise of the sample, which vanishes in the expectation"
        if measured <= STEEP
        else f"it stays at {sizes[-1]:.1e} at N={counts[-1]:,}: the expectation has such a part"
    )
    half = np.sqrt(counts[0] / np.array(counts, dtype=float)) * sizes[0]
    plot = {
        "x_label": "samples $N$", "y_label": "gradient by $v$ orthogonal to $w^*$",
        "x_scale": "log", "y_scale": "log",
        "curves": [curve("measured", counts, sizes), curve("$N^{-1/2}$", counts, half)],
        "lines": [],
    }  # fmt: skip
    return Finding(measured <= STEEP, quantity, measured, STEEP, reason, evidence | {"plot": plot})


def lemma_4_3(system: System, protocol: Protocol) -> Finding:
    """The constants hidden in the two increments, along the flow and along the regime."""
    rows: list[dict[str, Any]] = []
    curves = []
    for parameters in regime(system, protocol):
        problem, run = population_flow(system, parameters, HORIZON)
        chosen = np.unique(np.linspace(0, len(run.states) - 1, CHECKPOINTS).astype(int))
        found = polylogs(problem, run.states[chosen])
        rows.append(
            {
                "D": parameters.D, "C": parameters.C, "q": parameters.q,
                "least_gamma": float(found[:, 0].min()), "most_gamma": float(found[:, 0].max()),
                "most_rho": float(found[:, 1].max()),
                "time_of_least": float(run.time[chosen][found[:, 0].argmin()]),
            }
        )  # fmt: skip
        curves.append(curve(f"$D={parameters.D}$", run.time[chosen][1:], found[1:, 0]))
    least = min(rows, key=lambda row: float(row["least_gamma"]))
    growth = exponent([row["D"] for row in rows], [abs(row["most_gamma"]) for row in rows])
    positive = least["least_gamma"] > 0
    rises = exponent([row["D"] for row in rows], [max(row["most_rho"], 1e-300) for row in rows])
    holds = bool(positive and not growth > LARGEST_EXPONENT and not rises > LARGEST_EXPONENT)
    if not positive:
        reason = (
            f"gamma falls: its constant is {least['least_gamma']:.3g} at time "
            f"{least['time_of_least']:.4g} (D={least['D']}), where the lemma needs it positive"
        )
    else:
        most = max(row["most_gamma"] for row in rows)
        reason = (
            f"the constant of gamma stays between {least['least_gamma']:.1e} and {most:.2g} up to "
            f"time {HORIZON:g}, that of |rho| below {max(row['most_rho'] for row in rows):.2g}"
        )
        reason += (
            "; how they grow takes several sizes"
            if np.isnan(growth)
            else f"; their maxima grow as D^{growth:.2f} and D^{rises:.2f}"
        )
    plot = over_time(
        r"$\kappa_\gamma$", curves, [{"label": "the lemma needs more than 0", "y": 0.0}], "symlog"
    )
    evidence = {"parameters": {"nu": problem.parameters.nu}, "table": rows, "plot": plot}
    quantity = f"least constant in the increment of gamma, time up to {HORIZON:g}"
    return Finding(holds, quantity, least["least_gamma"], 0.0, reason, evidence)
