"""Description of a system as a page: its model, symbols, events, observables and claims.

A `Description` is created by `dynamics.description.describe` and exported as text, Markdown, LaTeX,
HTML or plain values. Formulas are LaTeX; names are those of the code.
"""

from __future__ import annotations

import re
import textwrap
from collections.abc import Iterator, Sequence
from dataclasses import asdict, dataclass, replace
from typing import TYPE_CHECKING, Any

from dynamics.results.formulas import FORMULA, plain, plain_text
from theory.events import EventRule, ExceedsRunMaximum, RisesAgain
from theory.notation import GREEK

if TYPE_CHECKING:
    from theory.page import Page

WIDTH = 100
"""Maximum width of the text form, in columns; longer lines are wrapped."""
LONGEST_NAME = 26
"""Maximum length of a name, in columns, with its meaning on the same line."""
KINDS = ("Constants", "Trained arrays", "Scalars of the reduction", "Other letters")
"""Kinds of symbols, in the order of the page."""
SPECIAL = {ord(sign): "\\" + sign for sign in "&%#_{}"}
SPECIAL |= str.maketrans({"^": r"\^{}", "~": r"\~{}", "\\": r"\textbackslash{}"})
"""Special character -> its LaTeX."""


@dataclass(frozen=True)
class Symbol:
    """A symbol of a model: its name in the code, LaTeX, kind and meaning.

    `kind` is one of `KINDS`. `default` and `allowed` give the default and the allowed values of a
    constant.
    """

    name: str
    latex: str
    kind: str
    meaning: str
    default: str = ""
    allowed: str = ""

    @property
    def details(self) -> list[str]:
        """Meaning, default and allowed values of a symbol, without empty texts."""
        default = f"default {self.default}" if self.default else ""
        return [part for part in (self.meaning, default, self.allowed) if part]


RATE = Symbol("d_x", r"\dot{x}", KINDS[-1], "rate of a scalar or an observable x, per unit of time")


@dataclass(frozen=True)
class Definition:
    """An event or an observable, by its name in the code.

    `words` gives the meaning, and for an event its detection; `latex` is empty for an event. `code`
    gives the Python source of a definition in a model file; `note` is an additional remark.
    """

    name: str
    latex: str
    words: str
    formula: str = ""
    code: str = ""
    note: str = ""


@dataclass(frozen=True)
class Statement:
    """A claim: its source, its words and its assumptions, with formulas between dollar signs."""

    source: str
    words: str
    hypothesis: str


@dataclass(frozen=True, repr=False)
class Description:
    """The description of a system: model, symbols, observables, events, claims.

    `prose` is the Markdown text of a model file's docstring, empty for built-in systems; `page`
    shows the law of the data, network, risk and training step, in about five equations. `stability`
    says up to which time the scalars are stable, and is empty if this was not measured.

    Examples
    --------
    >>> import dynamics
    >>> description = dynamics.load_system("positional_attention").describe()
    >>> next(symbol for symbol in description.symbols if symbol.name == "q").allowed
    'a finite number above 0 and at most 1'
    >>> [event.name for event in description.events][:2]
    ['T0', 'T1']
    >>> print(description)  # doctest: +ELLIPSIS
    Positional attention and patch association (Jelassi, Sander, Li 2022)
    ...
    """

    name: str
    title: str
    source: str
    prose: str
    page: Page
    symbols: tuple[Symbol, ...]
    observables: tuple[Definition, ...]
    events: tuple[Definition, ...]
    claims: tuple[Statement, ...]
    stability: str = ""

    def __repr__(self) -> str:
        counts = f"{len(self.symbols)} symbols, {len(self.observables)} observables"
        return f"Description({self.name}: {counts}, {len(self.events)} events)"

    def _repr_html_(self) -> str:
        from dynamics.results.hypertext import fragment

        return fragment(self.as_markdown(level=3))

    def __str__(self) -> str:
        return self.as_text()

    @property
    def _definitions(self) -> tuple[tuple[str, tuple[Definition, ...]], ...]:
        return ("Observables", self.observables), ("Events", self.events)

    def of_kind(self, kind: str) -> tuple[Symbol, ...]:
        """Symbols of one kind of `KINDS`."""
        return tuple(symbol for symbol in self.symbols if symbol.kind == kind)

    def as_text(self) -> str:
        """Plain text without LaTeX, wrapped at `WIDTH` columns."""
        lines = [self.title, "=" * len(self.title), ""]
        for paragraph in plain_text(self.prose).split("\n\n"):
            lines += [*textwrap.wrap(paragraph, WIDTH), ""] if paragraph else []
        body = replace(self.page, title="", source=self.source, wrapped=True).as_text()
        lines += [*body.lstrip("\n").splitlines(), ""]
        for kind in KINDS:
            rows = [
                (_headed(one.name, one.latex), plain_text("; ".join(one.details)))
                for one in self.of_kind(kind)
            ]
            lines += _table(kind, rows)
        for heading, definitions in self._definitions:
            lines += _table(heading, [_definition_row(one) for one in definitions])
        if self.stability:
            lines += ["Stability", *_folded(self.stability, "    ", " " * 8), ""]
        if self.claims:
            lines.append("Claims")
        for claim in self.claims:
            words = f"{claim.source}: {plain_text(claim.words)}"
            lines += _folded(words, "    ", " " * 8)
        return "\n".join(lines).rstrip("\n")

    def as_markdown(self, level: int = 2) -> str:
        """Markdown with formulas between dollar signs, and headings of a level below the title."""
        head = "#" * level
        parts = [f"{head[1:]} {self.title}"] if level > 1 else []
        parts += [f"*{self.source}*"] if self.source else []
        parts += [self.prose] if self.prose else []
        parts.append(self.page.as_markdown(level).rstrip())
        for kind in KINDS:
            if rows := self.of_kind(kind):
                parts += [f"{head} {kind}", _symbols_in_markdown(rows)]
        for heading, definitions in self._definitions:
            if definitions:
                parts += [f"{head} {heading}", *map(_definition_in_markdown, definitions)]
        if self.stability:
            parts += [f"{head} Stability", _marked(_sentence(self.stability)) + "."]
        if self.claims:
            parts.append(f"{head} Claims")
            parts += [f"- **{claim.source}.** {_marked(claim.words)}" for claim in self.claims]
        return "\n\n".join(parts) + "\n"

    def as_latex(self, standalone: bool = False) -> str:
        """LaTeX for inclusion in a paper.

        With `standalone`, a whole document is written; it needs amsmath, amssymb and geometry.
        """
        from theory.page import PREAMBLE

        lines = [replace(self.page, title=self.title, source=self.source).as_latex()]
        if self.prose:
            lines.insert(1, "")
            head, *rest = lines[0].split("\n\\paragraph", 1)
            prose = "\n\n".join(map(_paragraph_in_latex, self.prose.split("\n\n")))
            lines[0] = "\n".join([head, prose, *[f"\\paragraph{part}" for part in rest]])
        for kind in KINDS:
            rows = [
                (f"${one.latex}$", _in_latex("; ".join(one.details))) for one in self.of_kind(kind)
            ]
            lines += _items(kind, rows)
        for heading, definitions in self._definitions:
            # An event has no LaTeX symbol.
            names = (f"${one.latex}$" if one.latex else _code(one.name) for one in definitions)
            rows = list(zip(names, map(_definition_in_latex, definitions), strict=True))
            lines += _items(heading, rows)
        if self.stability:
            lines += [r"\paragraph{Stability}", _in_latex(_sentence(self.stability)) + "."]
        claims = [(_in_latex(one.source), _in_latex(one.words)) for one in self.claims]
        lines += _items("Claims", claims)
        if standalone:
            lines = [PREAMBLE, *lines, r"\end{document}"]
        return "\n".join(lines)

    def document(self) -> dict[str, Any]:
        """Description as JSON-ready values."""
        sections = [
            {
                "heading": section.heading,
                "sentences": list(section.sentences),
                "equations": [
                    {
                        "left": self.page.formula(left),
                        "relation": "".join(relation) or "=",
                        "right": self.page.formula(right),
                    }
                    for left, right, *relation in section.equations
                ],
            }
            for section in self.page.sections
        ]
        texts = {
            name: getattr(self, name) for name in ("name", "title", "source", "prose", "stability")
        }
        rows = {
            name: [asdict(one) for one in getattr(self, name)]
            for name in ("symbols", "observables", "events", "claims")
        }
        return texts | {"model": sections} | rows


def sought(rule: EventRule) -> str:
    """Text saying how an event is detected along a run."""
    since = f", sought from `{rule.after}` on" if rule.after else ""
    if isinstance(rule, RisesAgain):
        return (
            "least value before a rise that lasts to the end of the run and exceeds the value at "
            f"the beginning of the search by {rule.relative:.0%}{since}"
        )
    if isinstance(rule, ExceedsRunMaximum):
        return f"first step beyond the maximum over the whole run{since}"
    return f"first step at which it holds{since}"


def _headed(name: str, latex: str) -> str:
    """Name of a symbol, followed by its letter if that differs."""
    letter = plain(latex) if latex else ""
    return name if letter in ("", name, name.replace("_", " ")) else f"{name}  {letter}"


def _sentence(note: str) -> str:
    """Capitalize a note, unless it begins with a name of the code."""
    head = re.match(r"\w+", note)
    unchanged = head is None or "_" in head[0] or head[0] in GREEK
    return note if unchanged else note[:1].upper() + note[1:]


def _definition_row(one: Definition) -> tuple[str, str]:
    """Name of a definition, and one text with its meaning, formula and note."""
    formula = plain(one.formula) if one.formula else one.code
    note = f". {_sentence(one.note)}" if one.note else ""
    name = _headed(one.name, one.latex)
    return name, plain_text(one.words) + (f": {formula}" if formula else "") + plain_text(note)


def _table(heading: str, rows: Sequence[tuple[str, str]]) -> list[str]:
    """Lines of a table of names and meanings."""
    if not rows:
        return []
    wide = min(max(len(name) for name, _ in rows), LONGEST_NAME) + 2
    lines = [heading]
    for name, words in rows:
        if len(name) > wide - 2:
            lines.append(f"    {name}")
            lines += _folded(words, " " * (4 + wide), " " * (4 + wide))
        else:
            lines += _folded(f"{name:<{wide}}{words}", "    ", " " * (4 + wide))
    return [*lines, ""]


def _folded(text: str, first: str, others: str) -> list[str]:
    # textwrap keeps the spaces inside the first line, so the meanings stay aligned.
    return textwrap.wrap(
        text,
        WIDTH,
        initial_indent=first,
        subsequent_indent=others,
        break_long_words=False,
        break_on_hyphens=False,
    )


def _marked(text: str) -> str:
    """Escape words for Markdown, except formulas and code."""
    parts = re.split(r"(\$[^$]+\$|`[^`]+`)", text)
    return "".join(
        part if k % 2 else re.sub(r"([\\*_\[\]<>#])", r"\\\1", part) for k, part in enumerate(parts)
    )


def _symbols_in_markdown(symbols: Sequence[Symbol]) -> str:
    """Markdown table of symbols, with columns of defaults and limits if a symbol has any."""
    columns = ["symbol", "name", "meaning"]
    columns += ["default", "can be"] if any(one.default or one.allowed for one in symbols) else []
    lines = ["| " + " | ".join(columns) + " |", "|---" * len(columns) + "|"]
    for one in symbols:
        # An unescaped bar would end the cell of the table.
        letter = one.latex.replace(r"\|", r"\Vert ").replace("|", r"\vert ")
        words = map(_marked, (one.meaning, one.default, one.allowed))
        cells = [f"${letter}$", f"`{one.name}`", *words]
        cells = [cell.replace("|", r"\|").replace("\n", " ") for cell in cells[: len(columns)]]
        lines.append(f"| {' | '.join(cells)} |")
    return "\n".join(lines)


def _definition_in_markdown(one: Definition) -> str:
    letter = f" ${one.latex}$" if one.latex else ""
    parts = [f"- **`{one.name}`**{letter}: {_marked(one.words)}."]
    if one.formula or one.code:
        code = f"```python\n  {one.code}\n  ```"
        parts.append(f"  $${one.formula}$$" if one.formula else f"  {code}")
    parts += [f"  {_marked(_sentence(one.note))}."] if one.note else []
    return "\n\n".join(parts)


def _definition_in_latex(one: Definition) -> str:
    formula = f"${one.formula}$" if one.formula else _code(one.code)
    note = _in_latex(f". {_sentence(one.note)}") if one.note else ""
    return _in_latex(one.words) + (f": {formula}" if one.formula or one.code else "") + note


def _items(heading: str, rows: Sequence[tuple[str, str]]) -> Iterator[str]:
    """LaTeX description list."""
    if rows:
        yield rf"\paragraph{{{heading}}}"
        yield r"\begin{description}"
        yield from (rf"  \item[{{{name}}}] {words}" for name, words in rows)
        yield r"\end{description}"


def _paragraph_in_latex(paragraph: str) -> str:
    """LaTeX of a Markdown paragraph or a displayed formula."""
    display = re.fullmatch(r"\$\$(.+)\$\$", paragraph.strip(), re.DOTALL)
    return rf"\[{display[1].strip()}\]" if display else _in_latex(paragraph)


def _in_latex(text: str) -> str:
    """LaTeX of Markdown words: formulas unchanged, code in typewriter."""
    parts, last = [], 0
    for match in FORMULA.finditer(text):
        parts += [_words(text[last : match.start()]), f"${(match[1] or match[2]).strip()}$"]
        last = match.end()
    return "".join([*parts, _words(text[last:])])


def _words(text: str) -> str:
    """LaTeX of words without formulas; code is between backticks."""
    pieces = enumerate(text.split("`"))
    return "".join(_code(piece) if k % 2 else piece.translate(SPECIAL) for k, piece in pieces)


def _code(text: str) -> str:
    return rf"\texttt{{{text.translate(SPECIAL)}}}"
