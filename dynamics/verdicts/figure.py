"""Figures of a paper by name, each a function ``figure(system, request) -> Drawing``.

A figure trains its own runs, within minutes by default; the option ``thorough`` selects the full
protocol. A system's folder lists its figures in ``FIGURES``.
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
from dynamics.system import System
from dynamics.validation import InvalidRequest, integer, real
from theory.summary import summarized


@dataclass(frozen=True)
class FigureRequest:
    """Request of a user for a figure.

    `parameters`: all parameters, or None for the defaults of the figure; `seed`: seed of every
    random draw; `user_options`: options of the figure by name, with ``thorough`` for the full
    protocol; `user_parameters`: single parameters that replace defaults of the figure.
    """

    parameters: Any = None
    seed: int = 0
    user_options: Mapping[str, Any] = field(default_factory=dict)
    user_parameters: Mapping[str, Any] = field(default_factory=dict)

    def make_parameters(self, system: System, axes: Sequence[str] = (), **defaults: Any) -> Any:
        """Parameters of the figure: `defaults`, where the user may replace all but the `axes`."""
        for name in axes:
            if name in self.user_parameters:
                raise InvalidRequest(f"{name} is an axis of this figure and cannot be set")
        return self.parameters or system.Parameters(**(defaults | dict(self.user_parameters)))

    def options(
        self, quick: Mapping[str, Any], thorough: Mapping[str, Any] | None = None, **least: int
    ) -> dict[str, Any]:
        """Options of the figure: its defaults, replaced by the user's values of the same types.

        `quick`: every option with its default; `thorough`: defaults that differ in the full
        protocol; `**least`: minimum of an integer option, by default 1, or 0 for an option with
        default 0. Raises InvalidRequest for an unknown option or an invalid value.
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
        """Consecutive seeds, starting at the seed of the request."""
        return range(self.seed, self.seed + count)


def _like(name: str, value: Any, default: Any, least: int) -> Any:
    """Option of a user, checked against the type and the number of values of its default."""
    several = not isinstance(default, str) and hasattr(default, "__len__")
    parts = list(value) if isinstance(value, (list, tuple)) or hasattr(value, "dtype") else [value]
    example = next(iter(default)) if several else default
    words, wholes = isinstance(example, str), isinstance(example, int)
    for part in parts:
        if isinstance(part, str) != words:
            kind = "a word" if words else "a whole number" if wholes else "a number"
            raise InvalidRequest(f"option {name} must be {kind}, not {part!r}")
    if not several and len(parts) > 1:
        raise InvalidRequest(f"option {name}={value!r} must be one value, as the default {default}")
    if wholes:
        parts = [integer(name, part, min(least, example), 10**12) for part in parts]
    elif not words:
        parts = [real(name, part, at_least=0.0) for part in parts]
    return parts if several else parts[0]


def stated(law: Any, *names: str, **more: Any) -> str:
    """Text for a caption, such as "D=16, C=4, q=0.5": parameters of `law`, then numbers `more`."""
    numbers = {name: getattr(law, name) for name in names} | more
    return ", ".join(
        f"{name.replace('alpha_star', 'alpha_*').replace('alpha_confusion', 'alpha_#')}={value:g}"
        for name, value in numbers.items()
    )


def title(system: System, law: Any, *names: str, width: float = 1e3, **more: Any) -> str:
    """Subtitle of at most `width` inches: parameters and numbers in the system's letters."""
    held = {name: getattr(law, name) for name in names} | more
    return fixed(system.notation, held, {}, width)


def state(axes: Any, system: System, law: Any, *names: str, **more: Any) -> Any:
    """Write parameters of `law` and numbers `more` above all panels; return `axes`."""
    figure = np.ravel(axes)[0].figure
    held = title(system, law, *names, width=figure.get_figwidth(), **more)
    subtitle(figure, cut(figure, held))
    return axes


def edges(centres: FloatArray, alone: float = 1.0) -> FloatArray:
    """Edges, shape (n + 1,), of cells around n ascending centres; a lone cell has width `alone`."""
    if centres.size == 1:
        return centres[0] + np.array([-0.5, 0.5]) * alone
    middle = (centres[1:] + centres[:-1]) / 2
    first, last = 2 * centres[0] - middle[0], 2 * centres[-1] - middle[-1]
    return np.concatenate([[first], middle, [last]])


@contextmanager
def page(
    width: float, height: float, title: str = "", rc: Mapping[Any, Any] = RC, **grid: Any
) -> Iterator[tuple[Any, Any]]:
    """Open a matplotlib figure in the style of the package; write its title on exit.

    `width`, `height`: size in inches; `title`: text printed above all panels; `rc`:
    matplotlib settings; `**grid`: arguments of ``Figure.subplots``.
    """
    with mpl.rc_context(dict(rc)):
        figure, axes = new_figure(width, height, **grid)
        yield figure, axes
        subtitle(figure, title)


@summarized
@dataclass(frozen=True)
class Drawing:
    """A figure with its data and its caption.

    `axes`: panels on one matplotlib Figure, to save with `dynamics.plotting.write`; `data`: the
    plotted data, as plain values and arrays; `caption`: protocol and result of the figure, with the
    decisive numbers; `table`: rows of numbers, by column, if the picture shows only some of them.
    """

    axes: Any
    data: Mapping[str, Any]
    caption: str
    table: Sequence[Mapping[str, Any]] = ()


Drawn = TypeVar("Drawn", bound=Callable[..., Drawing])


def with_flags(switches: Mapping[str, str], **values: str) -> Callable[[Drawn], Drawn]:
    """Decorate a figure with command-line flags for some of its options.

    `switches`: name -> help text of flags without a value (options 0 or 1); `**values`: name ->
    help text of flags with a value. A figure with the switch ``resume`` also has the option
    ``checkpoints``: the folder with the checkpoints of its runs, kept until the figure is written.
    """

    def decorate(figure: Drawn) -> Drawn:
        figure.__dict__["flags"] = (dict(switches), values)
        return figure

    return decorate


def flags_of(figure: Callable[..., Drawing]) -> tuple[dict[str, str], dict[str, str]]:
    """Help texts of a figure's command-line flags, by name: switches, then flags with a value."""
    none: tuple[dict[str, str], dict[str, str]] = ({}, {})
    return getattr(figure, "flags", none)


Figure = Callable[[System, FigureRequest], Drawing]
