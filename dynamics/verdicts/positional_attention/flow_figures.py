r"""Figures of exact reduced flows over grids of laws.

- ``association_ends`` shows ends of training over (q, beta), with the sign of the rate of gamma -
  rho at the plateau of Event I.
- ``event_III`` shows alpha after event T1, for two definitions of T1. Here T1 is the time at which
  half of the attention is inside the own set; at large beta the diagonal of A suffices for this.
  The paper's T1 is the time at which gamma exceeds the largest abs(rho) of the run.
- ``T1`` shows the time at which half of the attention is inside the own set,
  against D; Theorem 4.1 and the events claim T = poly(d)/eta steps.

At the plateau of Event I gamma - rho grows at the rate `Plateau.lead`
(`theory.papers.positional_attention.plateau`). At fixed q(D - C) this rate falls with D, like
:math:`D^{-2}` while the linear part of the activation is small, and like :math:`\nu^{-p}
D^{-(p+1)}` once :math:`\nu D^{1-1/p}` is large. The paper takes nu = 1/poly(d), so both a fixed nu
and nu = 1/D^2 are measured.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from itertools import product
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from dynamics.plotting import style
from dynamics.plotting.labels import logarithmic as ticks
from dynamics.results.power_law import PowerLaw, power_law
from dynamics.results.trajectory import Trajectory
from dynamics.system import System
from dynamics.training.flow import flow
from dynamics.verdicts.cases import named_values
from dynamics.verdicts.figure import Drawing, FigureRequest, page, state, stated
from dynamics.verdicts.positional_attention.grid import SHOWN
from dynamics.verdicts.positional_attention.plateau import END, ending, plateau_of, prediction
from theory.events import RISE

LATE, LATEST = 1e6, 1e10
"""Final time of a flow in the figure ``event_III`` (first) and in the figure ``T1`` (second)."""
LOOKS = (
    (style.BLUE, "o"), (style.VERMILION, "s"), (style.GREEN, "^"), (style.PURPLE, "D"),
    (style.ORANGE, "v"),
)  # fmt: skip
"""Colour and marker for successive sizes, or for successive values of q(D - C)."""
ENDS = {
    True: ("ends with association", style.BLUE, "o", style.BLUE),
    False: ("ends without association", style.VERMILION, "s", style.VERMILION),
    None: ("open at the end", style.GREY, "D", "white"),
}
"""Whether a flow ends with association (None if open) -> label, colour, marker and its fill."""
FINE = 40
"""Points along each side of the grid (q, beta) on which the end of flows is predicted."""
READINGS = {
    "T1": "$T_1$: half of the attention\nis inside the own set",
    "T1_paper": r"$T_1$: $\gamma$ exceeds the largest $|\rho|$" "\nof the run",
}
"""Name of an event that can be read as T1 -> legend of the event."""
FIXED, FALLING = "fixed", "falling"
"""Names of two cases of nu: the given nu at all sizes, and nu = 1/D^2."""
BETA = r"diagonal of $A$, $\beta$"


def _at_sizes(base: Any, options: Mapping[str, Any]) -> dict[tuple[int, int], Any]:
    sizes = zip(options["D"], options["C"], strict=True)
    return {(D, C): replace(base, D=D, C=C, d=None, sigma=None) for D, C in sizes}


def association_ends(system: System, request: FigureRequest) -> Drawing:
    """Ends of flows over (q, beta) at several sizes, and where the plateau predicts a change.

    Options: ``D``, ``C`` (one for each panel), ``chances``, ``diagonals``, ``time``. The data are
    ``time``, ``rows`` (parameters; alpha and rate ``lead`` of gamma - rho at the plateau; final
    gamma, rho, association), and ``counts`` by D: all flows, ends not as predicted, open ends.
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
    laws, rows, counts = _at_sizes(base, options), [], {}
    for (D, C), law in laws.items():
        own = []
        for q, beta in product(options["chances"], options["diagonals"]):
            one = replace(law, q=q, beta=beta)
            run = flow(system.ReducedPopulation(one), options["time"])
            own.append(named_values(one, SHOWN) | prediction(one) | ending(run))
        decided = [row for row in own if row["associated"] is not None]
        wrong = sum(row["associated"] != (row["lead"] > 0) for row in decided)
        count = {"flows": len(own), "otherwise": wrong, "open": len(own) - len(decided)}
        counts[f"D={D}, C={C}"] = count
        rows += own
    told = "; ".join(
        f"{name}: {each['otherwise']} of {each['flows']}, {each['open']} open"
        for name, each in counts.items()
    )
    caption = (
        f"Where training ends, over q and beta ({stated(base, 'p', 'nu')}, random_sets="
        f"{base.random_sets}; exact reduced flows to time {options['time']:g}): without "
        "association gamma falls like -ln(time). On the line gamma and rho grow equally fast at "
        f"the plateau of Event I. Flows that end on the other side of it: {told}."
    )
    data = {"rows": rows, "counts": counts, "time": options["time"]}
    axes = _ends_picture(rows, laws, options)
    return Drawing(state(axes, system, base, "p", "nu", time=options["time"]), data, caption)


def _ends_picture(
    rows: Sequence[Mapping[str, Any]], laws: Mapping[Any, Any], options: Mapping[str, Any]
) -> Any:
    columns = min(2, len(laws))
    lines = -(-len(laws) // columns)
    look: dict[str, Any] = {"sharex": True, "sharey": True, "squeeze": False}
    with page(6.4, 0.7 + 2.5 * lines, nrows=lines, ncols=columns, **look) as (figure, axes):
        for panel, (size, law) in zip(axes.flat, laws.items(), strict=False):
            own = [row for row in rows if (row["D"], row["C"]) == size]
            for end, (label, colour, mark, face) in ENDS.items():
                part = [(row["beta"], row["q"]) for row in own if row["associated"] is end]
                points = np.reshape(part, (-1, 2)).T
                panel.plot(*points, mark, color=colour, mfc=face, ms=5, label=label)
            _plateau_line(panel, law, options)
            panel.set(xlabel=BETA, ylabel="chance of a feature, $q$")
            panel.set_title(f"$D={size[0]}$, $C={size[1]}$")
            panel.label_outer()
        label = r"$\dot\gamma=\dot\rho$ at the plateau of Event I"
        line = Line2D([], [], color="black", label=label)
        style.legend_below(figure, [*style.labelled(*axes.flat).values(), line], 2)
    return axes


def _plateau_line(panel: Axes, law: Any, options: Mapping[str, Any]) -> None:
    """Draw the contour on which gamma and rho grow at the same rate at the plateau."""
    chances, diagonals = (np.array(options[name]) for name in ("chances", "diagonals"))
    q = np.linspace(chances.min() - 0.05, min(1.0, chances.max() + 0.05), FINE)
    beta = np.linspace(diagonals.min() * 0.75, diagonals.max() * 1.05, FINE)
    tilts = np.empty((FINE, FINE))
    for i, j in np.ndindex(tilts.shape):
        plateau = plateau_of(replace(law, q=float(q[i]), beta=float(beta[j])))
        tilts[i, j] = plateau.tilt(plateau.alpha(law.nu ** (1 / (law.p - 1))))
    panel.contour(beta, q, tilts, levels=[0.0], colors="black", linewidths=1.2)


def after_t1(run: Trajectory) -> dict[str, float]:
    """Time of T1, final and largest alpha after T1 over alpha(T1), for each event in `READINGS`."""
    row: dict[str, float] = {}
    for name in READINGS:
        event = run.events[name]
        later = run["alpha"][run.time >= event.time] / event.state[0]
        end, largest = (later[-1], later.max(initial=1.0)) if event else (np.nan, np.nan)
        row |= {name: event.time, f"end_{name}": float(end), f"largest_{name}": float(largest)}
    return row


def event_III(system: System, request: FigureRequest) -> Drawing:  # noqa: N802 (its letter)
    """Event III: final alpha divided by alpha(T1), against beta, at several sizes.

    Options: ``D``, ``C`` (one for each curve), ``diagonals``, ``time``. The data are ``rows``
    (parameters; for both definitions of T1: T1, final and largest alpha after it over alpha(T1)),
    ``half_at_start`` by size, the beta from which half of the attention is inside the own set at
    the start, and ``time``.
    """
    options = request.options(
        {
            "D": (12, 16, 24, 32), "C": (3, 4, 3, 4), "time": LATE,
            "diagonals": (0.5, 1.0, 1.5, 2.0, 2.5, 3.0, 3.5, 4.0, 5.0, 6.0),
        },
        {"time": 100 * LATE, "diagonals": tuple(np.linspace(0.25, 6.0, 24))},
    )  # fmt: skip
    base = request.make_parameters(system, ("D", "C", "beta", "d", "sigma"), q=0.4)
    rows, start = [], {}
    for (D, C), law in _at_sizes(base, options).items():
        start[f"D={D}, C={C}"] = float(np.log(D - 2 * C + 1) / base.scale)
        for beta in options["diagonals"]:
            one = replace(law, beta=beta)
            run = flow(system.ReducedPopulation(one), options["time"])
            rows.append(named_values(one, SHOWN) | after_t1(run))
    at_once = ", ".join(f"{beta:.2f} ({size})" for size, beta in start.items())
    caption = (
        f"Event III over beta ({stated(base, 'q', 'p', 'nu')}, random_sets={base.random_sets}, "
        f"exact reduced flows to time {options['time']:g}): alpha at the end over alpha(T1), and "
        "thin its largest value from T1 on. Left, open marks: half of the attention is inside the "
        f"own set at the start already, on the diagonal alone, from beta {at_once} on. Where a "
        f"mark is missing, T1 is not reached. Above the dashed line, {1 + RISE:g}, alpha has grown."
    )
    data = {"rows": rows, "half_at_start": start, "time": options["time"]}
    axes = _event_picture(rows, start, options["time"])
    return Drawing(state(axes, system, base, "q", "p", "nu"), data, caption)


def _event_picture(rows: Sequence[Any], start: Mapping[str, float], time: float) -> Any:
    with page(7.2, 3.6, ncols=2, sharey=True) as (figure, axes):
        for panel, (name, title) in zip(axes, READINGS.items(), strict=True):
            for (size, beta), (colour, mark) in zip(start.items(), LOOKS, strict=False):
                own = [row for row in rows if f"D={row['D']}, C={row['C']}" == size]
                columns = ("beta", f"end_{name}", f"largest_{name}")
                x, y, top = np.array([[row[column] for column in columns] for row in own]).T
                panel.plot(x, y, color=colour, lw=1.2)
                panel.plot(x, top, ":", color=colour, lw=0.8)
                open_marks = (x >= beta) & (name == "T1")
                look: dict[str, Any] = {"marker": mark, "edgecolors": colour, "s": 20, "zorder": 3}
                panel.scatter(x, y, c=np.where(open_marks, "white", colour), label=size, **look)
            panel.axhline(1 + RISE, color=style.GREY, lw=0.8, ls="--", zorder=0)
            words = f"Event III above {1 + RISE:g}"
            style.note(panel, words, (0.02, 1 + RISE), (0, 3), ("axes fraction", "data"))
            panel.set_title(title, fontsize=9)
            panel.set_xlabel(BETA)
        axes[0].set_ylabel(rf"$\alpha(\tau={style.number(time)})\ /\ \alpha(T_1)$")
        grey: dict[str, Any] = {"color": style.GREY, "lw": 0.8}
        handles = axes[1].get_legend_handles_labels()[0]
        handles += [
            Line2D([], [], marker="o", mfc="white", label="$T_1$ by the diagonal alone", **grey),
            Line2D([], [], ls=":", label=r"largest $\alpha$ from $T_1$ on", **grey),
        ]
        style.legend_below(figure, handles, 3)
    return axes


def t1_law(system: System, request: FigureRequest) -> Drawing:
    """T1 against D and q(D - C), at the given nu and at nu = 1/D^2, with fitted power laws.

    Options: ``D``, ``means`` (values of q(D - C)), ``time``. The data are ``rows`` (parameters,
    ``mean``, ``case`` of fixed or falling nu, T1 or NaN, and ``scale``, the inverse rate of gamma -
    rho at the plateau), ``laws`` (fits: case -> exponents in D and q(D - C) with 95 % intervals,
    and standard deviation of log T1 around the fit), and ``time``.
    """
    options = request.options(
        {"D": (128, 256, 512), "means": (16.0, 28.0, 42.0), "time": LATEST},
        {"D": (128, 256, 512, 1024, 2048, 4096), "means": (16.0, 21.0, 28.0, 42.0, 64.0)},
    )
    base = request.make_parameters(system, ("D", "q", "d", "sigma", "alpha0"))
    rows, fits, told = [], {}, []
    for case, name in ((FIXED, f"nu={base.nu:g}"), (FALLING, "nu=1/D^2")):
        grid, times = [*product(options["D"], options["means"])], []
        for D, mean in grid:
            given = {"q": mean / (D - base.C), "nu": base.nu if case == FIXED else D**-2.0}
            law = replace(base, D=D, d=None, sigma=None, alpha0=None, **given)
            times.append(flow(system.ReducedPopulation(law), options["time"]).events["T1"].time)
            more = {
                "case": case,
                "mean": mean,
                "T1": times[-1],
                "scale": 1 / prediction(law)["lead"],
            }
            rows.append(named_values(law, SHOWN) | more)
        fits[case] = fit = power_law(grid, times)
        powers = ", ".join(
            f"{letter}={value:.2f} ({low:.2f} to {high:.2f})"
            for letter, value, (low, high) in zip("ab", fit.exponents, fit.intervals, strict=True)
        )
        told.append(f"{name}: {powers}, spread of ln T1 {fit.spread:.2f}")
    caption = (
        f"The law of T1, the time at which half of the attention is inside the own set "
        f"({stated(base, 'C', 'p', 'beta')}, random_sets={base.random_sets}, exact reduced flows "
        f"to time {options['time']:g}). Lines: T1 = c D^a (q(D-C))^b by least squares, with 95 % "
        f"intervals: {'; '.join(told)}. Dotted: the inverse rate of gamma - rho at the plateau of "
        f"Event I. {sum(np.isnan(row['T1']) for row in rows)} of {len(rows)} flows do not reach T1."
    )
    laws = {case: asdict(fit) for case, fit in fits.items()}
    axes = state(_t1_picture(rows, fits, base.nu), system, base, "C", "p", "beta")
    return Drawing(axes, {"rows": rows, "laws": laws, "time": options["time"]}, caption)


def _t1_picture(rows: Sequence[Any], fits: Mapping[str, PowerLaw], nu: float) -> Any:
    means = dict.fromkeys(row["mean"] for row in rows)
    with page(7.2, 3.9, ncols=2, sharey=True) as (figure, axes):
        for panel, (case, fit) in zip(axes, fits.items(), strict=True):
            for mean, (colour, mark) in zip(means, LOOKS, strict=False):
                own = [row for row in rows if row["case"] == case and row["mean"] == mean]
                D, T1, scale = (np.array([row[n] for row in own]) for n in ("D", "T1", "scale"))
                a, b = fit.exponents
                panel.plot(D, T1, mark, color=colour, ms=4.5, label=f"$q(D-C)={mean:g}$")
                panel.plot(D, fit.prefactor * D**a * mean**b, color=colour, lw=1.0)
                panel.plot(D, scale, ":", color=colour, lw=0.8)
            panel.set(xlabel="patches $D$", xscale="log", yscale="log")
            ticks(panel.xaxis, 5.0)
            letter = rf"$\nu={style.number(nu)}$" if case == FIXED else r"$\nu=D^{-2}$"
            low, high = fit.intervals[0]
            words = rf"{letter}: $T_1 \propto D^{{{a:.2f}}}$ ({low:.2f} to {high:.2f})"
            panel.set_title(words, fontsize=9)
        axes[0].set_ylabel(r"$T_1$ (time $\tau = \eta \times$ steps)")
        rate = r"$1/(\dot\gamma-\dot\rho)$ at the plateau"
        dotted = Line2D([], [], color=style.GREY, ls=":", lw=0.8, label=rate)
        style.legend_below(figure, [*axes[0].get_legend_handles_labels()[0], dotted], 3)
    return axes
