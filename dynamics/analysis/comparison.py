"""Comparison of a reduced and a full run by the same gradient descent.

For the population problem the reduction is exact: scalars deviate only by rounding (or a wrong
derivation), and events occur at equal steps. The empirical problem has random samples and a random
start, so deviations of scalars measure how realistic the reduced dynamics is. If the reduced
problem draws its start at random, every seed has its own reduced run.
"""

from __future__ import annotations

import os
from collections.abc import Sequence
from itertools import repeat
from math import isfinite
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dynamics.analysis.stability import stability
from dynamics.analysis.transverse_growth import RECORDS, transverse_growth
from dynamics.problem import FloatArray, Problem
from dynamics.results.comparison import Comparison
from dynamics.results.stability import OFF
from dynamics.results.trajectory import Trajectory
from dynamics.training.checkpoint import Checkpoint
from dynamics.training.descent import descend
from dynamics.training.flow import flow, implicit_model
from dynamics.training.progress import interruption
from dynamics.training.rules import rule_of, under
from dynamics.training.schedules import Stages
from dynamics.training.settings import check_flow, check_settings, record_schedule
from dynamics.validation import InvalidRequest

ROUNDING = 1e-11
"""A deviation between the full and the reduced run of at most this size counts as rounding."""
GROWN = 1e5
"""Rounding explains deviations up to `GROWN` * (error of one step) * (growth of perturbations since
the start). The error of one step is rounding, or the tolerance of a flow."""
WRONG = "the reduction is wrong"
BELOW = 1e-6
"""A step's direction is unknown if the gradient's rounding error exceeds this fraction of the
gradient."""


def compare(
    reduced: Problem | Sequence[Problem],
    full: Problem | Sequence[Problem],
    eta: float | ArrayLike | None = None,
    steps: int | None = None,
    rule: Any = "gd",
    record: int | str | ArrayLike | None = None,
    time: float | None = None,
    rtol: float = 1e-8,
    checkpoint: str | os.PathLike[str] | Checkpoint | None = None,
    schedule: str | None = None,
    stages: Stages | None = None,
) -> Comparison:
    """Run a reduced and a full problem and measure the deviation of their scalars.

    Parameters
    ----------
    reduced : Problem or sequence of them
        Problem in a few scalars: one for all full problems, or one for each full problem.
    full : Problem or sequence of them
        Problem in every entry, with ``orbit_values``; several full problems are seeds.
    eta, steps, rule, record, schedule, stages
        Settings of both runs, as for `dynamics.descend`. Under a rule other than gradient descent
        the full run freezes entries whose gradient is proved to be 0, which rounding would move.
    time, rtol
        Settings of `dynamics.flow`; with a time, gradient flows are compared instead of descent.
    checkpoint : path-like, optional
        Prefix of the checkpoint of each run: ``<checkpoint>.reduced``, ``<checkpoint>.full``,
        ``<checkpoint>.full_1``, ..., ``<checkpoint>.reduced_1``, ...

    Raises
    ------
    InvalidRequest
        If the number of reduced problems is neither 1 nor the number of full problems, a parameter
        of the two problems differs, a setting is invalid, or both steps and time are missing.

    Examples
    --------
    >>> import dynamics
    >>> system = dynamics.load_system("positional_attention")
    >>> law = system.Parameters(D=4, C=2)
    >>> reduced, full = system.ReducedPopulation(law), system.FullPopulation(law)
    >>> result = dynamics.compare(reduced, full, eta=0.1, steps=20)
    >>> sorted(result.deviation), max(result.deviation.values()) < 1e-14
    (['alpha', 'gamma', 'rho'], True)
    """
    firsts, fulls = _checked_pairs(reduced, full)
    how: dict[str, Any] = {"rule": rule_of(firsts[0], rule), "schedule": schedule, "stages": stages}
    firsts, fulls = (
        [under(each, how["rule"], stages) for each in kind] for kind in (firsts, fulls)
    )
    problems = [firsts[0], *fulls, *firsts[1:]]
    store = None if checkpoint is None else Checkpoint.at(checkpoint)
    files = [] if store is None else parts(store, len(fulls), len(firsts))
    with interruption():
        if time is not None:
            if eta is not None or steps is not None:
                raise InvalidRequest("give eta and steps (descent) or time (flow)")
            runs = _flows(problems, time, rtol)
        elif eta is None or steps is None:
            raise InvalidRequest("compare takes eta and steps, or a time")
        else:
            check_settings(eta, steps, record)
            asked: Any = record
            if record is None:  # one schedule for all
                largest = max(problem.layout.size for problem in problems)
                asked = record_schedule(steps, None, largest)
            runs = [
                descend(problem, eta, steps, record=asked, checkpoint=part, **how)
                for problem, part in zip(problems, files or repeat(None), strict=False)
            ]
    first, whole, partners = runs[0], runs[1 : 1 + len(fulls)], runs[1 + len(fulls) :]
    deviations = _deviations([first, *partners], whole, fulls)
    result = Comparison(first, whole[0], deviations, tuple(whole[1:]), tuple(partners))
    if store is not None and not (store.keep or result.interrupted):
        for part in files:
            part.discard()
    return result


def _flows(problems: Sequence[Problem], time: float, rtol: float) -> list[Trajectory]:
    """Flows of all problems by one integrator, because two integrators have different errors."""
    alike = None not in map(implicit_model, problems)
    check_flow(time, rtol, all(problem.flows for problem in problems))
    first = flow(problems[0], time, rtol, compiled=alike)
    end = min(time, float(first.time[-1]))
    others = [flow(each, end, rtol, record=first.time, compiled=alike) for each in problems[1:]]
    return [first, *others]


def _checked_pairs(reduced: Any, full: Any) -> tuple[list[Any], list[Any]]:
    """Return the reduced and the full problems as two checked lists of equal length."""
    fulls = list(full) if isinstance(full, Sequence) else [full]
    firsts = list(reduced) if isinstance(reduced, Sequence) else [reduced]
    projected = fulls and all(hasattr(problem, "orbit_values") for problem in fulls)
    if not projected or any(hasattr(problem, "orbit_values") for problem in firsts):
        raise InvalidRequest("compare takes the reduced problem first and the full one second")
    if len(firsts) not in (1, len(fulls)):
        raise InvalidRequest(
            f"{len(firsts)} reduced problems and {len(fulls)} full problems; give 1 reduced "
            f"problem, or {len(fulls)}"
        )
    parameters = firsts[0].parameters
    if any(parameters != problem.parameters for problem in (*firsts, *fulls)):
        raise InvalidRequest("the reduced and the full problem have different parameters")
    return firsts, fulls


def _deviations(
    alone: list[Trajectory], whole: list[Trajectory], fulls: list[Any]
) -> dict[str, FloatArray]:
    """Largest deviation of each scalar between a full run and its reduced run, over full runs."""
    pairs = list(zip(alone if len(alone) > 1 else alone * len(whole), whole, strict=True))
    common = min(_common(alone[0], run) for pair in pairs for run in pair)
    deviations = {name: np.zeros(common) for name in alone[0].layout.names}
    for problem, (first, run) in zip(fulls, pairs, strict=True):
        values = problem.orbit_values(run.states[:common])
        for name, largest in deviations.items():
            # A scalar is compared with all entries that it represents, an array entry by entry.
            one = first[name][:common].reshape(common, -1)
            distance = np.abs(values[name].reshape(common, -1) - one)
            np.maximum(largest, distance.max(axis=1), out=largest)
    return deviations


def parts(checkpoint: Checkpoint, fulls: int = 1, reduced: int = 1) -> list[Checkpoint]:
    """Checkpoints of the first reduced run, of the full runs, and of the other reduced runs.

    The counts `fulls` and `reduced` are the numbers of full and reduced runs of the comparison.
    """
    names = ["reduced", "full", *(f"full_{k}" for k in range(1, fulls))]
    names += [f"reduced_{k}" for k in range(1, reduced)]
    return [checkpoint.part(name) for name in names]


def _common(one: Trajectory, two: Trajectory) -> int:
    """Number of initial records at which two runs have the same times."""
    common = min(len(one.time), len(two.time))
    agree = one.time[:common] == two.time[:common]
    return common if agree.all() else int(np.argmin(agree))


def explanation(result: Comparison, reduced: Any, full: Any) -> str:
    """Explain why the reduced and the full run of a model file deviate, or report instability.

    If the runs deviate, the text says where the gradient leaves the closed space, or else whether
    the measured growth of rounding errors explains the deviation.
    If the runs agree, the text says when a full run from a perturbed start leaves the closed space,
    and is empty if the run stays.
    """
    made, run = reduced.realization, result.reduced
    if "rule" in run.settings or "stages" in run.settings:
        return _by_rounding(result, reduced, full)
    if made.only_sampled and result.largest_deviation > ROUNDING:
        return (
            f"the runs deviate by {result.largest_deviation:.1e}: the law is represented by "
            f"{made.law.size:,} draws, which have its symmetry up to their sampling error"
        )
    scale = max(1.0, float(np.abs(run.states).max()))
    deviation = np.max(list(result.deviations.values()), axis=0)
    parted = np.flatnonzero(~(deviation <= ROUNDING * scale))
    if parted.size:
        indices = np.unique(np.linspace(0, len(result.time) - 1, RECORDS).astype(int))
        leaving = made.first_leaving(
            reduced.closure, reduced.lift(run.states[indices]), reduced.coordinates == "linear"
        )
        if leaving is not None:
            number, why = leaving
            return f"{WRONG}: at time {run.time[indices[number]]:.4g} {why}"
    if not parted.size:
        return _instability(result, reduced, full)
    growth = transverse_growth(reduced, full, run)
    first = result.time[parted[0]]
    error = float(run.settings.get("rtol", np.finfo(np.float64).eps))
    grown = np.exp(np.interp(first, growth.time, np.log(growth.amplification)))
    explained, there = GROWN * error * scale * float(grown), float(deviation[parted[0]])
    text = f"the runs deviate by {result.largest_deviation:.1e}, from time {first:.4g} on"
    if not there <= explained:
        return (
            f"{text}, first by {there:.1e}: rounding amplified across the classes explains only "
            f"{explained:.1e}; other causes: different entries or samples, growth of errors within "
            "the classes, or too large steps"
        )
    rate = float(max(0.0, -growth.least.min()))
    if rate * float(run.time[-1]) < 1.0:
        return f"{text}: no direction across the classes repels; the deviation is rounding"
    return (
        f"{text}: rounding grows on a manifold that repels (largest rate of the linearised flow "
        f"{rate:.3g})"
    )


def _by_rounding(result: Comparison, reduced: Any, full: Any) -> str:
    """Explain a deviation under a rule other than gradient descent; empty if the runs agree."""
    run, deviation = result.reduced, np.max(list(result.deviations.values()), axis=0)
    scale = max(1.0, float(np.abs(run.states).max()))
    parted = np.flatnonzero(~(deviation <= ROUNDING * scale))
    if not parted.size:
        return ""
    first = run.steps[parted[0]]
    text = f"the runs deviate by {result.largest_deviation:.1e}, from step {first} on"
    classes = reduced.closure.classes
    for step, state in zip(run.steps, run.states[: parted[0] + 1], strict=False):
        slope = reduced.gradient(state)
        off = np.abs(full.gradient(reduced.lift(state)) - classes.tangent(slope))
        each = np.zeros(slope.size)
        np.maximum.at(each, classes.labels[classes.labels >= 0], off[classes.labels >= 0])
        below = np.flatnonzero(each > BELOW * np.abs(slope))
        if below.size and reduced.coordinates == "classes":
            k = int(below[0])
            return (
                f"{text}: at step {step} the gradient of {reduced.scalars[k]} is "
                f"{abs(slope[k]):.1e} with a rounding of {each[k]:.1e}, and the rule divides by it"
            )
    return f"{text}; no recorded gradient is near its rounding"


def _instability(result: Comparison, reduced: Any, full: Any) -> str:
    """Say when a full run from a perturbed start leaves the closed space, or return ""."""
    run = result.reduced
    found = stability(reduced, full, run, starts=1)
    if not any(map(isfinite, found.left)):
        return ""
    when = f"time {found.until:.4g}"
    if run.steps.size:
        when = f"step {np.interp(found.until, run.time, run.steps):.0f}"
    off = f"a start that is off by {OFF:g} leaves the classes at about {when}"
    return f"closed, but unstable: {off}"
