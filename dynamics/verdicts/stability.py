"""Until when the reduced populations that a verdict rests on stay on their classes.

A finding has the runs of reduced populations that were measured. Each is followed to its
horizon on the full population where that can be enumerated, else at the size of the model file. The
three papers are not model files: a folder that has a transverse analysis of its own names it
``STABILITY``, and of the others nothing is known.
"""

from __future__ import annotations

import importlib
from collections.abc import Callable
from dataclasses import asdict, replace
from functools import lru_cache
from math import inf, isnan
from typing import Any, NamedTuple

import numpy as np

from dynamics.analysis.stability import stability
from dynamics.results.stability import Stability
from dynamics.results.trajectory import Trajectory
from dynamics.system import System
from dynamics.training.descent import descend
from dynamics.training.flow import flow
from dynamics.validation import InvalidRequest
from dynamics.verdicts.findings import Finding

MOST = 2e7
"""Trained entries times samples of the law up to which the full population is followed."""
FEW_RECORDS = 32
"""States of the default run at which a description computes the curvature."""


class Trained(NamedTuple):
    """A run of a reduced population.

    `horizon`: time at its end; `eta`: learning rate of gradient descent, or of each group; None for
    the flow; `where`: which size it is of, where the verdict is on others.
    """

    parameters: Any
    horizon: float
    eta: Any = None
    where: str = ""

    @classmethod
    def of(cls, parameters: Any, run: Trajectory) -> Trained:
        """A trajectory of it."""
        eta = run.settings["eta"] if run.steps.size else None
        return cls(parameters, float(run.time[-1]), tuple(eta) if isinstance(eta, list) else eta)


def stability_of(
    system: System, parameters: Any, horizon: float, eta: float | None = None
) -> Stability | None:
    """Until when a reduced population stays on its classes; None where there is nothing to leave.

    `eta`: learning rate of gradient descent; the flow without it.
    """
    if system.model is None:
        folder = importlib.import_module(f"dynamics.verdicts.{system.name}")
        own: Callable[..., Stability] | None = getattr(folder, "STABILITY", None)
        if own is None:
            return Stability(horizon, where=f"{system.name} has no transverse analysis")
        return own(system, parameters, horizon)
    kinds: Any = system.ReducedPopulation, system.FullPopulation, system.Parameters
    return _measured(*kinds, Trained(parameters, float(horizon), eta))


@lru_cache(maxsize=64)
def _measured(reduced: Any, full: Any, own: Any, trained: Trained) -> Stability | None:
    """The stability of a run of a model file, at its own size where the run's is too large."""
    for law in (trained.parameters, own()):
        try:
            pair = reduced(law), full(law)
        except InvalidRequest:
            continue
        if _cost(*pair) <= MOST:
            break
    else:
        return Stability(trained.horizon, where="the full population is too large")
    if len(pair[1].scalars) == pair[1].layout.size:
        return None
    time, eta = trained.horizon, trained.eta
    run = flow(pair[0], time) if eta is None else descend(pair[0], eta, round(time / np.max(eta)))
    where = "" if law == trained.parameters else f"at {sizes_of(law)}, the size of the model file"
    if pair[0].realization.only_sampled:
        where = f"on {pair[0].realization.law.size:,} draws"
    return replace(stability(*pair, run), where=where)


def _cost(reduced: Any, full: Any) -> float:
    """Trained entries times samples."""
    return float(full.layout.size * max(1, reduced.closure.samples))


def sizes_of(parameters: Any) -> str:
    """The whole numbers among parameters, in words."""
    return ", ".join(f"{n}={v}" for n, v in asdict(parameters).items() if type(v) is int and v)


def with_stability(system: System, finding: Finding) -> Finding:
    """The finding with the stability of the least stable of its reduced runs."""
    every = {
        run: stability_of(system, run.parameters, run.horizon, run.eta)
        for run in dict.fromkeys(finding.trained)
    }
    found = [
        replace(one, where="; ".join(filter(None, [one.where, run.where])))
        for run, one in every.items()
        if one is not None
    ]
    known = [each for each in found if each.measured]
    if not found:
        return finding
    least = min(known or found, key=_order)
    if known and len(known) < len(found):
        missing = f"not measured at {len(found) - len(known)} of {len(found)} sizes"
        least = replace(least, where="; ".join(filter(None, [least.where, missing])))
    reason = f"{finding.reason}; {least}" if least.limited else finding.reason
    return replace(finding, stability=least, reason=reason)


def _order(found: Stability) -> tuple[float, float, bool]:
    """The least stable first: left soonest, then grown most, then at another size."""
    growth = 0.0 if isnan(found.growth) else found.growth
    return (found.until if found.limited else inf, -growth, not found.where)


def along_default_run(system: System, parameters: Any) -> Stability | None:
    """The growth of departures along the default run of a model file, without full training."""
    default = system.default_runs["run"]
    horizon = float(default.eta * default.steps)
    try:
        pair = system.ReducedPopulation(parameters), system.FullPopulation(parameters)
    except InvalidRequest as refusal:
        return Stability(horizon, where=str(refusal))
    if len(pair[1].scalars) == pair[1].layout.size:
        return None
    if _cost(*pair) > MOST:
        return Stability(horizon, where="the full population is too large")
    run = descend(pair[0], default.eta, default.steps)
    return stability(*pair, run, starts=0, records=FEW_RECORDS)
