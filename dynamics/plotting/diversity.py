"""Box plots over images of attention diversity and total variation, for each head and model."""

from __future__ import annotations

import textwrap
from collections.abc import Sequence
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes
from matplotlib.colors import to_hex, to_rgb
from matplotlib.patches import Patch

from dynamics.attention_maps import Measured
from dynamics.plotting.style import BLUE, GREEN, GREY, ORANGE, PURPLE, RC, VERMILION, new_figure
from dynamics.problem import FloatArray

COLOURS = (BLUE, ORANGE, GREEN, PURPLE, VERMILION, GREY)
HATCHES = ("", "////", "....", "xxxx")
"""After six models the colours are used again, with the next hatch."""
FEW = 5
"""Fewer images than this are drawn as circles, because quartiles of them would mean nothing."""
LETTERS = 18
"""Letters of a title in an inch of its width."""
PALE = 0.35
"""Share of its colour in the face of a box."""
FAR = 0.35
"""The axis starts at zero if the least value is below this share of the greatest."""
GROUP = 0.8
"""Share of the distance between two heads that the boxes of one take."""


def diversity(results: Measured | Sequence[Measured]) -> Any:
    """Boxes over images: diversity above, total variation below, one group for each head.

    Within a head the models stand in the order of the legend. What all models share is in the
    title, what they do not in the legend.

    Parameters
    ----------
    results : Measured or sequence of Measured
        Of `dynamics.attention_maps.measure`.

    Returns
    -------
    array of Axes, shape (2,)

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
    with mpl.rc_context(RC):
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
    """One model: a box for each head, or circles where there are few images."""
    colour, hatch = _style(number)
    images, heads = values.shape
    positions = np.arange(heads) + offset
    if images < FEW:
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
    """Colour and hatch of a model."""
    return COLOURS[number % len(COLOURS)], HATCHES[number // len(COLOURS) % len(HATCHES)]


def _face(number: int) -> str:
    """The colour of a model, paler, so that the line of the median is visible on it."""
    red, green, blue = (1 - PALE * (1 - part) for part in to_rgb(_style(number)[0]))
    return to_hex((red, green, blue))


def _frame(panel: Axes, heads: int, several: bool) -> None:
    """Limits from zero, unless all values are far from it, and lines between groups of boxes."""
    low, high = panel.dataLim.intervaly
    if low < FAR * high or high == 0:
        panel.set_ylim(bottom=0.0)
    panel.grid(axis="y", color="0.9", lw=0.6)
    panel.set_axisbelow(True)
    if several:
        for head in range(1, heads):
            panel.axvline(head - 0.5, color="0.85", lw=0.6, zorder=0)


def _words(figure: Any, models: Sequence[Measured], width: float) -> None:
    """Title and legend."""
    facts = [_facts(layer) for layer in models]
    if len({layer.heads for layer in models}) > 1:
        facts = [[*own, f"{m.heads} heads"] for own, m in zip(facts, models, strict=True)]
    shared = [fact for fact in facts[0] if all(fact in others for others in facts)]
    alone = [models[0].name] if len(models) == 1 and models[0].name else []
    parts = [", ".join(alone + shared)] if alone + shared else []
    if any(layer.images >= FEW for layer in models):
        parts.append(
            "boxes: quartiles and median over images; whiskers: 1.5 box heights; points: beyond"
        )
    if any(layer.images < FEW for layer in models):
        parts.append("circles: single images")
    room = int(width * LETTERS)
    text = "\n".join(textwrap.fill(part, room) for part in parts)
    figure.suptitle(text, fontsize=8, x=0.01, ha="left")
    if len(models) == 1:
        return
    keys = []
    for number, (layer, own) in enumerate(zip(models, facts, strict=True)):
        apart = "\n".join(fact for fact in own if fact not in shared)
        colour, hatch = _style(number)
        label = f"{layer.name}\n{apart}" if apart else layer.name
        face = _face(number)
        keys.append(Patch(facecolor=face, edgecolor=colour, hatch=hatch, label=label))
    figure.legend(handles=keys, loc="outside right upper", fontsize=8)


def _facts(layer: Measured) -> list[str]:
    """What was measured, in words."""
    setting = layer.setting
    high, wide = layer.grid
    facts = [f"{high} × {wide} patches", f"top k = {setting.k} keys"]
    facts.append("1 image" if layer.images == 1 else f"{layer.images} images")
    if setting.skip:
        left = "first token" if setting.skip == 1 else f"first {setting.skip} tokens"
        facts.append(f"{left} left out")
    facts.append("pairs of different queries" if setting.off_diagonal else "all pairs of queries")
    return facts
