"""Notation tables, which contain every letter of a paper once.

Each letter has a code name, a LaTeX form, a shape and a meaning. Each system fills one `Notation`;
derivations take their SymPy symbols, and plots their labels, from this table.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

from theory.model import HELD_OUT

if TYPE_CHECKING:
    import sympy


REAL = (("real", True),)
POSITIVE = (("positive", True),)
INTEGER = (("integer", True),)
NATURAL = (("integer", True), ("positive", True))
COUNT = (("integer", True), ("nonnegative", True))
GREEK = {
    "alpha": "α", "beta": "β", "gamma": "γ", "delta": "δ", "epsilon": "ε", "zeta": "ζ",
    "eta": "η", "theta": "θ", "iota": "ι", "kappa": "κ", "lambda": "λ", "mu": "μ", "nu": "ν",
    "xi": "ξ", "pi": "π", "rho": "ρ", "sigma": "σ", "tau": "τ", "upsilon": "υ", "phi": "φ",
    "chi": "χ", "psi": "ψ", "omega": "ω",
}  # fmt: skip
"""Greek letter of each name."""


@dataclass(frozen=True)
class NotationEntry:
    """One row of a notation table.

    `name` is the code name in ASCII (``"alpha"``), `letter` the paper's letter as plain text
    (``"α"``), and `latex` the LaTeX form without dollar signs. `meaning` is one line, with the unit
    of the quantity if it has one. `assumptions` are those of the SymPy symbol. `shape` is
    ``"scalar"`` or a text such as ``"D x D"``.
    """

    name: str
    letter: str
    latex: str
    meaning: str
    assumptions: tuple[tuple[str, bool], ...] = REAL
    shape: str = "scalar"


Row = tuple[Any, ...]
"""Fields of a `NotationEntry`, in their order."""


def word(name: str, meaning: str) -> Row:
    r"""Row of a quantity without a letter: the words of its code name, upright in LaTeX.

    Examples
    --------
    >>> word("random_sets", "any, or mixed")
    ('random_sets', 'random sets', '\\mathrm{random\\ sets}', 'any, or mixed')
    """
    upright = name.replace("_", r"\ ")
    return name, name.replace("_", " "), rf"\mathrm{{{upright}}}", meaning


class Notation(Mapping[str, NotationEntry]):
    """Notation table of one system, from code name to `NotationEntry`.

    Parameters
    ----------
    source : str
        Paper that uses these letters.
    rows : iterable of NotationEntry, or of tuples of its fields
        Code names are unique.

    Raises
    ------
    ValueError
        If a code name appears twice.

    Examples
    --------
    >>> Notation("a paper", [("p", "p", "p", "odd degree", NATURAL)])["p"].meaning
    'odd degree'
    """

    def __init__(self, source: str, rows: Iterable[NotationEntry | Row]) -> None:
        self.source = source
        letters = [row if isinstance(row, NotationEntry) else NotationEntry(*row) for row in rows]
        self._letters = {letter.name: letter for letter in letters}
        if len(self._letters) != len(letters):
            raise ValueError(f"a code name appears twice in the notation of {source}")

    def __getitem__(self, name: str) -> NotationEntry:
        return self._letters[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._letters)

    def __len__(self) -> int:
        return len(self._letters)

    def symbol(self, name: str) -> sympy.Symbol:
        """SymPy symbol of a code name, with the assumptions of the table."""
        import sympy  # imported here, because a stored table is read without SymPy

        return sympy.Symbol(name, **dict(self[name].assumptions))

    def symbols(self, names: str) -> Any:
        """Symbols of a space-separated list of code names."""
        return tuple(self.symbol(name) for name in names.split())

    def latex(self, name: str) -> str:
        """LaTeX of a code name without dollar signs; upright words for a name without a row."""
        if name in self:
            return self[name].latex
        spaced = name.replace("_", r"\ ")
        return name if len(name) == 1 else rf"\mathrm{{{spaced}}}"

    def label(self, name: str) -> str:
        """Label for an axis or a legend: the LaTeX form between dollar signs.

        The label of a name without a row is the name, with spaces for underscores.
        """
        return f"${self[name].latex}$" if name in self else name.replace("_", " ")

    def letters(self) -> dict[str, str]:
        """LaTeX of every code name."""
        return {name: entry.latex for name, entry in self._letters.items()}

    def meanings(self, names: str) -> tuple[tuple[str, str], ...]:
        """Code names of a space-separated list, each with its meaning."""
        return tuple((name, self[name].meaning) for name in names.split())


def latex_of(name: str, arrays: Iterable[str] = ()) -> str:
    r"""LaTeX of a code name: ``alpha0`` becomes ``\alpha_{0}``, ``A_0_1`` becomes ``A_{0,1}``.

    Words in an index are separated by spaces, as in ``A_{to mask}``. An array with an index, given
    in `arrays`, is put in brackets before the index of its entry: ``(W_{1})_{0,0}``. A quantity on
    the held-out law has the superscript "held out".
    """
    if name.startswith(HELD_OUT):
        base = name.removeprefix(HELD_OUT)
        return ("R" if base == "risk" else latex_of(base)) + r"^{\mathrm{held\ out}}"
    for array in sorted(arrays, key=len, reverse=True):
        index, letter = name[len(array) + 1 :], latex_of(array)
        if name.startswith(f"{array}_") and re.fullmatch(r"\d+(_\d+)*", index):
            if "_{" not in letter:
                break
            return rf"({letter})_{{{index.replace('_', ',')}}}"
    base, *below = name.split("_")
    digits = re.fullmatch(r"([A-Za-z]+?)(\d+)", base)
    if digits:
        base, below = digits[1], [digits[2], *below]
    folded = base.lower()
    if folded in GREEK:
        capital = base[0].isupper() and folded not in ("alpha", "beta", "epsilon", "zeta", "eta")
        letter = "\\" + (folded.capitalize() if capital else folded)
    elif len(base) == 1:
        letter = base
    else:
        letter = rf"\mathrm{{{base}}}"
    written, was_word = "", False
    for part in filter(None, below):
        word = not part.isdigit() and len(part) > 1
        apart = (r"\ " if word or was_word else ",") if written else ""
        written += apart + (rf"\mathrm{{{part}}}" if word else part)
        was_word = word
    return letter + (f"_{{{written}}}" if written else "")
