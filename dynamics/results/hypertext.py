"""Markdown as HTML, with formulas as MathML: no script and no network is needed to read it."""

from __future__ import annotations

import re
from collections.abc import Mapping
from html import escape
from typing import Any

from dynamics.results.formulas import mathml

STYLE = """
:root { color-scheme: light dark; }
body { font: 1rem/1.55 Georgia, serif; max-width: 50rem; margin: 2rem auto; padding: 0 1rem; }
h1, h2, table, code { font-family: system-ui, sans-serif; }
h2 { border-top: 1px solid #8884; padding-top: 1rem; margin-top: 2rem; font-size: 1.15rem; }
blockquote { margin: 1rem 0; padding: .1rem 1rem; border-left: 4px solid #0072b2; }
table { border-collapse: collapse; font-size: .85rem; display: block; overflow-x: auto; }
td, th { padding: .3rem .6rem; border-bottom: 1px solid #8884; text-align: left; }
img { max-width: 100%; background: white; }
code { font-size: .85rem; }
"""


def anchor(heading: str) -> str:
    """The anchor of a heading, as Markdown's readers make it."""
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


def fragment(page: str) -> str:
    r"""A page in Markdown as elements of HTML.

    Examples
    --------
    >>> fragment("the *risk*")
    '<p>the <em>risk</em></p>\n'
    """
    from markdown_it import MarkdownIt
    from mdit_py_plugins.anchors import anchors_plugin
    from mdit_py_plugins.dollarmath import dollarmath_plugin

    def formula(latex: str, options: Mapping[str, Any]) -> str:
        return mathml(latex, bool(options.get("display_mode")))

    reader = MarkdownIt("commonmark", {"html": False}).enable("table")
    reader.use(dollarmath_plugin, renderer=formula, double_inline=False, allow_digits=True)
    reader.use(anchors_plugin, slug_func=anchor)
    return str(reader.render(page))


def html(title: str, page: str) -> str:
    """A page in Markdown as a whole HTML document.

    Parameters
    ----------
    title : str
    page : str
        Markdown, formulas between dollar signs.
    """
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n"
        f"{fragment(page)}</body>\n</html>\n"
    )
