"""The verdicts on a paper as a page to read: Markdown, and HTML with its formulas as MathML.

A section a claim: the paper's words, what it assumes, the verdict, measured beside claimed, the
reason, the picture of the evidence, and the command that repeats it. No network is needed.
"""

from __future__ import annotations

import re
import shlex
from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from dynamics.experiments.verify import Verdict

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
SPECIAL = re.compile(r"([\\`*_\[\]<>|#$])")
"""Characters that mean something in Markdown."""


def markdown(
    title: str, verdicts: Sequence[Verdict], command: str, pictures: Mapping[str, str]
) -> str:
    """Write the page as Markdown.

    Parameters
    ----------
    title : str
        Of the paper.
    verdicts : sequence of Verdict
    command : str
        That gave them, without the flag of the claims.
    pictures : mapping
        Source of a claim -> file name of the picture of its evidence.

    Returns
    -------
    str
        Formulas between dollar signs.
    """
    counts: dict[str, int] = {}
    for verdict in verdicts:
        counts[verdict.word] = counts.get(verdict.word, 0) + 1
    lines = [
        f"# {_plain(title)}",
        f"Claims of the paper with what was measured of them, {len(verdicts)} here: "
        + ", ".join(f"{count} {word}" for word, count in counts.items())
        + ". Each section ends with the command that repeats it.",
        "\n".join(summary(verdicts)),
    ]
    for verdict in verdicts:
        lines += _section(verdict, command, pictures.get(verdict.claim.source))
    return "\n\n".join(lines) + "\n"


def summary(verdicts: Sequence[Verdict]) -> list[str]:
    """Rows of the table of all verdicts."""
    rows = ["| claim | verdict | measured | claimed | quantity |", "|---|---|---|---|---|"]
    for verdict in verdicts:
        link = f"[{_plain(verdict.claim.source)}](#{_anchor(verdict.claim.source)})"
        numbers = f"{verdict.measured:.4g} | {_claimed(verdict)}"
        rows.append(f"| {link} | {verdict.word} | {numbers} | {_plain(verdict.finding.quantity)} |")
    return rows


def _section(verdict: Verdict, command: str, picture: str | None) -> list[str]:
    """Paragraphs on one claim."""
    claim, finding = verdict.claim, verdict.finding
    lines = [
        f"## {_plain(claim.source)}",
        f"> {prose(claim.statement)}",
        f"*Assumes:* {prose(claim.hypothesis)}",
        f"*Would be contradicted by:* {prose(claim.falsified_by)}",
        f"**{_upper(verdict.word)}.** {_upper(_plain(finding.quantity))}: measured "
        f"{finding.measured:.4g}, claimed {_claimed(verdict)}.",
        f"{_upper(prose(finding.reason))}.",
    ]
    literal = verdict.document().get("literal")
    if literal is not None:
        lines.append(
            f"**Literal words: {literal['verdict']}.** {_upper(_plain(literal['quantity']))}: "
            f"measured {literal['measured']:.4g}, claimed "
            f"{_relation(literal['relation'], literal['bound'])}. "
            f"{_upper(prose(literal['reason']))}."
        )
    if picture is not None:
        lines.append(f"![Evidence for {_plain(claim.source)}]({picture})")
    return [*lines, f"Repeat: `{command} --claims {shlex.quote(claim.source)}`"]


def _claimed(verdict: Verdict) -> str:
    """The bound with its relation; a dash where nothing was measured."""
    return _relation(verdict.finding.relation, verdict.bound)


def _relation(relation: str, bound: float) -> str:
    if bound != bound:
        return "-"
    return _plain(f"{relation.replace('==', '')} {bound:.4g}".strip())


def _upper(text: str) -> str:
    """A text with a capital at its beginning."""
    return text[:1].upper() + text[1:]


def _plain(text: str) -> str:
    """A text without Markdown in it."""
    return SPECIAL.sub(r"\\\1", text)


def prose(text: str) -> str:
    """A text in LaTeX: formulas stay, double backticks become code, the rest is plain."""
    parts = re.split(r"(\$[^$]+\$|``[^`]+``)", text)
    return "".join(
        part.replace("``", "`") if k % 2 else _plain(part) for k, part in enumerate(parts)
    )


def _anchor(source: str) -> str:
    """The anchor of a heading, as Markdown's readers make it."""
    return re.sub(r"[^\w -]", "", source.lower()).replace(" ", "-")


def html(title: str, page: str) -> str:
    """Turn a page in Markdown into a whole HTML document.

    Parameters
    ----------
    title : str
    page : str
        Of `markdown`.

    Returns
    -------
    str
    """
    from html import escape

    from latex2mathml.converter import convert
    from markdown_it import MarkdownIt
    from mdit_py_plugins.anchors import anchors_plugin
    from mdit_py_plugins.dollarmath import dollarmath_plugin

    def formula(latex: str, options: Mapping[str, Any]) -> str:
        return str(convert(latex, display="block" if options.get("display_mode") else "inline"))

    reader = MarkdownIt("commonmark").enable("table")
    reader.use(dollarmath_plugin, renderer=formula, double_inline=False, allow_digits=True)
    reader.use(anchors_plugin, slug_func=_anchor)
    return (
        f'<!DOCTYPE html>\n<html lang="en">\n<head>\n<meta charset="utf-8">\n'
        f'<meta name="viewport" content="width=device-width, initial-scale=1">\n'
        f"<title>{escape(title)}</title>\n<style>{STYLE}</style>\n</head>\n<body>\n"
        f"{reader.render(page)}</body>\n</html>\n"
    )
