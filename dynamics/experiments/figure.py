"""The figures of a paper by their names, each drawn from a run of its own.

A figure is a function ``figure(system, request) -> Drawing``; the folder of a system lists its
own in ``figures.py``. What a figure does by default takes minutes at most; ``thorough`` is the
full protocol, and ``options`` are the figure's own.
"""

from __future__ import annotations

import importlib
import importlib.util
from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dynamics.registry import built_in_names, load_system
from dynamics.validation import InvalidRequest, integer

if TYPE_CHECKING:
    from dynamics.registry import System

OWN_MODELS = "dynamics.experiments.own_models.figures"
"""Figures of every model of one's own."""


@dataclass(frozen=True)
class FigureRequest:
    """What a figure is asked for.

    Attributes
    ----------
    parameters : object or None
        The user's, whole; None for those of the figure.
    given : mapping
        Single parameters that the user names, over those of the figure.
    seed : int
        Of everything random.
    options : mapping
        ``thorough`` (the full protocol), and what the figure itself knows.
    """

    parameters: Any = None
    seed: int = 0
    options: Mapping[str, Any] = field(default_factory=dict)
    given: Mapping[str, Any] = field(default_factory=dict)

    def law(self, system: System, axes: Sequence[str] = (), **usual: Any) -> Any:
        """The parameters of the figure, with what the user names put over its usual ones.

        Raises
        ------
        InvalidRequest
            For a parameter that is an axis of the figure.
        """
        for name in axes:
            if name in self.given:
                raise InvalidRequest(f"{name} is an axis of this figure and cannot be set")
        return self.parameters or system.Parameters(**(usual | dict(self.given)))

    def settled(self, quick: Mapping[str, Any], thorough: Mapping[str, Any]) -> dict[str, Any]:
        """The figure's options: those of the quick or of the full protocol, then the user's.

        Raises
        ------
        InvalidRequest
            For an option that the figure does not have.
        """
        given = dict(self.options)
        defaults = dict(quick) | (dict(thorough) if given.pop("thorough", False) else {})
        for name in given:
            if name not in defaults:
                known = ", ".join(["thorough", *defaults])
                raise InvalidRequest(f"option {name!r} is unknown; known are {known}")
        return defaults | {name: _like(name, given[name], defaults[name]) for name in given}


def _like(name: str, value: Any, usual: Any) -> Any:
    """An option as its default is: one value or several, words or numbers."""
    several = not isinstance(usual, str) and hasattr(usual, "__len__")
    parts = list(value) if isinstance(value, (list, tuple)) or hasattr(value, "dtype") else [value]
    example = next(iter(usual)) if several else usual
    if any(isinstance(part, str) != isinstance(example, str) for part in parts):
        raise InvalidRequest(f"option {name}={value!r} can be like {usual}")
    if not several and len(parts) > 1:
        raise InvalidRequest(f"option {name}={value!r} takes one value, as {usual}")
    return parts if several else value


@dataclass(frozen=True)
class Drawing:
    """A figure that was drawn.

    Attributes
    ----------
    axes : Axes or array of Axes
        Of one Figure; `dynamics.plotting.write` writes it.
    data : mapping
        What was drawn, as plain values and arrays.
    caption : str
        How it was made and what it shows, with the numbers that matter.
    """

    axes: Any
    data: Mapping[str, Any]
    caption: str


Figure = Callable[["System", FigureRequest], Drawing]


def figures(system: System) -> Mapping[str, Figure]:
    """The figures of a system: name -> function; empty where there are none.

    They are its own where it brings them, else those of the paper's folder here.
    """
    if system.figures is not None:
        return system.figures
    if system.model is not None:
        own: Mapping[str, Figure] = importlib.import_module(OWN_MODELS).FIGURES
        return own
    if system.origin is not None or system.name not in built_in_names():
        return {}
    module = f"dynamics.experiments.{system.name}.figures"
    parent = f"dynamics.experiments.{system.name}"
    if importlib.util.find_spec(parent) is None or importlib.util.find_spec(module) is None:
        return {}
    found: Mapping[str, Figure] = importlib.import_module(module).FIGURES
    return found


def draw(
    system: Any,
    name: str,
    parameters: Any = None,
    seed: int = 0,
    thorough: bool = False,
    options: Mapping[str, Any] | None = None,
    given: Mapping[str, Any] | None = None,
) -> Drawing:
    """Draw a figure of a system's paper.

    Parameters
    ----------
    system : System, str, path-like or Model
        As of `dynamics.load_system`.
    name : str
        As in the paper: ``"4"``, ``"1b"``.
    parameters : Parameters, optional
        Those of the figure by default.
    seed : int
        Of everything random.
    thorough : bool
        The full protocol.
    options : mapping, optional
        The figure's own.
    given : mapping, optional
        Single parameters, over those of the figure.

    Returns
    -------
    Drawing

    Raises
    ------
    InvalidRequest
        For a figure that there is not, a seed or an option that cannot be.
    """
    chosen = load_system(system)
    table = figures(chosen)
    if name not in table:
        known = ", ".join(table) or "none"
        raise InvalidRequest(f"figure {name!r} of {chosen.name} is unknown; known are {known}")
    seed = integer("seed", seed, at_least=0, at_most=2**63 - 1)
    asked = {"thorough": thorough, **(options or {})}
    return table[name](chosen, FigureRequest(parameters, seed, asked, given or {}))
