r"""Figures of masked image modelling.

- ``phases``: a run of one cluster, with its phases;
- ``gap``: two-phase against one-phase learning over (kappa_c, kappa_s);
- ``scaling``: times of the events in units of :math:`K P / C_s` against P.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from math import log
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import TwoSlopeNorm
from matplotlib.patheffects import withStroke

from dynamics.plotting.evidence import chart
from dynamics.plotting.labels import NARROW, logarithmic
from dynamics.plotting.runs import training
from dynamics.presentation import Panel
from dynamics.results.power_law import exponent
from dynamics.system import System
from dynamics.training.descent import descend
from dynamics.validation import InvalidRequest, integer, real, refuse
from dynamics.verdicts.figure import Drawing, FigureRequest, edges, page, stated
from dynamics.verdicts.masked_image_modeling import grid
from theory.papers.masked_image_modeling.information_gap import leading_motion, rho0

CORRELATIONS = ("local_Phi_target", "local_Phi_global", "local_Phi_other", "local_Ups_own")
ATTENTION = ("A_target", "A_global", "A_other", "masked")
PANELS = (
    Panel(
        (("Phi_m", 0), ("Phi_0", 1), ("local_Phi_other", 2), ("local_Ups_own", 3)),
        label="correlation", words=("own area", "global area", "other area", "own area"),
    ),
    Panel(
        (("alpha_m", 0), ("alpha_0", 1), ("d_local_Phi_other", 2), ("d_local_Ups_own", 3)),
        label="size of its rate", words=("", "", "other area", "own area"), logarithmic=True,
    ),
    Panel(
        tuple((f"local_{n}", k) for k, n in enumerate(ATTENTION)),
        label="attention", words=("own area", "global area", "other areas", "masked patches"),
    ),
)  # fmt: skip
"""Panels of the figure ``phases``; with one local area, curves of other areas are left out."""
CORE, MOST_LOCAL = (0.5, 0.98), 0.5
"""Range of the exponent kappa_c (first), and maximum of kappa_s (second), as in the paper."""
LEAST_PATCHES = 64
"""Minimum number P of patches in the figure ``gap``; below it, too few sizes of areas exist."""
HALO: list[Any] = [withStroke(linewidth=3.0, foreground="white")]
ALONE = 0.05
"""Width, in kappa_c or kappa_s, of a cell without neighbours in the figure ``gap``."""
LARGE = 1e12
"""Ratio rho(0) at which the predicted time of the switch is at its limit for large ratios."""
LEAST_SIZE = 16
"""Minimum number P of patches in the figure ``scaling``; below it, sizes of areas coincide."""
EVENTS = {
    "E1": r"$E_1$, end of stage 1", "E2": r"$E_2$, switch", "E4": r"$E_4$, end of rapid growth",
}  # fmt: skip
SCALES = {"x_scale": "log", "y_scale": "linear"}
TRAINED = (("v", "white", "one phase"), ("^", "black", "two phases"))


def one_cluster(system: System, request: FigureRequest, sizes: Mapping[str, Any]) -> Any:
    """Parameters of a figure; the default `sizes` apply only to the family ``one_cluster``."""
    alone = request.user_parameters.get("family", "one_cluster") == "one_cluster"
    return request.make_parameters(system, (), **(sizes if alone else {}))


def _only_one_cluster(law: Any) -> Any:
    if law.family != "one_cluster":
        about = "is not the family of this figure"
        refuse("family", law.family, about, "one_cluster", "one_cluster")
    return law


def phases_figure(system: System, request: FigureRequest) -> Drawing:
    """Run of one cluster, with its phases; options ``eta``, ``steps``."""
    options = request.options({"eta": 1.0, "steps": 20_000})
    law = _only_one_cluster(one_cluster(system, request, grid.POSITIVE))
    left = law.P - law.C_global
    sizes = [c for c in range(2, left + 1) if left % c == 0 and c != law.C_global]
    if law.C_local not in sizes:
        problem = "gives local areas without a mate, or as large as the global area"
        smaller = "a smaller C_global"
        allowed = ", ".join(map(str, sizes)) or f"2 or more, with {smaller}"
        refuse("C_local", law.C_local, problem, allowed, sizes[0] if sizes else smaller)
    problem = system.ReducedPopulation(law)
    run = descend(problem, options["eta"], options["steps"])
    plot = replace(run.presentation.plot, panels=PANELS, omission="")
    axes = training(replace(run, presentation=replace(run.presentation, plot=plot)))
    first, last = run.time[run.time > 0].min(), run.time[-1]
    if last < NARROW * first:
        logarithmic(axes[-1].xaxis, last / first)
    times = {name: event.time if event else None for name, event in run.events.items()}
    events = ", ".join(f"{n} {'none' if at is None else f'{at:g}'}" for n, at in times.items())
    moments = {name: run.events[name].state for name in ("E2", "E4") if times[name]}
    told = ""
    for name, state in {**moments, "the end": run.final_state}.items():
        values = dict(zip(run.layout.names, state, strict=True))
        there = [n for n in CORRELATIONS if n in values]
        parts = ", ".join(f"{n.removeprefix('local_')} {values[n]:.4g}" for n in there)
        told += f"at {name} {parts}; "
    caption = (
        f"Correlations of a masked local patch with features and positions, their rates, and its "
        f"attention to unmasked patches ({stated(law, 'P', 'C_global', 'C_local')}, {law.masked} "
        f"masked, eta={options['eta']:g}). Events: {events}. rho(0) = {problem.rho0:.5g}; {told}"
        f"own attention {run['A_m'][-1]:.4g}, loss above its floor {run['gap'][-1]:.4g}."
    )
    names = {name for panel in PANELS for name in panel.names}
    present = names.intersection((*run.layout.names, *run.observables))
    data = {"time": run.time, "events": times} | {name: run[name] for name in present}
    return Drawing(axes, data, caption)


def plane(system: System, law: Any, local: int, core: int) -> dict[str, Any]:
    """Ratio |alpha_0| / alpha_m at the start, over the plane (kappa_c, kappa_s).

    `law`: one cluster, whose P and number of masked patches are used; `local`, `core`: numbers of
    local and of global sizes, evenly spaced in their logarithm (equal sizes are merged). ``rows``
    has kappa_s, all kappa_c and the ratios for each local size. ``boundary``, shape (points, 2),
    has the interpolated (kappa_c, kappa_s) with ratio 1. ``trained``, shape (runs, 4), has kappa_c,
    kappa_s, whether the run had two phases, and whether the ratio is above 1, for laws next to the
    boundary.
    """
    make: Any = system.ReducedPopulation
    sizes = np.unique(np.geomspace(2, law.P**MOST_LOCAL, local).round().astype(int))
    rows, boundary, sides = [], [], []
    for size in sizes.tolist():
        # Each local area has `size` patches; the global area has the remaining patches.
        left = law.P - (law.P ** np.linspace(*CORE, core)).round().astype(int)
        wholes = np.unique(law.P - np.maximum(size, left - left % size))
        laws = [replace(law, C_global=int(w), C_local=size, d=None) for w in wholes if w > 0]
        ratios = np.array([make(one).rho0 for one in laws])
        kappas, kappa_s = np.array([one.kappa_c for one in laws]), log(size) / log(law.P)
        rows.append((kappa_s, kappas.tolist(), ratios.tolist()))
        for k in np.flatnonzero(np.diff(np.sign(np.log(ratios)))):
            share = np.log(ratios[k]) / np.log(ratios[k] / ratios[k + 1])
            boundary.append((kappas[k] + share * (kappas[k + 1] - kappas[k]), kappa_s))
            for one in laws[k : k + 2]:
                _, run = grid.trained(make, one, 5.0)
                phases = float(grid.two_phases(run)), float(run["rho"][0] > 1)
                sides.append((one.kappa_c, one.kappa_s, *phases))
    trained = np.reshape(sides, (-1, 4))
    return {"rows": rows, "boundary": np.reshape(boundary, (-1, 2)), "trained": trained}


def gap_figure(system: System, request: FigureRequest) -> Drawing:
    """Two-phase and one-phase learning; options ``local``, ``core``: numbers of area sizes."""
    quick, fine = {"local": 9, "core": 20}, {"local": 21, "core": 56}
    options = request.options(quick, fine, local=2, core=2)
    given = request.user_parameters.get("P", grid.POSITIVE["P"])
    patches = integer("P", given, at_least=LEAST_PATCHES)
    default = {"P": patches, "C_global": patches // 2, "C_local": 1}
    law = request.make_parameters(system, axes=("family", "C_global", "C_local"), **default)
    _only_one_cluster(law)
    data = plane(system, law, **options)
    boundary, (*_, phases, above) = data["boundary"], data["trained"].T
    ratios = np.concatenate([row[2] for row in data["rows"]])
    words = f"The ratio goes from {ratios.min():.3g} to {ratios.max():.3g}"
    if len(boundary):
        off = 2 * boundary[:, 0] - (1 + boundary[:, 1])
        words += (
            f"; Phase I exists to the right of the measured line, at Delta = {off.min():.2g} to "
            f"{off.max():.2g}. Training on either side of it, {(phases == above).sum()} of "
            f"{len(phases)} runs have as many phases as the start says"
        )
    else:
        side = "one phase" if ratios.max() < 1 else "two phases" if ratios.min() >= 1 else "mixed"
        words += f", and passes 1 in no row: {side}"
    held = (
        f"one cluster, $P = {law.P}$, {law.masked} masked; two phases where the global feature "
        "moves faster at first"
    )
    caption = (
        f"Ratio of the rates of Phi_0 and Phi_m at Q = 0 over the exponents of both sizes at "
        f"P={law.P}. {words}."
    )
    return Drawing(plane_picture(data, held), data, caption)


def plane_picture(data: Mapping[str, Any], held: str) -> Axes:
    """Draw the ratio of rates (see `plane`) in colour, its boundary, and the line Delta = 0."""
    kappas_s, kappas_c, ratios = zip(*data["rows"], strict=True)
    heights, boundary = edges(np.array(kappas_s), ALONE), data["boundary"]
    sides = [edges(np.array(kappas), ALONE) for kappas in kappas_c]
    logs = [np.log10(values) for values in ratios]
    least, most = min(map(np.min, logs)), max(map(np.max, logs))
    norm = TwoSlopeNorm(0.0, min(least, -0.1), max(most, 0.1))
    look: dict[str, Any] = {"cmap": "PuOr_r", "norm": norm, "rasterized": True}
    with page(6.6, 4.9) as (figure, axes):
        for k, values in enumerate(logs):
            image = axes.pcolormesh(sides[k], heights[k : k + 2], values[None, :], **look)
        ends = heights[[0, -1]]
        look = {"color": "black", "path_effects": HALO}
        axes.plot((1 + ends) / 2, ends, ls="--", label=r"$\Delta = 0$", **look)
        if len(boundary):
            alone = {"marker": "|", "ms": 12, "mew": 2.5, "ls": ""} if len(boundary) == 1 else {}
            label = r"measured: equal rates at $Q = 0$"
            axes.plot(*boundary.T, lw=2.0, label=label, **look, **alone)
        for phases, (marker, face, word) in enumerate(TRAINED):
            points = data["trained"][data["trained"][:, 2] == phases]
            if len(points):
                look = {"ms": 6, "mfc": face, "mec": "black", "label": f"trained: {word}"}
                axes.plot(points[:, 0], points[:, 1], marker, **look)
        # Sizes differ slightly between rows, so the axis shows their common range.
        right = max(min(row[-1] for row in sides), kappas_c[-1][-1])
        axes.set(ylim=ends, xlim=(max(row[0] for row in sides), min(1.0, right)))
        axes.set_xlabel(r"$\kappa_c = \ln C_{\mathrm{global}} / \ln P$")
        axes.set_ylabel(r"$\kappa_s = \ln C_{\mathrm{local}} / \ln P$")
        words = r"$\log_{10}\; |\alpha_0| / \alpha_m$ at $Q = 0$"
        bar = figure.colorbar(image, ax=axes, extend="neither", label=words)
        bar.ax.set_ylim(min(least, 0.0), max(most, 0.0))
        nowhere = "" if len(boundary) else "\nequal rates at $Q = 0$: in no row of this plane"
        axes.set_title(held + nowhere, fontsize=8, loc="left")
        figure.legend(loc="outside lower center", ncols=2, fontsize=8)
    return axes


def scaling_figure(system: System, request: FigureRequest) -> Drawing:
    """Times of events against P; options ``sizes``, ``kappa_c``, ``kappa_s``."""
    default = {"kappa_c": grid.ABOVE[0], "kappa_s": grid.ABOVE[1], "sizes": grid.SIZES}
    more = {"sizes": tuple(sorted(grid.SIZES + grid.MORE_SIZES))}
    options = request.options(default, more, sizes=LEAST_SIZE)
    for name in request.user_parameters or ["parameters"] * (request.parameters is not None):
        raise InvalidRequest(
            f"{name} cannot be set: the options sizes, kappa_c and kappa_s give the laws"
        )
    kappas = tuple(real(n, options[n], above=0.0, at_most=1.0) for n in ("kappa_c", "kappa_s"))
    laws = [system.Parameters(**grid.sizes_along(P, kappas)) for P in sorted(set(options["sizes"]))]
    make: Any = system.ReducedPopulation
    runs = [grid.trained(make, law)[1] for law in laws]
    sizes, units = np.array([(law.P, grid.unit(law)) for law in laws]).T
    limit, times, words = None, {}, []
    for name in EVENTS:
        times[name] = values = np.array([run.events[name].time for run in runs]) / units
        shown = ", ".join("not reached" if np.isnan(value) else f"{value:.3g}" for value in values)
        power = exponent(sizes, values)
        words.append(f"{name} {shown}" + ("" if np.isnan(power) else f", as P^{power:.2g}"))
    if any(map(grid.two_phases, runs)):
        # For large C_s the rate alpha_m starts at gamma (1 - gamma) C_s / (K P), the inverse unit
        # of time in `leading_motion`.
        gamma = laws[-1].gamma
        limit = float(leading_motion().switch.subs(rho0, LARGE)) / (gamma * (1 - gamma))
    held = (
        rf"one cluster, half masked, $\kappa_c = {kappas[0]:g}$, $\kappa_s = {kappas[1]:g}$ "
        rf"($\Delta = {(1 - kappas[1]) - 2 * (1 - kappas[0]):.3g}$), $z = 1$"
    )
    caption = (
        f"Times of the events in units of K P / C_s at P={', '.join(f'{P:g}' for P in sizes)}: "
        f"{'; '.join(words)}."
    )
    labelled = {EVENTS[name]: values for name, values in times.items()}
    axes = times_picture(sizes, labelled, limit, held)
    return Drawing(axes, {"P": sizes, **labelled, "limit": limit}, caption)


def times_picture(sizes: Any, times: Mapping[str, Any], limit: float | None, held: str) -> Axes:
    """Draw times of events against the numbers of patches `sizes`.

    `times`: label -> times in units of K P / C_s, NaN if the event did not occur; `limit`:
    predicted time of the switch at a large gap; `held`: fixed parameters, for the subtitle.
    """
    curves = []
    for label, values in times.items():
        missing = np.isnan(values)
        word = f"{label}: not reached" if missing.all() else label
        word += f", not at {missing.sum()} sizes" if 0 < missing.sum() < len(values) else ""
        curves.append({"label": word, "x": sizes, "y": values})
    lines = [{"label": f"switch at a large gap, {limit:.3g}", "y": limit}] if limit else []
    names = {"x_label": "patches $P$", "y_label": r"time $\tau$ in units of $K P / C_s$"}
    with page(6.8, 3.6) as (_, axes):
        chart(axes, {"curves": curves, "lines": lines, **names, **SCALES})
        axes.set_ylim(bottom=0.0)
        axes.set_title(held, fontsize=8, loc="left")
    return axes
