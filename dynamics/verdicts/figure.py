"""The figures of a paper by their names, each from a run of its own.

A figure is a function ``figure(system, request) -> Drawing``; the folder of a system lists its
own in ``FIGURES``. What a figure does by default takes minutes at most; ``thorough`` is the
full protocol, and ``options`` are the figure's own.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any, TypeVar

import matplotlib as mpl
import numpy as np

from dynamics.plotting.captions import cut, fixed, subtitle
from dynamics.plotting.style import RC, new_figure
from dynamics.problem import FloatArray
from dynamics.registry import load_system
from dynamics.system import System
from dynamics.validation import InvalidRequest, integer, real
from dynamics.verdicts import verdicts_of
from theory.summary import summarized


@dataclass(frozen=True)
class FigureRequest:
    """Request of a user for a figure.

    `parameters`: all parameters; None for those of the figure; `seed`: of everything random;
    `user_options`: ``thorough`` (the full protocol), and those that the figure itself has;
    `user_parameters`: single parameters, over those of the figure.
    """

    parameters: Any = None
    seed: int = 0
    user_options: Mapping[str, Any] = field(default_factory=dict)
    user_parameters: Mapping[str, Any] = field(default_factory=dict)

    def make_parameters(self, system: System, axes: Sequence[str] = (), **defaults: Any) -> Any:
        """The parameters of the figure, the user's over its defaults.

        `axes`: Parameters that are axes of the figure; `**defaults`: those of the figure. Raises
        InvalidRequest for a parameter that is an axis of the figure.
        """
        for name in axes:
            if name in self.user_parameters:
                raise InvalidRequest(f"{name} is an axis of this figure and cannot be set")
        return self.parameters or system.Parameters(**(defaults | dict(self.user_parameters)))

    def options(
        self, quick: Mapping[str, Any], thorough: Mapping[str, Any] | None = None, **least: int
    ) -> dict[str, Any]:
        """The options of the figure, the user's over its defaults and of the same types.

        `quick`: every option with its default; `thorough`: those that differ in the full protocol;
        `**least`: least values of whole numbers, where it is not 1 (0 where that is the default).
        Raises InvalidRequest for an option that the figure does not have, or a value that it cannot
        have.
        """
        user = dict(self.user_options)
        defaults = dict(quick) | (dict(thorough or {}) if user.pop("thorough", False) else {})
        for name in user:
            if name not in defaults:
                allowed = ", ".join(["thorough", *defaults])
                raise InvalidRequest(f"option {name!r} is unknown; known are {allowed}")
        return defaults | {
            name: _like(name, value, defaults[name], least.get(name, 1))
            for name, value in user.items()
        }

    def seeds(self, count: int) -> range:
        """Consecutive seeds, from that of the request on."""
        return range(self.seed, self.seed + count)


def _like(name: str, value: Any, default: Any, least: int) -> Any:
    """An option as its default is: one value or several, words, whole numbers or others."""
    several = not isinstance(default, str) and hasattr(default, "__len__")
    parts = list(value) if isinstance(value, (list, tuple)) or hasattr(value, "dtype") else [value]
    example = next(iter(default)) if several else default
    words, wholes = isinstance(example, str), isinstance(example, int)
    for part in parts:
        if isinstance(part, str) != words:
            kind = "a word" if words else "a whole number" if wholes else "a number"
            raise InvalidRequest(f"option {name} is {kind}, not {part!r}")
    if not several and len(parts) > 1:
        raise InvalidRequest(f"option {name}={value!r} takes one value, as {default}")
    if wholes:
        parts = [integer(name, part, min(least, example), 10**12) for part in parts]
    elif not words:
        parts = [real(name, part, at_least=0.0) for part in parts]
    return parts if several else parts[0]


def stated(law: Any, *names: str, **more: Any) -> str:
    """Parameters in a caption: "D=16, C=4, q=0.5".

    `**more`: other numbers by their names.
    """
    numbers = {name: getattr(law, name) for name in names} | more
    return ", ".join(
        f"{name.replace('alpha_star', 'alpha_*').replace('alpha_confusion', 'alpha_#')}={value:g}"
        for name, value in numbers.items()
    )


def title(system: System, law: Any, *names: str, width: float = 1e3, **more: Any) -> str:
    """Parameters above a picture, in the letters of the system.

    `width`: in inches, into which lines fit; `**more`: other numbers by their names, or by their
    letters.
    """
    held = {name: getattr(law, name) for name in names} | more
    return fixed(system.notation, held, {}, width)


def state(axes: Any, system: System, law: Any, *names: str, **more: Any) -> Any:
    """Write parameters above a picture, in the letters of the system.

    `**more`: other numbers by their names, or by their letters. Returns Axes or array of Axes: the
    same.
    """
    figure = np.ravel(axes)[0].figure
    held = title(system, law, *names, width=figure.get_figwidth(), **more)
    subtitle(figure, cut(figure, held))
    return axes


def edges(centres: FloatArray, alone: float = 1.0) -> FloatArray:
    """Edges of cells around ascending centres, half way between them, shape (n + 1,).

    `centres`, shape (n,); `alone`: width of the cell of a single centre.
    """
    if centres.size == 1:
        return centres[0] + np.array([-0.5, 0.5]) * alone
    middle = (centres[1:] + centres[:-1]) / 2
    first, last = 2 * centres[0] - middle[0], 2 * centres[-1] - middle[-1]
    return np.concatenate([[first], middle, [last]])


@contextmanager
def page(
    width: float, height: float, title: str = "", rc: Mapping[Any, Any] = RC, **grid: Any
) -> Iterator[tuple[Any, Any]]:
    """A figure and its axes in the style of all pictures.

    `width`, `height`: in inches; `title`: what is held fixed, above all panels; `rc`: of
    matplotlib; `**grid`: of ``Figure.subplots``.
    """
    with mpl.rc_context(dict(rc)):
        figure, axes = new_figure(width, height, **grid)
        yield figure, axes
        subtitle(figure, title)


@summarized
@dataclass(frozen=True)
class Drawing:
    """A figure with its data and its caption.

    `axes`: of one Figure; `dynamics.plotting.write` writes it; `data`: what the picture shows, as
    plain values and arrays; `caption`: how it was made and what it shows, with the numbers that
    matter; `table`: rows of the numbers, by column, where the picture shows only some of them.
    """

    axes: Any
    data: Mapping[str, Any]
    caption: str
    table: Sequence[Mapping[str, Any]] = ()


Drawn = TypeVar("Drawn", bound=Callable[..., Drawing])


def with_flags(switches: Mapping[str, str], **values: str) -> Callable[[Drawn], Drawn]:
    """Decorate a figure some of whose options are flags of the command line too.

    A figure with the switch ``resume`` has the option ``checkpoints``: the folder of the
    checkpoints of its runs, until it is written.

    `switches`: name -> help text of the flags without a value: options that are 0 or 1; `**values`:
    help texts of the others.
    """

    def decorate(figure: Drawn) -> Drawn:
        figure.__dict__["flags"] = (dict(switches), values)
        return figure

    return decorate


def flags_of(figure: Callable[..., Drawing]) -> tuple[dict[str, str], dict[str, str]]:
    """Switches and other flags of a figure, name -> help text; see `with_flags`."""
    none: tuple[dict[str, str], dict[str, str]] = ({}, {})
    return getattr(figure, "flags", none)


Figure = Callable[[System, FigureRequest], Drawing]


def figures(system: System) -> Mapping[str, Figure]:
    """The figures of a system: name -> function; empty where there are none.

    Those of `dynamics.verdicts.own_models` too where it is made of a model.
    """
    own = verdicts_of(system, "figures")
    if system.model is not None:
        from dynamics.verdicts.own_models import FIGURES

        return {**own, **FIGURES}
    return own


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

    `system`: as of `dynamics.load_system`; `name`: as in the paper: ``"4"``, ``"1b"``;
    `parameters`: those of the figure by default; `seed`: of everything random; `thorough`: the full
    protocol; `options`: the figure's own; `user_parameters`: single parameters, over those of the
    figure. Raises InvalidRequest for a figure that there is not, a seed or an option that cannot
    be.
    """
    loaded = load_system(system)
    table = figures(loaded)
    if name not in table:
        names = ", ".join(table) or "none"
        raise InvalidRequest(f"figure {name!r} of {loaded.name} is unknown; known are {names}")
    seed = integer("seed", seed, at_least=0, at_most=2**63 - 1)
    user_options = {"thorough": thorough, **(options or {})}
    return table[name](loaded, FigureRequest(parameters, seed, user_options, user_parameters or {}))
