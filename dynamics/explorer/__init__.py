"""Interactive pages: one HTML file that trains a system in a browser, without server or network.

Models are lists of instructions that the page interprets (`own_model`, `assets/lists.js`). The
module `page_model` defines the data of a page. The data are computed by `own_model` from a model,
and by `papers` and `shallow_vit` for the systems of papers. Texts come from `description`, and
`page` combines everything into one file with the JavaScript of ``assets``.
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
"""Module that makes the page of a paper's system, by the name of the system."""


def explorer_page(source: Any, parameters: Any = None) -> str:
    """HTML of the page of a system, with the sliders initially at the given parameters.

    The parameters default to those of ``attdyn compare``. Raises InvalidRequest if the system is
    unknown, or has no page.
    """
    system = load_system(source)
    if parameters is None:
        parameters = system.Parameters(**system.default_runs["compare"].parameters)
    model = page_model_of(system, parameters)
    return page(page_description(system, model), worker_script(model.script, model.problem))


def write_page(source: Any, path: str | os.PathLike[str], parameters: Any = None) -> None:
    """Write the page of a system to a file; the arguments are as for `explorer_page`."""
    target = path_of("path", path)
    text = explorer_page(source, parameters)
    target.write_text(text, encoding="utf-8", errors="backslashreplace")


def page_model_of(system: System, parameters: Any) -> PageModel:
    """PageModel of a system, made by the module for this system."""
    module = "own_model" if system.model is not None else PAGES[system.name]
    maker = importlib.import_module(f"dynamics.explorer.{module}")
    model: PageModel = maker.page_model(system, parameters)
    return model
