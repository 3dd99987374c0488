"""The picture of Section 6 on real images: accuracies, association along training, and where it is.

In the maps of association, each square is the mean of <p_i, p_j> over all pairs of patches
that far apart, down and across, and over all seeds, in the units of the contrast: 0 for a pair like
any other (`dynamics.images.association`). The patch itself is left out.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from numpy.typing import NDArray

from dynamics.images.association import standardized
from dynamics.images.networks import CONTROL
from dynamics.images.protocol import Trained, combined_p_value, estimate
from dynamics.plotting.captions import subtitle
from dynamics.plotting.style import BLUE, GREEN, GREY, ORANGE, PIXELS, VERMILION, styled
from dynamics.problem import FloatArray
from dynamics.verdicts.images import error_bars, steps_axis
from dynamics.verdicts.wording import counted

if TYPE_CHECKING:
    from dynamics.verdicts.positional_attention.real_images import Trials

LEVEL = 0.05
"""P-value that a line marks."""
COLOURS = {"vanilla": (VERMILION, ORANGE), "positional": (BLUE, "#56B4E9")}
"""First and second start of each attention."""


def colours_and_markers(names: Sequence[str]) -> dict[str, tuple[str, str]]:
    """Colour and marker of every network.

    Parameters
    ----------
    names : sequence of str
    """
    looks, count = {}, dict.fromkeys(COLOURS, 0)
    for name in names:
        kind = name.partition(",")[0]
        if kind not in COLOURS:
            looks[name] = (GREEN, "s")
            continue
        turn = count[kind] % 2
        looks[name] = (COLOURS[kind][turn], "o" if turn == 0 else "D")
        count[kind] += 1
    return looks


@styled
def draw(trials: Trials) -> Any:
    """Draw all panels.

    Parameters
    ----------
    trials : Trials

    Returns
    -------
    array of Axes
    """
    figure = Figure((11.0, 7.0), dpi=PIXELS / 11.0, layout="constrained")
    rows = figure.add_gridspec(2, 1, height_ratios=[1.35, 1])
    top: Any = rows[0].subgridspec(1, 3).subplots()
    pixels = trials.plan.pixels
    maps: Any = rows[1].subgridspec(1, 1 + (not pixels[0]) + 2 * pixels[-1]).subplots()
    for panel, draw_panel in zip(top, (_accuracy, _contrast, _p_values), strict=True):
        draw_panel(panel, trials)
    _maps(maps, trials)
    plan = trials.plan
    name = trials.images.name.rstrip("/").rpartition("/")[2]
    subtitle(
        figure,
        f"{name}, {trials.images.side} x {trials.images.side} pixels, patches of {trials.patch} x "
        f"{trials.patch}, shuffled in blocks of {trials.shuffle} x {trials.shuffle}, "
        f"{counted(len(plan.seeds), 'seed')}; bars: standard error; start: spread of "
        "the positions at step 0",
    )
    return np.array([*top, *maps])


def _accuracy(panel: Axes, trials: Trials) -> None:
    """Accuracy of every network at every length, original and shuffled side by side."""
    plan, styles = trials.plan, colours_and_markers(trials.names)
    lines: list[str] = []
    for name in trials.names:
        for steps in plan.steps:
            y = len(lines)
            lines.append(f"{name.replace(', start ', ' ')}\n{steps:,} steps")
            for moved in plan.pixels:
                mean, error, _ = estimate(trials.accuracies(name, moved, steps))
                colour, marker = styles[name]
                panel.errorbar(
                    100 * mean, y + (0.14 if moved else -0.14), xerr=100 * np.nan_to_num(error),
                    fmt=marker, color=colour, ms=5, capsize=2, lw=1.2,
                    mfc="white" if moved else colour,
                )  # fmt: skip
    panel.set_yticks(range(len(lines)), lines, fontsize=7.5)
    panel.invert_yaxis()
    panel.grid(axis="x", color="0.9", lw=0.6)
    panel.set_axisbelow(True)
    panel.set(xlabel="test accuracy (%)")
    for moved in plan.pixels:
        panel.plot([], [], "o", color=GREY, mfc="white" if moved else GREY,
                   label="shuffled" if moved else "original")  # fmt: skip
    panel.legend(loc="best", title="pixels", alignment="left", fontsize=7.5)


def _transformers(trials: Trials) -> list[str]:
    return [name for name in trials.names if name != CONTROL]


def _contrast(panel: Axes, trials: Trials) -> None:
    """Contrast of neighbours of the original image, along training."""
    moved, styles = trials.plan.pixels[-1], colours_and_markers(trials.names)
    steps = np.array(trials.plan.records)
    for name in _transformers(trials):
        runs = trials.runs[name, moved]
        values = np.array([
            [float(run.association("gram", record).contrast[0]) for record in range(len(steps))]
            for run in runs
        ])  # fmt: skip
        colour, marker = styles[name]
        error_bars(panel, steps, values.T, color=colour, marker=marker, label=name)
    panel.axhline(0, color=GREY, lw=0.8)
    _along(panel, steps, moved)
    panel.set_ylabel(r"$\langle p_i, p_j \rangle$: neighbours $-$ others (r.m.s.)")
    panel.legend(loc="upper left", fontsize=7.5)


def _p_values(panel: Axes, trials: Trials) -> None:
    """P-values of all seeds together, along training."""
    plan, styles = trials.plan, colours_and_markers(trials.names)
    moved, steps = plan.pixels[-1], np.array(plan.records)
    for name in _transformers(trials):
        colour, marker = styles[name]
        for as_shuffled in (False, True) if moved else (False,):
            values = [
                combined_p_value(trials.p_values(name, moved, "gram", record, as_shuffled))
                for record in range(len(steps))
            ]
            panel.plot(
                steps, values, ":" if as_shuffled else "-", color=colour, marker=marker, ms=4,
                lw=1.2, mfc="white" if as_shuffled else colour,
            )  # fmt: skip
    panel.axhline(LEVEL, color=GREY, lw=0.8)
    panel.annotate(f"{LEVEL:g}", (1, LEVEL), xycoords=("axes fraction", "data"), color=GREY,
                   ha="right", va="top")  # fmt: skip
    panel.set_yscale("log")
    panel.set_ylim(bottom=panel.get_ylim()[0] ** 1.4)  # room for the legend
    _along(panel, steps, moved)
    panel.set_ylabel("p-value, all seeds together")
    panel.plot([], [], "o-", color=GREY, label="in the original image")
    if moved:
        panel.plot([], [], "o:", color=GREY, mfc="white", label="in the image as shown")
    panel.legend(loc="lower left", title="neighbours", fontsize=7.5, alignment="left")


def _along(panel: Axes, steps: NDArray[np.int64], moved: bool) -> None:
    """Steps as the axis; what was trained on."""
    panel.set_title(f"trained on {'shuffled' if moved else 'original'} pixels", fontsize=9)
    steps_axis(panel, steps)


def _maps(panels: Sequence[Axes], trials: Trials) -> None:
    """Similarity of positions by displacement: at the start, learned, shuffled, moved back."""
    name = next(each for each in _transformers(trials) if each.startswith("positional"))
    pixels = trials.plan.pixels
    first, last = trials.runs[name, pixels[0]], trials.runs[name, pixels[-1]]
    cases = [(first, 0, False, "start")]
    if not pixels[0]:
        cases.append((first, -1, False, "learned, original pixels"))
    if pixels[-1]:
        cases.append((last, -1, True, "learned on shuffled pixels"))
        cases.append((last, -1, False, "the same, moved back"))
    fields = [mean_by_displacement(runs, record, moved) for runs, record, moved, _ in cases]
    largest = max(float(np.nanmax(np.abs(field))) for field in fields)
    image: Any = None
    for panel, field, (*_, title) in zip(panels, fields, cases, strict=True):
        reach = len(field) // 2
        extent = (-reach - 0.5, reach + 0.5, reach + 0.5, -reach - 0.5)
        panel.set_facecolor("0.75")
        image = panel.imshow(field, cmap="PuOr_r", vmin=-largest, vmax=largest, extent=extent)
        panel.set_title(title, fontsize=9)
        panel.set(xlabel="patches across", ylabel="patches down" if panel is panels[0] else "")
        panel.set_xticks([-reach, 0, reach])
        panel.set_yticks([-reach, 0, reach])
    figure = panels[0].figure
    figure.colorbar(image, ax=list(panels), shrink=0.9,
                    label=rf"$\langle p_i, p_j \rangle$, {name}")  # fmt: skip


def mean_by_displacement(runs: Sequence[Trained], record: int, as_shuffled: bool) -> FloatArray:
    """Mean of <p_i, p_j> by how far apart patches i and j are, in the units of the contrast.

    Parameters
    ----------
    runs : sequence of Trained
    record : int
    as_shuffled : bool
        Positions in the shuffled images that the network trains on, else in the original ones.

    Returns
    -------
    float array, shape (2 reach + 1, 2 reach + 1)
        With ``reach`` half of the grid; NaN in the middle.
    """
    grid = int(len(runs[0].places()) ** 0.5)
    reach = max(1, grid // 2)
    total, count = np.zeros((2, 2 * reach + 1, 2 * reach + 1))
    for run in runs:
        gram = standardized(run.gram(record)[None])[0]
        y, x = np.divmod(run.places(as_shuffled), grid)
        down, across = y[None, :] - y[:, None], x[None, :] - x[:, None]
        inside = (np.abs(down) <= reach) & (np.abs(across) <= reach)
        at = down[inside] + reach, across[inside] + reach
        np.add.at(total, at, gram[inside])
        np.add.at(count, at, 1)
    field = total / np.maximum(count, 1)
    field[reach, reach] = np.nan
    return np.asarray(field)
