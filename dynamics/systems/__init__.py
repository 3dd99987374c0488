"""Systems, found by name: every folder here with a ``SYSTEM`` is one."""

from __future__ import annotations

import importlib
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from difflib import get_close_matches
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING, Any

from dynamics.validation import InvalidRequest, refuse

if TYPE_CHECKING:
    from theory.claims import Claim
    from theory.notation import Notation
    from theory.reduction import ReducedSystem


FULL = ("population", "empirical")
"""Full problems by name."""
TAKEN = ("expectation", "tolerance", "dropped")
"""Options of the reduced problem."""
DRAWN = ("samples", "seed")
"""Options of everything that is drawn."""


@dataclass(frozen=True)
class Showcase:
    """What a command does when nothing else is asked for.

    A user who names one of ``parameters`` gets the defaults of ``Parameters`` for the others.
    """

    parameters: Mapping[str, Any]
    eta: float
    steps: int
    samples: int = 0


@dataclass(frozen=True)
class Panel:
    """One panel of the picture of a run.

    Attributes
    ----------
    curves : tuple of (str, int)
        States and observables, each with the number of its look, a colour and a marker.
    logarithmic : bool
        Whether the vertical axis is; of what is negative the size is drawn, and said.
    level : str
        A formula of the parameters at which a line is drawn (``"D/2"``); empty for none.
    label : str
        What the vertical axis is; the letters of the curves where empty.
    words : tuple of str
        What the curves are called beside their letters, if anything.
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
class Story:
    """What a run is drawn as: panels over time, with the phases that events begin and end.

    Attributes
    ----------
    panels : tuple of Panel
    spans : tuple of (str, str or None, str or None)
        What a phase is called, the events at its begin and end; None is that of the run.
    marks : mapping
        Event -> its letter above the picture.
    asides : mapping
        Event -> the letter of one that is marked inside the picture.
    overlaid : tuple of str
        What is drawn where several runs are laid over each other.
    alone : mapping
        Phase -> what it is called where the one before it did not take place.
    """

    panels: tuple[Panel, ...]
    spans: tuple[tuple[str, str | None, str | None], ...]
    marks: Mapping[str, str]
    asides: Mapping[str, str]
    overlaid: tuple[str, ...]
    alone: Mapping[str, str] = field(default_factory=dict)


@dataclass(frozen=True)
class System:
    """Everything that a driver, a command or a picture may ask of a system.

    Attributes
    ----------
    name, title : str
        Code name, and the paper in one line.
    notation : Notation
        The table of letters.
    claims : tuple of Claim
        The paper's statements.
    derivations : callable
        Parameters or None -> the reductions, by name.
    Parameters : type
        Frozen, validated on construction.
    ReducedPopulation, FullPopulation, FullEmpirical : type
        The problems, made from a ``Parameters``; the empirical one also from a number of samples
        and a seed.
    showcases : mapping
        Command (``"run"``, ``"compare"``) -> what it does by default; ``"empirical"``, with its
        number of samples, is what both do with the full empirical problem.
    expectations : tuple of str
        How the reduced problem can take its expectation, the default last.
    realistic : mapping
        Options of ``FullEmpirical`` that the command line offers -> their meaning.
    drawn : tuple of str
        Those options, ``samples`` and ``seed`` among them, that every problem of the system takes:
        where starts are random, or few samples stand for the population.
    story : Story
        What its runs are drawn as.
    seconds : callable
        Parameters, the name of a full problem or None, options -> predicted time of one gradient:
        which point of a sweep to begin with, and nothing else, rests on it.
    """

    name: str
    title: str
    notation: Notation
    claims: tuple[Claim, ...]
    derivations: Callable[..., Mapping[str, ReducedSystem]]
    Parameters: type[Any]
    ReducedPopulation: type[Any]
    FullPopulation: type[Any]
    FullEmpirical: type[Any]
    showcases: Mapping[str, Showcase]
    expectations: tuple[str, ...]
    realistic: Mapping[str, str]
    story: Story
    seconds: Callable[[Any, str | None, Mapping[str, Any]], float]
    drawn: tuple[str, ...] = ()

    @property
    def flows(self) -> bool:
        """Whether there is a gradient flow beside gradient descent."""
        return bool(self.ReducedPopulation.flows)

    @property
    def taken(self) -> tuple[str, ...]:
        """Options that its reduced problem takes, of `TAKEN`."""
        known = signature(self.ReducedPopulation).parameters
        return tuple(name for name in TAKEN if name in known)

    @property
    def draws(self) -> str:
        """What has samples and a seed, beside what has them always (`drawn`)."""
        sampled = " or --expectation sampled" if "sampled" in self.expectations else ""
        return f"--full empirical{sampled}"

    def problem(self, parameters: Any, full: str | None, options: Mapping[str, Any]) -> Any:
        """The problem that options ask for; those of other problems are passed over.

        Parameters
        ----------
        parameters : Parameters
        full : str or None
            ``"population"``, ``"empirical"``, or the reduced problem.
        options : mapping
            Name -> value, as on the command line.

        Raises
        ------
        InvalidRequest
            If the problem cannot be made.
        """
        names: tuple[str, ...]
        if full == "population":
            names, kind = self.drawn, self.FullPopulation
        elif full == "empirical":
            names, kind = (*DRAWN, *self.realistic), self.FullEmpirical
        else:
            drawn = DRAWN if options.get("expectation") == "sampled" else ()
            names = (*TAKEN, *dict.fromkeys((*drawn, *self.drawn)))
            kind = self.ReducedPopulation
        chosen = {name: options[name] for name in names if name in options}
        known = signature(kind).parameters
        for name in chosen:
            if name not in known and not any(p.kind is p.VAR_KEYWORD for p in known.values()):
                raise InvalidRequest(
                    f"{name} is no option of the {kind.view} problem of {self.name}"
                )
        return kind(parameters, **chosen)


def system_names() -> tuple[str, ...]:
    """Names of all systems."""
    here = Path(__file__).parent
    return tuple(sorted(p.parent.name for p in here.glob("*/parameters.py")))


def load_system(name: str) -> System:
    """Load a system by name.

    Raises
    ------
    InvalidRequest
        If there is none of that name.
    """
    names = system_names()
    if name not in names:
        near = get_close_matches(name, names, 1, 0.0)[0]
        refuse("system", name, "is unknown", ", ".join(names), near)
    system: System = importlib.import_module(f"dynamics.systems.{name}").SYSTEM
    return system
