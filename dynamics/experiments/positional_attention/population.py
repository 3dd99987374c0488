"""Lemmas 4.1, 4.2, 4.3, and what all checks of the idealised problem share: runs of the regime.

The regime of Assumption 2 at finite size: C = 4 and q (D - C) = 14, with D growing. Lemma 4.1 is
measured on gradient descent over every entry of A; Lemma 4.2 on samples, where the orthogonal part
of the gradient must vanish with their number; Lemma 4.3 along the reduced flow, by the constants
that it hides.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import lru_cache
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from dynamics.experiments.measurement import TIME, Chart, Measurement, Series, conclude, undecided
from dynamics.experiments.verify import Finding, Protocol
from dynamics.problem import FloatArray
from dynamics.results.power_law import exponent
from dynamics.results.trajectory import Trajectory
from dynamics.systems.positional_attention.empirical.sampling import assumption_1
from dynamics.systems.positional_attention.full.population import brute_configurations
from dynamics.training.flow import flow
from dynamics.training.gradient_descent import descend

if TYPE_CHECKING:
    from dynamics.registry import System

REGIME = (32, 64, 128)
THOROUGH = (*REGIME, 256, 512)
SIGNAL = 14.0
"""q (D - C) of the regime, near C^2: sign(Z) errs more than 1/8 there (Theorem 3.1)."""
HORIZON = 1e5
DRAWS = 400_000
CHUNK = 4_000_000

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


class Case(NamedTuple):
    """The reduced problem at some parameters, and its gradient flow."""

    parameters: Any
    problem: Any
    run: Trajectory


def regime(system: System, protocol: Protocol, time: float) -> list[Case]:
    """Flows at the user's parameters, or at those of the regime.

    Parameters
    ----------
    system : System
    protocol : Protocol
    time : float
        eta times steps.
    """
    sizes = THOROUGH if protocol.thorough else REGIME
    laws = [protocol.parameters]
    if protocol.parameters is None:
        laws = [system.Parameters(D=D, C=4, q=SIGNAL / (D - 4)) for D in sizes]
    return [population_flow(system, law, time) for law in laws]


def population_flow(system: System, parameters: Any, time: float) -> Case:
    """The reduced problem and its gradient flow to a time; cached, because checks share runs.

    Parameters
    ----------
    system : System
    parameters : Parameters
    time : float
    """
    make: Any = system.ReducedPopulation
    return _flow(make, parameters, time)


@lru_cache(maxsize=64)
def _flow(make: Callable[..., Any], parameters: Any, time: float) -> Case:
    problem = make(parameters)
    return Case(parameters, problem, flow(problem, time))


def sizes_of(parameters: Any) -> dict[str, Any]:
    """The parameters that a verdict is about, as plain values."""
    return {name: getattr(parameters, name) for name in ("D", "C", "q", "p", "nu", "beta")}


def series_along(cases: Sequence[Case], values: Callable[[Trajectory], Any]) -> list[Series]:
    """One series over time for each D.

    Parameters
    ----------
    cases : sequence of Case
    values : callable
        Run -> one value a record.
    """
    return [
        Series(f"$D={case.parameters.D}$", case.run.time[1:], values(case.run)[1:])
        for case in cases
    ]


def sizes_where(rows: Sequence[Mapping[str, Any]], condition: Callable[[Any], Any]) -> str:
    """D of the rows of a table that meet a condition, in words; empty where none does.

    Parameters
    ----------
    rows : sequence of mapping
    condition : callable
        Row -> whether.
    """
    return ", ".join(str(row["D"]) for row in rows if condition(row))


def attention(parameters: Any, states: FloatArray) -> tuple[FloatArray, FloatArray]:
    """Gamma and G, by the definitions of Section 4.1.

    Parameters
    ----------
    parameters : Parameters
    states : float array, shape (records, 3)
        (alpha, gamma, rho).

    Returns
    -------
    float arrays, shape (records,)
    """
    _, gamma, rho = states.T
    top = np.maximum(np.maximum(parameters.beta, gamma), rho) * parameters.scale
    own = np.exp(parameters.scale * parameters.beta - top)
    same = np.exp(parameters.scale * gamma - top)
    other = np.exp(parameters.scale * rho - top)
    size, inside = parameters.D, parameters.C - 1
    total = own + inside * same + (size - parameters.C) * other
    return same / total, size * (own + inside * same) / total


def sampled_error(parameters: Any, state: FloatArray, seed: int) -> tuple[float, float]:
    """Population error of a symmetric state from draws of the law, and its standard error.

    Ties count half, as they do in the irreducible error and in that of sign(Z).

    Parameters
    ----------
    parameters : Parameters
    state : float array, shape (3,)
        (alpha, gamma, rho).
    seed : int
    """
    law, generator = assumption_1(parameters), np.random.default_rng(seed)
    within, own = (float(part[0]) for part in attention(parameters, state[None, :]))
    size = parameters.D
    alone = own / size - (parameters.C - 1) * within
    between = (1 - own / size) / (size - parameters.C)
    wrong, count_drawn = 0.0, 0
    while count_drawn < DRAWS:
        count = min(DRAWS - count_drawn, max(1, CHUNK // size))
        x, y = law.values(count, generator)
        z = x.reshape(count, -1, parameters.C).sum(axis=2).repeat(parameters.C, axis=1)
        total = x.sum(axis=1, keepdims=True)
        inner = size * state[0] * (alone * x + within * (z - x) + between * (total - z))
        terms = inner**parameters.p + parameters.nu * inner
        margin = y * terms.sum(axis=1)
        tie = np.abs(margin) <= 1e-13 * np.abs(terms).sum(axis=1)
        wrong += float(((margin < 0) & ~tie).sum() + 0.5 * tie.sum())
        count_drawn += count
    error = wrong / DRAWS
    return error, float(np.sqrt(max(error, 1 / DRAWS) / DRAWS))


def polylogs(problem: Any, states: FloatArray) -> FloatArray:
    """The hidden constants of Lemma 4.3: of gamma, and of |rho|.

    From the gradient that moves the state, not from what the problem reports of itself.

    Parameters
    ----------
    problem : ReducedPopulation
    states : float array, shape (records, 3)

    Returns
    -------
    float array, shape (records, 2)
    """
    parameters, (alpha, _, rho) = problem.parameters, states.T
    within, own = attention(parameters, states)
    slopes = np.array([problem.gradient(state) for state in states])
    power, size = alpha**parameters.p, parameters.D
    strength = within * own ** (parameters.p - 1)
    gamma = -slopes[:, 1] / (power * strength)
    outward = -slopes[:, 2] * np.where(rho == 0, np.sign(-slopes[:, 2]), np.sign(rho))
    return np.stack([gamma, outward / (power * (1 + strength) / size)], axis=1)


def lemma_4_1(system: System, protocol: Protocol) -> Finding:
    """Spread of A inside each orbit after 3000 steps on every entry.

    Parameters
    ----------
    system : System
    protocol : Protocol
    """
    parameters = protocol.parameters or system.Parameters(D=8, C=2)
    where = sizes_of(parameters)
    needed = brute_configurations(parameters.D, parameters.C)
    quantity = f"largest spread of A inside an orbit, {STEPS} steps on every entry"
    if needed > LARGEST_BRUTE:
        reason = f"{needed:,} configurations are too many to enumerate; try D=8, C=2"
        return undecided(quantity, ROUNDING, reason, parameters=where)
    run = descend(system.FullPopulation(parameters), 0.02, STEPS)
    largest = float(max(run["gamma_spread"].max(), run["rho_spread"].max()))
    reason = (
        f"entries that the lemma calls equal differ by {largest:.1e} at most, while their means "
        f"reach {run['gamma'][-1]:.3g} and {run['rho'][-1]:.3g}"
    )
    series = [
        Series("inside sets", run.steps[1:], run["gamma_spread"][1:]),
        Series("between sets", run.steps[1:], run["rho_spread"][1:]),
    ]
    label = "standard deviation of A in an orbit"
    chart = Chart("step", label, series, {"rounding": ROUNDING}, y_scale="symlog")
    measurement = Measurement(quantity, largest, "<=", ROUNDING, chart)
    return conclude(measurement, reason, parameters=where, outcome=str(run.outcome))


def lemma_4_2(system: System, protocol: Protocol) -> Finding:
    """The gradient by v orthogonal to w*, at v in span(w*): it must fall as N^-1/2.

    Parameters
    ----------
    system : System
    protocol : Protocol
    """
    parameters = protocol.parameters or system.Parameters(D=16, C=4, q=0.25)
    counts = SAMPLES[:3] if parameters.D * parameters.d > 1024 else SAMPLES
    alpha, gamma, rho = population_flow(system, parameters, 100.0).run.final_state
    sizes = []
    for count in counts:
        squares = []
        for seed in range(protocol.seed, protocol.seed + SEEDS):
            problem = system.FullEmpirical(
                parameters, count, seed, start="symmetric", test_samples=1
            )
            same = problem.partition.labels[:, None] == problem.partition.labels[None, :]
            matrix = np.where(same, gamma, rho)
            np.fill_diagonal(matrix, parameters.beta)
            slope = problem.layout.part(problem.gradient((alpha * problem.feature, matrix)), "v")
            across = slope - (slope @ problem.feature) * problem.feature
            squares.append(float(across @ across))
        sizes.append(float(np.sqrt(np.mean(squares))))
    quantity = "exponent in N (noise: -1/2) of the gradient by v orthogonal to w*"
    evidence: dict[str, Any] = {"parameters": sizes_of(parameters)}
    evidence |= {"samples": list(counts), "gradient": sizes}
    if parameters.d == 1 or max(sizes) < 1e-15:
        reason = "no direction is orthogonal to w*, or no noise is in it: v stays in span(w*)"
        return conclude(Measurement(quantity, 0.0, "<=", STEEP), reason, holds=True, **evidence)
    measured = exponent(counts, sizes)
    reason = (
        f"{sizes[0]:.1e} at N={counts[0]:,} and {sizes[-1]:.1e} at N={counts[-1]:,} (root mean "
        f"square of {SEEDS} seeds): noise of the sample, which vanishes in the expectation"
        if measured <= STEEP
        else f"it stays at {sizes[-1]:.1e} at N={counts[-1]:,}: the expectation has such a part"
    )
    half = np.sqrt(counts[0] / np.array(counts, dtype=float)) * sizes[0]
    series = [Series("measured", counts, sizes), Series("$N^{-1/2}$", counts, half)]
    chart = Chart("samples $N$", "gradient by $v$ orthogonal to $w^*$", series)
    return conclude(Measurement(quantity, measured, "<=", STEEP, chart), reason, **evidence)


def lemma_4_3(system: System, protocol: Protocol) -> Finding:
    """The constants hidden in the two increments, along the flow and along the regime.

    Parameters
    ----------
    system : System
    protocol : Protocol
    """
    rows: list[dict[str, Any]] = []
    series = []
    for parameters, problem, run in regime(system, protocol, HORIZON):
        records = np.unique(np.linspace(0, len(run.states) - 1, CHECKPOINTS).astype(int))
        time = run.time[records]
        of_gamma, of_rho = polylogs(problem, run.states[records]).T
        rows.append({
            "D": parameters.D, "C": parameters.C, "q": parameters.q,
            "least_gamma": float(of_gamma.min()), "most_gamma": float(of_gamma.max()),
            "most_rho": float(of_rho.max()), "time_of_least": float(time[of_gamma.argmin()]),
        })  # fmt: skip
        series.append(Series(f"$D={parameters.D}$", time[1:], of_gamma[1:]))
    least = min(rows, key=lambda row: float(row["least_gamma"]))
    sizes = [row["D"] for row in rows]
    of_gamma = exponent(sizes, [abs(row["most_gamma"]) for row in rows])
    of_rho = exponent(sizes, [max(row["most_rho"], 1e-300) for row in rows])
    grows = of_gamma > LARGEST_EXPONENT or of_rho > LARGEST_EXPONENT
    if least["least_gamma"] <= 0:
        reason = (
            f"gamma falls: its constant is {least['least_gamma']:.3g} at time "
            f"{least['time_of_least']:.4g} (D={least['D']}), where the lemma needs it positive"
        )
    else:
        most = max(row["most_gamma"] for row in rows)
        growth = (
            "; how they grow takes several sizes"
            if np.isnan(of_gamma)
            else f"; their maxima grow as D^{of_gamma:.2f} and D^{of_rho:.2f}"
        )
        reason = (
            f"the constant of gamma stays between {least['least_gamma']:.1e} and {most:.2g} up to "
            f"time {HORIZON:g}, that of |rho| below {max(row['most_rho'] for row in rows):.2g}"
            f"{growth}"
        )
    levels = {"the lemma needs more than 0": 0.0}
    chart = Chart(TIME, r"$\kappa_\gamma$", series, levels, y_scale="symlog")
    quantity = f"least constant in the increment of gamma, time up to {HORIZON:g}"
    measurement = Measurement(quantity, least["least_gamma"], ">", 0.0, chart)
    holds = measurement.met and not grows
    where = {"nu": problem.parameters.nu}
    return conclude(measurement, reason, holds, parameters=where, table=rows)
