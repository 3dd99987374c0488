r"""What Section 4.1 says around its lemmas: association at any time, and how alpha moves.

All of it is measured along the gradient flow of the reduced problem, from which gradient descent
differs by the step size. The appendix with Lemmas D.2 and D.11 is not in the text at hand; they
are read as Section 4.1 cites them.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dynamics.verdicts.positional_attention import population
from dynamics.verdicts.study import TIME, Case, Study, measures
from dynamics.verdicts.verify import Finding
from theory.papers.positional_attention.linear_rules import sign_rule_error

LONG = 1e6
LARGEST_ALPHA, ALPHAS = 1e2, 400
"""Grid of a in v = a w*, logarithmic from a thousandth of the start's alpha on."""
RESOLVED = 1e-6
"""Part of alpha from which a change of it is none of the integrator's errors."""
HIGH = 2.0
"""Loss of the predictor (2), in units of that at the end of training, that counts as high."""


def _differences(study: Study, name: str, own: Any) -> tuple[float, list[Case]]:
    """Fill the table with the least ``own(law, run) - rho`` at positive times; the least of all."""
    cases = population.regime(study, LONG)
    for case in cases:
        law, run = case.parameters, case.run
        gap = (own(law, run) - run["rho"])[1:]
        at = int(gap.argmin())
        values = {name: float(gap[at]), "time": float(run.time[1:][at])}
        study.row(population.sizes_of(law), **values)
        study.curve(f"$D={law.D}$", run.time[1:], gap)
    return min(study.column(name)), cases


@measures("least min(beta, gamma) - rho at times above 0", ">", 0.0)
def any_time(study: Study) -> Finding:
    """Whether the C largest entries of every row are its own set, at every record."""
    least, cases = _differences(study, "gap", lambda law, run: np.minimum(law.beta, run["gamma"]))
    study.draw(TIME, r"$\min(\beta, \gamma) - \rho$", {"0": 0.0}, y_scale="symlog")
    records = sum(case.run.time.size - 1 for case in cases)
    lost = population.sizes_where(study, lambda row: row["gap"] <= 0)
    reason = (
        f"along the flow, {records} records up to time {LONG:g}, own entries are above the others "
        f"at every time above 0; the least difference is {least:.1e}"
        if not lost
        else f"an entry of another set is among the C largest at D={lost}"
    )
    starts = [(case.parameters.beta, *case.run.states[0][1:]) for case in cases]
    start = float(min(least, *(min(beta, gamma) - rho for beta, gamma, rho in starts)))
    study.literal = Finding(
        start > 0, "least min(beta, gamma) - rho, time 0 included", start, 0.0,
        "at time 0 all entries off the diagonal are 0: the C largest are not determined",
        relation=">",
    )  # fmt: skip
    return study.conclude(least, reason, parameters={"time": LONG})


@measures("least gamma - rho", ">=", 0.0)
def gamma_above_rho(study: Study) -> Finding:
    """Whether gamma stays above rho, which are equal at the start."""
    least, _ = _differences(study, "gap", lambda law, run: run["gamma"])
    study.draw(TIME, r"$\gamma - \rho$", {"0": 0.0}, y_scale="symlog")
    at = min(study.rows, key=lambda row: float(row["gap"]))
    reason = (
        f"gamma - rho is 0 at the start and {least:.2e} at its least afterwards (D={at['D']}, time "
        f"{at['time']:.3g}), along the flow up to time {LONG:g}"
    )
    return study.conclude(
        min(least, 0.0) if least > 0 else least, reason, parameters={"time": LONG}
    )


@measures("least rate of alpha up to T0", ">", 0.0)
def lemma_d_2(study: Study) -> Finding:
    """Whether alpha rises up to T0, and how far."""
    for case in population.regime(study, population.HORIZON):
        run, event = case.run, case.run.events["T0"]
        if not event:
            study.row(population.sizes_of(case.parameters), T0=None, rate=float("nan"))
            continue
        inside = run.time <= event.time
        states = [*run.states[inside], event.state]
        rates = np.array([-case.problem.gradient(state)[0] for state in states])
        study.row(
            population.sizes_of(case.parameters), T0=event.time, rate=float(rates.min()),
            start=float(run.states[0][0]), threshold=float(event.state[0]),
        )  # fmt: skip
        study.curve(f"$D={case.parameters.D}$", run.time[inside][1:], rates[:-1][1:])
    study.draw(TIME, r"rate of $\alpha$", {"0": 0.0}, y_scale="symlog")
    least = float(np.min(study.column("rate")))
    missing = population.sizes_where(study, lambda row: row["T0"] is None)
    if missing:
        reason = f"attention never takes over the growth of the signal at D={missing}: no T0"
    else:
        ends = study.words("{start:.2g} to {threshold:.2g} (D={D}, T0={T0:.2g})")
        reason = (
            f"alpha rises from {ends}; T0 is the first time at which log G grows as fast as log "
            "alpha, so that while G grows alpha can fall before it at the start alone; the "
            "threshold is alpha at T0, the paper's is not known"
        )
    return study.conclude(least, reason, parameters={"time": population.HORIZON})


@measures("least share of the later times at which alpha rises", ">=", 1.0)
def lemma_d_11(study: Study) -> Finding:
    """Whether alpha rises once gamma has passed the largest |rho| of the run.

    From record to record: on the slow manifold the gradient at an integrated state, whose error
    the fast direction magnifies, has the sign of that error.
    """
    for case in population.regime(study, LONG):
        law, run = case.parameters, case.run
        largest = float(np.abs(run["rho"]).max())
        later = np.flatnonzero(run["gamma"][:-1] > largest)
        steps, alpha = np.diff(run["alpha"]), run["alpha"][1:]
        first = float(run.time[later[0]]) if later.size else None
        rises = (steps > RESOLVED * alpha)[later]
        share = float(rises.mean()) if later.size else float("nan")
        study.row(population.sizes_of(law), first=first, share=share)
        study.curve(f"$D={law.D}$", run.time[1:], steps / np.diff(run.time))
    study.draw(TIME, r"rate of $\alpha$", {"0": 0.0}, y_scale="symlog")
    least = float(np.min(study.column("share")))
    lost = population.sizes_where(study, lambda row: row["first"] is None)
    if lost:
        reason = f"gamma does not pass the largest |rho| of a run up to time {LONG:g} at D={lost}"
        where = {"time": LONG}
        return study.conclude(float("nan"), reason, holds=None, missing="time", parameters=where)
    shares = study.words("{share:.0%} of the records from time {first:.3g} on (D={D})")
    reason = f"after gamma has passed the largest |rho| of the run, alpha rises at {shares}"
    return study.conclude(least, reason, parameters={"time": LONG})


@measures("least loss of (2) over a, over the loss at the end of the run", ">", HIGH)
def equation_2(study: Study) -> Finding:
    """The population loss with the attention of the start, at the best a in v = a w*."""
    for case in population.regime(study, LONG):
        law, problem = case.parameters, case.problem
        grid = np.geomspace(1e-3 * case.run.states[0][0], LARGEST_ALPHA, ALPHAS)
        losses = np.array(
            [problem.observables(np.array([a, 0.0, 0.0]))["risk"] for a in grid.tolist()]
        )
        finite = np.isfinite(losses)  # the spectral risk ends where its grid would be too large
        grid, losses = grid[finite], losses[finite]
        end = float(case.run["risk"][-1])
        study.row(
            population.sizes_of(law), best_a=float(grid[losses.argmin()]),
            loss=float(losses.min()), end=end, ratio=float(losses.min()) / end,
            linear=float(sign_rule_error(law.D, law.C, law.q).error),
            irreducible=float(case.run["bayes_error"][-1]), largest_a=float(grid[-1]),
            ratio_there=float(losses[-1]) / end,
        )  # fmt: skip
        study.curve(f"$D={law.D}$", grid, losses)
    study.draw("$a$", "population loss with the attention of the start")
    least = min(study.column("ratio"))
    parts = study.words("{loss:.3g} at a={best_a:.2g} against {end:.2g} (D={D})")
    errors = study.words("{linear:.3g} against {irreducible:.2g}")
    reason = (
        f"least loss over a with the attention of the start, against the end of training: {parts}; "
        f"the sign of (2) is that of Z, whose error is {errors} (irreducible)"
    )
    there = min(study.column("ratio_there"))
    study.literal = Finding(
        there > HIGH, "loss of (2) at a large a, over the loss at the end of the run", there, HIGH,
        f"a = {study.listed('largest_a')}, where every error costs its margin", relation=">",
    )  # fmt: skip
    holds = study.met(least) or (None if least > 1 else False)
    return study.conclude(least, reason, holds=holds, parameters={"time": LONG})
