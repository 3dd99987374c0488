"""Attention to label-relevant tokens along training, by the kind of the query."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import Any

import matplotlib as mpl
import numpy as np
from matplotlib.axes import Axes

from dynamics.plotting.style import BLUE, GREEN, GREY, ORANGE, PURPLE, RC, VERMILION, new_figure
from dynamics.results.trajectory import Trajectory

KINDS = (
    ("relevant_by_relevant", "relevant queries", GREEN, "--"),
    ("relevant_by_confusion", "confusion queries", PURPLE, "-."),
    ("relevant_by_other", "other queries", ORANGE, ":"),
)
MARKS = 14
"""Markers of a line, about."""


@dataclass(frozen=True, eq=False)
class Course:
    """One panel.

    Attributes
    ----------
    runs : sequence of Trajectory
        Seeds, all of the same records.
    ceiling : float or None
        What the mean attention cannot pass without noise, if there is such a bound.
    title : str
    """

    runs: Sequence[Trajectory]
    ceiling: float | None
    title: str


def attention_mass(grid: Sequence[Sequence[Course]], held: str) -> Any:
    """Mean of all queries to relevant tokens (asterisks) and to the others (squares), by query.

    Parameters
    ----------
    grid : sequence of rows of Course
    held : str

    Returns
    -------
    array of Axes
    """
    rows, columns = len(grid), max(map(len, grid))
    with mpl.rc_context(RC):
        figure, axes = new_figure(
            1.2 + 2.9 * columns, 1.2 + 2.5 * rows, nrows=rows, ncols=columns, squeeze=False,
            sharey=True,
        )  # fmt: skip
        for row, courses in zip(axes, grid, strict=True):
            for panel, course in zip(row, courses, strict=True):
                _course(panel, course)
            row[0].set_ylabel("attention, mean over queries")
        for panel in axes[-1]:
            panel.set_xlabel("steps")
        handles, labels = axes[0, 0].get_legend_handles_labels()
        figure.legend(
            handles, labels, loc="outside lower center", ncols=3 if columns > 1 else 2, fontsize=8
        )
        figure.suptitle(held, fontsize=8, x=0.01, ha="left")
    return axes


def _course(panel: Axes, course: Course) -> None:
    steps = course.runs[0].steps
    every = max(1, len(steps) // MARKS)
    main = (
        ("relevant", 1.0, "to relevant tokens, all queries", VERMILION, "*"),
        ("relevant", -1.0, "to other tokens, all queries", BLUE, "s"),
    )
    for name, sign, label, colour, marker in main:
        seeds = np.stack([run[name] for run in course.runs])
        values = seeds if sign > 0 else 1 - seeds
        panel.plot(
            steps, values.mean(axis=0), color=colour, marker=marker, markevery=every, label=label,
            ms=7 if marker == "*" else 4.5, mec="white", mew=0.4,
        )  # fmt: skip
        panel.fill_between(steps, values.min(axis=0), values.max(axis=0), color=colour, alpha=0.2,
                           lw=0)  # fmt: skip
    for name, label, colour, dash in KINDS:
        middle = np.mean([run[name] for run in course.runs], axis=0)
        if np.isfinite(middle).all():
            panel.plot(steps, middle, dash, color=colour, lw=1.2, label=f"to relevant, {label}")
    if course.ceiling is not None:
        panel.axhline(course.ceiling, color=GREY, lw=0.9, ls=(0, (1, 1)), zorder=0,
                      label="ceiling of the mean, without noise")  # fmt: skip
    stops = [event.step for run in course.runs if (event := run.events["t_zero"]) is not None]
    if stops:
        panel.axvspan(max(s for s in stops if s is not None), steps[-1], color="#EEEEEE", zorder=-1,
                      label="training loss is zero")  # fmt: skip
    panel.set_xlim(0, steps[-1])
    panel.set_ylim(0.0, 1.0)
    panel.set_title(course.title, fontsize=9, loc="left")
