"""Comparisons of runs: reduced and full problem, flow and gradient descent, or update rules."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np

from dynamics.problem import FloatArray
from dynamics.results.event import Event
from dynamics.results.outcome import INTERRUPTED, Outcome
from dynamics.results.power_law import exponent
from dynamics.results.trajectory import Trajectory
from theory.summary import summarized
from theory.update_rules import RULES

if TYPE_CHECKING:
    import pandas

DEPARTURE_SHARES = (0.01, 0.1, 0.5)
"""Relative deviations at which the departure of a full from a reduced run is reported."""


def side_by_side(runs: Mapping[str, Trajectory], by: str = "time") -> pandas.DataFrame:
    """Table of several runs: columns ``<run>_<column>``, and a row for each time or step (`by`).

    Examples
    --------
    >>> import dynamics
    >>> system = dynamics.load_system("positional_attention")
    >>> problem = system.ReducedPopulation(system.Parameters(D=8, C=2))
    >>> runs = {str(eta): dynamics.descend(problem, eta, 4, record=2) for eta in (0.1, 0.2)}
    >>> side_by_side(runs)[["time", "0.1_step", "0.2_step"]].values.tolist()
    [[0.0, 0.0, 0.0], [0.2, 2.0, nan], [0.4, 4.0, 2.0], [0.8, nan, 4.0]]
    """
    import pandas

    frames = {name: run.to_dataframe().set_index(by) for name, run in runs.items()}
    whole = pandas.concat(frames, axis=1).sort_index()
    whole.columns = [f"{run}_{column}" for run, column in whole.columns]
    return whole.reset_index()


@summarized
@dataclass(frozen=True)
class Comparison:
    """A reduced and a full run at the same steps.

    Attributes
    ----------
    reduced, full : Trajectory
    deviations : mapping
        Reduced state -> largest absolute distance to the full entries it represents (or to the mean
        of an orbit) at each record of `time`, over all full runs; shape (records,).
    others : tuple of Trajectory
        Further full runs, at other seeds.
    partners : tuple of Trajectory
        Reduced runs paired with `others`, if each seed has its own.

    Examples
    --------
    >>> import dynamics
    >>> system = dynamics.load_system("positional_attention")
    >>> parameters = system.Parameters(D=8, C=2)
    >>> reduced = system.ReducedPopulation(parameters)
    >>> full = system.FullPopulation(parameters)
    >>> comparison = dynamics.compare(reduced, full, eta=0.02, steps=500)
    >>> list(comparison.deviation), max(comparison.deviation.values()) < 1e-12
    (['alpha', 'gamma', 'rho'], True)
    >>> comparison.events["reduced"]["T0"].step == comparison.events["full"]["T0"].step
    True
    """

    reduced: Trajectory
    full: Trajectory
    deviations: Mapping[str, FloatArray]
    others: tuple[Trajectory, ...] = ()
    partners: tuple[Trajectory, ...] = ()

    @property
    def largest_deviation(self) -> float:
        """Maximum of the scalars' deviations and of the full run's distance from equal entries."""
        outside = self.full.observables.get("outside", np.zeros(1))
        return max(*self.deviation.values(), float(outside.max()))

    @property
    def fulls(self) -> tuple[Trajectory, ...]:
        """All runs of the full problem."""
        return (self.full, *self.others)

    @property
    def time(self) -> FloatArray:
        """Times of the records that both runs have."""
        return self.reduced.time[: len(next(iter(self.deviations.values())))]

    @property
    def deviation(self) -> dict[str, float]:
        """Reduced state -> largest absolute deviation over all records and entries."""
        return {name: float(series.max()) for name, series in self.deviations.items()}

    @property
    def relative_deviations(self) -> dict[str, FloatArray]:
        """Scalar state -> relative distance of every full run, shape (runs, records).

        The relative distance is ``abs(full - reduced) / abs(reduced)``, infinite if only the
        reduced value is 0. A state is compared only if the full run also reports it as a scalar,
        for example as the mean over an orbit of entries.
        """
        same = (self.reduced,) * len(self.fulls)
        alone = (self.reduced, *self.partners) if self.partners else same
        common = min(len(run.time) for run in (*alone, *self.fulls))
        relative = {}
        for name in (n for n in self.reduced.layout.scalars if n in self.full.observables):
            first, whole = (
                np.stack([run.series(name)[:common] for run in runs])
                for runs in (alone, self.fulls)
            )
            distance, size = np.abs(whole - first), np.abs(first)
            ratio = np.divide(distance, size, out=np.full_like(size, np.inf), where=size > 0)
            relative[name] = np.where(distance == 0, 0.0, ratio)
        return relative

    def departures(self, share: float) -> dict[str, FloatArray]:
        """Scalar state -> time of departure of every full run, shape (runs,).

        From its departure to the end of the run, all `relative_deviations` of a state exceed
        `share`. A departure is infinite if the last deviation does not exceed `share`.
        """
        times = {}
        for name, relative in self.relative_deviations.items():
            after = np.logical_and.accumulate((relative > share)[:, ::-1], axis=1)[:, ::-1]
            first = self.reduced.time[after.argmax(axis=1)]
            times[name] = np.where(after[:, -1], first, np.inf)
        return times

    @property
    def events(self) -> dict[str, Mapping[str, Event]]:
        """Events of the two runs, with keys ``"reduced"`` and ``"full"``."""
        return {"reduced": self.reduced.events, "full": self.full.events}

    @property
    def named_runs(self) -> dict[str, Trajectory]:
        """All runs by name: ``reduced``, ``full``, ``full_1``, ..., ``reduced_1``, ..."""
        others = {f"full_{k}": run for k, run in enumerate(self.others, 1)}
        partners = {f"reduced_{k}": run for k, run in enumerate(self.partners, 1)}
        return {"reduced": self.reduced, "full": self.full, **others, **partners}

    def to_dataframe(self) -> pandas.DataFrame:
        """Table with a row for each record: time, step, deviations, and the columns of every run.

        The columns are called ``deviation_alpha``, ``reduced_alpha``, ``full_alpha``, ...; they are
        NaN after the end of a run.
        """
        whole = side_by_side(self.named_runs)
        steps = [name for name in whole if name.endswith("_step")]
        for column, (name, series) in enumerate(self.deviations.items(), 1):
            padded = np.pad(series, (0, len(whole) - len(series)), constant_values=np.nan)
            whole.insert(column, f"deviation_{name}", padded)
        if steps:
            whole.insert(1, "step", whole[steps].max(axis=1).astype(np.int64))
        return whole.drop(columns=steps)

    @property
    def outcome(self) -> Outcome:
        """First failed outcome, else first interrupted outcome, else outcome of the reduced run."""
        ends = [run.outcome for run in (*self.fulls, *self.partners, self.reduced)]
        failed = [end for end in ends if end.failed]
        stopped = [end for end in ends if end.kind == INTERRUPTED]
        return (failed or stopped or ends[-1:])[0]

    def overview(self) -> dict[str, Any]:
        """Names and values of the printed summary: problems, deviations, events and outcome."""
        runs = (self.reduced, self.full)
        views = (f"{run.view} ({run.layout.size} entries)" for run in runs)
        seeds = f", {len(self.fulls)} seeds" if self.others else ""
        first = self.reduced.overview()
        return {
            "system": self.reduced.system,
            "runs": " and ".join(views) + seeds,
            **{name: first[name] for name in ("parameters", "settings")},
            "deviation": {name: f"{value:.1e}" for name, value in self.deviation.items()},
            "events": first["events"],
            "outcome": str(self.outcome),
        }

    @property
    def interrupted(self) -> bool:
        """Whether any run was interrupted."""
        return any(run.interrupted for run in self.named_runs.values())


@summarized
@dataclass(frozen=True)
class Overlay:
    """Gradient descent compared with the flow at equal times, or several update rules compared.

    Attributes
    ----------
    flow : Trajectory or None
        Gradient flow, recorded at the times of all runs; None if update rules are compared.
    runs : tuple of Trajectory
        Descents, largest learning rate first; or runs of update rules with equal steps.
    deviations : mapping
        State -> largest absolute distance from the flow over the records, for each run.

    Examples
    --------
    >>> import dynamics
    >>> system = dynamics.load_system("positional_attention")
    >>> problem = system.ReducedPopulation(system.Parameters(D=8, C=2))
    >>> overlay = dynamics.overlay(problem, [0.02, 0.01, 0.005], time=20)
    >>> {name: round(order, 2) for name, order in overlay.orders.items()}
    {'alpha': 0.9, 'gamma': 1.01, 'rho': 0.97}
    """

    flow: Trajectory | None
    runs: tuple[Trajectory, ...]
    deviations: Mapping[str, FloatArray]

    @property
    def first(self) -> Trajectory:
        """Representative run: the flow, or the run of the first rule."""
        return self.runs[0] if self.flow is None else self.flow

    @property
    def etas(self) -> FloatArray:
        """Learning rate of each run."""
        return np.array([run.settings["eta"] for run in self.runs])

    @property
    def rules(self) -> tuple[str, ...]:
        """Update rule of each run, with its non-default constants."""
        return tuple(_rule_name(run.settings.get("rule", {"name": "gd"})) for run in self.runs)

    @property
    def labels(self) -> tuple[str, ...]:
        """Text with the update rule and the learning rate of each run."""
        return tuple(f"{r}, eta = {eta:g}" for r, eta in zip(self.rules, self.etas, strict=True))

    @property
    def shared(self) -> dict[str, Any]:
        """Settings that are equal in all runs; if there is a flow, all settings of the flow."""
        runs = self.runs if self.flow is None else [self.flow]
        first = self.first.settings
        return {n: v for n, v in first.items() if all(r.settings.get(n) == v for r in runs)}

    @property
    def named_runs(self) -> dict[str, Trajectory]:
        """All runs by name: ``flow`` (if present), ``run_0``, ``run_1``, ..."""
        flow = {} if self.flow is None else {"flow": self.flow}
        return {**flow, **{f"run_{k}": run for k, run in enumerate(self.runs)}}

    def to_dataframe(self) -> pandas.DataFrame:
        """Table with columns ``flow_alpha``, ``run_0_step``, ``run_0_alpha``, ...

        Each row is a time. Without a flow, each row is a step, and ``run_0_time`` replaces
        ``run_0_step``.
        """
        return side_by_side(self.named_runs, "step" if self.flow is None else "time")

    @property
    def orders(self) -> dict[str, float]:
        """State -> exponent of eta fitted to the distance from the flow; NaN for under two runs."""
        good = np.array([not run.outcome.failed for run in self.runs])
        used = {name: good & (distance > 0) for name, distance in self.deviations.items()}
        return {
            name: exponent(self.etas[used[name]], distance[used[name]])
            for name, distance in self.deviations.items()
        }

    @property
    def outcome(self) -> Outcome:
        """Outcome of the flow, else of an interrupted run, else of the first successful run.

        Without a flow, the overlay has failed only if all runs have failed.
        """
        ends = [run.outcome for run in self.runs]
        good = [end for end in ends if not end.failed]
        stopped = [end for end in ends if end.kind == INTERRUPTED]
        return (stopped or good or ends)[0] if self.flow is None else self.flow.outcome

    def overview(self) -> dict[str, Any]:
        """Names and values of the printed summary: problem, learning rates, `orders`, events."""
        first = self.first.overview()
        entries = {name: first[name] for name in ("system", "parameters")}
        if self.flow is None:
            runs = zip(self.labels, self.runs, strict=True)
            return entries | {label: run.overview()["events"] for label, run in runs} | {
                "outcome": str(self.outcome)
            }  # fmt: skip
        return {
            **entries,
            "settings": first["settings"],
            "eta": list(self.etas),
            "order in eta": self.orders,
            **{name: first[name] for name in ("events", "outcome")},
        }

    @property
    def interrupted(self) -> bool:
        """Whether the flow was interrupted; without a flow, whether any run was."""
        return any(run.interrupted for run in (self.runs if self.flow is None else [self.flow]))


def _rule_name(stored: Mapping[str, Any]) -> str:
    """Text of the update rule of stored settings: ``adam, b1 = 0.5``."""
    name = stored["name"]
    usual = RULES[name].options if name in RULES else {"weight_decay": 0.0}
    own = {n: stored.get(n, 0.0) for n in usual if stored.get(n, 0.0) != usual[n]}
    return ", ".join([name, *(n if v is True else f"{n} = {v:g}" for n, v in own.items())])
