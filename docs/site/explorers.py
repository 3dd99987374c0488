"""Write an interactive page per model with `dynamics.explorer`, if installed.

A page needs no server and no network. The site has the page as ``explorers/<name>.html``, and in a
frame on the page of the model.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from dynamics.library import system_names
from dynamics.validation import InvalidRequest


def write_explorers(folder: Path) -> Sequence[str]:
    """Write the interactive pages to `folder`; return the systems with a page.

    The result is empty if `dynamics.explorer` is not installed.
    """
    if find_spec("dynamics.explorer") is None:
        return []
    write_page = import_module("dynamics.explorer").write_page
    target = folder / "explorers"
    target.mkdir(parents=True, exist_ok=True)
    written = []
    for name in system_names():
        try:
            write_page(name, target / f"{name}.html")
        except InvalidRequest as refusal:
            print(f"no page to explore {name}: {refusal}")
        else:
            written.append(name)
    return written


def frame(name: str) -> str:
    """Markdown section for a model's page that shows its interactive page in a frame."""
    address = f"../explorers/{name}.html"
    return (
        f"## Explore\n\nMove the constants and see training follow; "
        f'<a href="{address}">the same on a page of its own</a>.\n\n'
        f'<iframe class="explorer" src="{address}" title="Explore {name}" loading="lazy"></iframe>'
    )


def listed(names: Sequence[str], titles: Sequence[str]) -> str:
    """Markdown page that lists the interactive pages of the named systems."""
    rows = [
        f'- <a href="explorers/{name}.html">{title}</a> ([the model](models/{name}.md))'
        for name, title in zip(names, titles, strict=True)
    ]
    return "\n".join([
        "# Explorers of all models", "",
        "Each model as a page: move its constants and see training follow. The code of the page is "
        "generated from the Python code. A page is one file and needs no network; "
        "`attdyn explore SYSTEM --out page.html` writes it, for a model file of your own too.",
        "", *rows,
    ])  # fmt: skip
