"""Figure of Section 6 on real images: tables, accuracies, p-values and maps of association.

A map of association shows, for each displacement (down, across) but zero, the mean of <p_i, p_j>
over all seeds and all pairs of patches with this displacement. Products are standardized to mean 0
and root mean square 1 over the pairs of patches (`dynamics.images.association`).
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import product
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dynamics.images.association import standardized
from dynamics.images.networks import CONTROL, POSITIONAL, VANILLA
from dynamics.images.protocol import Trained, estimate
from dynamics.plotting import style
from dynamics.plotting.captions import subtitle
from dynamics.plotting.style import BLUE, GREEN, GREY, ORANGE, VERMILION, styled
from dynamics.problem import FloatArray
from dynamics.system import System
from dynamics.verdicts.figure import Drawing, FigureRequest, with_flags
from dynamics.verdicts.images import ascending, error_bars, request_on_images, steps_axis
from dynamics.verdicts.positional_attention.real_images import WHICH, Plan, Trials, train_all
from dynamics.verdicts.wording import counted

FIXED = ("pixels", "kinds")
"""Fields of `Plan` that are not options of the figure."""
PIXELS = {False: "original", True: "shuffled"}
LEVEL = 0.05
"""P-value at which the panel of p-values has a horizontal line."""
COLOURS = {VANILLA: (VERMILION, ORANGE), POSITIONAL: (BLUE, "#56B4E9"), CONTROL: (GREEN, GREEN)}
"""Colours of a kind of network, one for each spread of the positions at the start."""
MARKERS = {VANILLA: "oD", POSITIONAL: "oD", CONTROL: "ss"}


def rows(trials: Trials) -> Iterator[dict[str, Any]]:
    """Yield the rows of a table of accuracies by length of run, then of a table of association."""
    pixels = trials.plan.pixels
    for name, steps in product(trials.names, trials.plan.steps):
        row: dict[str, Any] = {"network": name, "steps": steps}
        for moved in pixels:
            row[PIXELS[moved]] = str(estimate(trials.accuracies(name, moved, steps)))
        if len(pixels) == 2:
            drop = trials.difference((name, False), (name, True), steps)
            row |= {"drop": str(drop), "drop / error": drop.errors}
        if name.startswith(POSITIONAL):
            vanilla = name.replace(POSITIONAL, VANILLA)
            gap = trials.difference((vanilla, pixels[0]), (name, pixels[0]), steps)
            row["vanilla - positional"] = str(gap)
        yield row
    found: dict[Any, dict[str, Any]] = {}
    for (name, moved, which, shown, steps), p_value in trials.corrected.items():
        row = {"network": name, "pixels": PIXELS[moved]}
        row["neighbours in"] = "shown" if shown else "original"
        found.setdefault((name, moved, shown), row)[f"p {WHICH[which]} at {steps}"] = p_value
    yield from found.values()


@with_flags(
    {"permuted": "train on permuted images only", "resume": "resume an interrupted run"},
    data="digits, fashion, or a folder of MNIST, CIFAR or SVHN (default digits)",
)
def images_figure(system: System, request: FigureRequest) -> Drawing:
    """Section 6 on real images; options are the flags, fields of `Plan`, number of ``seeds``."""
    plain = {name: value for name, value in vars(Plan()).items() if name not in FIXED}
    quick = plain | {"seeds": len(Plan().seeds), "permuted": 0}
    thorough = {"steps": (500, 2000, 8000)}
    options, folder = request_on_images(system, request, "images", quick, thorough)
    pixels = (True,) if options.pop("permuted") else (False, True)
    options |= {name: ascending(options[name]) for name in ("steps", "spreads")}
    plan = Plan(**options, pixels=pixels)
    trials = train_all(plan, folder)
    data = {"plan": vars(plan), **data_of(trials)}
    return Drawing(draw(trials), data, caption(trials), list(rows(trials)))


def data_of(trials: Trials) -> dict[str, Any]:
    """Data of the picture as plain values: (network, pixels) -> series of every seed."""
    content: dict[str, Any] = {"records": list(trials.plan.records)}
    for (name, moved), runs in trials.runs.items():
        accuracy = [run.accuracy.tolist() for run in runs]
        content[f"{name}, {PIXELS[moved]}"] = {"accuracy": accuracy}
    for name, moved, which, shown in trials.views:
        along = [_series(run, which, shown) for run in trials.runs[name, moved]]
        content[f"{name}, {PIXELS[moved]}"][which + " as shown" * shown] = along
    return content


def _series(run: Trained, which: str, shown: bool) -> dict[str, list[Any]]:
    along = [run.association(which, record, shown) for record in range(len(run.run.steps))]
    names = ("contrast", "p_value", "either")
    return {n: [np.asarray(getattr(each, n)).tolist() for each in along] for n in names}


def caption(trials: Trials) -> str:
    """Caption with the protocol of the figure, the drops of accuracy and the p-values."""
    plan, images = trials.plan, trials.images
    last, moved = plan.steps[-1], plan.pixels[-1]
    words = (
        f"Section 6 on {images.name}: {images.side} x {images.side} pixels, patches of "
        f"{trials.patch}, shuffled in blocks of {trials.shuffle}; two layers of width 32, Adam, "
        f"{counted(len(plan.seeds), 'seed')}; mean and standard error over seeds, in pairs. "
    )
    if len(plan.pixels) == 2:
        drops = {n: trials.difference((n, False), (n, True), last) for n in trials.names}
        listed = "; ".join(f"{name} {drop} ({drop.errors:.1f})" for name, drop in drops.items())
        words += f"Drop by shuffling after {last:,} steps (in standard errors): {listed}. "
    parts = []
    for view in trials.views:
        if view[1::2] == (moved, False):
            before, after = (trials.corrected[*view, steps] for steps in (0, last))
            name = f"{view[0]} {WHICH[view[2]]}"
            parts.append(f"{name} {before:.2g} before training, {after:.2g} after")
    return (
        f"{words}P-values over all seeds of {PIXELS[moved]} pixels (Holm), that neighbours of the "
        f"original image are associated: {'; '.join(parts)}."
    )


def looks(names: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Colour and marker of every network."""
    kinds = [name.partition(",")[0] for name in names]
    turns = [kinds[:k].count(kind) % 2 for k, kind in enumerate(kinds)]
    return {
        name: (COLOURS[kind][turn], MARKERS[kind][turn])
        for name, kind, turn in zip(names, kinds, turns, strict=True)
    }


@styled
def draw(trials: Trials) -> Any:
    """Draw all panels of the figure."""
    plan, images, patch, block = trials.plan, trials.images, trials.patch, trials.shuffle
    name = next(each for each in trials.names if each.startswith(POSITIONAL))
    first, last = trials.runs[name, plan.pixels[0]], trials.runs[name, plan.pixels[-1]]
    maps = {"start": (first, 0, False)}
    if not plan.pixels[0]:
        maps["learned, original pixels"] = (first, -1, False)
    if plan.pixels[-1]:
        maps["learned on shuffled pixels"] = (last, -1, True)
        maps["the same, moved back"] = (last, -1, False)
    figure = Figure((11.0, 7.0), dpi=style.PIXELS / 11.0, layout="constrained")
    rows = figure.add_gridspec(2, 1, height_ratios=[1.35, 1])
    top: Any = rows[0].subgridspec(1, 3).subplots()
    below: Any = rows[1].subgridspec(1, len(maps)).subplots()
    _accuracies(top[0], trials)
    _association(top[1], top[2], trials)
    _maps(below, maps, rf"$\langle p_i, p_j \rangle$, {name}")
    subtitle(
        figure,
        f"{images.name.rstrip('/').rpartition('/')[2]}, {images.side} x {images.side} pixels, "
        f"patches of {patch} x {patch}, shuffled in blocks of {block} x {block}, "
        f"{counted(len(plan.seeds), 'seed')}; bars: standard error; start: spread of the positions "
        "at step 0",
    )
    return np.array([*top, *below])


def _accuracies(panel: Axes, trials: Trials) -> None:
    plan, look = trials.plan, looks(trials.names)
    lines = [*product(trials.names, plan.steps)]
    for (y, (name, steps)), moved in product(enumerate(lines), plan.pixels):
        mean, error, _ = estimate(trials.accuracies(name, moved, steps))
        colour, marker = look[name]
        panel.errorbar(
            100 * mean, y + (0.14 if moved else -0.14), xerr=100 * np.nan_to_num(error), ms=5,
            fmt=marker, color=colour, mfc="white" if moved else colour, capsize=2, lw=1.2,
        )  # fmt: skip
    words = [f"{name.replace(', start ', ' ')}\n{steps:,} steps" for name, steps in lines]
    panel.set_yticks(range(len(lines)), words, fontsize=7.5)
    panel.invert_yaxis()
    panel.set_xlabel("test accuracy (%)")
    for moved in plan.pixels:
        face, label = ("white", "shuffled") if moved else (GREY, "original")
        panel.plot([], [], "o", color=GREY, mfc=face, label=label)
    panel.legend(loc="best", title="pixels", alignment="left", fontsize=7.5)


def _association(contrast: Axes, p_values: Axes, trials: Trials) -> None:
    plan, look = trials.plan, looks(trials.names)
    moved, steps = plan.pixels[-1], np.array(plan.records)
    for name, pixels, which, shown in trials.views:
        if pixels is not moved or which != "gram":
            continue
        colour, marker = look[name]
        if not shown:
            runs = trials.runs[name, moved]
            records = range(len(steps))
            values = [[run.association(which, k).contrast[0] for run in runs] for k in records]
            error_bars(contrast, steps, values, color=colour, marker=marker, label=name)
        p = [trials.p_value(name, moved, which, shown, n) for n in plan.records]
        dash, face = (":", "white") if shown else ("-", colour)
        p_values.plot(steps, p, dash, color=colour, marker=marker, ms=4, lw=1.2, mfc=face)
    contrast.axhline(0, color=GREY, lw=0.8)
    contrast.set_ylabel(r"$\langle p_i, p_j \rangle$: neighbours $-$ others (r.m.s.)")
    contrast.legend(loc="upper left", fontsize=7.5)
    p_values.axhline(LEVEL, color=GREY, lw=0.8)
    p_values.text(1, LEVEL, f"{LEVEL:g}", transform=p_values.get_yaxis_transform(), color=GREY,
                  ha="right", va="top")  # fmt: skip
    p_values.set(yscale="log", ylabel="p-value, all seeds together")
    p_values.set_ylim(bottom=p_values.get_ylim()[0] ** 1.4)  # space for the legend
    p_values.plot([], [], "o-", color=GREY, label="in the original image")
    if moved:
        p_values.plot([], [], "o:", color=GREY, mfc="white", label="in the image as shown")
    p_values.legend(loc="lower left", title="neighbours", fontsize=7.5, alignment="left")
    for panel in (contrast, p_values):
        panel.set_title(f"trained on {'shuffled' if moved else 'original'} pixels", fontsize=9)
        steps_axis(panel, steps)


def _maps(panels: Sequence[Axes], maps: dict[str, tuple[Any, int, bool]], label: str) -> None:
    """Draw a map of association in each panel (see `mean_by_displacement`)."""
    fields = [mean_by_displacement(*case) for case in maps.values()]
    largest = max(float(np.nanmax(np.abs(field))) for field in fields)
    for panel, field, title in zip(panels, fields, maps, strict=True):
        reach = len(field) // 2
        extent = (-reach - 0.5, reach + 0.5, reach + 0.5, -reach - 0.5)
        look: dict[str, Any] = {"cmap": "PuOr_r", "vmin": -largest, "vmax": largest}
        image = panel.imshow(field, extent=extent, **look)
        panel.set_facecolor("0.75")
        panel.set_title(title, fontsize=9)
        ticks = [-reach, 0, reach]
        panel.set(xlabel="patches across", xticks=ticks, yticks=ticks)
    panels[0].set_ylabel("patches down")
    panels[0].figure.colorbar(image, ax=list(panels), shrink=0.9, label=label)


def mean_by_displacement(runs: Sequence[Trained], record: int, as_shuffled: bool) -> FloatArray:
    """Mean of the standardized <p_i, p_j> by the displacement from patch i to patch j.

    `as_shuffled`: whether places are those in the shuffled images of training. The array has shape
    (2 reach + 1, 2 reach + 1), with ``reach`` half of the grid, and NaN in the middle.
    """
    grid = int(len(runs[0].places()) ** 0.5)
    reach = max(1, grid // 2)
    total, count = np.zeros((2, 2 * reach + 1, 2 * reach + 1))
    for run in runs:
        gram = standardized(run.gram(record)[None])[0]
        places = np.array(np.divmod(run.places(as_shuffled), grid))
        apart = places[:, None, :] - places[:, :, None]
        inside = (np.abs(apart) <= reach).all(axis=0)
        at = tuple(apart[:, inside] + reach)
        np.add.at(total, at, gram[inside])
        np.add.at(count, at, 1)
    field = total / np.maximum(count, 1)
    field[reach, reach] = np.nan
    return np.asarray(field)
