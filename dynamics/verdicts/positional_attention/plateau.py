r"""Ends of training, predicted at the plateau of Event I.

At the plateau the exact sign of the rate of gamma - rho is known
(`theory.papers.positional_attention.plateau`). A flow ends with association if gamma is above rho.
If gamma is below rho, it ends without association; gamma falls like -ln(time), and rho converges.
"""

from __future__ import annotations

from dataclasses import replace
from itertools import product
from math import isfinite
from typing import Any

import numpy as np

from dynamics.results.trajectory import Trajectory
from dynamics.verdicts.cases import Case, flow_to
from dynamics.verdicts.claim import TIME, Picture, claim
from dynamics.verdicts.findings import Finding, Undecided
from dynamics.verdicts.positional_attention.grid import SHOWN
from dynamics.verdicts.wording import points
from theory.papers.positional_attention.data_law import ANY, MIXED
from theory.papers.positional_attention.plateau import Plateau

END = 1e7
"""Final time of a flow."""
APART = 1.0
"""Minimum final |gamma - rho| times the softmax scale at which a flow's end counts as decided."""
ENOUGH = 0.95
"""Minimum share of cases that end as predicted, if the claim holds."""
SIZES = ((9, 3, MIXED), (12, 3, ANY), (16, 4, ANY))
CASES = tuple(
    {"D": D, "C": C, "q": q, "beta": beta, "random_sets": law}
    for (D, C, law), q, beta in product(SIZES, (0.45, 0.65, 0.85), (0.3, 2.0))
)
FAMILIES = (
    (10, 2, ANY), (15, 3, ANY), (20, 4, ANY), (25, 5, ANY), (40, 4, ANY), (18, 3, MIXED),
    (20, 4, MIXED),
)  # fmt: skip
CHANCES, DIAGONALS = (0.55, 0.65, 0.75, 0.85, 0.95), (0.5, 1.5, 2.5, 3.5)
LINEAR = (1e-4, 1e-3, 1e-2)
"""Values of nu in the thorough protocol; each occurs with all q and all beta."""
MORE = tuple(
    {"D": D, "C": C, "random_sets": law, "q": q, "beta": beta, "nu": LINEAR[(i + j) % 3]}
    for D, C, law in FAMILIES
    for (i, q), (j, beta) in product(enumerate(CHANCES), enumerate(DIAGONALS))
)


def plateau_of(parameters: Any) -> Plateau:
    """Plateau of Event I for the parameters of a law."""
    return Plateau(*(getattr(parameters, n) for n in ("D", "set_law", "p", "nu", "beta", "scale")))


def prediction(parameters: Any) -> dict[str, float]:
    """Alpha, and rate of gamma - rho, at the plateau; both are not finite without a plateau."""
    plateau = plateau_of(parameters)
    alpha = plateau.alpha(parameters.nu ** (1 / (parameters.p - 1)))
    return {"alpha": alpha, "lead": plateau.lead(alpha) if isfinite(alpha) else np.nan}


def ending(run: Trajectory) -> dict[str, Any]:
    """Final gamma and rho of a flow, and whether it associates (None if open)."""
    gap = (run["gamma"] - run["rho"]) * run.parameters["scale"]
    earlier = float(np.interp(run.time[-1] / 10, run.time, gap))
    apart = abs(gap[-1]) > APART and gap[-1] * earlier > 0
    return {
        "gamma": float(run["gamma"][-1]), "rho": float(run["rho"][-1]),
        "associated": bool(gap[-1] > 0) if apart else None,
    }  # fmt: skip


def positive_diagonal(parameters: Any) -> None:
    """Raise Undecided unless the diagonal beta is positive."""
    if parameters.beta <= 0:
        raise Undecided(
            "at beta <= 0 a patch is not among its own C largest, or A does not move", "law"
        )


def _misses(rows: list[dict[str, Any]], finding: Finding) -> Finding:
    """List in a finding the cases that miss the prediction; leave one run to measure stability."""
    wrong = [row for row in rows if row["holds"] is False]
    names = (*SHOWN, "random_sets", "lead")
    listed = points([{name: row[name] for name in names} for row in wrong]) or "none"
    reason = f"{finding.reason}; misses: {listed}"
    return replace(finding, reason=reason, trained=finding.trained[:1])


@claim(
    "Association", "share of the flows that end as the sign at the plateau says", ">=", ENOUGH,
    laws=CASES, thorough=MORE, run=flow_to(END), require=positive_diagonal, share=True,
    shown=(*SHOWN, "random_sets"), conclude=_misses,
    words="rate of gamma - rho {lead:.1e} at alpha={alpha:.3g}, end gamma={gamma:.3g}, "
    "rho={rho:.3g}",
    picture=Picture(TIME, r"$\gamma - \rho$", {"0": 0.0}, ("log", "symlog")),
)  # fmt: skip
def association(case: Case) -> dict[str, Any]:
    """Whether the flow ends as the sign of the rate of gamma - rho at the plateau predicts."""
    run, row = case.run, {**prediction(case.parameters), **ending(case.run)}
    if not isfinite(row["lead"]):
        raise Undecided("no plateau: every sample is classified correctly at the start", "law")
    if row["associated"] is None:
        raise Undecided(
            f"gamma={row['gamma']:.3g}, rho={row['rho']:.3g} still approach each other", "time"
        )
    gap = run["gamma"] - run["rho"]
    right = row["associated"] == (row["lead"] > 0)
    return {"value": float(right), **row, "curves": {case.label: (run.time[1:], gap[1:])}}
