"""The picture of Section 4.2 on small images: examples, accuracies, successes, backgrounds."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from dynamics.images.textures import Canvases
from dynamics.plotting.captions import subtitle
from dynamics.plotting.style import BLUE, GREY, PIXELS, VERMILION, styled
from dynamics.verdicts.images import error_bars
from dynamics.verdicts.wording import counted

if TYPE_CHECKING:
    from dynamics.verdicts.shallow_vit.textured_images import Scene, Trials

LOOKS = ((GREY, "o", "-"), (BLUE, "s", "-"), (VERMILION, "^", "--"))
"""Of all test images, of those with the usual background, and of the others."""
MARKERS = "os^Dv<>p"
SUCCESS = 0.775
"""Test accuracy of a success (Section 4.2)."""


@styled
def draw(
    scene: Scene, trials: Trials, pair: Trials,
    examples: Sequence[tuple[Canvases, NDArray[np.bool_]]],
) -> Any:  # fmt: skip
    """Draw all panels.

    Parameters
    ----------
    scene : Scene
    trials, pair : Trials
        Of all classes, and with a spurious background.
    examples : sequence of (Canvases, bool array)
        Images of one scene and the patches that are left, one a share.

    Returns
    -------
    array of Axes
    """
    figure = Figure((11.0, 5.6), dpi=PIXELS / 11.0, layout="constrained")
    grid = figure.add_gridspec(2, 1, height_ratios=[1, 1.7])
    above: Any = grid[0].subgridspec(1, max(2, len(examples))).subplots()
    below: Any = grid[1].subgridspec(1, 3).subplots()
    for panel in above[len(examples) :]:
        panel.set_axis_off()
    for panel, share, (canvases, present) in zip(above, trials.shares, examples, strict=False):
        _example(panel, canvases, present, rf"$\alpha_\star = {share:.2g}$")
    shades = mpl.colormaps["viridis"](np.linspace(0.0, 0.85, len(trials.shares)))
    for a, share in enumerate(trials.shares):
        look = {"color": shades[a], "marker": MARKERS[a % len(MARKERS)], "ms": 4, "lw": 1.2}
        label = rf"$\alpha_\star = {share:.2g}$"
        error_bars(below[0], trials.samples, 100 * trials.values[a], **look, label=label)
        below[1].plot(trials.samples, 100 * trials.successes()[a], **look, label=label)
    for panel in below[:2]:
        panel.set_xscale("log")
        panel.set_xticks(trials.samples, [str(n) for n in trials.samples])
        panel.minorticks_off()
        panel.set_xlabel("training images $N$")
    below[0].axhline(100 * SUCCESS, color=GREY, lw=0.8)
    below[0].annotate("success", (0, 100 * SUCCESS), xycoords=("axes fraction", "data"),
                      color=GREY, va="bottom")  # fmt: skip
    below[0].legend()
    below[0].set_ylabel("test accuracy (%)")
    below[1].set(ylabel=f"seeds at or above {SUCCESS:.1%} (%)", ylim=(-4, 104))
    names = ("all test images", "usual background", "unusual background")
    for k, (name, (colour, marker, dash)) in enumerate(zip(names, LOOKS, strict=True)):
        look = {"color": colour, "marker": marker, "ls": dash, "label": name}
        error_bars(below[2], trials.shares, 100 * pair.values[:, k], **look)
    below[2].axhline(50, color=GREY, lw=0.8)
    below[2].set_xticks(trials.shares, [f"{share:.2g}" for share in trials.shares])
    below[2].set(xlabel=r"$\alpha_\star$", ylabel="test accuracy (%)")
    below[2].set_title(f"90/10 background, classes {scene.pair[0]}, {scene.pair[1]}",
                       fontsize=9)  # fmt: skip
    below[2].legend(loc="lower right", bbox_to_anchor=(1.0, 0.06))
    subtitle(
        figure,
        f"objects of {scene.data.rpartition('/')[2]} on {scene.texture}, {scene.side} x "
        f"{scene.side} pixels, patches of {scene.patch} x {scene.patch}, {scene.steps} steps, "
        f"{counted(trials.values.shape[-1], 'seed')}; bars: standard error; dropped patches "
        "are blue",
    )
    return np.array([*above[: len(examples)], *below])


def _example(panel: Axes, canvases: Canvases, present: NDArray[np.bool_], title: str) -> None:
    """The first image, with the patches that were dropped in blue."""
    image, side = canvases.pixels[0].mean(axis=-1), canvases.pixels.shape[1]
    grid = int(present.shape[1] ** 0.5)
    left = present[0].reshape(grid, grid).repeat(side // grid, axis=0).repeat(side // grid, axis=1)
    shades = mpl.colormaps["gray"].with_extremes(bad="#9ECAE1")
    panel.imshow(np.ma.masked_array(image, ~left), cmap=shades, vmin=image.min(), vmax=image.max())
    panel.set(xticks=[], yticks=[])
    panel.set_title(title, fontsize=9)
