"""Constants of a picture in small letters above it; values of facets above panels."""

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
"""Most lines of constants in a title."""
REST = ", \u2026 (all in the caption)"
"""End of a title that does not hold all."""
COLUMNS = 3
"""Most panels side by side."""
LETTERS_PER_INCH = 14
"""Small letters in an inch."""


@styled
def subtitle(figure: Any, text: str) -> None:
    """Write a text above all panels of a figure, in small letters."""
    if text:
        figure.suptitle(text, fontsize=8, x=0.01, ha="left")


def state_parameters(
    figure: Any, runs: Iterable[Trajectory], *settings: str, note: str = ""
) -> None:
    """Write the parameters that all runs of a figure share above its panels.

    Parameters that only problems on samples have are left out where no run is of such a problem.

    `*settings`: names of settings (``"eta"``, ``"samples"``) that stand beside them, where the runs
    have them; `note`: a line below them.
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
    """The constants that a problem has: on no samples, without those of samples only.

    `held`: name -> value; `*settings`: further names, ``"samples"`` among them where the problem
    has samples.
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
    """Write constants above all panels of a figure, in as many lines as a title may have.

    `notation`: the letters; `held`: name -> value; `note`: a line below them; `width`: of the
    lines, in inches; that of the figure by default.
    """
    width = figure.get_figwidth() if width is None else width
    title = cut(figure, fixed(notation, held, {}, width), LINES - bool(note), width)
    subtitle(figure, "\n".join(filter(None, [title, note])))


def cut(figure: Any, text: str, most: int = LINES, width: float | None = None) -> str:
    """The first lines of a text of `fixed`; all of a longer one becomes the caption of the figure.

    `most`: lines; `width`: of the lines, in inches; that of the figure by default.
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
    """Constants that are held fixed, in lines that fit into a width in inches.

    `notation`: the letters; `held`: name -> value; `derived`: name -> formula; `width`: in inches;
    `seeds`: how many were combined; 0 where that was not done.
    """
    items = [
        _item(notation, name, value) for name, value in held.items() if value not in (None, (), [])
    ]
    items += [f"${letter(notation, name)} = {formula(notation, f)}$" for name, f in derived.items()]
    if seeds:
        items.append(f"median of {seeds} seeds")
    return "\n".join(_lines(items, int(width * LETTERS_PER_INCH)))


def facet_shape(panels: int) -> tuple[int, int]:
    """Rows and columns of a number of panels."""
    columns = min(panels, COLUMNS if panels != 4 else 2)
    return -(-panels // columns), columns


def write_titles(figure: Any, panels: Any, result: Slice, width: float) -> None:
    """The value of the facet above each panel; what is held above all of them.

    `panels`: one for each value of the facet, or one; further ones are hidden; `width`: of the
    figure, in inches.
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
    """Letters of a text without those of its LaTeX."""
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
