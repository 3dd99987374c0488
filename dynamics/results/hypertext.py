"""Conversion of Markdown to self-contained HTML, with formulas as MathML and embedded pictures.

The content security policy of a page forbids scripts and network access in any text of the page.
"""

from __future__ import annotations

import base64
import re
from collections.abc import Mapping, Sequence
from html import escape
from pathlib import Path
from typing import Any
from urllib.parse import unquote

from dynamics.results.formulas import mathml

POLICY = "default-src 'none'; style-src 'unsafe-inline'; img-src data:"

STYLE = """
:root { color-scheme: light dark; }
body { font: 1rem/1.55 Georgia, serif; max-width: 50rem; margin: 2rem auto; padding: 0 1rem; }
h1, h2, h3, table { font-family: system-ui, sans-serif; }
h2 { border-top: 1px solid #8884; padding-top: 1rem; margin-top: 2rem; font-size: 1.15rem; }
blockquote { margin: 1rem 0; padding: .1rem 1rem; border-left: 4px solid #0072b2; }
table { border-collapse: collapse; font-size: .85rem; display: block; overflow-x: auto; }
td, th { padding: .3rem .6rem; border-bottom: 1px solid #8884; text-align: left; }
img { max-width: 100%; background: white; }
code { font-family: ui-monospace, monospace; font-size: .85rem; }
pre { overflow-x: auto; }
"""


def anchor(heading: str) -> str:
    """Anchor of a heading, as Markdown renderers make it."""
    return re.sub(r"[^\w -]", "", heading.lower()).replace(" ", "-")


def code(text: str) -> str:
    """Inline code in Markdown, for a text with any backticks.

    Examples
    --------
    >>> print(code("a"), code("a `b`"))
    `a` `` a `b` ``
    """
    fence = "`" * (1 + max(map(len, re.findall("`+", text)), default=0))
    space = " " if "`" in text else ""
    return f"{fence}{space}{' '.join(text.split())}{space}{fence}"


def code_block(text: str, language: str = "") -> str:
    """Code block in Markdown, with a fence longer than any run of backticks in the text."""
    fence = "`" * max(3, 1 + max(map(len, re.findall("`+", text)), default=0))
    return f"{fence}{language}\n{text}\n{fence}"


def fragment(page: str, pictures: Mapping[str, bytes] | None = None) -> str:
    r"""Convert a Markdown page to HTML elements.

    `pictures` maps the address of a picture in the page to the bytes of the PNG to embed. A picture
    that is not in `pictures` is replaced by its alternative text, so no address is requested.

    Examples
    --------
    >>> fragment("the *risk*")
    '<p>the <em>risk</em></p>\n'
    >>> fragment("![a plot](https://example.org/plot.png)")
    '<p>a plot</p>\n'
    """
    from markdown_it import MarkdownIt
    from mdit_py_plugins.anchors import anchors_plugin
    from mdit_py_plugins.dollarmath import dollarmath_plugin

    def formula(latex: str, options: Mapping[str, Any]) -> str:
        return mathml(latex, bool(options.get("display_mode")))

    def picture(_: Any, tokens: Sequence[Any], index: int, *__: Any) -> str:
        drawn = (pictures or {}).get(unquote(str(tokens[index].attrs["src"])))
        words = escape(tokens[index].content)
        if drawn is None:
            return words
        data = base64.b64encode(drawn).decode("ascii")
        return f'<img src="data:image/png;base64,{data}" alt="{words}">'

    reader = MarkdownIt("commonmark", {"html": False}).enable("table")
    reader.use(
        dollarmath_plugin, renderer=formula, double_inline=False, allow_digits=True,
        allow_labels=False,
    )  # fmt: skip
    reader.use(anchors_plugin, slug_func=anchor)
    reader.add_render_rule("image", picture)
    return str(reader.render(page))


def html(title: str, page: str, folder: Path | None = None) -> str:
    """Convert a Markdown page to a complete HTML document, embedding the PNG files of a folder."""
    pictures = {path.name: path.read_bytes() for path in folder.glob("*.png")} if folder else {}
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta http-equiv="Content-Security-Policy" content="{POLICY}">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n"
        f"{fragment(page, pictures)}</body>\n</html>\n"
    )
