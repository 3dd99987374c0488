r"""Docstrings of model files: a title, paragraphs with formulas, and the meaning of each symbol.

A docstring is reStructuredText: formulas are ``:math:`R(\theta)``` or displayed by ``.. math::``.
Symbols are described in a list of fields::

    :D: dimension of the inputs
    :s, u: nonzero entries of the two layers
    :w*: entry of a mode, largest first

The name ``w*`` in a list of fields describes all symbols whose names begin with ``w``.
"""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import dataclass
from functools import cached_property
from inspect import cleandoc

MATH = re.compile(r":math:`([^`]+)`")
DISPLAYED = re.compile(r"^\.\. math::(.*\n(?:[ \t]+\S.*\n)*)", re.MULTILINE)
FENCE = re.compile(r"^(\s*)(?=~~~|```)", re.MULTILINE)
"""Fence of a Markdown code block; docstrings use these characters to underline headings."""
FIELD = re.compile(r"^:([A-Za-z_][\w, *]*):[ \t]+(\S.*(?:\n[ \t]+\S.*)*)(?:\n|\Z)", re.MULTILINE)


@dataclass(frozen=True)
class Documentation:
    r"""Parsed docstring of a model, whose original is `text`.

    Examples
    --------
    >>> documentation = Documentation("A net.\n\nIts risk is :math:`R`.\n\n:D: inputs\n")
    >>> documentation.title, documentation.markdown
    ('A net', 'Its risk is $R$.')
    >>> documentation.meaning("D"), documentation.meaning("E")
    ('inputs', '')
    """

    text: str

    @property
    def title(self) -> str:
        """First line of the docstring, without the full stop."""
        return (cleandoc(self.text).splitlines() or [""])[0].rstrip(".")

    @property
    def markdown(self) -> str:
        """Paragraphs after the title as Markdown, without the fields."""
        text = FIELD.sub("", cleandoc(self.text) + "\n")
        return from_docstring(text.partition("\n")[2])

    @cached_property
    def fields(self) -> Mapping[str, str]:
        """Meaning of each field name, with formulas between dollar signs."""
        return {
            name.strip(): from_docstring(_joined(meaning))
            for names, meaning in FIELD.findall(cleandoc(self.text) + "\n")
            for name in names.split(",")
        }

    def meaning(self, name: str) -> str:
        """Meaning of a symbol; "" if the docstring has none."""
        if name in self.fields:
            return self.fields[name]
        begun = [key for key in self.fields if key.endswith("*") and name.startswith(key[:-1])]
        return self.fields[max(begun, key=len)] if begun else ""


def from_docstring(text: str) -> str:
    """Paragraphs of a docstring as Markdown, with formulas between dollar signs.

    Examples
    --------
    >>> from_docstring("The risk :math:`R`.")
    'The risk $R$.'
    """
    if text.count("$$") % 2:
        text = r"\$$".join(text.rsplit("$$", 1))
    text = DISPLAYED.sub(lambda match: f"$$\n{_joined(match[1])}\n$$\n", text + "\n")
    text = MATH.sub(lambda match: f"${_joined(match[1])}$", text)
    return FENCE.sub(r"\1\\", text.replace("``", "`")).strip()


def _joined(text: str) -> str:
    return " ".join(text.split())
