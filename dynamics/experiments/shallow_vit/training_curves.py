"""Figures 2, 4 and 7: iterations, and attention along training."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from dynamics.experiments.curves import line
from dynamics.experiments.figure import Drawing, FigureRequest
from dynamics.experiments.shallow_vit.attention import limit
from dynamics.experiments.shallow_vit.cached_sweeps import folder, plain, swept, values
from dynamics.experiments.shallow_vit.iterations import CONFUSION, FAMILIES, FEWEST, family_of
from dynamics.experiments.shallow_vit.pictures.attention_mass import Course, attention_mass
from dynamics.experiments.shallow_vit.pictures.iterations import Family, iterations
from dynamics.experiments.shallow_vit.runs import PATTERNS, SAMPLES, proofs_margin
from dynamics.results.power_law import exponent
from dynamics.sweep.worker_pool import cores
from dynamics.training.gradient_descent import descend
from dynamics.validation import integer, refuse

if TYPE_CHECKING:
    from dynamics.registry import System
    from dynamics.results.trajectory import Trajectory

ENDS = {"one": 110, "root": 210}
"""Steps that show each margin to its end."""
RECORDS = 5


def figure_2(system: System, request: FigureRequest) -> Drawing:
    """Steps to zero training loss over alpha_*.

    Options: ``families`` (``rest``, ``constant``, ``proportion``, ``none``), ``eta``, ``steps``,
    ``seeds``, ``workers``, ``store``.
    """
    usual = {
        "families": tuple(FAMILIES), "eta": 0.05, "steps": 6000, "seeds": 3, "workers": cores(),
        "store": "",
    }  # fmt: skip
    options = request.settled(usual, {"seeds": 20})
    law = request.law(system, ("alpha_star", "alpha_confusion"), L=100)
    eta, many = float(options["eta"]), integer("seeds", options["seeds"], at_least=1)
    workers, found = integer("workers", options["workers"], at_least=0), {}
    with folder("2", request, options) as where:
        for name in options["families"]:
            if name not in FAMILIES:
                refuse("families", name, "is unknown", ", ".join(FAMILIES), "rest")
            alphas, _ = family_of(law, name)
            if len(alphas) < FEWEST:
                continue
            given = plain(law) | {
                "alpha_star": list(alphas), "alpha_confusion": CONFUSION[name], "eta": eta,
                "steps": options["steps"],
                "seed": list(range(request.seed, request.seed + many)),
            }  # fmt: skip
            done = swept(system, given, where / f"{name}.zarr", workers)
            steps = values(done, "time_t_zero", ("alpha_star", "seed")) / eta
            gaps = _gaps(system, law, done)
            found[name] = Family(FAMILIES[name][0], np.array(alphas), gaps, steps)
    if not found:
        refuse("L", law.L, "leaves fewer than three points in every family", "larger", 100)
    shown = list(found.values())
    lines = [[line(1 / at, one.mean) for at in (one.alphas, one.gaps)] for one in shown]
    without = [name for name in options["families"] if name not in found]
    told = "; ".join(
        f"{name}: R^2 {by_alpha.r2:.4f} over 1/alpha_*, {by_gap.r2:.4f} over x = 1/(alpha_* - "
        f"alpha_#), T = {by_gap.slope:.1f} x {by_gap.level:+.1f} (eta T = "
        f"{by_gap.slope * eta:.2f} x), log slope "
        f"{-exponent(one.gaps.tolist(), one.mean.tolist()):.2f}"
        for (name, one), (by_alpha, by_gap) in zip(found.items(), lines, strict=True)
    ) + (f"; too few points with L={law.L}: {', '.join(without)}" if without else "")
    held = (
        f"the law itself ({law.data}), $L = {law.L}$, $M = {law.M}$, $m = {law.m}$, "
        rf"$\sigma = {law.sigma:g}$, $\delta = {law.delta:g}$, margin {law.margin:g}, "
        rf"$\eta = {eta:g}$, no noise; "
        + (f"mean of {many} starts, bars from least to greatest" if many > 1 else "one start")
    )
    caption = (
        f"Steps to zero training loss against 1/alpha_* and 1/(alpha_* - alpha_#) (L={law.L}, "
        f"m={law.m}, eta={eta:g}, {many} start(s)). {told}."
    )
    data = {
        name: {"alpha_star": one.alphas, "gap": one.gaps, "steps": one.steps}
        for name, one in found.items()
    }
    return Drawing(iterations(shown, held), data, caption)


def _gaps(system: System, law: Any, done: Any) -> np.ndarray:
    """alpha_* - alpha_# of the tokens that there are."""
    points = [done.plan.grid.at((k, 0)) for k in range(done.dataset.sizes["alpha_star"])]
    names = ("alpha_star", "alpha_confusion")
    laws = [replace(law, **{name: float(point[name]) for name in names}) for point in points]
    return np.array([(one.n_star - one.n_confusion) / one.L for one in laws])


def _trained(
    system: System, law: Any, options: dict[str, Any], steps: int, seeds: Sequence[int]
) -> list[Trajectory]:
    """Noisy training, one run a seed, on records that all have."""
    runs = []
    for seed in seeds:
        problem = system.FullEmpirical(law, options["samples"], seed, test_samples=1)
        runs.append(descend(problem, float(options["eta"]), steps, record=RECORDS))
    return runs


def _told(runs: Sequence[Trajectory]) -> str:
    def mean(name: str, place: int) -> float:
        return float(np.mean([run[name][place] for run in runs]))

    stops = [event.step for run in runs if (event := run.events["t_zero"]) is not None]
    kinds = [mean(f"relevant_by_{kind}", -1) for kind in ("relevant", "confusion", "other")]
    shown = ", ".join(f"{value:.3f}" for value in kinds)
    return (
        f"from {mean('relevant', 0):.3f} to {mean('relevant', -1):.3f} (queries relevant, "
        f"confusion, other: {shown}), zero training loss at step "
        + (", ".join(map(str, stops)) or "none")
    )


def _margins(law: Any, options: dict[str, Any]) -> list[tuple[str, Any, int]]:
    """Word, law and steps of the margins that are shown."""
    steps = int(options["steps"])
    both = [
        (f"margin {law.margin:g}", law, steps or ENDS["one"]),
        (rf"margin $\sqrt{{m}} = {proofs_margin(law).margin:.3g}$", proofs_margin(law),
         steps or ENDS["root"]),
    ]  # fmt: skip
    words = list(options["margins"])
    for word in words:
        if word not in ENDS:
            refuse("margins", word, "is unknown", ", ".join(ENDS), "one")
    return [one for one, word in zip(both, ENDS, strict=True) if word in words]


def _attention(
    system: System, request: FigureRequest, laws: Sequence[tuple[str, Any]], usual: dict[str, Any]
) -> Drawing:
    """Columns are laws, or margins where there is one law; else rows are margins."""
    common = {"eta": 0.1, "steps": 0, "samples": SAMPLES, "margins": ("one", "root")}
    options = request.settled(common | usual, {"seeds": 10})
    many = integer("seeds", options["seeds"], at_least=1)
    options["samples"] = integer("samples", options["samples"], at_least=1)
    seeds, grid, told, data = range(request.seed, request.seed + many), [], [], {}
    for k in range(len(_margins(laws[0][1], options))):
        row = []
        for name, law in laws:
            word, each, steps = _margins(law, options)[k]
            runs = _trained(system, each, options, steps, seeds)
            title = word if not name else f"${name}$, {word}"
            row.append(Course(runs, limit(law), title))
            margin = f"{name}, " * bool(name) + f"margin {each.margin:.4g}"
            told.append(f"{margin}: {_told(runs)}")
            data[margin] = {"steps": runs[0].steps, "relevant": [run["relevant"] for run in runs]}
        grid.append(row)
    law = laws[0][1]
    if len(laws) == 1:
        grid = [[course for row in grid for course in row]]
    held = (
        rf"$N = {options['samples']}$, $L = {law.L}$, $d = {law.d}$, $m = {law.m}$, "
        rf"$\alpha_* = {law.alpha_star:g}$, $\alpha_\# = {law.alpha_confusion:g}$, "
        rf"$\sigma = {law.sigma:g}$, $\delta = {law.delta:g}$, $c_0 = {law.noise:g}$, "
        rf"$\eta = {options['eta']:g}$" + f",\n{law.data}, gradient descent; "
        + (f"mean of {many} seeds, bands from least to greatest" if many > 1 else "one seed")
    )  # fmt: skip
    caption = (
        f"Attention to label-relevant tokens, mean over all queries of the training samples, on "
        f"noisy tokens (N={options['samples']}, L={law.L}, m={law.m}, eta={options['eta']:g}, "
        f"{many} seed(s)). {'; '.join(told)}."
    )
    if (top := limit(law)) is not None:
        caption += f" Without noise it cannot pass {top:.3f}."
    return Drawing(attention_mass(grid, held), data, caption)


def figure_4(system: System, request: FigureRequest) -> Drawing:
    """Concentration. Options: ``samples``, ``eta``, ``steps``, ``seeds``, ``margins``."""
    return _attention(system, request, [("", request.law(system))], {"seeds": 3})


def figure_7(system: System, request: FigureRequest) -> Drawing:
    """The same for several M. Options: those of Figure 4."""
    law = request.law(system, ("M",), d=20)
    laws = [(f"M = {M}", replace(law, M=M)) for M in PATTERNS]
    return _attention(system, request, laws, {"seeds": 1})
