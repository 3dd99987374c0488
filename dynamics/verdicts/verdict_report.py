"""Write the verdicts on a paper as a page in Markdown.

Each claim has a section: the paper's words, the hypothesis, the verdict, the measured and the
claimed value, the reason, the picture of the evidence, and the command that repeats it.
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
"""Pattern of the characters that Markdown would interpret."""


def markdown(
    title: str, verdicts: Sequence[Verdict], command: str, pictures: Mapping[str, str]
) -> str:
    """Page in Markdown with the verdicts on a paper; formulas are between dollar signs.

    `title`: title of the paper; `command`: ``attdyn verify`` command, without ``--claims``;
    `pictures`: source of a claim -> file name of the picture of its evidence.
    """
    counts = Counter(verdict.literal_word for verdict in verdicts)
    read = Counter(verdict.word for verdict in verdicts if verdict.claim.reading)
    lines = [
        f"# {escaped(title)}",
        f"{len(verdicts)} claims of the paper with their measured verdicts. On the literal words: "
        f"{counted(counts)}. On another reading: {counted(read) or 'none'}. Each section ends with "
        "the command that repeats it.",
        "\n".join(summary(verdicts)),
    ]
    for verdict in verdicts:
        lines += _section(verdict, command, pictures.get(verdict.claim.source))
    return "\n\n".join(lines) + "\n"


def counted(counts: Mapping[str, int]) -> str:
    """Number of claims with each verdict, the most frequent verdict first.

    Examples
    --------
    >>> counted({"holds": 4, "does not hold here": 5})
    '5 *does not hold here*; 4 *holds*'
    """
    ordered = sorted(counts.items(), key=lambda pair: -pair[1])
    return "; ".join(f"{count} *{word}*" for word, count in ordered)


def summary(verdicts: Sequence[Verdict]) -> list[str]:
    """Table of all verdicts, one Markdown row for each claim."""
    rows = ["| claim | verdict | measured | claimed | quantity |", "|---|---|---|---|---|"]
    for verdict in verdicts:
        link = f"[{escaped(verdict.claim.source)}](#{anchor(verdict.claim.source)})"
        numbers = f"{verdict.measured:.4g} | {_claimed(verdict.finding)}"
        rows.append(
            f"| {link} | {verdict.word} | {numbers} | {escaped(verdict.finding.quantity)} |"
        )
    return rows


def _section(verdict: Verdict, command: str, picture: str | None) -> list[str]:
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
    """Line on the stability of a verdict's reduced runs; empty without reduced runs."""
    found = verdict.finding.stability
    return "" if found is None else f"*Stability:* {prose(str(found))}."


def _measured(finding: Finding) -> str:
    """Sentence with the measured quantity, its value and the claimed value."""
    quantity = _upper(escaped(finding.quantity))
    return f"{quantity}: measured {finding.measured:.4g}, claimed {_claimed(finding)}."


def _claimed(finding: Finding) -> str:
    """Relation and claimed value, as in "<= 0.1"; a dash if the claimed value is NaN."""
    if isnan(finding.bound):
        return "-"
    return escaped(f"{finding.relation.replace('==', '')} {finding.bound:.4g}".strip())


def _upper(text: str) -> str:
    return text[:1].upper() + text[1:]


def escaped(text: str) -> str:
    r"""Text as one line of Markdown, with every special character escaped.

    Examples
    --------
    >>> escaped("a_1\n# <b>")
    'a\\_1 \\# \\<b\\>'
    """
    return SPECIAL.sub(r"\\\1", " ".join(text.split()))


def prose(text: str) -> str:
    """Markdown of a text: formulas stay, double backticks mark code, all else is escaped."""
    parts = re.split(r"(\$[^$]+\$|``[^`]+``)", " ".join(text.split()))
    return "".join(
        part.replace("``", "`") if k % 2 else SPECIAL.sub(r"\\\1", part)
        for k, part in enumerate(parts)
    )
