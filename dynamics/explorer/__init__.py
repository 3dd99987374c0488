"""A system as a page to explore: one file of HTML, no server, no network.

The page runs what Python runs. Kernels of the generated files, the integrator of the flow and the
loop of gradient descent are printed as JavaScript (`javascript`, `driver`), traced programs of
models of one's own too (`traced_program`, `own_model`); so there is no second version of a
gradient. `page_model` says what a page needs of a system, `positional_attention` and the like make
it, `description` gathers the words, and `page` puts everything into one file. What runs in the
browser alone is in ``assets``.
"""

from __future__ import annotations

import importlib
import os
from typing import Any

from dynamics.explorer.description import page_description
from dynamics.explorer.driver import worker_script
from dynamics.explorer.page import page
from dynamics.explorer.page_model import PageModel
from dynamics.registry import System, load_system

__all__ = ["explorer_page", "write_page"]


def explorer_page(source: Any, parameters: Any = None) -> str:
    """The page of a system, as text of HTML.

    Parameters
    ----------
    source : str, path-like, Model or System
        As for `dynamics.load_system`.
    parameters : Parameters, optional
        Where the sliders stand at first; those of ``attdyn compare`` by default.

    Raises
    ------
    InvalidRequest
        If there is no such system, or it has no page.
    """
    system = load_system(source)
    if parameters is None:
        parameters = system.Parameters(**system.default_runs["compare"].parameters)
    model = page_model_of(system, parameters)
    return page(page_description(system, model), worker_script(model.script, model.problem))


def write_page(source: Any, path: str | os.PathLike[str], parameters: Any = None) -> None:
    """Write the page of a system into a file.

    Parameters
    ----------
    source, parameters
        As for `explorer_page`.
    path : path-like
    """
    text = explorer_page(source, parameters)
    with open(path, "w", encoding="utf-8") as stream:
        stream.write(text)


def page_model_of(system: System, parameters: Any) -> PageModel:
    """What a page needs of a system, by the module that knows it.

    Parameters
    ----------
    system : System
    parameters : Parameters
    """
    module = "own_model" if system.model is not None else system.name
    made: PageModel = importlib.import_module(f"dynamics.explorer.{module}").page_model(
        system, parameters
    )
    return made
