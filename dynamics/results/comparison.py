"""Several runs side by side: a reduced and a full one, a flow and descents, update rules."""

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
"""Deviations, relative to the reduced value, whose times are reported and drawn."""


def side_by_side(runs: Mapping[str, Trajectory], by: str = "time") -> pandas.DataFrame:
    """A row for each time, with the columns of every run under ``<its name>_``; NaN without one.

    `runs`: name -> run; `by`: ``time``, or ``step``.

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
        Reduced state -> largest absolute distance, over what stands beside it in the full runs
        (every entry, or the mean of an orbit), at each record of `time`; shape (records,).
    others : tuple of Trajectory
        More runs of the full problem, of other seeds.
    partners : tuple of Trajectory
        The reduced runs of those seeds, where each has its own.

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
        """Over all scalars and times; outside the closed space too, where the model has one."""
        outside = self.full.observables.get("outside", np.zeros(1))
        return max(*self.deviation.values(), float(outside.max()))

    @property
    def fulls(self) -> tuple[Trajectory, ...]:
        """All runs of the full problem."""
        return (self.full, *self.others)

    @property
    def time(self) -> FloatArray:
        """Time of the records that both runs have."""
        return self.reduced.time[: len(next(iter(self.deviations.values())))]

    @property
    def deviation(self) -> dict[str, float]:
        """Reduced state -> largest absolute deviation over all records and entries."""
        return {name: float(series.max()) for name, series in self.deviations.items()}

    @property
    def relative_deviations(self) -> dict[str, FloatArray]:
        """Scalar state -> relative distance of every full run, shape (runs, records).

        The size of full less reduced over that of reduced, of the states that a full run reports
        itself, such as a mean over an orbit; infinite where the reduced value alone is 0.
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
        """The times from which on full runs stay away from the reduced one, to the end.

        Parameters
        ----------
        share : float
            Of the reduced value, that the deviation exceeds.

        Returns
        -------
        dict
            Scalar state -> time of every full run, shape (runs,): that of the first record from
            which on `relative_deviations` exceeds the share; infinite where it does not at the end.
        """
        times = {}
        for name, relative in self.relative_deviations.items():
            after = np.logical_and.accumulate((relative > share)[:, ::-1], axis=1)[:, ::-1]
            first = self.reduced.time[after.argmax(axis=1)]
            times[name] = np.where(after[:, -1], first, np.inf)
        return times

    @property
    def events(self) -> dict[str, Mapping[str, Event]]:
        """Events of the two runs, under ``"reduced"`` and ``"full"``."""
        return {"reduced": self.reduced.events, "full": self.full.events}

    @property
    def named_runs(self) -> dict[str, Trajectory]:
        """All runs by name: ``reduced``, ``full``, ``full_1``, ..., ``reduced_1``, ..."""
        others = {f"full_{k}": run for k, run in enumerate(self.others, 1)}
        partners = {f"reduced_{k}": run for k, run in enumerate(self.partners, 1)}
        return {"reduced": self.reduced, "full": self.full, **others, **partners}

    def to_dataframe(self) -> pandas.DataFrame:
        """A row for each record: time, step, deviations, and the columns of every run.

        They are ``deviation_alpha``, ``reduced_alpha``, ``full_alpha``, ...; NaN where a run ended
        before.
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
        """The worst of all: failed, else interrupted, else the reduced run's."""
        ends = [run.outcome for run in (*self.fulls, *self.partners, self.reduced)]
        failed = [end for end in ends if end.failed]
        stopped = [end for end in ends if end.kind == INTERRUPTED]
        return (failed or stopped or ends[-1:])[0]

    def overview(self) -> dict[str, Any]:
        """Entries of its text: both problems, their largest distance, events and outcome."""
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
        """Whether one of the runs was."""
        return any(run.interrupted for run in self.named_runs.values())


@summarized
@dataclass(frozen=True)
class Overlay:
    """Runs of gradient descent over a flow to the same time, or several update rules.

    Attributes
    ----------
    flow : Trajectory or None
        With the times of all runs among its records.
    runs : tuple of Trajectory
        Over a flow gradient descent, largest learning rate first; else runs of equal steps.
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
        """The run that stands for all: the flow, or the first rule."""
        return self.runs[0] if self.flow is None else self.flow

    @property
    def etas(self) -> FloatArray:
        """Learning rate of each run."""
        return np.array([run.settings["eta"] for run in self.runs])

    @property
    def rules(self) -> tuple[str, ...]:
        """Update rule of each run, with the constants that are not its defaults."""
        return tuple(_rule_name(run.settings.get("rule", {"name": "gd"})) for run in self.runs)

    @property
    def labels(self) -> tuple[str, ...]:
        """Rule and learning rate of each run."""
        return tuple(f"{r}, eta = {eta:g}" for r, eta in zip(self.rules, self.etas, strict=True))

    @property
    def shared(self) -> dict[str, Any]:
        """Settings that all runs have."""
        runs = self.runs if self.flow is None else [self.flow]
        first = self.first.settings
        return {n: v for n, v in first.items() if all(r.settings.get(n) == v for r in runs)}

    @property
    def named_runs(self) -> dict[str, Trajectory]:
        """All runs by name: ``flow`` where there is one, ``run_0``, ``run_1``, ..."""
        flow = {} if self.flow is None else {"flow": self.flow}
        return {**flow, **{f"run_{k}": run for k, run in enumerate(self.runs)}}

    def to_dataframe(self) -> pandas.DataFrame:
        """A row for each time, with ``flow_alpha``, ``run_0_step``, ``run_0_alpha``, ...

        Without a flow, a row for each step, with ``run_0_time``.
        """
        return side_by_side(self.named_runs, "step" if self.flow is None else "time")

    @property
    def orders(self) -> dict[str, float]:
        """State -> measured power of eta in the distance, over the runs that did not fail.

        NaN where fewer than two are left.
        """
        good = np.array([not run.outcome.failed for run in self.runs])
        used = {name: good & (distance > 0) for name, distance in self.deviations.items()}
        return {
            name: exponent(self.etas[used[name]], distance[used[name]])
            for name, distance in self.deviations.items()
        }

    @property
    def outcome(self) -> Outcome:
        """The flow's; without one, that of a rule only if no run went well.

        A rule or a rate that fails is what an overlay shows.
        """
        ends = [run.outcome for run in self.runs]
        good = [end for end in ends if not end.failed]
        stopped = [end for end in ends if end.kind == INTERRUPTED]
        return (stopped or good or ends)[0] if self.flow is None else self.flow.outcome

    def overview(self) -> dict[str, Any]:
        """Entries of its text: the problem, rules and learning rates, events, the order in eta."""
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
        """Whether the flow was, or a run of a rule."""
        return any(run.interrupted for run in (self.runs if self.flow is None else [self.flow]))


def _rule_name(stored: Mapping[str, Any]) -> str:
    """A rule as settings have it, in words: ``adam, b1 = 0.5``."""
    name = stored["name"]
    usual = RULES[name].options if name in RULES else {"weight_decay": 0.0}
    own = {n: stored.get(n, 0.0) for n in usual if stored.get(n, 0.0) != usual[n]}
    return ", ".join([name, *(n if v is True else f"{n} = {v:g}" for n, v in own.items())])
