"""Presentation of a result in plots and tables: title, symbols, panels and phases.

A store keeps the presentation of its problem, so a plot needs only the stored result.
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
"""Key under which the attributes of a dataset hold the presentation, as JSON."""
LOOKS = 6
"""Maximum number of curves of a panel: the number of distinct colours and markers."""
PLAIN_PANELS, PLAIN_OVERLAID = 4, 4
"""Without a plot description: maximum number of panels of scalars, and of scalars in an overlay."""


@dataclass(frozen=True)
class Origin:
    """The model file of a system."""

    path: str
    """Absolute path of the model file; empty for a model without a file."""
    digests: Mapping[str, str]
    """Part of the model (``"start"``, ``"law"``, ``"loss"``) -> short hash of its code."""


@dataclass(frozen=True)
class Panel:
    """One panel of the plot of a run."""

    curves: tuple[tuple[str, int], ...]
    """Pairs of a state or observable and the number of its colour and marker."""
    logarithmic: bool = False
    """Whether the vertical axis is logarithmic; negative curves then show absolute values."""
    level: str = ""
    """Height of a horizontal line as a formula in the parameters (``"D/2"``); empty for no line."""
    label: str = ""
    """Label of the vertical axis; default: the symbols of the curves."""
    words: tuple[str, ...] = ()
    """Name of each curve, written in the legend after its symbol; optional."""

    @property
    def names(self) -> tuple[str, ...]:
        """Names of the states and observables that the panel shows."""
        return tuple(name for name, _ in self.curves)


@dataclass(frozen=True)
class PlotDescription:
    """Plot of a run: panels over time, with phases between events."""

    panels: tuple[Panel, ...] = ()
    spans: tuple[tuple[str, str | None, str | None], ...] = ()
    """Phases as (name, event at the beginning or None, event at the end or None)."""
    marks: Mapping[str, str] = field(default_factory=dict)
    """Event that is drawn as a solid line -> its symbol."""
    asides: Mapping[str, str] = field(default_factory=dict)
    """Event that is drawn as a dotted line -> its symbol."""
    overlaid: tuple[str, ...] = ()
    """States and observables that an overlay of several runs shows."""
    alone: Mapping[str, str] = field(default_factory=dict)
    """Phase -> its name if the preceding phase did not occur."""
    omission: str = ""
    """Sentence on the scalars and observables that the plot omits, or empty."""


@dataclass(frozen=True)
class Presentation:
    r"""Texts and symbols of plots and tables of a result.

    Attributes
    ----------
    title : str
        Title of the model, one line.
    notation : Notation
        Table of symbols, including those of the problem's states.
    plot : PlotDescription
    event_latex : mapping
        Event -> condition in LaTeX, for every event of the problem.
    origin : Origin or None
        Model file of a user's model.
    unused : tuple of str
        Parameters of the system that only problems on samples use.

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
        """Presentation of a Problem or Trajectory that has none: panels of scalars and risk."""
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
        """Presentation of a problem; a problem without one gets `Presentation.plain`."""
        return getattr(problem, "presentation", None) or cls.plain(problem)

    @classmethod
    def from_attributes(cls, attributes: Mapping[Any, Any]) -> Presentation | None:
        """Presentation stored in the attributes of a dataset, or None if they contain none."""
        text = attributes.get(ATTRIBUTE)
        return None if text is None else cls.from_json(json.loads(text))

    def attributes(self) -> dict[str, str]:
        """Attributes of a dataset that store the presentation for `from_attributes`."""
        return {ATTRIBUTE: json.dumps(self.to_json())}


def conditions(rules: Any) -> dict[str, str]:
    """Map each event rule's name to its condition in LaTeX."""
    return {rule.name: rule.latex for rule in rules}


def _conditions(events: Any) -> dict[str, str]:
    """Event -> condition in LaTeX, or "" for the events of a run, which have no rules."""
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
