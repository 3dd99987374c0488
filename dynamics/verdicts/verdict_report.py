"""The verdicts on a paper as a page to read, in Markdown (`dynamics.results.hypertext`: HTML).

A section a claim: the paper's words, what it assumes, the verdict, measured beside claimed, the
reason, the picture of the evidence, and the command that repeats it.
"""

from __future__ import annotations

import re
import shlex
from collections import Counter
from collections.abc import Mapping, Sequence
from math import isnan

from dynamics.results.hypertext import anchor, code
from dynamics.verdicts.findings import Finding, Verdict

SPECIAL = re.compile(r"([\\`*_\[\]<>|#$~]|&(?=#?\w+;))")
"""Characters that mean something in Markdown."""


def markdown(
    title: str, verdicts: Sequence[Verdict], command: str, pictures: Mapping[str, str]
) -> str:
    """Write the page as Markdown.

    `title`: of the paper; `command`: that gave them, without the flag of the claims; `pictures`:
    source of a claim -> file name of the picture of its evidence. Returns str: formulas between
    dollar signs.
    """
    counts = Counter(verdict.literal_word for verdict in verdicts)
    read = Counter(verdict.word for verdict in verdicts if verdict.claim.reading)
    lines = [
        f"# {escaped(title)}",
        f"Claims of the paper with what was measured of them, {len(verdicts)} here. By their "
        f"literal words: {counted(counts)}. Of another reading: {counted(read) or 'none'}. Each "
        "section ends with the command that repeats it.",
        "\n".join(summary(verdicts)),
    ]
    for verdict in verdicts:
        lines += _section(verdict, command, pictures.get(verdict.claim.source))
    return "\n\n".join(lines) + "\n"


def counted(counts: Mapping[str, int]) -> str:
    """How many claims have which verdict, the most frequent first.

    Examples
    --------
    >>> counted({"holds": 4, "does not hold here": 5})
    '5 *does not hold here*; 4 *holds*'
    """
    ordered = sorted(counts.items(), key=lambda pair: -pair[1])
    return "; ".join(f"{count} *{word}*" for word, count in ordered)


def summary(verdicts: Sequence[Verdict]) -> list[str]:
    """Rows of the table of all verdicts."""
    rows = ["| claim | verdict | measured | claimed | quantity |", "|---|---|---|---|---|"]
    for verdict in verdicts:
        link = f"[{escaped(verdict.claim.source)}](#{anchor(verdict.claim.source)})"
        numbers = f"{verdict.measured:.4g} | {_claimed(verdict.finding)}"
        rows.append(
            f"| {link} | {verdict.word} | {numbers} | {escaped(verdict.finding.quantity)} |"
        )
    return rows


def _section(verdict: Verdict, command: str, picture: str | None) -> list[str]:
    """Paragraphs on one claim."""
    claim, finding = verdict.claim, verdict.finding
    lines = [
        f"## {escaped(claim.source)}",
        f"> {prose(claim.statement)}",
        f"*Assumes:* {prose(claim.hypothesis)}",
        f"*Would be contradicted by:* {prose(claim.falsified_by)}",
        f"**{_upper(verdict.word)}.** {_measured(finding)}",
        f"{_upper(prose(finding.reason))}.",
    ]
    lines += filter(None, [stability_line(verdict)])
    literal = finding.literal
    if literal is not None:
        reason = f"{_upper(prose(literal.reason))}."
        lines.append(f"**Literal words: {literal.word}.** {_measured(literal)} {reason}")
    if picture is not None:
        lines.append(f"![Evidence for {escaped(claim.source)}]({picture})")
    return [*lines, f"Repeat: {code(f'{command} --claims {shlex.quote(claim.source)}')}"]


def stability_line(verdict: Verdict) -> str:
    """Until when the reduced populations of a verdict are stable; empty where it has none."""
    found = verdict.finding.stability
    return "" if found is None else f"*Stability:* {prose(str(found))}."


def _measured(finding: Finding) -> str:
    """The quantity, its measured and its claimed value."""
    quantity = _upper(escaped(finding.quantity))
    return f"{quantity}: measured {finding.measured:.4g}, claimed {_claimed(finding)}."


def _claimed(finding: Finding) -> str:
    """The bound with its relation; a dash where nothing was measured."""
    if isnan(finding.bound):
        return "-"
    return escaped(f"{finding.relation.replace('==', '')} {finding.bound:.4g}".strip())


def _upper(text: str) -> str:
    """A text with a capital at its beginning."""
    return text[:1].upper() + text[1:]


def escaped(text: str) -> str:
    r"""Text in one line of Markdown in which no sign means anything.

    Examples
    --------
    >>> escaped("a_1\n# <b>")
    'a\\_1 \\# \\<b\\>'
    """
    return SPECIAL.sub(r"\\\1", " ".join(text.split()))


def prose(text: str) -> str:
    """A text in LaTeX: formulas stay, double backticks become code, the rest is plain."""
    parts = re.split(r"(\$[^$]+\$|``[^`]+``)", " ".join(text.split()))
    return "".join(
        part.replace("``", "`") if k % 2 else SPECIAL.sub(r"\\\1", part)
        for k, part in enumerate(parts)
    )
