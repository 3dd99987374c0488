"""Lemmas 4.1, 4.2, 4.3, and what all checks of the idealised problem share: runs of the regime.

The regime of Assumption 2 at finite size: C = 4 and q (D - C) = 14, with D growing. Lemma 4.1 is
measured on gradient descent over every entry of A; Lemma 4.2 on samples, where the orthogonal part
of the gradient must vanish with their number; Lemma 4.3 along the reduced flow, by the constants
that it hides.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import Any

import numpy as np

from dynamics.problem import FloatArray
from dynamics.results.outcome import DIVERGED
from dynamics.results.power_law import exponent, power_law
from dynamics.results.trajectory import Trajectory
from dynamics.training.descent import descend
from dynamics.training.flow import flow
from dynamics.verdicts.findings import Finding, Undecided
from dynamics.verdicts.rules import growth
from dynamics.verdicts.study import TIME, Case, Study, computed_once, measures
from theory.papers.positional_attention.enumeration import brute_configurations
from theory.papers.positional_attention.samples import assumption_1

SHOWN = ("D", "C", "q", "p", "nu", "beta")
"""Parameters that verdicts and pictures name."""
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
TINY = 1e-300
"""Stands for a constant of |rho| that is not positive."""


def regime(study: Study, time: float) -> list[Case]:
    """Flows at the user's parameters, or at those of the regime, up to a time.

    Parameters
    ----------
    study : Study
    time : float
        eta times steps.
    """
    sizes = THOROUGH if study.thorough else REGIME
    laws = study.laws(*({"D": D, "C": 4, "q": SIGNAL / (D - 4)} for D in sizes))
    return [population_flow(study.system, law, time) for law in laws]


@computed_once(64)
def population_flow(make: Any, parameters: Any, time: float) -> Case:
    """The reduced problem and its gradient flow to a time; cached, because checks share runs.

    Parameters
    ----------
    make : System
    parameters : Parameters
    time : float
    """
    problem = make(parameters)
    return Case(parameters, problem, flow(problem, time))


def sizes_of(parameters: Any) -> dict[str, Any]:
    """The parameters that a verdict is about, as plain values."""
    return {name: getattr(parameters, name) for name in SHOWN}


def draw_along(
    study: Study, cases: Sequence[Case], y_label: str, values: Callable[[Trajectory], Any]
) -> None:
    """Draw one curve over time for each D.

    Parameters
    ----------
    study : Study
    cases : sequence of Case
    y_label : str
    values : callable
        Run -> one value a record.
    """
    for case in cases:
        study.curve(f"$D={case.parameters.D}$", case.run.time[1:], values(case.run)[1:])
    study.draw(TIME, y_label)


def sizes_where(study: Study, condition: Callable[[Any], Any]) -> str:
    """D of the rows of the table that meet a condition, in words; empty where none does.

    Parameters
    ----------
    study : Study
    condition : callable
        Row -> whether.
    """
    return ", ".join(str(row["D"]) for row in study.rows if condition(row))


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

    def brought(value: Any, in_set: Any, of_all: Any) -> FloatArray:
        """What a patch adds to F: a function of its value and the sums of its set and of all."""
        inner = alone * value + within * (in_set - value) + between * (of_all - in_set)
        inner = size * state[0] * inner
        return np.asarray(inner**parameters.p + parameters.nu * inner)

    inside, whole = 2 * parameters.C + 1, 2 * size + 1
    # Three whole numbers that are the same in very many draws: raised to the power once.
    tabulated = 3 * inside * whole <= CHUNK
    if tabulated:
        value, in_set, of_all = np.ogrid[-1.0:2.0, 0.0:inside, 0.0:whole]
        table = brought(value, in_set - parameters.C, of_all - size).ravel()
    wrong, count_drawn = 0.0, 0
    while count_drawn < DRAWS:
        count = min(DRAWS - count_drawn, max(1, CHUNK // size))
        x, y = law.values(count, generator)
        patches = x.astype(np.int64).reshape(count, -1, parameters.C)
        z = patches.sum(axis=2, keepdims=True)
        total = z.sum(axis=1, keepdims=True)
        if tabulated:
            # Counted from the middle of the table, of the value 0 and the sums 0.
            terms = table.take(patches * (inside * whole) + (z * whole + total) + table.size // 2)
        else:
            terms = brought(patches, z, total)
        terms = terms.reshape(count, size)
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


@measures(f"largest spread of A inside an orbit, {STEPS} steps on every entry", "<=", ROUNDING)
def lemma_4_1(study: Study) -> Finding:
    """Spread of A inside each orbit after 3000 steps on every entry."""
    law = study.law(D=8, C=2)
    needed = brute_configurations(law.D, law.C)
    if needed > LARGEST_BRUTE:
        reason = f"{needed:,} configurations are too many to enumerate; try D=8, C=2"
        raise Undecided(reason, parameters=sizes_of(law))
    run = descend(study.system.FullPopulation(law), 0.02, STEPS)
    if run.outcome.kind == DIVERGED:  # entries of 1e14 are equal to no digit
        reason = f"gradient descent has {run.outcome}"
        raise Undecided(reason, "step size", parameters=sizes_of(law), outcome=str(run.outcome))
    inside, between = run["gamma_spread"], run["rho_spread"]
    largest = float(max(inside.max(), between.max()))
    reason = (
        f"entries that the lemma calls equal differ by {largest:.1e} at most, while their means "
        f"reach {run['gamma'][-1]:.3g} and {run['rho'][-1]:.3g}"
    )
    study.curve("inside sets", run.steps[1:], inside[1:])
    study.curve("between sets", run.steps[1:], between[1:])
    y_label = "standard deviation of A in an orbit"
    study.draw("step", y_label, {"rounding": ROUNDING}, y_scale="symlog")
    return study.conclude(largest, reason, parameters=sizes_of(law), outcome=str(run.outcome))


@measures("exponent in N (noise: -1/2) of the gradient by v orthogonal to w*", "<=", STEEP)
def lemma_4_2(study: Study) -> Finding:
    """The gradient by v orthogonal to w*, at v in span(w*): it must fall as N^-1/2."""
    law = study.law(D=16, C=4, q=0.25)
    counts = SAMPLES[:3] if law.D * law.d > 1024 else SAMPLES
    alpha, gamma, rho = population_flow(study.system, law, 100.0).run.final_state
    sizes = []
    for count in counts:
        squares = []
        for seed in study.seeds(SEEDS, SEEDS):
            problem = study.system.FullEmpirical(
                law, count, seed, start="symmetric", test_samples=1
            )
            same = problem.partition.labels[:, None] == problem.partition.labels[None, :]
            matrix = np.where(same, gamma, rho)
            np.fill_diagonal(matrix, law.beta)
            slope = problem.layout.part(problem.gradient((alpha * problem.feature, matrix)), "v")
            across = slope - (slope @ problem.feature) * problem.feature
            squares.append(float(across @ across))
        sizes.append(float(np.sqrt(np.mean(squares))))
    evidence: dict[str, Any] = {
        "parameters": sizes_of(law),
        "samples": list(counts),
        "gradient": sizes,
    }
    if law.d == 1 or max(sizes) < 1e-15:
        reason = "no direction is orthogonal to w*, or no noise is in it: v stays in span(w*)"
        return study.conclude(0.0, reason, holds=True, **evidence)
    power = exponent(counts, sizes)
    reason = (
        f"{sizes[0]:.1e} at N={counts[0]:,} and {sizes[-1]:.1e} at N={counts[-1]:,} (root mean "
        f"square of {SEEDS} seeds): noise of the sample, which vanishes in the expectation"
        if power <= STEEP
        else f"it stays at {sizes[-1]:.1e} at N={counts[-1]:,}: the expectation has such a part"
    )
    study.curve("measured", counts, sizes)
    half = np.sqrt(counts[0] / np.array(counts, dtype=float)) * sizes[0]
    study.curve("$N^{-1/2}$", counts, half)
    study.draw("samples $N$", "gradient by $v$ orthogonal to $w^*$")
    return study.conclude(power, reason, **evidence)


@measures(f"least constant in the increment of gamma, time up to {HORIZON:g}", ">", 0.0)
def lemma_4_3(study: Study) -> Finding:
    """The constants hidden in the two increments, along the flow and along the regime."""
    for case in regime(study, HORIZON):
        law, run = case.parameters, case.run
        records = np.unique(np.linspace(0, len(run.states) - 1, CHECKPOINTS).astype(int))
        time = run.time[records]
        of_gamma, of_rho = polylogs(case.problem, run.states[records]).T
        study.row(
            {"D": law.D, "C": law.C, "q": law.q}, least_gamma=float(of_gamma.min()),
            most_gamma=float(of_gamma.max()), most_rho=float(of_rho.max()),
            time_of_least=float(time[of_gamma.argmin()]),
        )  # fmt: skip
        study.curve(f"$D={law.D}$", time[1:], of_gamma[1:])
    least = min(study.rows, key=lambda row: float(row["least_gamma"]))
    sizes, most, most_rho = (study.column(name) for name in ("D", "most_gamma", "most_rho"))
    level = {"the lemma needs more than 0": 0.0}
    study.draw(TIME, r"$\kappa_\gamma$", level, y_scale="symlog")
    where = {"nu": law.nu, "time": HORIZON}
    if least["least_gamma"] <= 0:
        reason = (
            f"gamma falls: its constant is {least['least_gamma']:.3g} at time "
            f"{least['time_of_least']:.4g} (D={least['D']}), where the lemma needs it positive"
        )
        return study.conclude(least["least_gamma"], reason, parameters=where)
    reason = (
        f"the constant of gamma stays between {least['least_gamma']:.1e} and {max(most):.2g} "
        f"up to time {HORIZON:g}, that of |rho| below {max(most_rho):.2g}; "
    )
    if len(sizes) == 1:
        reason += "whether they grow more slowly than every power of D takes several sizes"
        return study.conclude(least["least_gamma"], reason, holds=None, parameters=where)
    laws = [growth(sizes, values, 0.0, upper=True) for values in (most, np.maximum(most_rho, TINY))]
    of_gamma, of_rho = laws
    power = float(power_law(np.log(sizes), most).exponent)
    reason += (
        f"largest constants over D: of gamma {of_gamma}, of |rho| {of_rho}; a power of D cannot be "
        f"told from (ln D)^{power:.1f} at these sizes"
    )
    decided = [law.holds for law in laws]
    holds = False if False in decided else None if None in decided else True
    return study.conclude(least["least_gamma"], reason, holds=holds, parameters=where)
