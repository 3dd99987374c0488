r"""The realistic problem beside the idealised one: Theorem 4.2, and how it depends on N.

Three measurements. *Deviation*: noise-free samples from the symmetric start differ from the
population only by their number, so orbit means leave the reduced run by :math:`N^{-1/2}`. *Phase*:
the share of associated rows over N and q from a random start; too few samples are memorised, with
no association. *Time*: association sets in and, at small N, may be lost again.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, replace
from typing import TYPE_CHECKING, Any

import numpy as np

from dynamics.analysis.comparison import compare
from dynamics.experiments.measurement import TIME, Chart, Measurement, Series, conclude, undecided
from dynamics.experiments.positional_attention.population import population_flow, sizes_of
from dynamics.experiments.verify import Finding, Protocol
from dynamics.problem import FloatArray
from dynamics.results.power_law import exponent
from dynamics.results.trajectory import Trajectory
from dynamics.training.gradient_descent import descend
from dynamics.training.stability_limit import limits_along
from theory.systems.positional_attention.linear_rules import sign_rule_error

if TYPE_CHECKING:
    from dynamics.registry import System

TIME_LIMIT = 400.0
SAMPLES = 16_000
FEW = 1000
LEAST = 200
"""Samples below which nothing is worth training."""
RATE = 0.02
BELOW_LIMIT = 0.6
"""Learning rate in units of the stability limit of the reduced run, where that is smaller."""
WORK = 8.5e11
"""Multiplications and additions that one run may take: half a minute on two cores."""
LEARNED = 0.6
"""Share of the linear rule's error below which a model is better than any without association."""


@dataclass(frozen=True)
class Schedule:
    """How long, and how fast, realistic problems are trained."""

    time: float = TIME_LIMIT
    eta: float = RATE

    @property
    def steps(self) -> int:
        """Steps of gradient descent."""
        return round(self.time / self.eta)


def stable_rate(system: System, parameters: Any, time: float = TIME_LIMIT) -> float:
    """The usual learning rate, or a smaller one where the reduced run needs it.

    Parameters
    ----------
    system : System
    parameters : Parameters
    time : float
        Of the reduced run.
    """
    _, problem, run = population_flow(system, parameters, time)
    limits = limits_along(problem, run)
    return min(RATE, float(f"{BELOW_LIMIT * np.nanmin(limits):.1g}"))


def train(
    system: System, parameters: Any, samples: int, seed: int, schedule: Schedule
) -> Trajectory:
    """Gradient descent on N noisy samples from a random start (single precision sums).

    Parameters
    ----------
    system : System
    parameters : Parameters
    samples : int
        N.
    seed : int
    schedule : Schedule
    """
    problem = system.FullEmpirical(parameters, samples, seed, dtype="float32")
    record = np.unique(np.rint(np.geomspace(1, schedule.steps, 60)).astype(int))
    return descend(problem, schedule.eta, schedule.steps, record)


def affordable(parameters: Any, schedule: Schedule) -> int:
    """N that a run can afford.

    Parameters
    ----------
    parameters : Parameters
    schedule : Schedule
    """
    per_sample = parameters.D * (4 * parameters.d + 6 * parameters.D)
    return int(WORK / schedule.steps / per_sample)


def theorem_4_2(system: System, protocol: Protocol) -> Finding:
    """Association and test error of realistic runs, with many samples and with few.

    Parameters
    ----------
    system : System
    protocol : Protocol
    """
    parameters = protocol.parameters or system.Parameters(D=16, C=4, q=0.25)
    quantity = "share of associated rows at time T"
    if affordable(parameters, Schedule()) < LEAST:
        reason = f"fewer than {LEAST} samples can be afforded at D={parameters.D}, d={parameters.d}"
        return undecided(quantity, 1.0, reason, parameters=sizes_of(parameters))
    schedule = Schedule(eta=stable_rate(system, parameters))
    many = min(SAMPLES, affordable(parameters, schedule))
    counts = [many, max(1, many * FEW // SAMPLES)]
    if protocol.thorough:
        counts[1:1] = [many // 2, many // 4]
    seeds = range(protocol.seed, protocol.seed + (3 if protocol.thorough else 1))
    linear = float(sign_rule_error(parameters.D, parameters.C, parameters.q).error)
    rows: list[dict[str, Any]] = []
    series = []
    for count in counts:
        runs = [train(system, parameters, count, seed, schedule) for seed in seeds]
        names = {"association": "patch_association", "test_error": "test_error",
                 "cosine": "cosine", "training_error": "error"}  # fmt: skip
        ends = {key: [float(run[name][-1]) for run in runs] for key, name in names.items()}
        rows.append({"samples": count, **ends, "outcome": [str(run.outcome) for run in runs]})
        mean = np.mean([run["patch_association"] for run in runs], axis=0)
        series.append(Series(f"$N={count:,}$", runs[0].time[1:], mean[1:]))
    share, error = min(rows[0]["association"]), max(rows[0]["test_error"])
    share_of_few, error_of_few = max(rows[-1]["association"]), max(rows[-1]["test_error"])
    if share == 1.0 and error < LEARNED * linear:
        holds: bool | None = True
    else:
        # Fewer samples than the protocol's, or an error that still falls with N, decide nothing.
        falling = error < 0.9 * error_of_few
        holds = None if many < SAMPLES or share > share_of_few or falling else False
    irreducible = float(runs[0]["bayes_error"][-1])
    reason = (
        f"at N={many:,}, time {schedule.time:g}: {share:.0%} of the rows associated, test error "
        f"{error:.2%} (sign(Z) {linear:.2%}, irreducible {irreducible:.2%}); at "
        f"N={counts[-1]:,}: {share_of_few:.0%} and {error_of_few:.2%}, training error "
        f"{max(rows[-1]['training_error']):.2%}"
    )
    if share < 1.0:
        capped = f"; N was cut to {many:,} by the cost of a run" if many < SAMPLES else ""
        reason += f"{capped}{'' if holds is None else '; more samples do not help'}"
    where = sizes_of(parameters) | {
        "d": parameters.d, "omega": parameters.omega, "eta": schedule.eta, "time": schedule.time,
        "seeds": list(seeds),
    }  # fmt: skip
    chart = Chart(TIME, "share of associated rows", series, y_scale="linear")
    measurement = Measurement(quantity, share, ">=", 1.0, chart)
    return conclude(measurement, reason, holds, parameters=where, table=rows, linear_error=linear)


@dataclass(frozen=True)
class Deviation:
    """Distance of the orbit means from the reduced run, after some steps.

    Attributes
    ----------
    samples : int array, shape (counts,)
    distances : mapping
        Reduced state -> float array, shape (counts, seeds), signed.
    """

    samples: Sequence[int]
    distances: dict[str, FloatArray]

    def rms(self, name: str) -> FloatArray:
        """Root mean square over the seeds, shape (counts,)."""
        return np.asarray(np.sqrt((self.distances[name] ** 2).mean(axis=1)))

    def slope(self, name: str) -> float:
        """Exponent of N."""
        return exponent(self.samples, list(self.rms(name)))


def deviation(
    system: System,
    parameters: Any,
    counts: Sequence[int],
    seeds: Sequence[int] = range(16),
    schedule: Schedule = Schedule(time=200 * RATE),
) -> Deviation:
    """Noise-free samples from the symmetric start against the reduced run.

    Parameters
    ----------
    system : System
    parameters : Parameters
        With d = 1 and sigma = 0.
    counts : sequence of int
        N.
    seeds : sequence of int
    schedule : Schedule
        200 steps at 0.02 by default.
    """
    reduced = system.ReducedPopulation(parameters)
    distances: dict[str, list[list[float]]] = {name: [] for name in reduced.state_names}
    for count in counts:
        problems = [
            system.FullEmpirical(parameters, count, seed, start="symmetric", test_samples=1)
            for seed in seeds
        ]
        steps = schedule.steps
        runs = compare(reduced, problems, schedule.eta, steps, record=[steps])
        ends = [
            problem.orbit_values(run.states[-1:])
            for problem, run in zip(problems, runs.fulls, strict=True)
        ]
        for name, rows in distances.items():
            rows.append([float(end[name].mean() - runs.reduced[name][-1]) for end in ends])
    return Deviation(list(counts), {name: np.array(rows) for name, rows in distances.items()})


@dataclass(frozen=True)
class AssociationGrid:
    """Share of associated rows and test error over N and q.

    Attributes
    ----------
    samples : sequence of int
    chances : sequence of float
        q.
    association, error : float arrays, shape (q, N, seeds)
    linear : float array, shape (q,)
        Error of sign(Z), what a model without association reaches.
    """

    samples: Sequence[int]
    chances: Sequence[float]
    association: FloatArray
    error: FloatArray
    linear: FloatArray


def association_grid(
    system: System,
    law: Any,
    counts: Sequence[int],
    chances: Sequence[float],
    seeds: Sequence[int] = (0,),
    schedule: Schedule = Schedule(),
) -> AssociationGrid:
    """Train on every cell of a grid of N and q.

    Parameters
    ----------
    system : System
    law : Parameters
        Everything but q.
    counts : sequence of int
        N.
    chances : sequence of float
        q.
    seeds : sequence of int
    schedule : Schedule
    """
    shape = (len(chances), len(counts), len(seeds))
    association, error = np.empty(shape), np.empty(shape)
    linear = [float(sign_rule_error(law.D, law.C, q).error) for q in chances]
    for i, q in enumerate(chances):
        parameters = replace(law, q=q)
        for j, count in enumerate(counts):
            for k, seed in enumerate(seeds):
                run = train(system, parameters, count, seed, schedule)
                lost = run.outcome.failed or run.interrupted
                association[i, j, k] = np.nan if lost else run["patch_association"][-1]
                error[i, j, k] = np.nan if lost else run["test_error"][-1]
    return AssociationGrid(counts, chances, association, error, np.array(linear))
