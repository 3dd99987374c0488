"""Title, letters, panels and phases of the pictures of a result, which carries them with itself.

A problem hands its `Presentation` to every result that is made of it, and stores keep it, so that
pictures need the result and nothing else.
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
"""Curves of a panel that can be told apart."""
PLAIN_PANELS, PLAIN_OVERLAID = 4, 4
"""Panels of scalar states, and states laid over each other, of a problem that describes no plot."""


@dataclass(frozen=True)
class Origin:
    """The model file that a system was made from.

    `path`: absolute path; empty for a model that is in no file; `digests`: part of the model
    (``"start"``, ``"law"``, ``"loss"``) -> short hash of what counts in it.
    """

    path: str
    digests: Mapping[str, str]


@dataclass(frozen=True)
class Panel:
    """One panel of the picture of a run.

    `curves`: states and observables, each with the number of its look, a colour and a marker;
    `logarithmic`: whether the vertical axis is logarithmic; of a negative value the size is drawn,
    and the label says so; `level`: a formula of the parameters at which a line is drawn
    (``"D/2"``); empty for none; `label`: what the vertical axis is; the letters of the curves where
    empty; `words`: what the curves are called beside their letters, if anything.
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
    """Drawing of a run: panels over time, with the phases that events begin and end.

    `spans`: what a phase is called, the events at its begin and end; None is that of the run;
    `marks`: Event -> its letter above the picture; `asides`: Event -> the letter of one that is
    marked inside the picture; `omission`: sentence on the scalars and observables that no panel
    shows; empty where there are none; `overlaid`: what is drawn where several runs are laid over
    each other; `alone`: phase -> what it is called where the one before it did not take place.
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
    r"""Everything that a picture or a table of a result says beside its numbers.

    Attributes
    ----------
    title : str
        The model in one line.
    notation : Notation
        The table of letters, those of the states of this very problem among them.
    plot : PlotDescription
    event_latex : mapping
        Event -> its condition in LaTeX; every event that is looked for is a key.
    origin : Origin or None
        Where the model is, if it is a user's own.
    unused : tuple of str
        Parameters of the system that the problem does not have without samples.

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
        """The presentation as plain values, which JSON keeps exactly."""
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
        """The presentation that `to_json` made plain values of."""
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
        """A presentation of what has none: its scalar states, then the risk.

        Parameters
        ----------
        source : Problem or Trajectory
            With a ``system`` and a ``layout``; a ``notation`` and ``events`` are taken where there
            are any.
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
        """A presentation that says nothing: names are written out."""
        return cls(title, Notation(title, ()), PlotDescription(), {})

    @classmethod
    def of(cls, problem: Any) -> Presentation:
        """The presentation of a problem, or the plain one of a problem that has none."""
        return getattr(problem, "presentation", None) or cls.plain(problem)

    @classmethod
    def from_attributes(cls, attributes: Mapping[Any, Any]) -> Presentation | None:
        """The presentation among the attributes of a dataset; None in those of older stores."""
        text = attributes.get(ATTRIBUTE)
        return None if text is None else cls.from_json(json.loads(text))

    def attributes(self) -> dict[str, str]:
        """Names and texts that `from_attributes` reads."""
        return {ATTRIBUTE: json.dumps(self.to_json())}


def conditions(rules: Any) -> dict[str, str]:
    """Event -> its condition in LaTeX, of event rules."""
    return {rule.name: rule.latex for rule in rules}


def _conditions(events: Any) -> dict[str, str]:
    """Conditions of the events of a problem; of a run, which has no rules, their names alone."""
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
    """Decorator: build instances of a class from plain values."""
    return TypeAdapter(kind)
