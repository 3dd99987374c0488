"""Subtitles with the constants of a figure, and titles of the panels of a facet."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from typing import Any

from dynamics.phase_diagrams.selection import Slice
from dynamics.plotting.labels import Letters, formula, letter
from dynamics.plotting.style import CAPTION, number, styled
from dynamics.presentation import Presentation
from dynamics.results.trajectory import Trajectory
from dynamics.validation import brief

LINES = 2
"""Maximum number of lines of constants in a subtitle."""
REST = ", \u2026 (all in the caption)"
"""End of a truncated subtitle."""
COLUMNS = 3
"""Maximum number of panels in a row of a facet."""
LETTERS_PER_INCH = 14
"""Number of characters of a subtitle that fit one inch of width."""


@styled
def subtitle(figure: Any, text: str) -> None:
    """Write a text above all panels of a figure, in a small font."""
    if text:
        figure.suptitle(text, fontsize=8, x=0.01, ha="left")


def state_parameters(
    figure: Any, runs: Iterable[Trajectory], *settings: str, note: str = ""
) -> None:
    """Write above the panels of a figure the parameters that all runs share, and a line `note`.

    Parameters that only training on samples uses are omitted unless a run trains on samples.
    Settings named in `settings`, such as ``"eta"``, are added if the runs have them.
    """
    first, *others = runs = tuple(runs)
    each = [used(run.presentation, run.parameters, *run.settings) for run in runs]
    held = {name: value for name, value in first.parameters.items() if any(name in u for u in each)}
    held |= {name: first.settings[name] for name in settings if name in first.settings}
    for run in others:
        own = {**run.settings, **run.parameters}
        held = {name: value for name, value in held.items() if own.get(name) == value}
    constants(figure, first.presentation.notation, held, note)


def used(presentation: Presentation, held: Mapping[str, Any], *settings: str) -> dict[str, Any]:
    """Select from `held` the constants that a problem uses, and the named settings.

    Constants for samples are selected only with ``"samples"`` or ``"full"`` in `held` or
    `settings`.
    """
    if not {"samples", "full"}.isdisjoint((*held, *settings)):
        return dict(held)
    return {name: value for name, value in held.items() if name not in presentation.unused}


def constants(
    figure: Any,
    notation: Letters,
    held: Mapping[str, Any],
    note: str = "",
    width: float | None = None,
) -> None:
    """Write constants and their values above all panels of a figure, in at most `LINES` lines.

    The lines fit the `width` in inches, by default the width of the figure.
    """
    width = figure.get_figwidth() if width is None else width
    title = cut(figure, fixed(notation, held, {}, width), LINES - bool(note), width)
    subtitle(figure, "\n".join(filter(None, [title, note])))


def cut(figure: Any, text: str, most: int = LINES, width: float | None = None) -> str:
    """Truncate a text to `most` lines, and store the full text as the caption of the figure.

    The last line fits the `width` in inches, by default the width of the figure.
    """
    lines = text.split("\n")
    if len(lines) <= most:
        return text
    setattr(figure, CAPTION, ", ".join(lines))
    first, last = lines[: most - 1], lines[most - 1].split(", ")
    letters = int((figure.get_figwidth() if width is None else width) * LETTERS_PER_INCH)
    while len(last) > 1 and _length(", ".join(last)) + len(REST) > letters:
        last.pop()
    return "\n".join([*first, ", ".join(last) + REST])


def fixed(
    notation: Letters,
    held: Mapping[str, Any],
    derived: Mapping[str, str],
    width: float,
    seeds: int = 0,
) -> str:
    """Text of the values of constants `held` and the formulas of constants `derived`.

    Lines of the text fit `width` inches. Unless `seeds` is 0, the text ends with the number of
    seeds.
    """
    items = [
        _item(notation, name, value) for name, value in held.items() if value not in (None, (), [])
    ]
    items += [f"${letter(notation, name)} = {formula(notation, f)}$" for name, f in derived.items()]
    if seeds:
        items.append(f"median of {seeds} seeds")
    return "\n".join(_lines(items, int(width * LETTERS_PER_INCH)))


def facet_shape(panels: int) -> tuple[int, int]:
    """Number of rows and columns of a facet with this number of panels."""
    columns = min(panels, COLUMNS if panels != 4 else 2)
    return -(-panels // columns), columns


def write_titles(figure: Any, panels: Any, result: Slice, width: float) -> None:
    """Write the facet's value above each panel, and the fixed constants above all panels.

    The `width` of the figure is in inches; panels beyond the last value of the facet are hidden.
    """
    notation, count = result.presentation.notation, len(result.values)
    for panel in panels[count:]:
        panel.set_visible(False)
    if result.facet is not None:
        for panel, value in zip(panels, result.facet.values, strict=False):
            name = letter(notation, result.facet.name)
            panel.set_title(f"${name} = {number(float(value))}$", fontsize=9)
    seeds = 0 if result.quantity.yes_no else result.seeds
    held = fixed(notation, used(result.presentation, result.held), result.derived, width, seeds)
    if count == 1:
        panels[0].set_title(cut(figure, held), fontsize=8, loc="left")
    else:
        subtitle(figure, cut(figure, held))


def _item(notation: Letters, name: str, value: Any) -> str:
    if isinstance(value, (list, tuple)) and all(isinstance(v, (int, float)) for v in value):
        listed = r",\ ".join(map(number, value))
        return f"${letter(notation, name)} = ({listed})$"
    if isinstance(value, bool) or not isinstance(value, (int, float)):
        return f"{name.replace('_', ' ')} {brief(str(value)).replace('_', ' ')}"
    if name == "time":
        return f"up to time ${number(value)}$"
    return f"${letter(notation, name)} = {number(value)}$"


def _length(text: str) -> int:
    """Length of a text without LaTeX commands."""
    return len(re.sub(r"\\[a-zA-Z]+|[${}^\\ ]", "", text)) + text.count(" ")


def _lines(items: Iterable[str], width: int) -> list[str]:
    lines: list[str] = []
    for item in items:
        longer = f"{lines[-1]}, {item}" if lines else item
        if lines and _length(longer) <= width:
            lines[-1] = longer
        else:
            lines.append(item)
    return lines
