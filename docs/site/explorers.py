"""Pages to explore, one a model: written at every build, where `dynamics.explorer` is installed.

A page needs neither a server nor a network. It stands in the site as ``explorers/<name>.html``,
beside the page of the model that shows it in a frame.
"""

from __future__ import annotations

from collections.abc import Sequence
from importlib import import_module
from importlib.util import find_spec
from pathlib import Path

from dynamics.library import system_names
from dynamics.validation import InvalidRequest


def write_explorers(folder: Path) -> Sequence[str]:
    """Write the pages to explore.

    Parameters
    ----------
    folder : Path
        Where files stand that the site takes as they are.

    Returns
    -------
    list of str
        Systems that have such a page; none where there is nothing that writes them.
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
    """The page of a system in a frame on the page of the model, as a section of Markdown."""
    address = f"../explorers/{name}.html"
    return (
        f"## Explore\n\nMove the constants and see training follow; "
        f'<a href="{address}">the same on a page of its own</a>.\n\n'
        f'<iframe class="explorer" src="{address}" title="Explore {name}" loading="lazy"></iframe>'
    )


def listed(names: Sequence[str], titles: Sequence[str]) -> str:
    """The page that lists the pages to explore.

    Parameters
    ----------
    names : sequence of str
        Systems that have one.
    titles : sequence of str
        Of these systems.
    """
    rows = [
        f'- <a href="explorers/{name}.html">{title}</a>; '
        f"[the model](models/{name}.md), `attdyn explore {name} --out page.html`"
        for name, title in zip(names, titles, strict=True)
    ]
    return "\n".join([
        "# Explore", "",
        "Each model as a page: move its constants and see training follow. What runs in the page "
        "is printed from what runs in Python. A page is one file and needs no network; the "
        "command writes it, of a model file of your own too.",
        "", *rows,
    ])  # fmt: skip
