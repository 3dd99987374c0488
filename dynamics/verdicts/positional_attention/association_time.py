r"""How long attention takes: T1 over the number of patches and q(D - C).

Theorem 4.1 and the events speak of T = poly(d) steps over eta. At the plateau of Event I gamma -
rho grows at the rate `Plateau.lead`, which falls with D at a fixed q(D - C): like :math:`D^{-2}`
while the linear part of the activation is small, and like :math:`\nu^{-p} D^{-(p+1)}` once
:math:`\nu D^{1-1/p}` is large (`theory.papers.positional_attention.plateau`). The paper takes nu =
1/poly(d): both a fixed nu and nu = 1/D^2 are measured.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from dynamics.plotting import style
from dynamics.plotting.labels import logarithmic as ticks
from dynamics.results.power_law import PowerLaw, power_law
from dynamics.system import System
from dynamics.training.flow import flow
from dynamics.verdicts.claim import named_values
from dynamics.verdicts.figure import Drawing, FigureRequest, page, state, stated
from dynamics.verdicts.positional_attention.grid import SHOWN
from dynamics.verdicts.positional_attention.plateau import prediction

LONG = 1e10
"""Time at the end of a flow."""
COLOURS = (style.BLUE, style.VERMILION, style.GREEN, style.PURPLE, style.ORANGE)
MARKS = ("o", "s", "^", "D", "v")
"""Look of each q(D - C)."""
FIXED, FALLING = "fixed", "falling"
"""nu as given, and nu = 1/D^2."""


def t1_law(system: System, request: FigureRequest) -> Drawing:
    """T1 over D and q(D - C), at the given nu and at nu = 1/D^2, with fitted power laws.

    Options: ``D``, ``means`` (values of q(D - C)), ``time``. ``data``: ``rows``, each with the
    parameters, ``mean``, ``case`` (fixed or falling nu), T1 (NaN where it is not reached) and
    ``scale``, the inverse rate of gamma - rho at the plateau; ``laws``, case -> exponents in D and
    q(D - C) with 95 % intervals, and the standard deviation of log T1 around the law; ``time``.

    Parameters
    ----------
    system : System
    request : FigureRequest
    """
    options = request.options(
        {"D": (128, 256, 512), "means": (16.0, 28.0, 42.0), "time": LONG},
        {"D": (128, 256, 512, 1024, 2048, 4096), "means": (16.0, 21.0, 28.0, 42.0, 64.0)},
    )
    base = request.make_parameters(system, ("D", "q", "d", "sigma", "alpha0"))
    rows = []
    for case, D, mean in product((FIXED, FALLING), options["D"], options["means"]):
        nu = base.nu if case == FIXED else D**-2.0
        law = replace(
            base, D=D, q=mean / (D - base.C), nu=nu, d=None, sigma=None, alpha0=None
        )  # fmt: skip
        first = flow(system.ReducedPopulation(law), options["time"]).events["T1"]
        rows.append(
            named_values(law, SHOWN)
            | {"case": case, "mean": mean, "T1": first.time if first else np.nan}
            | {"scale": 1 / prediction(law)["lead"]}
        )
    fits = {case: _fitted(rows, case) for case in (FIXED, FALLING)}
    laws = {case: _document(fit) for case, fit in fits.items()}
    told = "; ".join(f"{_named(case, base.nu)}: {_words(laws[case])}" for case in laws)
    caption = (
        f"The law of T1, the time at which half of the attention is inside the own set "
        f"({stated(base, 'C', 'p', 'beta')}, random_sets={base.random_sets}, exact reduced flows "
        f"to time {options['time']:g}). Lines: T1 = c D^a (q(D-C))^b by least squares, with 95 % "
        f"intervals: {told}. Dotted: the inverse rate of gamma - rho at the plateau of Event I. "
        f"{sum(np.isnan(row['T1']) for row in rows)} of {len(rows)} flows do not reach T1."
    )
    data = {"rows": rows, "laws": laws, "time": options["time"]}
    axes = _picture(rows, fits, base.nu)
    return Drawing(state(axes, system, base, "C", "p", "beta"), data, caption)


def _fitted(rows: Sequence[Mapping[str, Any]], case: str) -> PowerLaw:
    """T1 as a power of D and of q(D - C)."""
    own = [row for row in rows if row["case"] == case]
    return power_law([(row["D"], row["mean"]) for row in own], [row["T1"] for row in own])


def _document(fit: PowerLaw) -> dict[str, Any]:
    return {
        "exponents": fit.exponents.tolist(), "intervals": fit.intervals.tolist(),
        "prefactor": fit.prefactor, "spread": fit.spread,
    }  # fmt: skip


def _named(case: str, nu: float) -> str:
    return f"nu={nu:g}" if case == FIXED else "nu=1/D^2"


def _words(law: Mapping[str, Any]) -> str:
    """Exponents with their intervals."""
    parts = [
        f"{name}={value:.2f} ({low:.2f} to {high:.2f})"
        for name, value, (low, high) in zip("ab", law["exponents"], law["intervals"], strict=True)
    ]
    return f"{', '.join(parts)}, spread of ln T1 {law['spread']:.2f}"


def _picture(
    rows: Sequence[Mapping[str, Any]], fits: Mapping[str, PowerLaw], nu: float
) -> Sequence[Axes]:
    """T1 over D, a panel for each nu and a colour for each q(D - C)."""
    means = list(dict.fromkeys(row["mean"] for row in rows))
    with page(7.2, 3.9, ncols=2, sharey=True) as (figure, axes):
        for panel, (case, fit) in zip(axes, fits.items(), strict=True):
            for mean, colour, mark in zip(means, COLOURS, MARKS, strict=False):
                own = [row for row in rows if row["case"] == case and row["mean"] == mean]
                D, T1, scale = (np.array([row[n] for row in own]) for n in ("D", "T1", "scale"))
                a, b = fit.exponents
                panel.plot(D, T1, ls="", marker=mark, color=colour, ms=4.5)
                panel.plot(D, fit.prefactor * D**a * mean**b, color=colour, lw=1.0)
                panel.plot(D, scale, color=colour, lw=0.8, ls=":")
            panel.set(xlabel="patches $D$", xscale="log", yscale="log")
            ticks(panel.xaxis, 5.0)
            letter = rf"$\nu={style.number(nu)}$" if case == FIXED else r"$\nu=D^{-2}$"
            low, high = fit.intervals[0]
            panel.set_title(
                rf"{letter}: $T_1 \propto D^{{{a:.2f}}}$ ({low:.2f} to {high:.2f})", fontsize=9
            )
        axes[0].set_ylabel(r"$T_1$ (time $\tau = \eta \times$ steps)")
        handles = [
            Line2D([], [], color=colour, marker=mark, ms=4.5, label=f"$q(D-C)={mean:g}$")
            for mean, colour, mark in zip(means, COLOURS, MARKS, strict=False)
        ]
        rate = r"$1/(\dot\gamma-\dot\rho)$ at the plateau"
        handles.append(Line2D([], [], color=style.GREY, ls=":", lw=0.8, label=rate))
        style.legend_below(figure, handles, 3)
    return list(axes)
