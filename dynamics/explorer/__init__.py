"""Pages to explore a system: one file of HTML that trains it, without server or network.

Models are lists of instructions that the page interprets (`own_model`, `assets/lists.js`): no
gradient is written twice. The integrator of the flow and the loop of gradient descent are printed
as JavaScript (`javascript`, `driver`). `page_model` defines what a page needs of a system;
`own_model` makes it of a model, `papers` and `shallow_vit` of the systems of papers; `description`
has the words, and `page` puts everything into one file. What is written in JavaScript by hand is in
``assets``.
"""

from __future__ import annotations

import importlib
import os
from typing import Any

from dynamics.explorer.description import page_description
from dynamics.explorer.driver import worker_script
from dynamics.explorer.page import page
from dynamics.explorer.page_model import PageModel
from dynamics.registry import load_system
from dynamics.system import System
from dynamics.validation import path_of

__all__ = ["explorer_page", "write_page"]

PAGES = {
    "positional_attention": "papers",
    "masked_image_modeling": "papers",
    "shallow_vit": "shallow_vit",
}
"""Module that makes the page of a system of a paper."""


def explorer_page(source: Any, parameters: Any = None) -> str:
    """The page of a system, as text of HTML.

    `source`: as for `dynamics.load_system`; `parameters`: first positions of the sliders; those of
    ``attdyn compare`` by default. Raises InvalidRequest if there is no such system, or it has no
    page.
    """
    system = load_system(source)
    if parameters is None:
        parameters = system.Parameters(**system.default_runs["compare"].parameters)
    model = page_model_of(system, parameters)
    return page(page_description(system, model), worker_script(model.script, model.problem))


def write_page(source: Any, path: str | os.PathLike[str], parameters: Any = None) -> None:
    """Write the page of a system into a file.

    `source`, `parameters`: as for `explorer_page`.
    """
    target = path_of("path", path)
    text = explorer_page(source, parameters)
    target.write_text(text, encoding="utf-8", errors="backslashreplace")


def page_model_of(system: System, parameters: Any) -> PageModel:
    """The model of a page, made by the module of the system."""
    module = "own_model" if system.model is not None else PAGES[system.name]
    maker = importlib.import_module(f"dynamics.explorer.{module}")
    model: PageModel = maker.page_model(system, parameters)
    return model
