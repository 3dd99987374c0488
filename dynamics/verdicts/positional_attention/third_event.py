r"""States without error, and alpha after T1.

With :math:`\kappa` the largest :math:`|z|/C` of a random set, the three scalars can classify every
sample iff :math:`(L-1)\,\kappa^p < 1` (`theory.papers.positional_attention.separability`): full
attention is tried on both sides. Whether training gets there is another matter
(`dynamics.verdicts.positional_attention.plateau`).

Event III is alpha that grows again after T1. T1 is read in two ways: half of the attention is
inside the own set, which the diagonal alone has from the start on at large beta, or gamma exceeds
the largest abs(rho) of the run, as the paper puts it.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from matplotlib.lines import Line2D

from dynamics.plotting import style
from dynamics.results.trajectory import Trajectory
from dynamics.system import System
from dynamics.training.flow import flow
from dynamics.verdicts.claim import Also, Case, claim, named_values
from dynamics.verdicts.figure import Drawing, FigureRequest, page, state, stated
from dynamics.verdicts.findings import Undecided
from dynamics.verdicts.positional_attention.grid import SHOWN
from theory.events import RISE
from theory.papers.positional_attention.data_law import MIXED
from theory.papers.positional_attention.separability import criterion

HORIZON = 1e6
FAR = 1e3
"""Distance of rho below beta at full attention, over the scale: the attention between sets is 0."""
CHECKED = ((8, 2, 3), (9, 3, 3), (12, 3, 3), (15, 3, 3), (16, 4, 3), (20, 2, 3), (16, 4, 5))
"""(D, C, p) on both sides of 1."""
READINGS = {
    "T1": "$T_1$: half of the attention\nis inside the own set",
    "T1_paper": r"$T_1$: $\gamma$ exceeds the largest $|\rho|$" "\nof the run",
}
"""Event -> how it is read."""
LOOKS = ((style.BLUE, "o"), (style.VERMILION, "s"), (style.GREEN, "^"), (style.PURPLE, "D"))
"""Colour and marker of each size."""


def mixed_with_zeros(parameters: Any) -> None:
    """Refuse a law that the claim is not about."""
    if parameters.random_sets != MIXED:
        raise Undecided("the claim assumes random_sets=mixed", "law")
    if parameters.q == 1:
        raise Undecided("without zeros (q=1) the worst random set is another one", "law")


@claim(
    "Zero error", "largest error at full attention where the criterion is below 1", "<=", 0.0,
    laws=[{"D": D, "C": C, "p": p, "random_sets": MIXED} for D, C, p in CHECKED],
    require=mixed_with_zeros, shown=SHOWN,
    also=(Also("from_1", ">", 0.0, "least error at full attention where it is at least 1"),),
    words="criterion {criterion:.3f}: error {error:.2g} at full attention",
)  # fmt: skip
def zero_error(case: Case) -> dict[str, Any]:
    """The error at full attention, with alpha large enough for the part of degree p."""
    law = case.parameters
    number = criterion(law.set_law, law.L, law.p)
    # The part of degree p of F exceeds the linear one at the worst sample from here on.
    needed = 2 * law.nu * law.L / max(1 - number, 1e-6)
    alpha = (1 + needed) ** (1 / (law.p - 1)) / law.D
    full = np.array([alpha, law.beta, law.beta - FAR / law.scale])
    measured = case.system.ReducedPopulation(law).observables(full)
    if np.isnan(error := measured.get("error", np.nan)):
        raise Undecided("the expectation has no error at this size: it is not a sum over all")
    value, from_1 = (error, 1.0) if number < 1 else (0.0, error)
    return {"value": value, "from_1": from_1, "criterion": number, "error": error}


def after_t1(run: Trajectory) -> dict[str, Any]:
    """Values of alpha at the end and at most after T1, over alpha(T1), for both readings of T1.

    Parameters
    ----------
    run : Trajectory
        NaN where T1 is not reached.
    """
    row: dict[str, Any] = {}
    for name in READINGS:
        event = run.events[name]
        row[name] = event.time if event else np.nan
        first = event.state[0] if event else np.nan
        later = run["alpha"][run.time >= row[name]] / first
        row[f"end_{name}"] = float(later[-1]) if event else np.nan
        row[f"largest_{name}"] = float(later.max(initial=1.0)) if event else np.nan
    return row


def event_III(system: System, request: FigureRequest) -> Drawing:  # noqa: N802 (its letter)
    """Event III: alpha at the end over alpha(T1), against beta, at several sizes.

    Options: ``D``, ``C`` (one for each curve), ``diagonals``, ``time``. ``data``: ``rows``, each
    with the parameters, T1 in both readings, and for each alpha at the end and its largest from T1
    on over alpha(T1); ``half_at_start``, over sizes the beta from which on half of the attention is
    inside the own set at the start; ``time``.

    Parameters
    ----------
    system : System
    request : FigureRequest
    """
    options = request.options(
        {
            "D": (12, 16, 24, 32), "C": (3, 4, 3, 4), "time": HORIZON,
            "diagonals": (0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 5.0, 6.0),
        },
        {"time": 100 * HORIZON, "diagonals": tuple(np.linspace(0.25, 6.0, 24))},
    )  # fmt: skip
    base = request.make_parameters(system, ("D", "C", "beta", "d", "sigma"), q=0.4)
    sizes, rows = list(zip(options["D"], options["C"], strict=True)), []
    for D, C in sizes:
        law = replace(base, D=D, C=C, d=None, sigma=None)
        for beta in options["diagonals"]:
            one = replace(law, beta=beta)
            run = flow(system.ReducedPopulation(one), options["time"])
            rows.append(named_values(one, SHOWN) | after_t1(run))
    start = {f"D={D}, C={C}": float(np.log(D - 2 * C + 1) / base.scale) for D, C in sizes}
    at_once = ", ".join(f"{beta:.2f} ({size})" for size, beta in start.items())
    caption = (
        f"Event III over beta ({stated(base, 'q', 'p', 'nu')}, random_sets={base.random_sets}, "
        f"exact reduced flows to time {options['time']:g}): alpha at the end over alpha(T1), and "
        "thin its largest value from T1 on. Left: T1 is the first time at which half of the "
        "attention is inside the own set; open marks: it is at the start already, on the diagonal "
        f"alone, from beta {at_once} on. Right: T1 as the paper puts it, for this horizon. Where a "
        f"mark is missing, T1 is not reached. Above the dashed line, {1 + RISE:g}, alpha has grown."
    )
    data = {"rows": rows, "half_at_start": start, "time": options["time"]}
    axes = _picture(rows, start, options["time"])
    return Drawing(state(axes, system, base, "q", "p", "nu"), data, caption)


def _picture(rows: Sequence[Mapping[str, Any]], start: Mapping[str, float], time: float) -> Any:
    """A panel for each reading of T1, a colour for each size."""
    with page(7.2, 3.6, ncols=2, sharey=True) as (figure, axes):
        for panel, (name, title) in zip(axes, READINGS.items(), strict=True):
            for (size, beta), (colour, mark) in zip(start.items(), LOOKS, strict=False):
                own = [row for row in rows if f"D={row['D']}, C={row['C']}" == size]
                x = np.array([row["beta"] for row in own])
                y, top = (
                    np.array([r[f"{kind}_{name}"] for r in own]) for kind in ("end", "largest")
                )
                panel.plot(x, y, color=colour, lw=1.2)
                panel.plot(x, top, color=colour, lw=0.8, ls=":")
                trivial = (x >= beta) & (name == "T1")
                for part, face in ((~trivial, colour), (trivial, "white")):
                    panel.plot(x[part], y[part], ls="", marker=mark, color=colour, mfc=face, ms=4.5)
            panel.axhline(1 + RISE, color=style.GREY, lw=0.8, ls="--", zorder=0)
            words = f"Event III above {1 + RISE:g}"
            style.note(panel, words, (0.02, 1 + RISE), (0, 3), ("axes fraction", "data"))
            panel.set_title(title, fontsize=9)
            panel.set_xlabel(r"diagonal of $A$, $\beta$")
        axes[0].set_ylabel(rf"$\alpha(\tau={style.number(time)})\ /\ \alpha(T_1)$")
        handles = [
            Line2D([], [], color=colour, marker=mark, ms=4.5, label=size)
            for size, (colour, mark) in zip(start, LOOKS, strict=False)
        ]
        grey: dict[str, Any] = {"color": style.GREY, "lw": 0.8}
        handles += [
            Line2D([], [], marker="o", mfc="white", label="$T_1$ by the diagonal alone", **grey),
            Line2D([], [], ls=":", label=r"largest $\alpha$ from $T_1$ on", **grey),
        ]
        style.legend_below(figure, handles, 3)
    return axes
