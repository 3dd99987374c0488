"""Figures 1a, 1b and 3: share of successful trials against the number N of samples and a variable.

A row of a diagram stops after two N at which all trials succeed; larger N are marked as not run.
N50 is the N at which half of the trials succeed (`dynamics.phase_diagrams.threshold`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import exp, inf, isfinite
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes

from dynamics.phase_diagrams.threshold import ABOVE, BELOW, MEASURED
from dynamics.plotting.labels import hatch, logarithmic
from dynamics.plotting.style import GREEN, ORANGE, VERMILION
from dynamics.problem import FloatArray
from dynamics.results.power_law import PowerLaw, power_law
from dynamics.sweep.run import cores
from dynamics.system import System
from dynamics.validation import refuse
from dynamics.verdicts.figure import Drawing, FigureRequest, edges, page, stated, title
from dynamics.verdicts.shallow_vit import samples
from dynamics.verdicts.shallow_vit.iterations import FAMILIES, law_at
from dynamics.verdicts.shallow_vit.runs import alphas, gaps, line
from dynamics.verdicts.shallow_vit.samples import LAW
from dynamics.verdicts.shallow_vit.stores import folder, stored_trials
from dynamics.verdicts.shallow_vit.trial_rows import (
    COUNTS,
    ETA,
    MORE,
    STEPS,
    SUCCESS,
    TRIALS,
    Trials,
)
from dynamics.verdicts.wording import listed

ALPHAS = {
    "rest": (0.27, 0.28, 0.29, 0.3, 0.32, 0.34, 0.37, 0.4, 0.45),
    "proportion": (0.05, 0.07, 0.1, 0.15, 0.2, 0.3, 0.4),
}
"""Values of alpha_* for two families of `iterations.FAMILIES`; a family determines alpha_#."""
SIGMAS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)
POINT: dict[str, Any] = {
    "ls": "", "ms": 5, "mec": "white", "mew": 0.8, "capsize": 2.5, "elinewidth": 1.4,
    "color": VERMILION, "marker": "o", "zorder": 5,
}  # fmt: skip
WIDE = 12.0
"""Minimum ratio of largest to smallest value at which a horizontal axis is logarithmic."""
BOUNDS = {BELOW: ("v", "$N_{50}$ at most"), ABOVE: ("^", "$N_{50}$ at least")}


class Rows(NamedTuple):
    """Trials of every row of a diagram."""

    counts: Sequence[int]
    trials: Sequence[Trials]

    @property
    def share(self) -> FloatArray:
        """Share of successful trials, shape (rows, counts); NaN for N that were not run."""
        share = np.full((len(self.trials), len(self.counts)), np.nan)
        for row, one in zip(share, self.trials, strict=True):
            row[: len(one.loss)] = (one.loss < SUCCESS).mean(axis=1)
        return share

    def n50(self, name: str = "value") -> FloatArray:
        """N50 of every row (or a field of its `Threshold`); NaN if only a bound is known."""
        return np.array([getattr(one.n50, name) for one in self.trials])

    def growth(self, x: FloatArray) -> PowerLaw:
        """Power law of N50 in the variable x, shape (rows,)."""
        return power_law(x, self.n50(), self.n50("error"))

    def through(self, x: FloatArray, power: float) -> FloatArray:
        """Values factor * x^power; the factor is fitted to N50, weighted by its errors."""
        errors = self.n50("error")
        finite = np.isfinite(errors)
        if not finite.any():
            return np.full(x.shape, np.nan)
        logs = np.log(self.n50()[finite]) - power * np.log(x[finite])
        return np.asarray(exp(np.average(logs, weights=errors[finite] ** -2)) * x**power)

    def table(self) -> dict[str, Any]:
        """Data of the rows for the JSON of the figure."""
        return {
            "samples": self.counts, "share": self.share, "N50": self.n50(),
            "low": self.n50("low").tolist(), "high": self.n50("high").tolist(),
            "median_steps": [one.median for one in self.trials],
        }  # fmt: skip

    def words(self, values: Sequence[float]) -> str:
        """Text with N50 at each value of the variable."""
        return ", ".join(f"{v:g}: {one.n50}" for v, one in zip(values, self.trials, strict=True))


class Panel(NamedTuple):
    """Panel of a diagram: shares of successful trials over (x, N), N50, and the lines in `laws`."""

    title: str
    x: FloatArray
    label: str
    rows: Rows
    laws: Mapping[str, FloatArray]
    """Label of a line -> number N of samples on the line at the variable x of every row."""


def figure_1a(system: System, request: FigureRequest) -> Drawing:
    """Figure 1a: share of successful trials over N and alpha_*^-2.

    Options: ``alphas``, ``samples``, ``trials``, ``workers``, ``store``.
    """
    options = _options(request, "alphas", ALPHAS["rest"])
    law = request.make_parameters(system, ("alpha_star", "alpha_confusion"), **LAW)
    family, at = FAMILIES["rest"], options["alphas"]
    axes = {"alpha_star": at, "alpha_confusion": family.confusion}
    (rows,) = _sweep(system, request, options, "1a", {"trained": law}, axes)
    laws = [law_at(law, "rest", alpha) for alpha in at]
    by_alpha, by_gap = alphas(laws) ** -2.0, gaps(laws) ** -2.0
    finite, law_gap = np.isfinite(rows.n50()), rows.through(by_gap, 1.0)
    r2 = [line(x[finite], rows.n50()[finite])[2] for x in (by_alpha, by_gap)]
    panels = (
        Panel(f"the paper's variable, {_fitted(r2[0], '$R^2 = {:.2f}$')}", by_alpha,
              r"$\alpha_*^{-2}$", rows,
              {r"$N \propto \alpha_*^{-2}$": rows.through(by_alpha, 1.0)}),
        Panel(f"gap of the shares, {_fitted(r2[1], '$R^2 = {:.3f}$')}", by_gap,
              r"$(\alpha_* - \alpha_\#)^{-2}$", rows,
              {r"$N \propto (\alpha_* - \alpha_\#)^{-2}$": law_gap}),
    )  # fmt: skip
    caption = (
        f"{_trials(options, law)}, over N and alpha_*, alpha_# = 1/2 - alpha_*. N50 by alpha_*: "
        f"{rows.words(at)}. Exponent of N50 in 1/alpha_*: {rows.growth(1 / alphas(laws))}, in "
        f"1/(alpha_* - alpha_#): {rows.growth(1 / gaps(laws))}"
    )
    if isfinite(law_gap[0]):
        caption += f"; N50 = {law_gap[0] / by_gap[0]:.3g} (alpha_* - alpha_#)^-2"
    data = {"alpha_star": at, "r2": r2, **rows.table()}
    held = _held(system, law, options, "sigma", family.label)
    return Drawing(_picture(panels, held), data, caption + ".")


def figure_1b(system: System, request: FigureRequest) -> Drawing:
    """Figure 1b: samples against (1 - sigma)^-2; options ``sigmas``, and those of Figure 1a."""
    options = _options(request, "sigmas", SIGMAS)
    law = request.make_parameters(system, ("sigma",), **samples.FIGURE_1B)
    sigmas = options["sigmas"]
    if sigmas[-1] >= 1:
        refuse("sigmas", sigmas[-1], "has no (1 - sigma)^-2", "below 1", 0.9)
    (rows,) = _sweep(system, request, options, "1b", {"trained": law}, {"sigma": sigmas})
    x = (1 - np.array(sigmas)) ** -2.0
    flat = rows.through(x, 0.0)
    power = {r"$\propto (1 - \sigma)^{-2}$": np.where(x < 4 * x[0], flat[0] * x / x[0], np.nan)}
    panels = (
        Panel("the paper's variable", x, r"$(1 - \sigma)^{-2}$", rows, {"constant": flat} | power),
    )
    caption = (
        f"{_trials(options, law, 'alpha_star', 'alpha_confusion')}, over N and sigma. N50 by "
        f"sigma: {rows.words(sigmas)}. Exponent of N50 in 1/(1 - sigma): {rows.growth(x**0.5)}, "
        f"claimed: 2."
    )
    held = _held(system, law, options, "alpha_star alpha_confusion")
    return Drawing(_picture(panels, held), {"sigma": sigmas, **rows.table()}, caption)


def figure_3(system: System, request: FigureRequest) -> Drawing:
    """Figure 3: trained against frozen attention; options ``family``, and those of Figure 1a."""
    family = str(request.user_options.get("family", "proportion"))
    if family not in ALPHAS:
        refuse("family", family, "is unknown", ", ".join(ALPHAS), "proportion")
    options = _options(request, "alphas", ALPHAS[family], family="proportion")
    law = request.make_parameters(system, ("alpha_star", "alpha_confusion", "frozen"), **LAW)
    at, stores = options["alphas"], {"trained": law, "frozen": replace(law, frozen="attention")}
    axes = {"alpha_star": at, "alpha_confusion": FAMILIES[family].confusion}
    trained, frozen = _sweep(system, request, options, "3", stores, axes)
    inverse, label = 1 / alphas([law_at(law, family, alpha) for alpha in at]), r"$\alpha_*^{-4}$"
    fits = [rows.growth(inverse) for rows in (trained, frozen)]
    panels = [
        Panel(f"{name}: {_fitted(fit.exponent, f'exponent {fit}')}", inverse**4, label, rows,
              {rf"$N \propto \alpha_*^{{-{power}}}$": rows.through(inverse, power)})
        for name, rows, fit, power in (("attention trained", trained, fits[0], 2),
                                       ("attention frozen (the paper's CNN)", frozen, fits[1], 4))
    ]  # fmt: skip
    ratios = frozen.n50() / trained.n50()
    known = listed(ratios[np.isfinite(ratios)], 2) or "none known"
    caption = (
        f"{_trials(options, law)}, attention trained and frozen, the same seeds (alpha_# = "
        f"{FAMILIES[family].confusion}). N50 by alpha_*, trained: {trained.words(at)}; frozen: "
        f"{frozen.words(at)}. Exponents in 1/alpha_*: {fits[0]} and {fits[1]} (2 and 4 are "
        f"claimed); frozen over trained: {known}."
    )
    data = {
        "alpha_star": at, "trained": trained.table(), "frozen": frozen.table(),
        "exponents": [fit.exponent for fit in fits], "errors": [fit.error for fit in fits],
    }  # fmt: skip
    held = _held(system, law, options, "sigma", FAMILIES[family].label)
    return Drawing(_picture(panels, held), data, caption)


def _options(request: FigureRequest, axis: str, default: Any, **more: Any) -> dict[str, Any]:
    defaults = {axis: default, "samples": COUNTS, "trials": TRIALS, "workers": cores(), "store": ""}
    options = request.options(defaults | more, {"trials": MORE * TRIALS}, workers=0)
    return options | {name: sorted(set(options[name])) for name in (axis, "samples")}


def _sweep(
    system: System, request: FigureRequest, options: dict[str, Any], name: str,
    laws: Mapping[str, Any], axes: Mapping[str, Any],
) -> list[Rows]:  # fmt: skip
    """Trials of every law on the grid of the first axis and N, stored in the figure's folder."""
    trials = {**axes, "seed": list(request.seeds(options["trials"]))}
    counts, axis = options["samples"], next(iter(axes))
    with folder(name, request, options) as where:
        stored = (
            stored_trials(system, law, trials, axis, counts, where / word, options["workers"])
            for word, law in laws.items()
        )
        return [Rows(counts, each) for each in stored]


def _held(system: System, law: Any, options: dict[str, Any], names: str, family: str = "") -> str:
    """Subtitle: the named fixed parameters, then the settings that all diagrams share."""
    every = (*names.split(), "L", "M", "m", "delta", "margin", "data", "output")
    return (
        f"{title(system, law, *every)}{family and ', '}{family};\nno noise, gradient descent with "
        f"$\\eta = {ETA:g}$ for at most {STEPS} steps, {options['trials']} trials a cell, bars: "
        "95 % intervals of $N_{50}$"
    )


def _fitted(value: float, words: str) -> str:
    return words.format(value) if isfinite(value) else "too few $N_{50}$ to fit"


def _trials(options: Mapping[str, Any], law: Any, *names: str) -> str:
    """First sentence of a caption, with the named parameters."""
    sizes = f"{stated(law, *names, 'L', 'm')}, {law.data}, eta={ETA:g}"
    return f"Share of {options['trials']} trials with a test loss below 1e-3 ({sizes})"


def _picture(panels: Sequence[Panel], held: str) -> Any:
    """Draw panels side by side; cells are black if all trials fail, white if all succeed."""
    count = len(panels)
    with page(3.9 * count + 0.7, 4.3, held, ncols=count, squeeze=False) as (figure, grid):
        for axes, panel in zip(grid[0], panels, strict=True):
            image = _diagram(axes, panel)
            axes.set_title(panel.title, fontsize=9, loc="left")
        bar = figure.colorbar(image, ax=axes, fraction=0.06, pad=0.02)
        bar.set_label("share of trials that succeed", fontsize=8)
    return grid[0]


def _diagram(axes: Axes, panel: Panel) -> Any:
    order = np.argsort(panel.x)
    x, share, counts = panel.x[order], panel.rows.share[order], panel.rows.counts
    wide = bool(x[-1] > WIDE * x[0])
    sides = np.exp(edges(np.log(x))) if wide else edges(x)
    heights = np.exp(edges(np.log(counts)))
    image = axes.pcolormesh(
        sides, heights, np.ma.masked_invalid(share.T), cmap="gray", vmin=0.0, vmax=1.0,
        edgecolors="#888888", linewidth=0.2,
    )  # fmt: skip
    axes.set(xscale="log" if wide else "linear", yscale="log", xlabel=panel.label,
             ylabel="samples $N$", xlim=(sides[0], sides[-1]))  # fmt: skip
    axes.set_yticks(counts, [f"{n:g}" for n in counts])
    axes.minorticks_off()
    if wide:
        logarithmic(axes.xaxis, float(x[-1] / x[0]))
    handles: list[Any] = []
    if np.isnan(share).any():
        handles.append(hatch(axes, sides, heights, np.isnan(share.T)))
        handles[-1].set_label("not run: two N at 100 %")
    seen: dict[str, Any] = {}
    for at, n50 in zip(panel.x, (one.n50 for one in panel.rows.trials), strict=True):
        if n50.kind == MEASURED:
            top = n50.high if n50.high < inf else n50.value
            bars = [[n50.value - n50.low], [top - n50.value]]
            seen["$N_{50}$"] = axes.errorbar([at], [n50.value], yerr=bars, **POINT)
        elif n50.kind in BOUNDS:
            marker, label = BOUNDS[n50.kind]
            y = float(np.clip(n50.bound, heights[0] * 1.05, heights[-1] / 1.05))
            (seen[label],) = axes.plot([at], [y], marker, color=VERMILION, mec="white", zorder=5)
    for label, handle in seen.items():
        handle.set_label(label)
    handles += seen.values()
    looks = zip(panel.laws.items(), ((GREEN, "--"), (ORANGE, "-.")), strict=False)
    for (label, law), (colour, dash) in looks:
        handles += axes.plot(x, law[order], dash, color=colour, label=label, lw=1.8, zorder=4)
    axes.set_ylim(heights[0], heights[-1])
    axes.legend(handles=handles, fontsize=7.5, loc="upper center", bbox_to_anchor=(0.5, -0.16),
                ncols=2)  # fmt: skip
    return image
