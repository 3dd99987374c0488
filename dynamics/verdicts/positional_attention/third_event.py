r"""The error that can be reached and the one that training reaches, against the criterion.

With :math:`\kappa` the largest :math:`|z|/C` of a random set, the three scalars can classify every
sample iff :math:`(L-1)\,\kappa^p < 1` (`theory.papers.positional_attention.separability`). The
state that does so is tried here, and the exact reduced flow shows whether training gets there:
below 1 it reaches error zero at some q, nu and beta, and comes to rest with an error at others.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from matplotlib.axes import Axes

from dynamics.plotting import style
from dynamics.plotting.labels import logarithmic as ticks
from dynamics.system import System
from dynamics.verdicts.figure import Drawing, FigureRequest, page, state, stated
from dynamics.verdicts.findings import Finding, Undecided
from dynamics.verdicts.positional_attention.population import population_flow, sizes_of
from dynamics.verdicts.study import TIME, Case, Study, measures
from dynamics.verdicts.wording import listed
from theory.events import RISE
from theory.papers.positional_attention.data_law import ANY, MIXED, SetLaw
from theory.papers.positional_attention.separability import criterion

HORIZON = 1e6
LATE = 1e8
"""Time to which errors are looked at: one of the laws that are tried takes more than 1e6."""
FAR = 1e3
"""Distance of rho below beta at full attention, over the scale: the attention between sets is 0."""
SIZES = (
    (8, 2, 3), (10, 2, 3), (12, 2, 3), (16, 2, 3), (18, 2, 3), (20, 2, 3), (24, 2, 3),
    (9, 3, 3), (12, 3, 3), (15, 3, 3), (18, 3, 3), (15, 3, 5), (18, 3, 5),
    (12, 4, 3), (16, 4, 3), (16, 4, 5), (15, 5, 3), (20, 5, 5),
)  # fmt: skip
"""(D, C, p) of the figure, on both sides of 1."""
CHECKED = ((8, 2, 3), (9, 3, 3), (12, 3, 3), (15, 3, 3), (16, 4, 3), (20, 2, 3), (16, 4, 5))
"""Those of the claim."""
RESTING = ({"D": 12, "C": 4, "q": 0.9}, {"D": 9, "C": 3, "nu": 10.0}, {"D": 9, "C": 3, "beta": 0.3})
"""Laws below 1 at which training comes to rest with an error."""
AT_REST = 1e-3
"""Part by which the risk falls in the last decade of a run that has come to rest, at most."""
GROUPS = {
    "zero": (r"mixed, error 0", style.BLUE, "o", True),
    "late": ("mixed, below 1, error > 0: not decidable to this time", style.BLUE, "o", False),
    "positive": ("mixed, at least 1, error > 0", style.VERMILION, "s", True),
    ANY: ("any (Assumption 1), error > 0", style.GREY, "^", False),
}
"""Group of a row -> what it is called, its colour, its marker, whether that is filled."""


def measured(case: Case) -> dict[str, Any]:
    """What one flow says: the criterion of its law, the error at the end, alpha over alpha(T1).

    Parameters
    ----------
    case : Case
        With the flow.
    """
    law, run = case.parameters, case.run
    first, third = run.events["T1"], run.events["event_III"]
    earlier = np.interp(run.time[-1] / 10, run.time, run["risk"])
    return {
        "random_sets": law.random_sets,
        "criterion": criterion(law.set_law, law.L, law.p),
        "error": float(run.observables.get("error", [np.nan])[-1]),
        "alpha": float(run["alpha"][-1]),
        "fall_of_risk": float(1 - run["risk"][-1] / earlier),
        "T1": first.time if first else None,
        "event_III": third.time if third else None,
        "ratio": float(run["alpha"][-1] / first.state[0]),
        "reason": third.reason,
    }


def require_mixed(parameters: Any) -> None:
    """Refuse a law that the claim is not about.

    Parameters
    ----------
    parameters : Parameters
    """
    if parameters.random_sets != MIXED:
        raise Undecided("the claim is of random_sets=mixed", "law")
    if parameters.q == 1:
        raise Undecided("without zeros (q=1) the worst random set is another one", "law")


@measures(
    "largest criterion at which full attention classifies every sample", "<", 1.0, require_mixed
)
def zero_error(study: Study) -> Finding:
    """Error at full attention, which the claim is about, and the error that training ends with."""
    sizes: list[dict[str, Any]] = [{"D": D, "C": C, "p": p} for D, C, p in CHECKED]
    for law in study.laws(*({**size, "random_sets": MIXED} for size in (*sizes, *RESTING))):
        case = population_flow(study.system, law, LATE)
        values = measured(case)
        if np.isnan(values["error"]):
            raise Undecided("the expectation has no error at this size: it is not a sum over all")
        values["least_error"] = least_error(case, values["criterion"])
        study.row(sizes_of(law), **values)
        positive = case.run["error"] > 0
        label = f"${_named(sizes_of(law))}$: {values['criterion']:.3f}"
        study.curve(label, case.run.time[positive], case.run["error"][positive])
    study.draw(TIME, r"error $> 0$ at $(D, C, p, q, \nu, \beta)$: criterion")
    right = [row for row in study.rows if row["least_error"] == 0]
    wrong = [row for row in study.rows if row["least_error"] > 0]
    parts = []
    if right:
        criteria = listed(sorted({row["criterion"] for row in right}))
        parts.append(f"full attention classifies every sample at criteria {criteria}")
    if wrong:
        least = min(row["least_error"] for row in wrong)
        criteria = listed(sorted({row["criterion"] for row in wrong}))
        parts.append(
            f"at criteria {criteria} full attention and the trained state have errors of at least "
            f"{least:.1e}"
        )
    below = [row for row in study.rows if row["criterion"] < 1]
    if below:
        ends = ", ".join(f"{_named(row)}: {_end(row)}" for row in below)
        parts.append(f"the error of training at time {LATE:g}, at (D, C, p, q, nu, beta) = {ends}")
    holds = all((row["least_error"] == 0) == (row["criterion"] < 1) for row in study.rows)
    value = max((row["criterion"] for row in right), default=float("nan"))
    if not right:  # the other direction alone
        study.quantity, study.relation = "least criterion of a law without such a state", ">="
        value = min(row["criterion"] for row in wrong)
    return study.conclude(value, "; ".join(parts), holds=holds, parameters={"time": LATE})


def least_error(case: Case, number: float) -> float:
    """Least error of full attention, with alpha large enough, and of the end of training.

    Parameters
    ----------
    case : Case
        With the flow.
    number : float
        The criterion of its law.
    """
    law = case.parameters
    # The part of degree p of F exceeds the linear one at the worst sample from here on.
    needed = 2 * law.nu * law.L / max(1 - number, 1e-6)
    alpha = (1 + needed) ** (1 / (law.p - 1)) / law.D
    full = np.array([alpha, law.beta, law.beta - FAR / law.scale])
    error = float(case.problem.observables(full)["error"])
    return min(error, float(case.run["error"][-1]))


def _end(row: Mapping[str, Any]) -> str:
    """The error at the end of training, and whether an error is that of a run at rest."""
    if row["error"] == 0:
        return "0"
    return f"{row['error']:.1e}, {'at rest' if abs(row['fall_of_risk']) < AT_REST else 'falling'}"


def _named(row: Mapping[str, Any]) -> str:
    """The law of a row, in numbers."""
    return f"({', '.join(f'{row[name]:g}' for name in ('D', 'C', 'p', 'q', 'nu', 'beta'))})"


def event_III(system: System, request: FigureRequest) -> Drawing:  # noqa: N802 (its letter)
    """Event III: alpha at the horizon over alpha(T1), against the criterion of mixed sets.

    Both laws at the same sizes. Option: ``time``. ``data``: ``rows``, each with the sizes, the law,
    the criterion of mixed random sets, error, T1, event_III, ratio, reason and group; ``time``.

    Parameters
    ----------
    system : System
    request : FigureRequest
    """
    time = request.options({"time": HORIZON}, {"time": 100 * HORIZON})["time"]
    law = request.make_parameters(system, ("D", "C", "p", "random_sets", "d", "sigma", "alpha0"))
    rows = []
    for D, C, p in SIZES:
        sizes = {"D": D, "C": C, "p": p, "d": None, "sigma": None, "alpha0": None}
        number = criterion(SetLaw(C, law.q, MIXED), D // C, p)
        for random_sets in (MIXED, ANY):
            parameters = replace(law, **sizes, random_sets=random_sets)
            values = measured(population_flow(system, parameters, time)) | {"criterion": number}
            rows.append(sizes_of(parameters) | values | {"group": _group(values)})
    counts = {name: sum(row["group"] == name for row in rows) for name in GROUPS}
    caption = (
        f"Event III against its criterion ({stated(law, 'q', 'nu', 'beta')}, {len(SIZES)} sizes "
        f"(D, C, p), exact reduced flow to time {time:g}). With mixed random sets some state "
        f"classifies every sample iff (L-1)(1-1/C)^p < 1. Training reaches error 0 at "
        f"{counts['zero']} of the sizes below 1; whether it does at the other {counts['late']}, "
        "which have an error at the horizon, is not decidable to this time. "
        f"{counts['positive']} sizes are at least 1, where the error stays positive and alpha "
        "bounded. "
        f"Above the dashed line, {1 + RISE:g}, Event III counts. Triangles: the same sizes under "
        "Assumption 1, where a random set can be all of one sign; its criterion is L-1, never "
        "below 1."
    )
    axes = state(_picture(rows, time), system, law, "q", "nu", "beta", time=time)
    return Drawing(axes, {"rows": rows, "time": time}, caption)


def _group(values: Mapping[str, Any]) -> str:
    if values["random_sets"] == ANY:
        return ANY
    if values["error"] == 0:
        return "zero"
    return "late" if values["criterion"] < 1 else "positive"


def _picture(rows: Sequence[Mapping[str, Any]], time: float) -> Axes:
    """The ratio against the criterion, both laws, with the lines that decide."""
    with page(6.4, 4.6) as (figure, panel):
        for name, (label, colour, marker, filled) in GROUPS.items():
            part = [row for row in rows if row["group"] == name]
            panel.plot(
                [row["criterion"] for row in part], [row["ratio"] for row in part], ls="",
                marker=marker, color=colour, mfc=colour if filled else "white", label=label,
            )  # fmt: skip
        for row in rows:
            if row["random_sets"] == MIXED and np.isfinite(row["ratio"]):
                right = row["criterion"] >= 1
                panel.annotate(
                    f"{row['D']},{row['C']},{row['p']}", (row["criterion"], row["ratio"]),
                    (5, -7) if right else (0, 5), textcoords="offset points",
                    ha="left" if right else "center", fontsize=6.5,
                )  # fmt: skip
        panel.axvline(1.0, color="black", lw=0.8, zorder=0)
        panel.axhline(1 + RISE, color=style.GREY, lw=0.8, ls="--", zorder=0)
        panel.annotate(
            f"{1 + RISE:g}: Event III above", (0.01, 1 + RISE), (0, 3), fontsize=8,
            xycoords=("axes fraction", "data"), textcoords="offset points", color=style.GREY,
        )  # fmt: skip
        panel.set_xscale("log")
        panel.set_xlim(right=1.25 * max(row["criterion"] for row in rows))
        ticks(panel.xaxis, 5.0)
        style.logarithmic(panel)
        panel.set(
            xlabel=r"criterion $(L-1)(1-1/C)^p$, beside each point $D, C, p$",
            ylabel=rf"$\alpha(\tau = {_power(time)})\ /\ \alpha(T_1)$",
        )
        handles, labels = panel.get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside lower center", ncols=2, fontsize=8)
    return panel


def _power(number: float) -> str:
    """A number as a power of ten, in LaTeX."""
    return f"10^{{{np.log10(number):.3g}}}"
