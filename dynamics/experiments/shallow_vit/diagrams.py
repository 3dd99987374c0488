r"""Figures 1a, 1b and 3: success over the number of samples and one variable.

Rows of a diagram end after two N at which all trials succeed; the others are marked as not run.
N50 is where half of the trials succeed, with its 95 % interval
(`dynamics.phase_diagrams.threshold`).
"""

from __future__ import annotations

from dataclasses import replace
from math import exp, isfinite
from pathlib import Path
from typing import TYPE_CHECKING, Any

import numpy as np

from dynamics.experiments.curves import line
from dynamics.experiments.figure import Drawing, FigureRequest
from dynamics.experiments.shallow_vit.cached_sweeps import folder, plain, rows
from dynamics.experiments.shallow_vit.complexity import alphas, gaps, growth
from dynamics.experiments.shallow_vit.iterations import CONFUSION, at
from dynamics.experiments.shallow_vit.pictures.success import Curves, Panel, success
from dynamics.experiments.shallow_vit.success import COUNTS, ETA, NEURONS, STEPS, TRIALS, Rows
from dynamics.problem import FloatArray
from dynamics.results.power_law import PowerLaw
from dynamics.sweep.worker_pool import cores
from dynamics.validation import integer, refuse

if TYPE_CHECKING:
    from dynamics.registry import System

ALPHAS = {
    "rest": (0.27, 0.28, 0.29, 0.3, 0.32, 0.34, 0.37, 0.4, 0.45),
    "proportion": (0.05, 0.07, 0.1, 0.15, 0.2, 0.3, 0.4),
}
"""alpha_* of every family, as alpha_# goes with it (`iterations.CONFUSION`)."""
WORDS = {
    "rest": r"$\alpha_\# = 1/2 - \alpha_*$", "proportion": r"$\alpha_\# = \alpha_* / 5$",
}  # fmt: skip
SIGMAS = (0.0, 0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8)
BARS = r"bars: 95 % intervals of $N_{50}$"


def _options(request: FigureRequest, axis: str, values: Any, **more: Any) -> dict[str, Any]:
    usual = {axis: values, "samples": COUNTS, "trials": TRIALS, "workers": cores(), "store": ""}
    found = request.settled(usual | more, {"trials": 3 * TRIALS})
    found["trials"] = integer("trials", found["trials"], at_least=1, at_most=10_000)
    found["workers"] = integer("workers", found["workers"], at_least=0, at_most=4096)
    found["samples"] = sorted(integer("samples", n, at_least=1) for n in found["samples"])
    found[axis] = sorted({float(value) for value in found[axis]})
    return found


def _family(options: dict[str, Any]) -> str:
    family = str(options["family"])
    if family not in ALPHAS:
        refuse("family", family, "is unknown", ", ".join(ALPHAS), "proportion")
    return family


def _along_alpha(
    system: System, law: Any, options: dict[str, Any], family: str, where: Path, seed: int
) -> tuple[list[Any], Rows]:
    """Laws and trials over alpha_*, alpha_# with it."""
    request = plain(law, ("alpha_star",)) | {
        "alpha_confusion": CONFUSION[family], "seed": list(range(seed, seed + options["trials"])),
    }  # fmt: skip
    values = options["alphas"]
    found = rows(
        system, request, ("alpha_star", values), options["samples"], (where, options["workers"])
    )
    return [at(law, family, a) for a in values], found


def _held(law: Any, options: dict[str, Any], *parts: str) -> str:
    words = [
        *parts, f"$L = {law.L}$", f"$M = {law.M}$", f"$m = {law.m}$",
        rf"$\delta = {law.delta:g}$", f"margin {law.margin:g}", law.data.replace("_", r"\_"),
    ]  # fmt: skip
    words = [word.replace(r"\_", "_") for word in words]
    return (
        ", ".join(words) + f";\nno noise, gradient descent with $\\eta = {ETA:g}$ for at most "
        f"{STEPS} steps, {options['trials']} trials a cell, {BARS}"
    )


def _through(x: FloatArray, found: Rows, power: float) -> FloatArray:
    """N in proportion to a power of x, the best one by the errors of N50."""
    known = np.isfinite(found.errors)
    if not known.any():
        return np.full(x.shape, np.nan)
    logs = np.log(found.values[known]) - power * np.log(x[known])
    level = float(np.average(logs, weights=found.errors[known] ** -2))
    return np.asarray(exp(level) * x**power)


TOO_FEW = "too few $N_{50}$ to fit"


def _straight(r2: float, digits: int) -> str:
    return f"$R^2 = {r2:.{digits}f}$" if isfinite(r2) else TOO_FEW


def _steps(medians: FloatArray) -> str:
    """Least and most of the steps that are known."""
    known = medians[np.isfinite(medians)]
    return f"{known.min():.0f} to {known.max():.0f}" if known.size else "not reached"


def _ratios(values: FloatArray) -> str:
    known = values[np.isfinite(values)]
    return ", ".join(f"{value:.2g}" for value in known) if known.size else "none known"


def _power(fit: PowerLaw, name: str = "trained") -> str:
    if not isfinite(fit.exponent):
        return f"{name}: {TOO_FEW}"
    return rf"{name}: exponent ${fit.exponent:.2f} \pm {fit.error:.2f}$"


def _table(found: Rows) -> dict[str, Any]:
    return {
        "samples": found.counts, "share": found.share, "N50": found.values,
        "low": [t.low for t in found.thresholds], "high": [t.high for t in found.thresholds],
        "median_steps": found.medians, "runs": int(np.isfinite(found.loss).sum()),
    }  # fmt: skip


def _told(values: Any, found: Rows) -> str:
    return ", ".join(f"{v:g}: {t}" for v, t in zip(values, found.thresholds, strict=True))


def figure_1a(system: System, request: FigureRequest) -> Drawing:
    """N over alpha_*^-2. Options: ``alphas``, ``samples``, ``trials``, ``workers``, ``store``."""
    options = _options(request, "alphas", ALPHAS["rest"])
    law = request.law(system, ("alpha_star", "alpha_confusion"), m=NEURONS, L=100,
                      data="fixed_disc")  # fmt: skip
    with folder("1a", request, options) as where:
        laws, found = _along_alpha(system, law, options, "rest", where / "trained", request.seed)
    by_alpha, by_gap = alphas(laws) ** -2.0, gaps(laws) ** -2.0
    known = np.isfinite(found.values)
    straight = [line(x[known], found.values[known]).r2 for x in (by_alpha, by_gap)]
    powers = growth(found, 1 / alphas(laws)), growth(found, 1 / gaps(laws))
    law_gap = _through(by_gap, found, 1.0)
    panels = (
        Panel(by_alpha, r"$\alpha_*^{-2}$", found.share, found.thresholds,
              {r"$N \propto \alpha_*^{-2}$": _through(by_alpha, found, 1.0)},
              f"the paper's variable, {_straight(straight[0], 2)}"),
        Panel(by_gap, r"$(\alpha_* - \alpha_\#)^{-2}$", found.share, found.thresholds,
              {r"$N \propto (\alpha_* - \alpha_\#)^{-2}$": law_gap},
              f"what orders the data, {_straight(straight[1], 3)}"),
    )  # fmt: skip
    held = _held(law, options, rf"$\sigma = {law.sigma:g}$", WORDS["rest"])
    caption = (
        f"Share of {options['trials']} trials with a test loss below 1e-3 over N and alpha_*, "
        f"alpha_# = 1/2 - alpha_* (L={law.L}, m={law.m}, {law.data}, eta={ETA:g}). N50 by "
        f"alpha_*: {_told(options['alphas'], found)}. Exponent of N50 in 1/alpha_*: {powers[0]}, "
        f"in 1/(alpha_* - alpha_#): {powers[1]}"
    )
    if np.isfinite(straight).all():
        caption += (
            f"; R^2 of a straight line {straight[0]:.3f} over alpha_*^-2, {straight[1]:.4f} over "
            "(alpha_* - alpha_#)^-2"
        )
    if isfinite(law_gap[0]):
        caption += f"; N50 = {law_gap[0] / by_gap[0]:.3g} (alpha_* - alpha_#)^-2"
    caption += "."
    data = {"alpha_star": options["alphas"], "r2": straight, **_table(found)}
    return Drawing(success(found.counts, panels, held), data, caption)


def figure_1b(system: System, request: FigureRequest) -> Drawing:
    """N over (1 - sigma)^-2.

    Options: ``sigmas``, ``samples``, ``trials``, ``workers``, ``store``.
    """
    options = _options(request, "sigmas", SIGMAS)
    law = request.law(system, ("sigma",), m=NEURONS, L=50, alpha_star=0.3, alpha_confusion=0.2,
                      data="fixed_disc")  # fmt: skip
    values = np.array(options["sigmas"])
    if values[-1] >= 1:
        refuse("sigmas", values[-1], "has no (1 - sigma)^-2", "below 1", 0.9)
    with folder("1b", request, options) as where:
        seeds = list(range(request.seed, request.seed + options["trials"]))
        asked = plain(law, ("sigma",)) | {"seed": seeds}
        axis, place = ("sigma", options["sigmas"]), (where / "trained", options["workers"])
        found = rows(system, asked, axis, options["samples"], place)
    x = (1 - values) ** -2.0
    fit, flat = growth(found, 1 / (1 - values)), _through(x, found, 0.0)
    first = flat[0] * x / x[0]
    told = _power(fit, r"in $1/(1 - \sigma)$")
    panels = (
        Panel(x, r"$(1 - \sigma)^{-2}$", found.share, found.thresholds,
              {"constant": flat}, "the paper's variable"),
        Curves(values, r"$\sigma$", {"trained": found.thresholds},
               {f"constant, {flat[0]:.3g}" if isfinite(flat[0]) else f"constant: {TOO_FEW}": flat,
                r"$\propto (1 - \sigma)^{-2}$": np.where(first < 4 * flat[0], first, np.nan)},
               ("linear", "linear"), told),
    )  # fmt: skip
    shares = rf"$\alpha_* = {law.alpha_star:g}$, $\alpha_\# = {law.alpha_confusion:g}$"
    caption = (
        f"Share of {options['trials']} trials with a test loss below 1e-3 over N and sigma "
        f"(alpha_*={law.alpha_star:g}, alpha_#={law.alpha_confusion:g}, L={law.L}, m={law.m}, "
        f"{law.data}, eta={ETA:g}). N50 by sigma: {_told(values, found)}. Exponent of N50 in "
        f"1/(1 - sigma): {fit}, claimed is 2. Median steps "
        f"{_steps(found.medians)}."
    )
    data = {"sigma": values, **_table(found)}
    return Drawing(success(found.counts, panels, _held(law, options, shares)), data, caption)


def figure_3(system: System, request: FigureRequest) -> Drawing:
    """Trained and frozen attention, N over alpha_*^-4.

    Options: ``family`` (``proportion`` or ``rest``), ``alphas``, ``samples``, ``trials``,
    ``workers``, ``store``.
    """
    usual = str(request.user_options.get("family", "proportion"))
    axis = ALPHAS.get(usual, ALPHAS["proportion"])
    options = _options(request, "alphas", axis, family="proportion")
    family = _family(options)
    law = request.law(system, ("alpha_star", "alpha_confusion", "frozen"), m=NEURONS, L=100,
                      data="fixed_disc")  # fmt: skip
    with folder("3", request, options) as where:
        laws, trained = _along_alpha(system, law, options, family, where / "trained", request.seed)
        frozen = _along_alpha(
            system, replace(law, frozen="attention"), options, family, where / "frozen",
            request.seed,
        )[1]  # fmt: skip
    x, inverse = alphas(laws) ** -4.0, 1 / alphas(laws)
    fits = growth(trained, inverse), growth(frozen, inverse)
    ratio = frozen.values / trained.values
    last = inverse if family == "proportion" else 1 / gaps(laws)
    lines = growth(trained, last), growth(frozen, last)
    variable = r"1/\alpha_*" if family == "proportion" else r"1/(\alpha_* - \alpha_\#)"
    panels = (
        Panel(x, r"$\alpha_*^{-4}$", trained.share, trained.thresholds,
              {r"$N \propto \alpha_*^{-2}$": _through(inverse, trained, 2.0)},
              "attention trained"),
        Panel(x, r"$\alpha_*^{-4}$", frozen.share, frozen.thresholds,
              {r"$N \propto \alpha_*^{-4}$": _through(inverse, frozen, 4.0)},
              "attention frozen (the paper's CNN)"),
        Curves(last, f"${variable}$",
               {"trained": trained.thresholds, "frozen": frozen.thresholds},
               {_power(lines[0]): lines[0].prefactor * last ** lines[0].exponent,
                _power(lines[1], "frozen"): lines[1].prefactor * last ** lines[1].exponent},
               title=f"fitted exponents in ${variable}$"),
    )  # fmt: skip
    caption = (
        f"Share of {options['trials']} trials with a test loss below 1e-3, attention trained and "
        f"frozen, the same seeds (alpha_# = {CONFUSION[family]}, L={law.L}, m={law.m}, {law.data}, "
        f"eta={ETA:g}). N50 by alpha_*, trained: {_told(options['alphas'], trained)}; frozen: "
        f"{_told(options['alphas'], frozen)}. Exponents in 1/alpha_*: {fits[0]} and {fits[1]} "
        "(2 and 4 are claimed); frozen over trained: "
        + _ratios(ratio)
        + "; median steps frozen over trained: "
        + _ratios(frozen.medians / trained.medians) + "."
    )  # fmt: skip
    held = _held(law, options, rf"$\sigma = {law.sigma:g}$", WORDS[family])
    data = {
        "alpha_star": options["alphas"], "trained": _table(trained), "frozen": _table(frozen),
        "exponents": [fit.exponent for fit in fits], "errors": [fit.error for fit in fits],
    }  # fmt: skip
    return Drawing(success(trained.counts, panels, held), data, caption)
