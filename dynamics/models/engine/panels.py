"""What the runs of a model are drawn as: its own panels, or one for each array."""

from __future__ import annotations

from collections.abc import Sequence

from dynamics.results.presentation import LOOKS, Panel, PlotDescription
from theory.model import Model
from theory.model_error import ModelError

MOST_PANELS = 4
"""Panels of scalars, where the model does not say which."""


def plot_description(
    model: Model, scalars: Sequence[str], seen: Sequence[str], events: Sequence[str]
) -> PlotDescription:
    """Panels, and a mark for each event.

    Parameters
    ----------
    model : Model
        Its ``panels`` are tuples of names, one a panel; a name with ``log`` before it, as
        ``"log risk"``, makes the axis of its panel logarithmic.
    scalars, seen : sequence of str
        Names that a panel can show.
    events : sequence of str
        Names of the events.

    Raises
    ------
    ModelError
        If a panel names something that the model does not have.
    """
    known = [*scalars, *seen, "risk"]
    if model.panels:
        panels = [_panel(entry, known) for entry in model.panels]
    else:
        chunks = [scalars[k : k + LOOKS] for k in range(0, len(scalars), LOOKS)]
        panels = [_numbered(chunk) for chunk in chunks[:MOST_PANELS]]
        panels += [_numbered(seen[k : k + LOOKS]) for k in range(0, len(seen), LOOKS)][:2]
        panels.append(Panel((("risk", 5),), logarithmic=True))
    return PlotDescription(
        panels=tuple(panels),
        marks={name: name.replace("_", " ") for name in events},
        overlaid=(*scalars[:4], "risk"),
    )


def _numbered(names: Sequence[str], logarithmic: bool = False) -> Panel:
    return Panel(tuple((name, k % LOOKS) for k, name in enumerate(names)), logarithmic)


def _panel(entry: object, known: Sequence[str]) -> Panel:
    names = [entry] if isinstance(entry, str) else entry
    if not isinstance(names, (tuple, list)) or not names:
        raise ModelError(f"panels: {entry!r} is no panel; a panel is a tuple of names")
    logarithmic, found = False, []
    for name in names:
        word = str(name)
        if word.startswith("log "):
            logarithmic, word = True, word[4:].strip()
        if word not in known:
            raise ModelError(f"panels: {word!r} is unknown; known are {', '.join(known[:20])}")
        found.append(word)
    return _numbered(found, logarithmic)
