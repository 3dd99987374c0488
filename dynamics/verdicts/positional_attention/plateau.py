r"""Where training ends, predicted at the plateau of Event I, and when attention is learned.

At the plateau the exact sign of the rate of gamma - rho is known
(`theory.papers.positional_attention.plateau`). A flow ends with association where gamma is
above rho, and without where it is below: gamma falls like -ln(time) then, while rho comes to rest.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from math import isfinite
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from dynamics.plotting import style
from dynamics.results.trajectory import Trajectory
from dynamics.system import System
from dynamics.training.flow import flow
from dynamics.verdicts.claim import TIME, Case, Picture, claim, flow_to, named_values
from dynamics.verdicts.figure import Drawing, FigureRequest, page, state, stated
from dynamics.verdicts.findings import Finding, Undecided
from dynamics.verdicts.positional_attention.grid import SHOWN
from dynamics.verdicts.wording import points
from theory.papers.positional_attention.data_law import ANY, MIXED
from theory.papers.positional_attention.plateau import Plateau

END = 1e7
"""Time at the end of a flow."""
APART = 1.0
"""Distance of gamma and rho, over the scale, from which on a flow has ended with one of them on
top: the attention differs by a factor e."""
ENOUGH = 0.95
"""Share of the cases that are to end as predicted."""
CASES = tuple(
    {"D": D, "C": C, "q": q, "beta": beta, "random_sets": random_sets}
    for (D, C, random_sets), q, beta in product(
        ((9, 3, MIXED), (12, 3, ANY), (16, 4, ANY)), (0.45, 0.65, 0.85), (0.3, 2.0)
    )
)
FAMILIES = (
    (10, 2, ANY), (15, 3, ANY), (20, 4, ANY), (25, 5, ANY), (40, 4, ANY), (18, 3, MIXED),
    (20, 4, MIXED),
)  # fmt: skip
CHANCES, DIAGONALS, LINEAR = (
    (0.55, 0.65, 0.75, 0.85, 0.95),
    (0.5, 1.5, 2.5, 3.5),
    (1e-4, 1e-3, 1e-2),
)
"""q, beta and nu of the thorough protocol; nu changes along both."""
MORE = tuple(
    {"D": D, "C": C, "random_sets": law, "q": q, "beta": beta, "nu": LINEAR[(i + j) % 3]}
    for D, C, law in FAMILIES
    for (i, q), (j, beta) in product(enumerate(CHANCES), enumerate(DIAGONALS))
)


def plateau_of(parameters: Any) -> Plateau:
    """The plateau of Event I at parameters of the system.

    Parameters
    ----------
    parameters : Parameters
    """
    one = parameters
    return Plateau(one.D, one.set_law, one.p, one.nu, one.beta, one.scale)


def prediction(parameters: Any) -> dict[str, float]:
    """The value of alpha at the plateau, and the rate of gamma - rho; NaN without a plateau.

    Parameters
    ----------
    parameters : Parameters
    """
    plateau = plateau_of(parameters)
    alpha = plateau.alpha(parameters.nu ** (1 / (parameters.p - 1)))
    return {"alpha": alpha, "lead": plateau.lead(alpha) if isfinite(alpha) else np.nan}


def ending(run: Trajectory) -> dict[str, Any]:
    """Whether a flow ends with association, None where it is open, and gamma and rho there.

    Parameters
    ----------
    run : Trajectory
    """
    gap = (run["gamma"] - run["rho"]) * run.parameters["scale"]
    earlier = float(np.interp(run.time[-1] / 10, run.time, gap))
    apart = abs(gap[-1]) > APART and gap[-1] * earlier > 0
    return {
        "gamma": float(run["gamma"][-1]), "rho": float(run["rho"][-1]),
        "associated": bool(gap[-1] > 0) if apart else None,
    }  # fmt: skip


def positive_diagonal(parameters: Any) -> None:
    """Refuse a diagonal at which Definition 2.2 fails or A does not move."""
    if parameters.beta <= 0:
        raise Undecided("at beta <= 0 a patch is not among its own C largest, or A rests", "law")


def _misses(rows: list[dict[str, Any]], finding: Finding) -> Finding:
    """The finding with every case that ends otherwise, and the first run for its stability."""
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
    """Whether a flow ends as the sign of the rate of gamma - rho at the plateau says."""
    run, row = case.run, {**prediction(case.parameters), **ending(case.run)}
    if not isfinite(row["lead"]):
        raise Undecided("every sample is right at the attention of the start: no plateau", "law")
    if row["associated"] is None:
        raise Undecided(f"gamma={row['gamma']:.3g}, rho={row['rho']:.3g} still approach", "time")
    gap = run["gamma"] - run["rho"]
    right = row["associated"] == (row["lead"] > 0)
    return {"value": float(right), **row, "curves": {case.label: (run.time[1:], gap[1:])}}


ENDS = {
    True: ("ends with association", style.BLUE, "o", True),
    False: ("ends without association", style.VERMILION, "s", True),
    None: ("open at the end", style.GREY, "D", False),
}
"""How a flow ends -> what it is called, its colour, its marker, whether that is filled."""
FINE = 40
"""Points along each side at which the sign at the plateau is computed."""


def association_ends(system: System, request: FigureRequest) -> Drawing:
    """Ends of flows over (q, beta) at several sizes, with the line of the sign at the plateau.

    Options: ``D``, ``C`` (one for each panel), ``chances``, ``diagonals``, ``time``. ``data``:
    ``rows``, each with the parameters, alpha and lead at the plateau, gamma and rho at the end and
    whether that is association; ``counts``, over D: flows, those that end otherwise, and those
    that are open; ``time``.

    Parameters
    ----------
    system : System
    request : FigureRequest
    """
    options = request.options(
        {
            "D": (12, 16, 24, 32), "C": (3, 4, 3, 4), "time": END,
            "chances": (0.45, 0.55, 0.65, 0.75, 0.85, 0.95), "diagonals": (0.4, 1.0, 1.8, 2.6, 3.4),
        },
        {
            "D": (12, 16, 32, 64), "C": (3, 4, 4, 4),
            "chances": tuple(np.linspace(0.4, 0.98, 13).round(3)),
            "diagonals": tuple(np.linspace(0.3, 3.9, 10).round(3)),
        },
    )  # fmt: skip
    base = request.make_parameters(system, ("D", "C", "q", "beta", "d", "sigma"))
    sizes = list(zip(options["D"], options["C"], strict=True))
    laws = {
        size: replace(base, D=size[0], C=size[1], d=None, sigma=None) for size in sizes
    }  # fmt: skip
    rows = []
    for law in laws.values():
        for q, beta in product(options["chances"], options["diagonals"]):
            one = replace(law, q=q, beta=beta)
            run = flow(system.ReducedPopulation(one), options["time"])
            rows.append(named_values(one, SHOWN) | prediction(one) | ending(run))
    counts = {f"D={D}, C={C}": _count(rows, D, C) for D, C in sizes}
    told = "; ".join(
        f"{name}: {each['otherwise']} of {each['flows']}, {each['open']} open"
        for name, each in counts.items()
    )
    caption = (
        f"Where training ends, over q and beta ({stated(base, 'p', 'nu')}, random_sets="
        f"{base.random_sets}; exact reduced flows to time {options['time']:g}). A flow ends with "
        "association where gamma is above rho, and without where gamma falls like -ln(time). The "
        "line is where gamma and rho grow equally fast at the plateau of Event I; below it gamma "
        f"is faster. Flows that end on the other side of it: {told}."
    )
    data = {"rows": rows, "counts": counts, "time": options["time"]}
    axes = _ends_picture(rows, laws, options)
    return Drawing(state(axes, system, base, "p", "nu", time=options["time"]), data, caption)


def _count(rows: Sequence[Mapping[str, Any]], D: int, C: int) -> dict[str, int]:
    """Flows of a size, those that end otherwise than predicted, and those that are open."""
    own = [row for row in rows if (row["D"], row["C"]) == (D, C)]
    decided = [row for row in own if row["associated"] is not None]
    wrong = [row for row in decided if row["associated"] != (row["lead"] > 0)]
    return {"flows": len(own), "otherwise": len(wrong), "open": len(own) - len(decided)}


def _ends_picture(
    rows: Sequence[Mapping[str, Any]], laws: Mapping[Any, Any], options: Mapping[str, Any]
) -> Any:
    """A panel for each size: ends as marks, the line of the plateau."""
    columns = min(2, len(laws))
    lines = -(-len(laws) // columns)
    look: dict[str, Any] = {"sharex": True, "sharey": True, "squeeze": False}
    with page(6.4, 0.7 + 2.5 * lines, nrows=lines, ncols=columns, **look) as (figure, axes):
        for panel, (size, law) in zip(axes.flat, laws.items(), strict=False):
            for end, (label, colour, mark, filled) in ENDS.items():
                part = [r for r in rows if (r["D"], r["C"]) == size and r["associated"] is end]
                panel.plot(
                    [row["beta"] for row in part], [row["q"] for row in part], ls="", marker=mark,
                    color=colour, mfc=colour if filled else "white", ms=5, label=label,
                )  # fmt: skip
            _plateau_line(panel, law, options)
            panel.set_title(f"$D={size[0]}$, $C={size[1]}$")
        for panel in axes[-1]:
            panel.set_xlabel(r"diagonal of $A$, $\beta$")
        for panel in axes[:, 0]:
            panel.set_ylabel("chance of a feature, $q$")
        handles = style.labelled(*axes.flat)
        line = Line2D(
            [], [], color="black", label=r"$\dot\gamma=\dot\rho$ at the plateau of Event I"
        )
        style.legend_below(figure, [*handles.values(), line], 2)
    return axes


def _plateau_line(panel: Axes, law: Any, options: Mapping[str, Any]) -> None:
    """The contour at 0 of the sign at the plateau, over the ranges of the marks."""
    chances, diagonals = (np.array(options[name]) for name in ("chances", "diagonals"))
    q = np.linspace(chances.min() - 0.05, min(1.0, chances.max() + 0.05), FINE)
    beta = np.linspace(diagonals.min() * 0.75, diagonals.max() * 1.05, FINE)
    tilts = np.empty((FINE, FINE))
    for i, j in np.ndindex(tilts.shape):
        plateau = plateau_of(replace(law, q=float(q[i]), beta=float(beta[j])))
        tilts[i, j] = plateau.tilt(plateau.alpha(law.nu ** (1 / (law.p - 1))))
    panel.contour(beta, q, tilts, levels=[0.0], colors="black", linewidths=1.2)
