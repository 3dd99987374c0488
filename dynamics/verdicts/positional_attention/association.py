r"""Section 4.1 around its lemmas: association at any time, and how alpha moves.

All of it is measured along the gradient flow of the reduced problem, from which gradient descent
differs by the step size. Lemma D.2 is as Section 4.1 cites it.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dynamics.verdicts.claim import TIME, Case, Literal, Picture, flow_to
from dynamics.verdicts.findings import Undecided
from dynamics.verdicts.positional_attention.grid import GRID, REGIME, THOROUGH, along, claim
from theory.papers.positional_attention.linear_rules import sign_rule_error

LONG = 1e6
LARGEST_ALPHA, ALPHAS = 1e2, 400
"""Grid of a in v = a w*, logarithmic from a thousandth of the start's alpha on."""
HIGH = 2.0
"""Loss of the predictor (2), in units of that at the end of training, that counts as high."""
ACROSS = {"laws": GRID, "thorough": THOROUGH, "in_part": True, "run": flow_to(LONG)}


@claim(
    "Section 4.1, any time", "least min(beta, gamma) - rho at times above 0", ">", 0.0, **ACROSS,
    literal=Literal(
        "start", ">", 0.0, "least min(beta, gamma) - rho, time 0 included",
        "at time 0 all entries off the diagonal are 0: the C largest are not determined",
    ),
    words="at its least {value:.1e}, time {time:.3g}",
    picture=Picture(TIME, r"$\min(\beta, \gamma) - \rho$", {"0": 0.0}, ("log", "symlog")),
)  # fmt: skip
def any_time(case: Case) -> dict[str, Any]:
    """Whether the C largest entries of every row are its own set, at every record."""
    beta, run = case.parameters.beta, case.run
    gap = np.minimum(beta, run["gamma"]) - run["rho"]
    at = 1 + int(gap[1:].argmin())
    return {"value": gap[at], "time": run.time[at], "start": gap.min(), **along(case, gap)}


@claim(
    "Section 4.1, gamma and rho", "least gamma - rho", ">=", 0.0, **ACROSS,
    words="at its least {value:.2e}, time {time:.3g}",
    picture=Picture(TIME, r"$\gamma - \rho$", {"0": 0.0}, ("log", "symlog")),
)  # fmt: skip
def gamma_above_rho(case: Case) -> dict[str, Any]:
    """Whether gamma stays above rho, which are equal at the start."""
    gap = case.run["gamma"] - case.run["rho"]
    return {"value": gap.min(), "time": case.run.time[int(gap.argmin())], **along(case, gap)}


@claim(
    "Lemma D.2", "least rate of alpha up to T0", ">", 0.0, laws=REGIME, run=flow_to(LONG),
    words="alpha rises from {start:.2g} to {threshold:.2g}, T0={T0:.2g}",
    picture=Picture(TIME, r"rate of $\alpha$", {"0": 0.0}, ("log", "symlog")),
)  # fmt: skip
def lemma_d_2(case: Case) -> dict[str, Any]:
    """Whether alpha rises up to T0, and how far; the threshold is alpha at T0."""
    run, event = case.run, case.run.events["T0"]
    if not event:
        raise Undecided("attention never takes over the growth of the signal: no T0", "time")
    inside = run.time <= event.time
    states = [*run.states[inside], event.state]
    rates = np.array([-case.problem.gradient(state)[0] for state in states])
    return {
        "value": rates.min(), "T0": event.time, "start": run.states[0][0],
        "threshold": event.state[0], **along(case, rates[:-1], inside),
    }  # fmt: skip


@claim(
    "Equation (2)", "least loss of (2) over a, over the loss at the end of the run", ">", HIGH,
    laws=REGIME, run=flow_to(LONG),
    words="{loss:.3g} at a={best_a:.2g} against {end:.2g}; the sign of (2) is that of Z, whose "
    "error is {linear:.3g} against {irreducible:.2g}",
    literal=Literal("large", ">", HIGH, "loss of (2) at a large a, over the loss at the end",
                    "a = {largest_a:.3g}, where every error costs its margin"),
    picture=Picture("$a$", "population loss with the attention of the start"),
)  # fmt: skip
def equation_2(case: Case) -> dict[str, Any]:
    """The population loss with the attention of the start, at the best a in v = a w*."""
    law, problem = case.parameters, case.problem
    grid = np.geomspace(1e-3 * case.run.states[0][0], LARGEST_ALPHA, ALPHAS)
    losses = np.array([problem.observables(np.array([a, 0.0, 0.0]))["risk"] for a in grid.tolist()])
    finite = np.isfinite(losses)  # the spectral risk ends where its grid would be too large
    grid, losses, end = grid[finite], losses[finite], float(case.run["risk"][-1])
    row = (
        {"value": losses.min() / end}
        if losses.min() > end
        else {"value": losses.min() / end, "holds": False}
    )
    return row | {
        "open": "size", "loss": losses.min(), "best_a": grid[losses.argmin()], "end": end,
        "linear": float(sign_rule_error(law.D, law.C, law.q).error),
        "irreducible": float(case.run["bayes_error"][-1]), "largest_a": grid[-1],
        "large": losses[-1] / end, "curves": {case.label: (grid, losses)},
    }  # fmt: skip
