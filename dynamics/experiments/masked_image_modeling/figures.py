r"""Figures of masked image modelling.

- ``phases``: correlations, their rates and the attention of a local patch, phases shaded;
- ``gap``: two-phase against one-phase learning over (kappa_c, kappa_s), in `plane`;
- ``diversity``: attention diversity and total variation along training, in `maps`;
- ``scaling``: times of the events in units of :math:`K P / C_s` against P.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes

from dynamics.experiments.figure import Drawing, Figure, FigureRequest
from dynamics.experiments.masked_image_modeling.maps import diversity_figure
from dynamics.experiments.masked_image_modeling.plane import gap_figure, only_one_cluster
from dynamics.experiments.masked_image_modeling.runs import (
    EXPONENTS,
    MORE_SIZES,
    POSITIVE,
    along,
    compared,
    trained,
)
from dynamics.plotting.marks import NARROW, logarithmic
from dynamics.plotting.style import (
    BLUE,
    GREEN,
    GREY,
    PURPLE,
    RC,
    VERMILION,
    new_figure,
    offset_in_label,
    positive_time,
    time_axis,
)
from dynamics.plotting.training import shade
from dynamics.problem import FloatArray
from dynamics.results.trajectory import Trajectory
from dynamics.training.gradient_descent import descend
from dynamics.validation import InvalidRequest, integer, real, refuse
from theory.systems.masked_image_modeling.information_gap import leading_motion, rho0

if TYPE_CHECKING:
    from dynamics.registry import System

LARGE = 1e12
"""A ratio of rates at which its limit is reached."""
LEAST_SIZE = 16
"""Patches below which areas hardly have sizes of their own."""
EVENTS = {
    "E1": r"$E_1$, end of stage 1", "E2": r"$E_2$, switch", "E4": r"$E_4$, end of rapid growth",
}  # fmt: skip
PANELS = {
    "correlation": {
        "local_Phi_target": r"$\Phi_m$, own area", "local_Phi_global": r"$\Phi_0$, global area",
        "local_Phi_other": r"$\Phi_i$, other area", "local_Ups_own": r"$\Upsilon$, own area",
    },
    "size of its rate": {
        "alpha_m": r"$\alpha_m$", "alpha_0": r"$|\alpha_0|$",
        "d_local_Phi_other": r"$|\alpha_i|$, other", "d_local_Ups_own": r"$|\beta|$, own area",
    },
    "attention": {
        "local_A_target": r"own area $A_m$", "local_A_global": r"global area $A_0$",
        "local_A_other": "other areas", "local_masked": "masked patches",
    },
}  # fmt: skip
"""Label of each panel -> its series and their labels; a law of one local area has no other one."""
STATES = {
    "local_Phi_target": "Phi_m", "local_Phi_global": "Phi_0", "local_Phi_other": "Phi_other",
    "local_Ups_own": "Ups_own",
}  # fmt: skip
FEW = 12
"""Records up to which curves show them."""
COLOURS = (BLUE, VERMILION, GREEN, PURPLE)
DASHES = ("-", "--", "-.", (0, (1, 1)))
LOOKS = ((BLUE, "o", "-"), (VERMILION, "s", "--"), (GREEN, "^", "-."))
TOP, STEP = 0.97, 0.06
"""Heights of the marks of events that did not happen, in shares of the panel."""


def phases_figure(system: System, request: FigureRequest) -> Drawing:
    """A run of one cluster. Options: ``eta``, ``steps``.

    Parameters
    ----------
    system : System
    request : FigureRequest
    """
    options = request.settled({"eta": 1.0, "steps": 20_000}, {})
    one_cluster = request.given.get("family", "one_cluster") == "one_cluster"
    law = request.law(system, (), **(POSITIVE if one_cluster else {}))
    _check_sizes(law)
    problem = system.ReducedPopulation(law)
    run = descend(problem, options["eta"], options["steps"])
    present = {*run.layout.names, *run.observables}
    panels = {
        panel: {label: run[name] for name, label in table.items() if name in present}
        for panel, table in PANELS.items()
    }
    rates = panels["size of its rate"]
    panels["size of its rate"] = {label: np.abs(rate) for label, rate in rates.items()}
    held = (
        f"a local patch, $P = {law.P}$, $C_{{\\mathrm{{global}}}} = {law.C_global}$, "
        f"$C_{{\\mathrm{{local}}}} = {law.C_local}$, {law.masked} masked, "
        f"$\\Delta = {law.Delta:.3f}$, $|\\alpha_0| / \\alpha_m = {problem.rho0:.4g}$ at $Q = 0$"
    )
    times = {name: event and event.time for name, event in run.events.items()}
    data: dict[str, Any] = {"time": run.time, "events": times}
    for series in panels.values():
        data |= series
    events = ", ".join(f"{n} {'none' if at is None else f'{at:g}'}" for n, at in times.items())
    caption = (
        f"Correlations of a masked local patch with features and positions, their rates, and its "
        f"attention to unmasked patches (P={law.P}, C_global={law.C_global}, "
        f"C_local={law.C_local}, {law.masked} masked, eta={options['eta']:g}). Events: {events}. "
        f"{_words_of_run(problem, run)}"
    )
    return Drawing(_panels(run, panels, held), data, caption)


def _check_sizes(law: Any) -> None:
    """Refuse local areas without mates, or of the size of the global one."""
    only_one_cluster(law)
    if law.C_local < 2:
        problem = "makes no local patch with a mate"
    elif law.C_local == law.C_global:
        problem = f"makes local areas like the global one, C_global={law.C_global}"
    else:
        return
    left = law.P - law.C_global
    sizes = [c for c in range(2, left + 1) if left % c == 0 and c != law.C_global]
    allowed = ", ".join(map(str, sizes)) or "2 or more, with a smaller C_global"
    near = min(sizes, key=lambda c: (abs(c - law.C_local), c), default="a smaller C_global")
    refuse("C_local", law.C_local, problem, allowed, near)


def _words_of_run(problem: Any, run: Trajectory) -> str:
    """Correlations at the events and at the end, and the loss above its floor, in words."""
    moments = {
        f"at {name}": event.state for name in ("E2", "E4")
        if (event := run.events[name]) is not None and event.time > 0
    } | {"at the end": run.final_state}  # fmt: skip
    words = [f"rho(0) = {problem.rho0:.5g}"]
    for moment, state in moments.items():
        values = dict(zip(run.layout.names, state, strict=True))
        shown = (f"{label} {values[n]:.4g}" for n, label in STATES.items() if n in values)
        words.append(f"{moment} {', '.join(shown)}")
    end = problem.observables(run.final_state)
    labels = {"A_m": "own attention", "gap": "loss above its floor"}
    words.append(", ".join(f"{label} {end[n]:.4g}" for n, label in labels.items() if n in end))
    return "; ".join(words) + "."


def _panels(run: Trajectory, panels: Mapping[str, Mapping[str, FloatArray]], held: str) -> Any:
    """A panel for every group of curves over logarithmic time, with the phases shaded."""
    with mpl.rc_context(RC):
        figure, axes = new_figure(7.4, 2.15 * len(panels) + 0.4, nrows=len(panels), sharex=True)
        for panel, (panel_label, curves) in zip(axes, panels.items(), strict=True):
            for k, (label, values) in enumerate(curves.items()):
                time, shown = positive_time(run, values)
                # Rings of several sizes, so that equal values do not hide each other.
                ring: dict[str, Any] = {"marker": "o", "mfc": "none", "ms": 10 - 2 * k}
                look = ring if len(time) <= FEW else {}
                panel.plot(time, shown, color=COLOURS[k], ls=DASHES[k], label=label, **look)
            panel.set_ylabel(panel_label)
            if "rate" in panel_label:
                panel.set_yscale("log")
            else:
                offset_in_label(panel)
            panel.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=9)
        shade(axes, run)
        time_axis(axes[-1], run)
        first, last = run.time[run.time > 0].min(), run.time[-1]
        if last < NARROW * first:
            logarithmic(axes[-1].xaxis, last / first)
        for panel in axes[:-1]:
            panel.set_xlabel("")
        figure.suptitle(held, fontsize=8, x=0.01, ha="left")
    return axes


def scaling_figure(system: System, request: FigureRequest) -> Drawing:
    """Times of events along P. Options: ``sizes``, ``kappa_c``, ``kappa_s``.

    Parameters
    ----------
    system : System
    request : FigureRequest
    """
    default: dict[str, Any] = {"kappa_c": EXPONENTS[0], "kappa_s": EXPONENTS[1]}
    options = request.settled(default | {"sizes": MORE_SIZES[:6]}, {"sizes": MORE_SIZES})
    for name in request.given or ["parameters"] * (request.parameters is not None):
        raise InvalidRequest(
            f"{name} cannot be set: sizes and exponents give every law of this figure"
        )
    core, local = (real(name, options[name], above=0.0, at_most=1.0) for name in default)
    patches = sorted({integer("sizes", P, at_least=LEAST_SIZE) for P in options["sizes"]})
    cases = [trained(system, along(system, P, (core, local))) for P in patches]
    sizes = np.array([case.parameters.P for case in cases], dtype=np.float64)
    times = {name: np.array([case.time(name) / case.unit for case in cases]) for name in EVENTS}
    limit, levels = None, {}
    if any(case.two_phases for case in cases):
        # alpha_m starts at gamma (1 - gamma) C_s / (K P), as C_s grows; rho far above 1.
        gamma = cases[-1].parameters.gamma
        limit = float(leading_motion().switch.subs(rho0, LARGE)) / (gamma * (1 - gamma))
        levels = {f"switch at a large gap, {limit:.3g}": limit}
    held = (
        rf"one cluster, half masked, $\kappa_c = {core:g}$, $\kappa_s = {local:g}$ "
        rf"($\Delta = {(1 - local) - 2 * (1 - core):.3g}$), $z = 1$"
    )
    words = "; ".join(_words_of_times(name, values) for name, values in times.items())
    caption = (
        f"Times of the events in units of K P / C_s at P={', '.join(f'{P:g}' for P in sizes)}: "
        f"{words}."
    )
    powers = compared(sizes.tolist(), {name: v.tolist() for name, v in times.items()})
    caption += f" {powers[0].upper()}{powers[1:]}." if powers else ""
    labelled = {EVENTS[name]: values for name, values in times.items()}
    data = {"P": sizes, **labelled, "limit": limit}
    return Drawing(times_picture(sizes, labelled, levels, held), data, caption)


def _words_of_times(name: str, values: FloatArray) -> str:
    """Times of an event along P, in words."""
    if np.isnan(values).all():
        return f"{name} not reached"
    if not values.any():
        return f"{name} at the start, there is no phase before it"
    words = ("not reached" if np.isnan(value) else f"{value:.3g}" for value in values)
    return f"{name} {', '.join(words)}"


def times_picture(
    sizes: FloatArray, times: Mapping[str, FloatArray], levels: Mapping[str, float], held: str
) -> Axes:
    """Times of events against the number of patches.

    Parameters
    ----------
    sizes : float array, shape (n,)
        P.
    times : mapping
        Label -> times in units of K P / C_s, shape (n,); NaN where an event did not happen, which
        is marked above all times.
    levels : mapping
        Label -> a predicted time, as a dotted line.
    held : str
        What is held fixed.

    Returns
    -------
    Axes
    """
    with mpl.rc_context(RC):
        _, axes = new_figure(6.8, 3.6)
        height = TOP
        for (label, values), (colour, marker, dash) in zip(times.items(), LOOKS, strict=False):
            missing = np.isnan(values)
            if not missing.all():
                word = label if values.any() else f"{label}: at the start"
                style: dict[str, Any] = {"color": colour, "mfc": "white", "clip_on": False}
                axes.plot(sizes, values, marker + dash, label=word, **style)
            if missing.any():
                axes.plot(
                    sizes[missing], np.full(int(missing.sum()), height), "x", color=colour,
                    label=f"{label}: not reached", transform=axes.get_xaxis_transform(),
                )  # fmt: skip
                height -= STEP
        for label, value in levels.items():
            axes.axhline(value, color=GREY, lw=0.9, ls=":", label=label, zorder=0)
        axes.set_xscale("log")
        logarithmic(axes.xaxis, float(sizes[-1] / sizes[0]))
        # Events that did not happen have a strip of their own above the times.
        top = np.nanmax([1.0, *np.concatenate(list(times.values()))])
        axes.set_ylim(0.0, 1.05 * top / (height if height < TOP else 1.0))
        axes.set_xlabel("patches $P$")
        axes.set_ylabel(r"time $\tau$ in units of $K P / C_{\mathrm{local}}$")
        axes.legend(loc="center left", bbox_to_anchor=(1.0, 0.5), fontsize=8)
        axes.set_title(held, fontsize=8, loc="left")
    return axes


FIGURES: Mapping[str, Figure] = {
    "phases": phases_figure,
    "gap": gap_figure,
    "diversity": diversity_figure,
    "scaling": scaling_figure,
}
