"""Plots of attention matrices with the true sets, and of attention diversity."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import Normalize, SymLogNorm, to_hex, to_rgb
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator, SymmetricalLogLocator
from numpy.typing import NDArray

from dynamics.attention_maps import Measured
from dynamics.plotting import choices
from dynamics.plotting.captions import state_parameters, subtitle
from dynamics.plotting.style import BLUE, GREEN, GREY, ORANGE, PURPLE, VERMILION, new_figure, styled
from dynamics.problem import FloatArray
from dynamics.results.trajectory import Trajectory
from dynamics.validation import InvalidRequest

EVENTS = {"T0": "$T_0$", "T1": "$T_1$"}
SPREAD = 10.0
"""The colour scale is logarithmic if matrices' largest entries differ by more than this factor."""
NARROWEST = 1.35
"""Minimum width of a matrix panel, in inches; more panels than fit are put in several rows."""
LEAST_SHARE = 1e-4
"""Minimum ratio of the entry at which the linear part of the colour scale ends to the largest entry
of all matrices."""


def true_sets(panel: Axes, labels: NDArray[np.int64]) -> None:
    """Draw all pairs of patches of one set in dark grey; `labels` holds the set of each patch."""
    same = labels[:, None] == labels[None, :]
    panel.imshow(np.where(same, 0.35, 1.0), cmap="gray", vmin=0, vmax=1)
    panel.set_title("true sets", fontsize=9)


def number_patches(panel: Axes, size: int) -> None:
    """Label both axes of a matrix with at most four patch numbers from 1 to `size`."""
    visible = np.unique(np.linspace(0, size - 1, min(size, 4)).round().astype(int))
    numbers = [str(k + 1) for k in visible]
    panel.set_xticks(visible, numbers)
    panel.set_yticks(visible, numbers)
    panel.set(xlabel="patch $j$", ylabel="patch $i$")
    panel.spines[:].set_visible(True)


def matrix_entries(figure: Any, panels: Sequence[Axes], matrices: Sequence[FloatArray]) -> None:
    """Draw one matrix of logits A, shape (D, D), in each panel, with one symmetric colour scale.

    The untrained diagonal is grey and does not affect the scale. The scale is linear up to the
    smallest of the matrices' largest entries, and logarithmic above if the largest of all entries
    is more than `SPREAD` times as large.
    """
    masked = [np.ma.masked_where(np.eye(len(matrix), dtype=bool), matrix) for matrix in matrices]
    largest = [float(np.abs(matrix).max()) for matrix in masked]
    top = max(largest) or 1.0
    linear = max(min((size for size in largest if size > 0), default=top), top * LEAST_SHARE)
    norm: Normalize = Normalize(-top, top)
    if top > SPREAD * linear:
        norm = SymLogNorm(linear, vmin=-top, vmax=top)
    colours = mpl.colormaps["PuOr_r"].with_extremes(bad=GREY)
    for panel, matrix in zip(panels, masked, strict=True):
        image = panel.imshow(matrix, cmap=colours, norm=norm)
        number_patches(panel, len(matrix))
    bar = figure.colorbar(image, ax=list(panels), location="right", shrink=0.9, aspect=14)
    if isinstance(norm, SymLogNorm):  # drop ticks that overlap the tick at 0
        bar.locator = SymmetricalLogLocator(base=10, linthresh=10 * linear)
    else:
        bar.locator = MaxNLocator(3, symmetric=True)
        bar.formatter.set_powerlimits((-2, 3))
    bar.update_ticks()
    bar.minorticks_off()
    bar.ax.tick_params(labelsize=7)
    bar.ax.yaxis.get_offset_text().set_fontsize(7)
    bar.set_label("logits $A_{ij}$", fontsize=8)


@styled
def attention(run: Trajectory) -> Any:
    r"""Plot the true sets, and the logits A of a full run at start, end, and events T0 and T1.

    The states of the run must have the part ``A``, and the settings of the run the entry ``sets``.
    All matrices share one colour scale (`matrix_entries`).

    Raises
    ------
    TypeError
        If ``run`` is not a `Trajectory`.
    InvalidRequest
        If the run has no attention matrix.

    Examples
    --------
    >>> import dynamics
    >>> from dynamics import plotting
    >>> system = dynamics.load_system("positional_attention")
    >>> run = dynamics.descend(system.FullPopulation(system.Parameters(D=4, C=2)), 0.1, 20)
    >>> [panel.get_title() for panel in plotting.attention(run)]
    ['true sets', 'start', 'end: $\\tau = 2$']
    """
    if "A" not in run.layout.names or "sets" not in run.settings:
        raise InvalidRequest(
            f"run of the {run.view} problem has no attention matrix; run can be of "
            "FullPopulation or FullEmpirical"
        )
    moments = [("start", 0.0, run.states[0])]
    for name, title in EVENTS.items():
        event = run.events.get(name)
        if event:
            moments.append((title, event.time, event.state))
    moments.append(("end", float(run.time[-1]), run.final_state))
    count = 1 + len(moments)
    columns = min(count, max(2, int(choices.inches(2.0 * count) / NARROWEST)))
    rows = -(-count // columns)
    figure, grid = new_figure(
        2.0 * columns + 0.6, 0.4 + 2.3 * rows, images=True, nrows=rows, ncols=columns,
        squeeze=False,
    )  # fmt: skip
    axes = grid.ravel()[:count]
    for panel in grid.ravel()[count:]:
        panel.set_axis_off()
    labels = np.asarray(run.settings["sets"])
    true_sets(axes[0], labels)
    number_patches(axes[0], len(labels))
    matrix_entries(figure, axes[1:], [run.layout.part(state, "A") for *_, state in moments])
    for k, (panel, (title, time, _)) in enumerate(zip(axes[1:], moments, strict=True), start=1):
        if k % columns:
            panel.set_yticklabels([])
            panel.set_ylabel("")
        panel.set_title(title + (rf": $\tau = {time:.4g}$" if time else ""), fontsize=9)
    state_parameters(figure, [run], "eta", "samples", "seed")
    return axes


MODEL_COLOURS = (BLUE, ORANGE, GREEN, PURPLE, VERMILION, GREY)
HATCHES = ("", "////", "....", "xxxx")
"""Hatches of models; colours repeat after six models, with the next hatch."""
FEW_IMAGES = 5
"""Minimum number of images for box plots; fewer images are drawn as circles."""
LETTERS = 15
"""Number of characters of a title that fit one inch of width."""
PALE = 0.35
"""Opacity of the colour inside a box."""
FAR = 0.35
"""The value axis starts at zero if the smallest value is below this fraction of the largest."""
GROUP = 0.8
"""Width of a group of boxes, relative to the distance between two heads."""


@styled
def diversity(results: Measured | Sequence[Measured]) -> Any:
    """Box plots over images of attention diversity (above) and total variation (below), by head.

    The models appear within each head in the order of the legend. The title states the settings
    that all models share, the legend the settings that differ.

    Raises
    ------
    TypeError
        If ``results`` is not a `Measured` or a nonempty sequence of them.

    Examples
    --------
    >>> import numpy as np
    >>> from dynamics.attention_maps import Setting, measure
    >>> attention = np.random.default_rng(0).dirichlet(np.ones(9), size=(20, 3, 9))
    >>> above, below = diversity(measure(attention, Setting(k=4), "random"))
    >>> len(above.patches)  # a box for each head
    3
    """
    models = [results] if isinstance(results, Measured) else list(results)
    heads = max(layer.heads for layer in models)
    width = min(13.0, max(4.6, 1.2 + heads * (0.16 + 0.14 * len(models))))
    figure, axes = new_figure(width, 4.8, nrows=2, sharex=True)
    for number, layer in enumerate(models):
        offset = (number - (len(models) - 1) / 2) * GROUP / len(models)
        for panel, values in zip(axes, (layer.diversity, layer.total_variation), strict=True):
            _boxes(panel, values, offset, GROUP / len(models), number)
    axes[0].set_ylabel("attention diversity\n(patches)")
    axes[1].set_ylabel("mean pairwise\ntotal variation")
    axes[1].set_xlabel("head")
    axes[1].set_xticks(range(heads))
    axes[1].set_xlim(-0.6, heads - 0.4)
    for panel in axes:
        _frame(panel, heads, len(models) > 1)
    _words(figure, models, width)
    return axes


def _boxes(panel: Axes, values: FloatArray, offset: float, room: float, number: int) -> None:
    """Draw one model in a panel: a box for each head, or circles for few images."""
    colour, hatch = _style(number)
    images, heads = values.shape
    positions = np.arange(heads) + offset
    if images < FEW_IMAGES:
        panel.plot(np.tile(positions, images), values.ravel(), "o", color=colour, mfc="white", ms=4)
        return
    panel.boxplot(
        values, positions=positions, widths=0.8 * room, manage_ticks=False, patch_artist=True,
        boxprops={"facecolor": _face(number), "edgecolor": colour, "lw": 0.8, "hatch": hatch},
        medianprops={"color": colour, "lw": 1.8},
        whiskerprops={"color": colour, "lw": 0.8},
        capprops={"color": colour, "lw": 0.8},
        flierprops={"marker": ".", "ms": 2.5, "mfc": colour, "mec": colour},
    )  # fmt: skip


def _style(number: int) -> tuple[str, str]:
    """Colour and hatch of the model with this number."""
    return MODEL_COLOURS[number % len(MODEL_COLOURS)], HATCHES[
        number // len(MODEL_COLOURS) % len(HATCHES)
    ]


def _face(number: int) -> str:
    """Pale colour of the model with this number, on which the median line is visible."""
    red, green, blue = (1 - PALE * (1 - part) for part in to_rgb(_style(number)[0]))
    return to_hex((red, green, blue))


def _frame(panel: Axes, heads: int, several: bool) -> None:
    """Start the value axis at zero unless all values are far from zero, and separate the groups."""
    low, high = panel.dataLim.intervaly
    if low < FAR * high or high == 0:
        panel.set_ylim(bottom=0.0)
    panel.grid(axis="y", color="0.9", lw=0.6)
    panel.set_axisbelow(True)
    if several:
        for head in range(1, heads):
            panel.axvline(head - 0.5, color="0.85", lw=0.6, zorder=0)


def _words(figure: Any, models: Sequence[Measured], width: float) -> None:
    """Write the title, and the legend if there are several models."""
    facts = [_facts(layer) for layer in models]
    if len({layer.heads for layer in models}) > 1:
        facts = [[*own, f"{m.heads} heads"] for own, m in zip(facts, models, strict=True)]
    shared = [fact for fact in facts[0] if all(fact in others for others in facts)]
    alone = [models[0].name] if len(models) == 1 and models[0].name else []
    parts = [", ".join(alone + shared)] if alone + shared else []
    if any(layer.images >= FEW_IMAGES for layer in models):
        parts.append(
            "boxes: quartiles and median over images; whiskers: 1.5 box heights; points: beyond"
        )
    if any(layer.images < FEW_IMAGES for layer in models):
        parts.append("circles: single images")
    room = int(width * LETTERS)
    text = "\n".join(textwrap.fill(part, room) for part in parts)
    subtitle(figure, text)
    if len(models) == 1:
        return
    keys = []
    for number, (layer, own) in enumerate(zip(models, facts, strict=True)):
        apart = "\n".join(fact for fact in own if fact not in shared)
        colour, hatch = _style(number)
        label = f"{layer.name}\n{apart}" if apart else layer.name
        face = _face(number)
        keys.append(Patch(facecolor=face, edgecolor=colour, hatch=hatch, label=label))
    figure.legend(handles=keys, loc="outside right center", fontsize=8)


def _facts(layer: Measured) -> list[str]:
    """Settings of a measurement as texts."""
    setting = layer.setting
    high, wide = layer.grid
    facts = [f"{high} × {wide} patches", f"top k = {setting.k} keys"]
    facts.append("1 image" if layer.images == 1 else f"{layer.images} images")
    if setting.skip:
        left = "first token" if setting.skip == 1 else f"first {setting.skip} tokens"
        facts.append(f"{left} left out")
    facts.append("pairs of different queries" if setting.off_diagonal else "all pairs of queries")
    return facts
