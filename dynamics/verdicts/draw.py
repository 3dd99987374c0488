"""Draw a figure of a paper by its name; the first drawing imports the figure's code."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dynamics.parameter_fields import check_parameters
from dynamics.registry import load_system
from dynamics.system import System
from dynamics.validation import InvalidRequest, integer
from dynamics.verdicts import verdicts_of

if TYPE_CHECKING:
    from dynamics.verdicts.figure import Drawing, Figure


def figures(system: System) -> Mapping[str, Figure]:
    """Figures of a system by name; those of `own_models` are added if it is built from a model."""
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
) -> Drawing:
    """Draw a figure of a system's paper.

    Parameters
    ----------
    system : System, str, path-like or Model
        As in `dynamics.load_system`.
    name : str
        Name of the figure, as in the paper: ``"4"``, ``"1b"``.
    parameters : Parameters or mapping, optional
        All parameters, or single ones by name that replace the figure's defaults.
    seed : int
        Seed of every random draw.
    thorough : bool
        Whether to run the full protocol.
    options : mapping, optional
        Options of the figure by name.

    Returns
    -------
    Drawing

    Raises
    ------
    InvalidRequest
        For an unknown figure, parameters of another system, a wrong seed or option.

    Examples
    --------
    >>> import dynamics
    >>> drawing = dynamics.draw("positional_attention", "1b", {"D": 4, "C": 2})
    >>> drawing.data["localised"]
    [0, 0, 1, 1]
    """
    loaded = load_system(system)
    table = figures(loaded)
    if name not in table:
        names = ", ".join(table) or "none"
        raise InvalidRequest(f"figure {name!r} of {loaded.name} is unknown; known are {names}")
    from dynamics.verdicts.figure import FigureRequest

    seed = integer("seed", seed, at_least=0, at_most=2**63 - 1)
    user_options = {"thorough": thorough, **(options or {})}
    single = isinstance(parameters, Mapping)
    every, some = (None, parameters) if single else (parameters, {})
    if every is not None:
        check_parameters(every, loaded.Parameters, loaded.name)
    return table[name](loaded, FigureRequest(every, seed, user_options, some))
