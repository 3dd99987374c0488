"""Time up to which full training stays on the classes of a verdict's reduced runs.

Each measured run of a reduced population is compared with the full population up to the run's last
time. If the full population is too large, a run at the model file's size is measured instead. A
paper's folder may define its own transverse analysis as ``STABILITY``.
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
"""Maximum number of trained entries times samples of the law; no larger model is run in full."""
FEW_RECORDS = 32
"""Number of states of the default run at which `along_default_run` computes the curvature."""


class Trained(NamedTuple):
    """A run of a reduced population.

    `horizon`: time at its end; `eta`: learning rate of gradient descent, or that of each group, or
    None for the flow; `where`: size of the run, if it differs from the verdict's sizes.
    """

    parameters: Any
    horizon: float
    eta: Any = None
    where: str = ""

    @classmethod
    def of(cls, parameters: Any, run: Trajectory) -> Trained:
        """Description of a trajectory: parameters, horizon and learning rate."""
        eta = run.settings["eta"] if run.steps.size else None
        return cls(parameters, float(run.time[-1]), tuple(eta) if isinstance(eta, list) else eta)


def stability_of(
    system: System, parameters: Any, horizon: float, eta: float | None = None
) -> Stability | None:
    """Time up to which full training stays on its classes; None if every class has one entry.

    `eta`: learning rate of gradient descent, or None for the gradient flow.
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
    """Stability of a run, or of one at the model file's size if the full problem is too large."""
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
    return float(full.layout.size * max(1, reduced.closure.samples))


def sizes_of(parameters: Any) -> str:
    """The integer parameters in words: "D=16, C=4"."""
    return ", ".join(f"{n}={v}" for n, v in asdict(parameters).items() if type(v) is int and v)


def with_stability(system: System, finding: Finding) -> Finding:
    """Add to a finding the stability of its least stable reduced run."""
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
    """Sort key for stabilities: earliest departure, then largest growth, then the claim's sizes."""
    growth = 0.0 if isnan(found.growth) else found.growth
    return (found.until if found.limited else inf, -growth, not found.where)


def along_default_run(system: System, parameters: Any) -> Stability | None:
    """Stability of a model file's default run by curvatures, without training the full model."""
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
