"""Pages of sections with sentences and equations, printed as text, LaTeX or Markdown.

A side of an equation is a SymPy expression, a `HandWritten`, or a string. In a sentence, text
between single backticks is mathematics, as in ``"of type `k`"``. Text between double backticks is a
defined term.
"""

from __future__ import annotations

import math
import re
import textwrap
from collections.abc import Callable, Iterator, Mapping
from dataclasses import dataclass
from typing import Any

import sympy
from sympy.core.function import AppliedUndef, UndefinedFunction
from sympy.printing.latex import LatexPrinter
from sympy.printing.str import StrPrinter

from theory.summary import summarized

WIDTH = 100
"""Maximum number of characters in a line of a wrapped page."""
GAP = " " * 4
"""Space between two equations on one line."""
SHORT = WIDTH // 2
"""Maximum number of characters of an equation that shares its line; longer ones stand alone."""
LONGEST = 90
"""Maximum number of characters in a line of a LaTeX sum, not counting commands."""
MEAN, INNER = "E", "inner"
"""Names of the functions printed as ``E[f]`` and ``<u, v>``."""
PREAMBLE = r"""\documentclass{article}
\usepackage[a4paper,margin=2.2cm]{geometry}
\usepackage{amsmath,amssymb}
\allowdisplaybreaks
\setlength{\parindent}{0pt}
\begin{document}"""


_SIGNS = {"": "=", "=": "=", "<=": r"\leq"}


@dataclass(frozen=True)
class HandWritten:
    """Side of an equation with its text and its LaTeX written by hand."""

    text: str
    latex: str

    def __str__(self) -> str:
        return self.text


@dataclass(frozen=True)
class Section:
    """Section of a page: heading, letters, sentences, equations and arrays.

    Pages show `letters` (definitions in words), `sentences`, `equations` and small `arrays` in this
    order. An equation is a tuple (left, right) or (left, right, relation) of strings, SymPy
    expressions or `HandWritten`; a relation is ``"="`` or ``"<="``.
    """

    heading: str
    sentences: tuple[str, ...] = ()
    equations: tuple[tuple[Any, ...], ...] = ()
    arrays: tuple[tuple[str, tuple[tuple[str, ...], ...]], ...] = ()
    letters: tuple[tuple[str, str], ...] = ()


@summarized
@dataclass(frozen=True)
class Page:
    """Derivation as a title and sections.

    Attributes
    ----------
    title, source : str
    sections : tuple of Section
    letters : mapping
        LaTeX of each code name.
    wrapped : bool
        Whether lines have at most `WIDTH` characters.
    model : tuple of Section
        Definition of the model in about five equations: law, network, risk, step.
    """

    title: str
    source: str
    sections: tuple[Section, ...]
    letters: Mapping[str, str]
    wrapped: bool = False
    model: tuple[Section, ...] = ()

    def as_text(self) -> str:
        """Page as plain text; sums are written ``sum(f(k), k = 1..K)``.

        Examples
        --------
        >>> a, k = sympy.IndexedBase("a"), sympy.Symbol("k")
        >>> section = Section("Sums", ("Of all `a_k`:",), (("s", sympy.Sum(a[k], (k, 1, 3))),))
        >>> print(Page("A page", "", (section,), {}).as_text())
        A page
        ======
        <BLANKLINE>
        Sums
            Of all a_k:
            s = sum(a_k, k = 1..3)
        <BLANKLINE>
        """
        lines = [self.title, "=" * len(self.title), ""]
        lines += [*self._folded(self.source, "", ""), ""] if self.source else []
        for section in self.sections:
            lines.append(section.heading)
            words = "; ".join(f"{name}: {meaning}" for name, meaning in section.letters)
            for sentence in ([words] if words else []) + list(section.sentences):
                lines += self._folded(sentence.replace("`", ""), "    ", "    ")
            for group in self._groups(section):
                lines += self._folded(GAP.join(map(_row, group)), "    ", " " * 12)
            lines += [f"    {line}" for line in _array_lines(section)] + [""]
        return "\n".join(lines[:-1] if self.wrapped else lines)

    def _groups(self, section: Section) -> Iterator[list[tuple[Any, ...]]]:
        """Yield groups of equations for one line; short ones share a line on a wrapped page."""
        if not self.wrapped:
            yield from ([equation] for equation in section.equations)
            return
        group: list[tuple[Any, ...]] = []
        sizes: list[int] = []
        for equation in section.equations:
            size = len(_row(equation))
            together = 4 + len(GAP) * len(sizes) + sum(sizes) + size
            if group and (max(*sizes, size) > SHORT or together > WIDTH):
                yield group
                group, sizes = [], []
            group, sizes = [*group, equation], [*sizes, size]
        yield from [group] if group else []

    def _folded(self, text: str, first: str, others: str) -> list[str]:
        if not self.wrapped:
            return [first + text]
        return textwrap.wrap(
            text,
            WIDTH,
            initial_indent=first,
            subsequent_indent=others,
            break_long_words=False,
            break_on_hyphens=False,
        )

    def as_latex(self, standalone: bool = False) -> str:
        """Page as LaTeX, with a paragraph for each section and equations in align environments.

        A `standalone` page is a whole document, which needs amsmath, amssymb and geometry.
        """
        lines = [rf"\section*{{{_escaped(self.title)}}}"]
        lines += [_escaped(self.source), ""] if self.source else []
        for section in self.sections:
            lines.append(rf"\paragraph{{{_escaped(section.heading)}}}")
            made = [_with_mathematics(text, self._inline) for text in _sentences(section)]
            lines += [sentence + r"\\" for sentence in made[:-1]] + made[-1:]
            lines += self._aligned(section)
            lines += [self._array(name, rows) for name, rows in section.arrays]
        if standalone:
            lines = [PREAMBLE, *lines, r"\end{document}"]
        return "\n".join(lines)

    def as_markdown(self, level: int = 2) -> str:
        """Sections as Markdown, with headings of a level and formulas between dollar signs."""
        parts = []
        for section in self.sections:
            parts.append(f"{'#' * level} {section.heading}")
            made = [
                _with_mathematics(text, self._inline, _in_markdown) for text in _sentences(section)
            ]
            parts += [_ended(_capitalized(" ".join(text.split()))) for text in made]
            if section.equations:
                lines = "\n".join(self._aligned(section)).replace("{align*}", "{aligned}")
                parts.append(f"$$\n{lines}\n$$")
            if section.arrays:
                parts.append("\n".join(["```text", *_array_lines(section), "```"]))
        return "\n\n".join(parts) + "\n"

    def formula(self, side: Any) -> str:
        """LaTeX of one side of an equation."""
        printer = _LatexPrinter(self.letters)
        if isinstance(side, HandWritten):
            return side.latex
        if isinstance(side, sympy.Add) and not isinstance(side, sympy.MatrixExpr):
            return printer.broken(side)
        if isinstance(side, sympy.Basic):
            return str(printer.doprint(side))
        return self.letters.get(str(side), rf"\mathrm{{{_escaped(str(side))}}}")

    def _array(self, name: str, rows: tuple[tuple[str, ...], ...]) -> str:
        """Small array as a displayed LaTeX matrix."""
        body = r" \\ ".join(" & ".join(r"\cdot" if x == "." else x for x in row) for row in rows)
        columns = "c" * max(map(len, rows))
        return (
            rf"\[{self.formula(name)} \colon \left(\begin{{array}}{{{columns}}}"
            rf"{body}\end{{array}}\right)\]"
        )

    def _inline(self, text: str) -> str:
        return _LatexPrinter(self.letters).inline(text)

    def _aligned(self, section: Section) -> list[str]:
        """Lines of an align environment with a section's equations; empty without equations."""
        rows = [
            r", \qquad ".join(
                f"{self.formula(left)} {sign}{_SIGNS[''.join(relation)]} {self.formula(right)}"
                for (left, right, *relation), sign in zip(group, ["&", *" " * 9], strict=False)
            )
            for group in self._groups(section)
        ]
        body = "  " + " \\\\\n  ".join(rows)
        return [r"\begin{align*}", body, r"\end{align*}"] if rows else []


def _array_lines(section: Section) -> list[str]:
    """Arrays of a section as lines of monospaced text."""
    lines: list[str] = []
    for name, rows in section.arrays:
        width = max(len(cell) for row in rows for cell in row) + 1
        lines.append(f"{name}:")
        lines += ["  " + " ".join(f"{cell:>{width}}" for cell in row) for row in rows]
    return lines


def _capitalized(text: str) -> str:
    """Sentence with an initial capital, unless it begins with a name and an equals sign."""
    named = re.match(r"\w+ *(=|,[^.]*=)", text)
    return text if named else text[:1].upper() + text[1:]


def _ended(text: str) -> str:
    """Sentence with its full stop, unless it ends with a colon before the equations."""
    return text if text.endswith((".", ":")) else f"{text}."


def _sentences(section: Section) -> list[str]:
    """Definitions of a section's letters, then its sentences."""
    words = "; ".join(f"`{name}`: {meaning}" for name, meaning in section.letters)
    return ([words + "."] if words else []) + list(section.sentences)


def _row(equation: tuple[Any, ...]) -> str:
    left, right, *relation = equation
    return f"{plain(left)} {''.join(relation) or '='} {plain(right)}"


class Entry(sympy.Indexed):  # type: ignore[misc]
    """Entry of a letter of type `Entries`; a printed product sorts it among its letters."""

    @classmethod
    def class_key(cls) -> tuple[int, int, str]:
        """Sort key of SymPy for factors."""
        return 2, 0, cls.__name__


class Entries(sympy.IndexedBase):  # type: ignore[misc]
    """Indexed letter whose entries are of type `Entry`."""

    def __getitem__(self, indices: Any, **options: Any) -> Entry:
        return Entry(self, *(indices if isinstance(indices, tuple) else (indices,)))


class Named(AppliedUndef):  # type: ignore[misc]
    """Undefined function that is printed after the numbers and letters of a product."""

    @classmethod
    def class_key(cls) -> tuple[int, int, str]:
        """Sort key of SymPy for factors."""
        return 6, 0, cls.__name__


def functions(names: str) -> list[Any]:
    """Undefined functions with the names of a space-separated list."""
    return [UndefinedFunction(name, bases=(Named,)) for name in names.split()]


class _Readable:
    """Printing rules shared by the text printer and the LaTeX printer."""

    def _print_Float(self, expr: sympy.Float) -> str:  # noqa: N802
        short = sympy.Float(f"{float(expr):.15g}", 15) if abs(float(expr)) < math.inf else expr
        return super()._print_Float(short)  # type: ignore[misc]

    def _as_ordered_terms(self, expr: sympy.Expr, order: str | None = None) -> list[sympy.Expr]:
        terms = super()._as_ordered_terms(expr, order)  # type: ignore[misc]
        return sorted(
            terms, key=lambda term: (term.could_extract_minus_sign(), term.has(Named, sympy.Sum))
        )

    def _print_MatAdd(self, expr: sympy.MatAdd) -> str:  # noqa: N802
        terms = sorted(expr.args, key=lambda term: (term.as_coeff_mmul()[0] != 1, len(term.args)))
        text = " + ".join(self._print(term) for term in terms)  # type: ignore[attr-defined]
        return text.replace("(-eta)*", "-eta*").replace("+ -", "- ").replace("-  ", "- ")


class _TextPrinter(_Readable, StrPrinter):  # type: ignore[misc]
    printmethod = "_page"

    def _print_Indexed(self, expr: sympy.Indexed) -> str:  # noqa: N802
        return f"{expr.base.label}_{''.join(map(self._print, expr.indices))}"

    def _print_IndexedBase(self, expr: sympy.IndexedBase) -> str:  # noqa: N802
        return str(expr.label)

    def _print_factorial(self, expr: sympy.Expr) -> str:
        inside = self._print(expr.args[0])
        return f"{inside}!" if re.fullmatch(r"\w+", inside) else f"({inside})!"

    def _print_Sum(self, expr: sympy.Expr) -> str:  # noqa: N802
        limits = ", ".join(f"{k} = {self._print(a)}..{self._print(b)}" for k, a, b in expr.limits)
        return f"{type(expr).__name__.lower()[:4]}({self._print(expr.function)}, {limits})"

    _print_Product = _print_Sum  # noqa: N815

    def _print_Function(self, expr: sympy.Expr) -> str:  # noqa: N802
        name, parts = expr.func.__name__, self.stringify(expr.args, ", ")
        brackets = {MEAN: f"E[{parts}]", INNER: f"<{parts}>"}
        return brackets.get(name, f"{name}({parts})")


class _LatexPrinter(_Readable, LatexPrinter):  # type: ignore[misc]
    r"""LaTeX printer with the letters of a page."""

    printmethod = "_page"

    def __init__(self, letters: Mapping[str, str]) -> None:
        super().__init__()
        self.letters = letters

    def spelled(self, name: str) -> str:
        """LaTeX of a name."""
        if name in self.letters:
            return self.letters[name]
        if name.endswith("'"):
            plainly = self.spelled(name[:-1])
            return f"{{{plainly}}}'" if "^" in plainly else f"{plainly}'"
        if ratio := re.fullmatch(r"d(\w+)/d(\w+)", name):
            above, below = map(self.spelled, ratio.groups())
            return rf"\partial {above} / \partial {below}"
        if not re.fullmatch(r"\w+", name):
            return self.inline(name)
        base, _, index = name.partition("_")
        if index:
            words = [w if len(w) < 3 else rf"\mathrm{{{w}}}" for w in index.split("_")]
            return f"{self.spelled(base)}_{{{', '.join(words)}}}"
        letter = str(sympy.latex(sympy.Symbol(name)))
        return rf"\mathrm{{{name}}}" if letter == name and len(name) > 1 else letter

    def broken(self, expr: sympy.Add) -> str:
        """LaTeX of a sum, on several lines of an align environment if it is long."""
        lines = [""]
        for term in self._as_ordered_terms(expr):
            written = self._print(term)
            sign = "" if written.startswith("-") or lines == [""] else "+ "
            length = len(re.sub(r"\\[a-zA-Z]+|[{}_^\\ ]", "", lines[-1] + written))
            if lines[-1] and length > LONGEST:
                lines.append(r"&\quad ")
            lines[-1] += f"{sign}{written} "
        return "\\\\\n  ".join(lines).strip()

    def inline(self, text: str) -> str:
        """LaTeX of short mathematics in a sentence."""
        signs = {
            "**": "^", "*": " ", "<=": r"\leq ", ">=": r"\geq ", "...": r"\dots ",
            "{": r"\{", "}": r"\}",
        }  # fmt: skip
        words = {"exp": r"\exp", "log": r"\log", "sum": r"\textstyle\sum ", "in": r"\in "}

        def translated(match: re.Match[str]) -> str:
            token = match[0]
            if token in signs:
                return signs[token]
            return words.get(token) or self.spelled(token) + " "

        pattern = r"\*\*|<=|>=|\.\.\.|[*{}]|[A-Za-z]\w*'?(?:/d\w+)?"
        written = re.sub(pattern, translated, text).strip()
        return re.sub(r"<([^<>]*)>", r"\\langle \1\\rangle", written)

    def _print_Symbol(self, expr: sympy.Symbol, style: str = "plain") -> str:  # noqa: N802
        return self.spelled(expr.name)

    def _print_Indexed(self, expr: sympy.Indexed) -> str:  # noqa: N802
        indices = " ".join(map(self._print, expr.indices))
        letter = self.spelled(str(expr.base.label))
        return f"{{{letter}}}_{{{indices}}}" if set("_^") & {*letter} else f"{letter}_{{{indices}}}"

    def _print_IndexedBase(self, expr: sympy.IndexedBase) -> str:  # noqa: N802
        return self.spelled(str(expr.label))

    def _print_Function(self, expr: sympy.Expr, exp: str | None = None) -> str:  # noqa: N802
        name, parts = expr.func.__name__, [self._print(part) for part in expr.args]
        if name in (MEAN, INNER):
            inside = ", ".join(parts)
            made = {
                MEAN: rf"\mathbb{{E}}\left[{inside}\right]",
                INNER: rf"\langle {inside} \rangle",
            }[name]
        elif not isinstance(expr, AppliedUndef):
            return str(super()._print_Function(expr, exp))
        else:
            front = self.spelled(name)
            if re.fullmatch("d[A-Za-z]", name):
                front = rf"\partial_{{{parts.pop()}}} {self.spelled(name[1:])}"
            made = front + (rf"\left({', '.join(parts)}\right)" if parts else "")
        return made if exp is None else rf"{{{made}}}^{{{exp}}}"


def plain(side: Any) -> str:
    """Side of an equation as text."""
    return str(_TextPrinter().doprint(side)) if isinstance(side, sympy.Basic) else str(side)


def _with_mathematics(
    sentence: str, inline: Callable[[str], str], escaped: Callable[[str], str] | None = None
) -> str:
    """Sentence in LaTeX or Markdown, with mathematics between dollar signs."""
    parts = sentence.replace("``", "`").split("`")
    return "".join(
        f"${inline(part).strip()}$" if k % 2 else (escaped or _escaped)(part)
        for k, part in enumerate(parts)
    )


def _in_markdown(text: str) -> str:
    """Markdown text with the signs of emphasis, formulas, code and links escaped."""
    return re.sub(r"[\\*<$~]|(?<=\])[(\[:]", r"\\\g<0>", text)


def _escaped(text: str, signs: str = "&%#_{}^") -> str:
    return "".join(
        (r"\^{}" if sign == "^" else "\\" + sign) if sign in signs else sign for sign in text
    )
