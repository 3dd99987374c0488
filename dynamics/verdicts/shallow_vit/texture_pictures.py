"""Figure of Section 4.2 on small images: examples, accuracies, successes, backgrounds."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from dynamics.images import datasets
from dynamics.images.protocol import estimate
from dynamics.plotting.captions import subtitle
from dynamics.plotting.style import BLUE, GREY, PIXELS, VERMILION, styled
from dynamics.system import System
from dynamics.validation import refuse
from dynamics.verdicts.figure import Drawing, FigureRequest, with_flags
from dynamics.verdicts.images import ascending, error_bars, request_on_images
from dynamics.verdicts.shallow_vit import textured_images as images
from dynamics.verdicts.shallow_vit.textured_images import GROUPS, SUCCESS, Scene, Shown, Trials
from dynamics.verdicts.wording import counted

LOOKS = (
    ("all test images", GREY, "o", "-"), ("usual background", BLUE, "s", "-"),
    ("unusual background", VERMILION, "^", "--"),
)  # fmt: skip
MARKERS = "os^Dv<>p"
SHARE, ACCURACY = r"$\alpha_\star = {:.2g}$", "test accuracy (%)"
SMALL: dict[str, Any] = {"fontsize": 9}


def rows(whole: Trials, pair: Trials) -> list[dict[str, Any]]:
    """Rows of a table of accuracies: all classes by alpha_* and N, then two classes by alpha_*."""
    successes = whole.successes()
    table: list[dict[str, Any]] = [
        {"alpha_*": round(share, 2), "N": count, "accuracy": str(estimate(whole.values[a, n])),
         "successes": f"{successes[a, n]:.0%}"}
        for a, share in enumerate(whole.shares) for n, count in enumerate(whole.samples)
    ]  # fmt: skip
    for a, share in enumerate(pair.shares):
        entries = {g: str(estimate(pair.values[a, k])) for k, g in enumerate(GROUPS)}
        table.append({"alpha_*": round(share, 2), "spurious": "90/10"} | entries)
    return table


@with_flags(
    {"resume": "resume an interrupted run"},
    objects="digits, fashion, or a folder of MNIST, CIFAR or SVHN (default digits)",
)
def textures_figure(system: System, request: FigureRequest) -> Drawing:
    """Section 4.2 on small images; options: ``shares``, ``samples``, ``seeds``, `Scene` fields."""
    quick = {
        "objects": "digits", "texture": "grass", "side": 10, "patch": 2, "pair": images.PAIR,
        "shares": images.SHARES, "samples": images.SAMPLES, "seeds": images.SEEDS,
        "tests": images.TESTS, "steps": images.STEPS,
    }  # fmt: skip
    options, folder = request_on_images(system, request, "textures", quick, {"seeds": 10}, pair=0)
    shares, samples = (ascending(options.pop(name)) for name in ("shares", "samples"))
    if not all(0 < share <= 1 for share in shares):
        refuse("shares", [*shares], "are not shares", "numbers above 0 and up to 1", 1.0)
    seeds = options.pop("seeds")
    scene = Scene(0, 1.0, 0, data=options.pop("objects"), **options)
    pair = images.spurious(seeds, shares, scene, folder)
    whole = images.classes(samples, seeds, shares, scene, folder)
    data = {
        "shares": list(whole.shares), "samples": list(samples), "needed": whole.needed(),
        "accuracy": whole.values.tolist(), "spurious": pair.values.swapaxes(1, 2).tolist(),
    }  # fmt: skip
    same = replace(scene, pair=(), samples=samples[-1], seed=seeds[0])
    every = datasets.load(scene.data)
    examples = [images.scene_data(replace(same, share=s), every)[0] for s in whole.shares]
    axes = draw(scene, whole, pair, examples)
    return Drawing(axes, data, _caption(scene, whole, pair), rows(whole, pair))


def _caption(scene: Scene, whole: Trials, pair: Trials) -> str:
    rise = estimate(pair.values[-1, 0] - pair.values[0, 0])
    last = whole.samples[-1]
    needed = ", ".join(
        f"{n:g} at {share:.2g}" if np.isfinite(n) else f"more than {last} at {share:.2g}"
        for share, n in zip(whole.shares, whole.needed(), strict=True)
    )
    return (
        f"Section 4.2 with objects of {scene.data} on {scene.texture}, {scene.side} x {scene.side} "
        f"pixels, patches of {scene.patch}; two layers of width 32, {scene.steps} steps of Adam, "
        f"{counted(whole.values.shape[-1], 'seed')}. Least N at which half of the trials "
        f"reach {SUCCESS:.1%}: "
        f"{needed} (alpha_*). Spurious background, classes {scene.pair[0]} and {scene.pair[1]}: "
        f"the accuracy rises by {rise} from alpha_* = {pair.shares[0]:.2g} to "
        f"{pair.shares[-1]:.2g}."
    )


@styled
def draw(scene: Scene, trials: Trials, pair: Trials, examples: Sequence[Shown]) -> Any:
    """Draw all panels: an example for each share, accuracies with all and with two classes."""
    figure = Figure((11.0, 5.6), dpi=PIXELS / 11.0, layout="constrained")
    grid = figure.add_gridspec(2, 1, height_ratios=[1, 1.7])
    above: Any = grid[0].subgridspec(1, max(2, len(examples))).subplots()
    below: Any = grid[1].subgridspec(1, 3).subplots()
    for panel in above[len(examples) :]:
        panel.set_axis_off()
    for panel, share, example in zip(above, trials.shares, examples, strict=False):
        _example(panel, example, SHARE.format(share))
    shades = mpl.colormaps["viridis"](np.linspace(0.0, 0.85, len(trials.shares)))
    for a, share in enumerate(trials.shares):
        look = {"color": shades[a], "marker": MARKERS[a % len(MARKERS)], "ms": 4, "lw": 1.2}
        look["label"] = SHARE.format(share)
        error_bars(below[0], trials.samples, 100 * trials.values[a], **look)
        below[1].plot(trials.samples, 100 * trials.successes()[a], **look)
    for panel in below[:2]:
        panel.set(xscale="log", xlabel="training images $N$")
        panel.set_xticks(trials.samples, [str(n) for n in trials.samples])
        panel.minorticks_off()
    below[0].axhline(100 * SUCCESS, color=GREY, lw=0.8)
    place = {"xycoords": ("axes fraction", "data"), "color": GREY, "va": "bottom"}
    below[0].annotate("success", (0, 100 * SUCCESS), **place)
    below[0].legend()
    below[0].set_ylabel(ACCURACY)
    below[1].set(ylabel=f"seeds at or above {SUCCESS:.1%} (%)", ylim=(-4, 104))
    for k, (name, colour, marker, dash) in enumerate(LOOKS):
        look = {"color": colour, "marker": marker, "ls": dash, "label": name}
        error_bars(below[2], trials.shares, 100 * pair.values[:, k], **look)
    below[2].axhline(50, color=GREY, lw=0.8)
    below[2].set_xticks(trials.shares, [f"{share:.2g}" for share in trials.shares])
    below[2].set(xlabel=r"$\alpha_\star$", ylabel=ACCURACY)
    below[2].set_title(f"90/10 background, classes {scene.pair[0]}, {scene.pair[1]}", **SMALL)
    below[2].legend(loc="lower right", bbox_to_anchor=(1.0, 0.06))
    subtitle(
        figure,
        f"objects of {scene.data.rpartition('/')[2]} on {scene.texture}, {scene.side} x "
        f"{scene.side} pixels, patches of {scene.patch} x {scene.patch}, {scene.steps} steps, "
        f"{counted(trials.values.shape[-1], 'seed')}; bars: standard error; dropped patches "
        "are blue",
    )
    return np.array([*above[: len(examples)], *below])


def _example(panel: Axes, example: Shown, title: str) -> None:
    pixels, present = example.canvases.pixels, example.present[0]
    image, grid = pixels[0].mean(axis=-1), int(present.size**0.5)
    left = np.kron(present.reshape(grid, grid), np.ones([pixels.shape[1] // grid] * 2)) > 0
    shades = mpl.colormaps["gray"].with_extremes(bad="#9ECAE1")
    panel.imshow(np.ma.masked_array(image, ~left), cmap=shades, vmin=image.min(), vmax=image.max())
    panel.set(xticks=[], yticks=[])
    panel.set_title(title, **SMALL)
