"""Draw curves over logarithmic time, for figures of the published models."""

from __future__ import annotations

from collections.abc import Mapping
from itertools import cycle
from typing import Any

from numpy.typing import ArrayLike

from dynamics.plotting import style
from dynamics.verdicts.figure import Drawing, page

COLOURS = (style.BLUE, style.ORANGE, style.GREEN, style.PURPLE)


def over_time(
    words: str,
    curves: Mapping[str, tuple[ArrayLike, ArrayLike]],
    caption: str,
    colours: Any = COLOURS,
    **axes: Any,
) -> Drawing:
    """Draw curves with a legend; labels that differ only in final apostrophes share a colour.

    `words`: text of the subtitle; `curves`: label -> times and values at the records, where a label
    with final apostrophes is a further run of the same curve; `colours`: colours of the labels, in
    turn; `**axes`: settings of the axes.
    """
    looks = dict(zip(dict.fromkeys(label.rstrip("'") for label in curves), cycle(colours)))
    with page(6.4, 3.6, words) as (_, panel):
        for label, (time, values) in curves.items():
            name = label.rstrip("'")
            panel.plot(time, values, color=looks[name], label=name if name == label else None)
        panel.set(**{"xscale": "log", "xlabel": "time"} | axes)
        style.legend(panel)
    data = {f"{name}, {label}": part for label, pair in curves.items()
            for name, part in zip(("time", "value"), pair, strict=True)}  # fmt: skip
    return Drawing(panel, data, caption)
