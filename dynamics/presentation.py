"""Presentation of a result in plots and tables: title, symbols, panels and phases.

A problem passes its `Presentation` to its results, and stores keep it, so that a plot needs only
the result.
"""

from __future__ import annotations

import functools
import json
from collections.abc import Mapping
from dataclasses import asdict, dataclass, field
from itertools import islice
from typing import Any

from pydantic import TypeAdapter

from theory.notation import Notation, NotationEntry

ATTRIBUTE = "presentation"
"""Attribute of a dataset that holds a presentation, as JSON."""
LOOKS = 6
"""Most curves of a panel with distinct styles."""
PLAIN_PANELS, PLAIN_OVERLAID = 4, 4
"""Most panels of scalars, and most states in overlays, of a problem without a plot description."""


@dataclass(frozen=True)
class Origin:
    """The model file of a system.

    `path`: absolute path, empty for a model without a file; `digests`: part of the model
    (``"start"``, ``"law"``, ``"loss"``) -> short hash of its code.
    """

    path: str
    digests: Mapping[str, str]


@dataclass(frozen=True)
class Panel:
    """One panel of the plot of a run.

    `curves`: state or observable -> number of its style; `logarithmic`: whether the vertical axis
    is logarithmic, with absolute values of negative curves; `level`: a formula of the parameters at
    which a line is drawn (``"D/2"``), or empty; `label`: of the vertical axis, by default the
    symbols of the curves; `words`: names of the curves in addition to their symbols, optional.
    """

    curves: tuple[tuple[str, int], ...]
    logarithmic: bool = False
    level: str = ""
    label: str = ""
    words: tuple[str, ...] = ()

    @property
    def names(self) -> tuple[str, ...]:
        """The states and observables."""
        return tuple(name for name, _ in self.curves)


@dataclass(frozen=True)
class PlotDescription:
    """Plot of a run: panels over time, with phases between events.

    `spans`: name of a phase, and the events at its begin and end, None for those of the run;
    `marks`: event -> its symbol above the plot; `asides`: event -> symbol of an event marked inside
    the plot; `omission`: sentence on scalars and observables not shown, or empty; `overlaid`:
    states and observables plotted for overlays; `alone`: phase -> its name if the preceding phase
    did not occur.
    """

    panels: tuple[Panel, ...] = ()
    spans: tuple[tuple[str, str | None, str | None], ...] = ()
    marks: Mapping[str, str] = field(default_factory=dict)
    asides: Mapping[str, str] = field(default_factory=dict)
    overlaid: tuple[str, ...] = ()
    alone: Mapping[str, str] = field(default_factory=dict)
    omission: str = ""


@dataclass(frozen=True)
class Presentation:
    r"""Texts and symbols of plots and tables of a result.

    Attributes
    ----------
    title : str
        The model in one line.
    notation : Notation
        Table of symbols, including those of the problem's states.
    plot : PlotDescription
    event_latex : mapping
        Event -> condition in LaTeX, for every event of the problem.
    origin : Origin or None
        Model file of a user's model.
    unused : tuple of str
        Parameters of the system that the problem does not use without samples.

    Examples
    --------
    >>> import dynamics
    >>> presentation = dynamics.load_system("positional_attention").presentation
    >>> presentation.notation.label("alpha"), presentation.event_latex["T1"]
    ('$\\alpha$', 'G \\geq D/2')
    >>> Presentation.from_json(presentation.to_json()) == presentation
    True
    """

    title: str
    notation: Notation
    plot: PlotDescription
    event_latex: Mapping[str, str]
    origin: Origin | None = None
    unused: tuple[str, ...] = ()

    def to_json(self) -> dict[str, Any]:
        """JSON-ready values of the presentation, for `from_json`."""
        notation = {
            "source": self.notation.source,
            "letters": [asdict(letter) for letter in self.notation.values()],
        }
        return {
            "title": self.title,
            "notation": notation,
            "plot": asdict(self.plot),
            "event_latex": dict(self.event_latex),
            "origin": self.origin
            and {"path": self.origin.path, "digests": dict(self.origin.digests)},
            "unused": list(self.unused),
        }

    @classmethod
    def from_json(cls, plain: Mapping[str, Any]) -> Presentation:
        """Presentation from the values of `to_json`."""
        letters = _reader(tuple[NotationEntry, ...]).validate_python(plain["notation"]["letters"])
        return cls(
            title=plain["title"],
            notation=Notation(plain["notation"]["source"], letters),
            plot=_reader(PlotDescription).validate_python(plain["plot"]),
            event_latex=dict(plain["event_latex"]),
            origin=None if plain["origin"] is None else Origin(**plain["origin"]),
            unused=tuple(plain.get("unused", ())),
        )

    @classmethod
    def plain(cls, source: Any) -> Presentation:
        """Default presentation of a problem or run: its scalars, then the risk.

        Parameters
        ----------
        source : Problem or Trajectory
            Object with a ``system`` and a ``layout``, optionally with ``notation`` and ``events``.
        """
        title = str(source.system)
        scalars = source.layout.scalars
        return cls(
            title=title,
            notation=getattr(source, "notation", None) or Notation(title, ()),
            plot=PlotDescription(
                panels=(*_plain_panels(scalars), Panel((("risk", 0),), logarithmic=True)),
                overlaid=(*scalars[:PLAIN_OVERLAID], "risk"),
            ),
            event_latex=_conditions(getattr(source, "events", ())),
        )

    @classmethod
    def empty(cls, title: str = "") -> Presentation:
        """Presentation without symbols; plots use the plain names."""
        return cls(title, Notation(title, ()), PlotDescription(), {})

    @classmethod
    def of(cls, problem: Any) -> Presentation:
        """Presentation of a problem; the `plain` one if the problem has none."""
        return getattr(problem, "presentation", None) or cls.plain(problem)

    @classmethod
    def from_attributes(cls, attributes: Mapping[Any, Any]) -> Presentation | None:
        """Presentation stored in the attributes of a dataset; None for older stores."""
        text = attributes.get(ATTRIBUTE)
        return None if text is None else cls.from_json(json.loads(text))

    def attributes(self) -> dict[str, str]:
        """Attributes for `from_attributes`."""
        return {ATTRIBUTE: json.dumps(self.to_json())}


def conditions(rules: Any) -> dict[str, str]:
    """Event -> condition in LaTeX, for event rules."""
    return {rule.name: rule.latex for rule in rules}


def _conditions(events: Any) -> dict[str, str]:
    """Conditions of the events of a problem; for a run, without rules, only the names."""
    if isinstance(events, Mapping):
        return dict.fromkeys(events, "")
    return conditions(events)


def _plain_panels(scalars: list[str]) -> list[Panel]:
    names, panels = iter(scalars), []
    while curves := list(islice(names, LOOKS)):
        panels.append(Panel(tuple((name, look) for look, name in enumerate(curves))))
    return panels[:PLAIN_PANELS]


@functools.cache
def _reader(kind: Any) -> TypeAdapter[Any]:
    """Validator that builds instances of a class from plain values."""
    return TypeAdapter(kind)
