"""The figures of a paper by their names, each drawn from a run of its own.

A figure is a function ``figure(system, request) -> Drawing``; the folder of a system lists its
own in ``figures.py``. What a figure does by default takes minutes at most; ``thorough`` is the
full protocol, and ``options`` are the figure's own.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import TYPE_CHECKING, Any

from dynamics.experiments import experiments_of
from dynamics.registry import load_system
from dynamics.validation import InvalidRequest, integer

if TYPE_CHECKING:
    from dynamics.registry import System


@dataclass(frozen=True)
class FigureRequest:
    """What the user requests of a figure.

    Attributes
    ----------
    parameters : object or None
        All parameters; None for those of the figure.
    seed : int
        Of everything random.
    user_options : mapping
        ``thorough`` (the full protocol), and those that the figure itself has.
    user_parameters : mapping
        Single parameters, over those of the figure.
    """

    parameters: Any = None
    seed: int = 0
    user_options: Mapping[str, Any] = field(default_factory=dict)
    user_parameters: Mapping[str, Any] = field(default_factory=dict)

    def make_parameters(self, system: System, axes: Sequence[str] = (), **defaults: Any) -> Any:
        """The parameters of the figure, the user's over its defaults.

        Parameters
        ----------
        system : System
        axes : sequence of str
            Parameters that are axes of the figure.
        **defaults
            Those of the figure.

        Raises
        ------
        InvalidRequest
            For a parameter that is an axis of the figure.
        """
        for name in axes:
            if name in self.user_parameters:
                raise InvalidRequest(f"{name} is an axis of this figure and cannot be set")
        return self.parameters or system.Parameters(**(defaults | dict(self.user_parameters)))

    def options(self, quick: Mapping[str, Any], thorough: Mapping[str, Any]) -> dict[str, Any]:
        """The options of the figure, the user's over its defaults.

        Parameters
        ----------
        quick : mapping
            Every option with its default.
        thorough : mapping
            Those that differ in the full protocol.

        Raises
        ------
        InvalidRequest
            For an option that the figure does not have.
        """
        user = dict(self.user_options)
        defaults = dict(quick) | (dict(thorough) if user.pop("thorough", False) else {})
        for name in user:
            if name not in defaults:
                known = ", ".join(["thorough", *defaults])
                raise InvalidRequest(f"option {name!r} is unknown; known are {known}")
        return defaults | {name: _like(name, user[name], defaults[name]) for name in user}


def _like(name: str, value: Any, default: Any) -> Any:
    """An option as its default is: one value or several, words or numbers."""
    several = not isinstance(default, str) and hasattr(default, "__len__")
    parts = list(value) if isinstance(value, (list, tuple)) or hasattr(value, "dtype") else [value]
    example = next(iter(default)) if several else default
    if any(isinstance(part, str) != isinstance(example, str) for part in parts):
        raise InvalidRequest(f"option {name}={value!r} can be like {default}")
    if not several and len(parts) > 1:
        raise InvalidRequest(f"option {name}={value!r} takes one value, as {default}")
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

    Those of `dynamics.experiments.own_models` where it is a model of one's own without others.
    """
    if system.figures is None and system.model is not None:
        from dynamics.experiments.own_models import FIGURES

        return FIGURES
    return experiments_of(system, "figures")


def draw(
    system: Any,
    name: str,
    parameters: Any = None,
    seed: int = 0,
    thorough: bool = False,
    options: Mapping[str, Any] | None = None,
    user_parameters: Mapping[str, Any] | None = None,
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
    user_parameters : mapping, optional
        Single parameters, over those of the figure.

    Returns
    -------
    Drawing

    Raises
    ------
    InvalidRequest
        For a figure that there is not, a seed or an option that cannot be.
    """
    loaded = load_system(system)
    table = figures(loaded)
    if name not in table:
        known = ", ".join(table) or "none"
        raise InvalidRequest(f"figure {name!r} of {loaded.name} is unknown; known are {known}")
    seed = integer("seed", seed, at_least=0, at_most=2**63 - 1)
    user_options = {"thorough": thorough, **(options or {})}
    return table[name](loaded, FigureRequest(parameters, seed, user_options, user_parameters or {}))
