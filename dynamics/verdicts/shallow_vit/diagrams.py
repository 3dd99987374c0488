r"""Figures 1a, 1b and 3: success over the number of samples and one variable.

Rows of a diagram end after two N at which all trials succeed; the others are marked as not run.
N50 is where half of the trials succeed, with its 95 % interval
(`dynamics.phase_diagrams.threshold`).
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from math import exp, inf, isfinite
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from dynamics.phase_diagrams.threshold import ABOVE, BELOW, MEASURED, Threshold
from dynamics.plotting.labels import hatch, logarithmic
from dynamics.plotting.style import BLUE, GREEN, ORANGE, VERMILION
from dynamics.problem import FloatArray
from dynamics.process_settings import cores
from dynamics.results.power_law import PowerLaw
from dynamics.system import System
from dynamics.validation import refuse
from dynamics.verdicts.figure import Drawing, FigureRequest, edges, page, stated, title
from dynamics.verdicts.shallow_vit.complexity import (
    COUNTS,
    ETA,
    FIGURE_1B,
    LAW,
    STEPS,
    TRIALS,
    Rows,
    stored_trials,
)
from dynamics.verdicts.shallow_vit.iterations import FAMILIES, law_at
from dynamics.verdicts.shallow_vit.runs import alphas, folder, gaps, line
from dynamics.verdicts.wording import listed

ALPHAS = {
    "rest": (0.27, 0.28, 0.29, 0.3, 0.32, 0.34, 0.37, 0.4, 0.45),
    "proportion": (0.05, 0.07, 0.1, 0.15, 0.2, 0.3, 0.4),
}
"""alpha_* of every family, as alpha_# goes with it (`iterations.FAMILIES`)."""
SIGMAS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)
TOO_FEW = "too few $N_{50}$ to fit"
POINT: dict[str, Any] = {
    "ls": "", "ms": 5, "mec": "white", "mew": 0.8, "capsize": 2.5, "elinewidth": 1.4,
}  # fmt: skip
WIDE = 12.0
"""Ratio of the ends from which a horizontal axis is logarithmic."""
LAWS = ((GREEN, "--"), (ORANGE, "-."))
LOOKS = ((BLUE, "o"), (VERMILION, "s"))
BOUNDS = {BELOW: ("v", "$N_{50}$ at most"), ABOVE: ("^", "$N_{50}$ at least")}


class Panel(NamedTuple):
    """Shares of successful trials over a variable and N, or N50 alone."""

    title: str
    x: FloatArray
    """The variable of every row."""
    label: str
    laws: Mapping[str, FloatArray]
    """Label -> N at the x of every row."""
    rows: Mapping[str, Rows]
    """Label -> trials; of a diagram one, whose shares are its background."""
    scales: tuple[str, str] | None = None
    """Of both axes, of a panel of N50 without shares."""


def _options(request: FigureRequest, axis: str, default: Any, **more: Any) -> dict[str, Any]:
    defaults = {axis: default, "samples": COUNTS, "trials": TRIALS, "workers": cores(), "store": ""}
    options = request.options(defaults | more, {"trials": 3 * TRIALS}, workers=0)
    return options | {name: sorted(set(options[name])) for name in (axis, "samples")}


def _sweep(
    system: System, request: FigureRequest, options: dict[str, Any], name: str,
    laws: Mapping[str, Any], axis: str, axes: Mapping[str, Any],
) -> list[Rows]:  # fmt: skip
    """Trials of every law over one axis and N, in the folder of the figure."""
    trials = {**axes, "seed": list(request.seeds(options["trials"]))}
    counts, workers = options["samples"], options["workers"]
    with folder(name, request, options) as where:
        return [
            stored_trials(system, law, trials, axis, counts, where / word, workers)
            for word, law in laws.items()
        ]


def _held(system: System, law: Any, options: dict[str, Any], names: str, family: str = "") -> str:
    """What is held fixed: the parameters of these names, and what all diagrams have."""
    parameters = title(system, law, *names.split(), "L", "M", "m", "delta", "margin", "data")
    return (
        f"{parameters}{family and ', '}{family};\nno noise, gradient descent with "
        f"$\\eta = {ETA:g}$ for at most {STEPS} steps, {options['trials']} trials a cell, bars: "
        "95 % intervals of $N_{50}$"
    )


def _through(x: FloatArray, rows: Rows, power: float) -> FloatArray:
    """N in proportion to a power of x, the best one by the errors of N50."""
    finite = np.isfinite(rows.errors)
    if not finite.any():
        return np.full(x.shape, np.nan)
    logs = np.log(rows.values[finite]) - power * np.log(x[finite])
    level = float(np.average(logs, weights=rows.errors[finite] ** -2))
    return np.asarray(exp(level) * x**power)


def _straight(r2: float, digits: int) -> str:
    return f"$R^2 = {r2:.{digits}f}$" if isfinite(r2) else TOO_FEW


def _finite(ratios: FloatArray) -> str:
    return listed(ratios[np.isfinite(ratios)], 2) or "none known"


def _power(fit: PowerLaw, name: str) -> str:
    if not isfinite(fit.exponent):
        return f"{name}: {TOO_FEW}"
    return rf"{name}: exponent ${fit.exponent:.2f} \pm {fit.error:.2f}$"


def _table(rows: Rows) -> dict[str, Any]:
    return {
        "samples": rows.counts, "share": rows.share, "N50": rows.values,
        "low": [t.low for t in rows.thresholds], "high": [t.high for t in rows.thresholds],
        "median_steps": rows.medians, "runs": int(np.isfinite(rows.loss).sum()),
    }  # fmt: skip


def _words(values: Any, rows: Rows) -> str:
    return ", ".join(f"{v:g}: {t}" for v, t in zip(values, rows.thresholds, strict=True))


def _trials(options: Mapping[str, Any], law: Any, *names: str) -> str:
    """What every caption begins with, and the parameters in it."""
    sizes = f"{stated(law, *names, 'L', 'm')}, {law.data}, eta={ETA:g}"
    return f"Share of {options['trials']} trials with a test loss below 1e-3 ({sizes})"


def figure_1a(system: System, request: FigureRequest) -> Drawing:
    """N over alpha_*^-2. Options: ``alphas``, ``samples``, ``trials``, ``workers``, ``store``.

    Parameters
    ----------
    system : System
    request : FigureRequest
    """
    options = _options(request, "alphas", ALPHAS["rest"])
    law = request.make_parameters(system, ("alpha_star", "alpha_confusion"), **LAW)
    axes = {"alpha_star": options["alphas"], "alpha_confusion": FAMILIES["rest"].confusion}
    (rows,) = _sweep(system, request, options, "1a", {"trained": law}, "alpha_star", axes)
    laws = [law_at(law, "rest", alpha) for alpha in options["alphas"]]
    by_alpha, by_gap = alphas(laws) ** -2.0, gaps(laws) ** -2.0
    finite = np.isfinite(rows.values)
    r2_alpha, r2_gap = (line(x[finite], rows.values[finite]).r2 for x in (by_alpha, by_gap))
    law_gap = _through(by_gap, rows, 1.0)
    panels = (
        Panel(
            f"the paper's variable, {_straight(r2_alpha, 2)}", by_alpha, r"$\alpha_*^{-2}$",
            {r"$N \propto \alpha_*^{-2}$": _through(by_alpha, rows, 1.0)}, {"$N_{50}$": rows},
        ),
        Panel(
            f"what orders the data, {_straight(r2_gap, 3)}", by_gap,
            r"$(\alpha_* - \alpha_\#)^{-2}$",
            {r"$N \propto (\alpha_* - \alpha_\#)^{-2}$": law_gap}, {"$N_{50}$": rows},
        ),
    )  # fmt: skip
    caption = (
        f"{_trials(options, law)}, over N and alpha_*, alpha_# = 1/2 - alpha_*. N50 by "
        f"alpha_*: {_words(options['alphas'], rows)}. Exponent of N50 in 1/alpha_*: "
        f"{rows.growth(1 / alphas(laws))}, in 1/(alpha_* - alpha_#): {rows.growth(1 / gaps(laws))}"
    )
    if isfinite(r2_alpha) and isfinite(r2_gap):
        caption += (
            f"; R^2 of a straight line {r2_alpha:.3f} over alpha_*^-2, {r2_gap:.4f} over "
            "(alpha_* - alpha_#)^-2"
        )
    if isfinite(law_gap[0]):
        caption += f"; N50 = {law_gap[0] / by_gap[0]:.3g} (alpha_* - alpha_#)^-2"
    data = {"alpha_star": options["alphas"], "r2": [r2_alpha, r2_gap], **_table(rows)}
    held = _held(system, law, options, "sigma", FAMILIES["rest"].label)
    return Drawing(_picture(panels, held), data, caption + ".")


def figure_1b(system: System, request: FigureRequest) -> Drawing:
    """N over (1 - sigma)^-2. Options: ``sigmas``, and those of Figure 1a.

    Parameters
    ----------
    system : System
    request : FigureRequest
    """
    options = _options(request, "sigmas", SIGMAS)
    law = request.make_parameters(system, ("sigma",), **FIGURE_1B)
    sigmas = np.array(options["sigmas"])
    if sigmas[-1] >= 1:
        refuse("sigmas", sigmas[-1], "has no (1 - sigma)^-2", "below 1", 0.9)
    axes = {"sigma": options["sigmas"]}
    (rows,) = _sweep(system, request, options, "1b", {"trained": law}, "sigma", axes)
    x = (1 - sigmas) ** -2.0
    fit, flat = rows.growth(1 / (1 - sigmas)), _through(x, rows, 0.0)
    first = flat[0] * x / x[0]
    constant = f"constant, {flat[0]:.3g}" if isfinite(flat[0]) else f"constant: {TOO_FEW}"
    steep = np.where(first < 4 * flat[0], first, np.nan)
    panels = (
        Panel(
            "the paper's variable", x, r"$(1 - \sigma)^{-2}$", {"constant": flat},
            {"$N_{50}$": rows},
        ),
        Panel(
            _power(fit, r"in $1/(1 - \sigma)$"), sigmas, r"$\sigma$",
            {constant: flat, r"$\propto (1 - \sigma)^{-2}$": steep}, {"trained": rows},
            ("linear", "linear"),
        ),
    )  # fmt: skip
    steps = rows.medians[np.isfinite(rows.medians)]
    median = f"{steps.min():.0f} to {steps.max():.0f}" if steps.size else "not reached"
    caption = (
        f"{_trials(options, law, 'alpha_star', 'alpha_confusion')}, over N and sigma. N50 by "
        f"sigma: {_words(sigmas, rows)}. Exponent of N50 in 1/(1 - sigma): {fit}, claimed is 2. "
        f"Median steps {median}."
    )
    held = _held(system, law, options, "alpha_star alpha_confusion")
    return Drawing(_picture(panels, held), {"sigma": sigmas, **_table(rows)}, caption)


def figure_3(system: System, request: FigureRequest) -> Drawing:
    """Trained and frozen attention, N over alpha_*^-4.

    Options: ``family`` (``proportion`` or ``rest``), and those of Figure 1a.

    Parameters
    ----------
    system : System
    request : FigureRequest
    """
    family = str(request.user_options.get("family", "proportion"))
    if family not in ALPHAS:
        refuse("family", family, "is unknown", ", ".join(ALPHAS), "proportion")
    options = _options(request, "alphas", ALPHAS[family], family="proportion")
    confusion = FAMILIES[family].confusion
    law = request.make_parameters(system, ("alpha_star", "alpha_confusion", "frozen"), **LAW)
    stores = {"trained": law, "frozen": replace(law, frozen="attention")}
    axes = {"alpha_star": options["alphas"], "alpha_confusion": confusion}
    trained, frozen = _sweep(system, request, options, "3", stores, "alpha_star", axes)
    laws = [law_at(law, family, alpha) for alpha in options["alphas"]]
    x, inverse = alphas(laws) ** -4.0, 1 / alphas(laws)
    fits = trained.growth(inverse), frozen.growth(inverse)
    last, variable = inverse, r"$1/\alpha_*$"
    if family != "proportion":
        last, variable = 1 / gaps(laws), r"$1/(\alpha_* - \alpha_\#)$"
    lines = {
        _power(fit, name): fit.prefactor * last**fit.exponent
        for name, fit in (("trained", trained.growth(last)), ("frozen", frozen.growth(last)))
    }
    panels = (
        Panel(
            "attention trained", x, r"$\alpha_*^{-4}$",
            {r"$N \propto \alpha_*^{-2}$": _through(inverse, trained, 2.0)}, {"$N_{50}$": trained},
        ),
        Panel(
            "attention frozen (the paper's CNN)", x, r"$\alpha_*^{-4}$",
            {r"$N \propto \alpha_*^{-4}$": _through(inverse, frozen, 4.0)}, {"$N_{50}$": frozen},
        ),
        Panel(
            f"fitted exponents in {variable}", last, variable, lines,
            {"trained": trained, "frozen": frozen}, ("log", "log"),
        ),
    )  # fmt: skip
    caption = (
        f"{_trials(options, law)}, attention trained and frozen, the same seeds "
        f"(alpha_# = {confusion}). N50 by alpha_*, trained: "
        f"{_words(options['alphas'], trained)}; frozen: {_words(options['alphas'], frozen)}. "
        f"Exponents in 1/alpha_*: {fits[0]} and {fits[1]} (2 and 4 are claimed); frozen over "
        f"trained: {_finite(frozen.values / trained.values)}; median steps frozen over trained: "
        f"{_finite(frozen.medians / trained.medians)}."
    )
    data = {
        "alpha_star": options["alphas"], "trained": _table(trained), "frozen": _table(frozen),
        "exponents": [fit.exponent for fit in fits], "errors": [fit.error for fit in fits],
    }  # fmt: skip
    held = _held(system, law, options, "sigma", FAMILIES[family].label)
    return Drawing(_picture(panels, held), data, caption)


def _picture(panels: Sequence[Panel], held: str) -> Any:
    """Panels side by side, black where all trials fail and white where all succeed."""
    count = len(panels)
    with page(3.9 * count + 0.7, 4.3, held, ncols=count, squeeze=False) as (figure, grid):
        for axes, panel in zip(grid[0], panels, strict=True):
            if panel.scales is None:
                diagram, image = axes, _diagram(axes, panel)
            else:
                _curves(axes, panel, panel.scales)
            axes.set_title(panel.title, fontsize=9, loc="left")
        bar = figure.colorbar(image, ax=diagram, fraction=0.06, pad=0.02)
        bar.set_label("share of trials that succeed", fontsize=8)
    return grid[0]


def _diagram(axes: Axes, panel: Panel) -> Any:
    (rows,) = panel.rows.values()
    order = np.argsort(panel.x)
    x, share, counts = panel.x[order], rows.share[order], rows.counts
    wide = bool(x[-1] > WIDE * x[0])
    sides = np.exp(edges(np.log(x))) if wide else edges(x)
    heights = np.exp(edges(np.log(counts)))
    image = axes.pcolormesh(
        sides, heights, np.ma.masked_invalid(share.T), cmap="gray", vmin=0.0, vmax=1.0,
        edgecolors="#888888", linewidth=0.2,
    )  # fmt: skip
    axes.set_xscale("log" if wide else "linear")
    axes.set_yscale("log")
    axes.set(xlim=(sides[0], sides[-1]), ylim=(heights[0], heights[-1]), xlabel=panel.label)
    axes.set_yticks(counts, [f"{n:g}" for n in counts])
    axes.set_ylabel("samples $N$")
    axes.minorticks_off()
    if wide:
        logarithmic(axes.xaxis, float(x[-1] / x[0]))
    handles: list[Any] = []
    if np.isnan(share).any():
        handles.append(hatch(axes, sides, heights, np.isnan(share.T)))
        handles[-1].set_label("not run: two N at 100 %")
    ((label, _),) = panel.rows.items()
    handles.append(_points(axes, panel.x, rows.thresholds, (VERMILION, "o"), label, heights))
    handles += [*_bounds(rows.thresholds), *_laws(axes, panel, LAWS)]
    axes.set_ylim(heights[0], heights[-1])
    _legend(axes, handles)
    return image


def _curves(axes: Axes, panel: Panel, scales: tuple[str, str]) -> None:
    handles = []
    for k, (label, rows) in enumerate(panel.rows.items()):
        # Bounds of several families often coincide: later ones lie inside earlier ones.
        size = 6.0 + 5.0 * (len(panel.rows) - 1 - k)
        handles.append(_points(axes, panel.x, rows.thresholds, LOOKS[k], label, arrow=size))
    own = len(panel.laws) == len(panel.rows)
    handles += _laws(axes, panel, [(colour, "--") for colour, _ in LOOKS] if own else LAWS)
    handles += _bounds([n50 for rows in panel.rows.values() for n50 in rows.thresholds])
    axes.set(xscale=scales[0], yscale=scales[1], xlabel=panel.label, ylabel="samples $N_{50}$")
    if scales[1] == "linear":
        axes.set_ylim(bottom=0.0)
    for scale, ticks, (low, high) in zip(
        scales, (axes.xaxis, axes.yaxis), (axes.get_xlim(), axes.get_ylim()), strict=True
    ):
        if scale == "log":
            logarithmic(ticks, high / low)
    _legend(axes, handles)


def _legend(axes: Axes, handles: list[Any]) -> None:
    axes.legend(
        handles=handles, fontsize=7.5, loc="upper center", bbox_to_anchor=(0.5, -0.16), ncols=2
    )


def _points(
    axes: Axes, x: FloatArray, thresholds: Sequence[Threshold], look: tuple[str, str], label: str,
    ends: FloatArray | None = None, arrow: float = 6.0,
) -> Line2D:  # fmt: skip
    """N50 with 95 % intervals, an arrow where there is only a bound; the handle of the legend."""
    colour, marker = look
    for at_x, n50 in zip(x, thresholds, strict=True):
        if n50.kind == MEASURED:
            top = n50.high if n50.high < inf else n50.value
            bars = [[n50.value - n50.low], [top - n50.value]]
            axes.errorbar(
                [at_x], [n50.value], yerr=bars, color=colour, marker=marker, zorder=5, **POINT
            )
        elif n50.kind in BOUNDS:
            y = n50.bound
            if ends is not None:
                y = float(np.clip(y, ends[0] * 1.05, ends[-1] / 1.05))
            style: dict[str, Any] = {"color": colour, "mec": "white", "mew": 0.6}
            axes.plot([at_x], [y], BOUNDS[n50.kind][0], ms=arrow, zorder=5, **style)
    return Line2D([], [], color=colour, marker=marker, mec="white", ls="", label=label)


def _bounds(thresholds: Sequence[Threshold]) -> list[Line2D]:
    """Handles of the arrows of a picture."""
    looks = [look for kind, look in BOUNDS.items() if kind in {n50.kind for n50 in thresholds}]
    black: dict[str, Any] = {"color": "black", "ls": "", "ms": 4.5}
    return [Line2D([], [], marker=marker, label=label, **black) for marker, label in looks]


def _laws(axes: Axes, panel: Panel, looks: Sequence[tuple[str, str]]) -> list[Any]:
    order, handles = np.argsort(panel.x), []
    for (label, law), (colour, dash) in zip(panel.laws.items(), looks, strict=False):
        style: dict[str, Any] = {"color": colour, "label": label, "lw": 1.8, "zorder": 4}
        handles += axes.plot(panel.x[order], law[order], dash, **style)
    return handles
