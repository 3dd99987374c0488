"""The type of a notation table: every letter of a paper, once.

A paper's letter has a code name, a LaTeX form, a shape and a meaning. Each system fills one
`Notation`; derivations take their sympy symbols from it, and pictures and printed derivations take
their labels from it, so a letter is never spelled twice.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    import sympy


REAL = (("real", True),)
POSITIVE = (("positive", True),)
INTEGER = (("integer", True),)
NATURAL = (("integer", True), ("positive", True))
COUNT = (("integer", True), ("nonnegative", True))


@dataclass(frozen=True)
class NotationEntry:
    """One row of a notation table.

    Attributes
    ----------
    name : str
        Code name, ASCII (``"alpha"``).
    letter : str
        The paper's letter as plain text (``"α"``).
    latex : str
        LaTeX form without dollar signs.
    meaning : str
        One line, with the unit where there is one.
    assumptions : tuple of (str, bool)
        What sympy may assume of the symbol.
    shape : str
        ``"scalar"`` or for example ``"D x D"``.
    """

    name: str
    letter: str
    latex: str
    meaning: str
    assumptions: tuple[tuple[str, bool], ...] = REAL
    shape: str = "scalar"


Row = tuple[Any, ...]
"""The fields of a `NotationEntry`, in their order."""


class Notation(Mapping[str, NotationEntry]):
    """The notation table of one system: code name -> `NotationEntry`.

    Parameters
    ----------
    source : str
        The paper whose letters these are.
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
        """The sympy symbol of a code name, with the table's assumptions."""
        import sympy  # a stored table is read without it

        return sympy.Symbol(name, **dict(self[name].assumptions))

    def symbols(self, names: str) -> Any:
        """Several symbols at once, from a space-separated list of code names."""
        return tuple(self.symbol(name) for name in names.split())

    def latex(self, name: str) -> str:
        """LaTeX of a code name without dollar signs; upright words for a name without a row."""
        if name in self:
            return self[name].latex
        spaced = name.replace("_", r"\ ")
        return name if len(name) == 1 else rf"\mathrm{{{spaced}}}"

    def label(self, name: str) -> str:
        """Label for an axis or a legend: the LaTeX form between dollar signs.

        A name without a row, such as a state that only some parameters have, is written out.
        """
        return f"${self[name].latex}$" if name in self else name.replace("_", " ")

    def latex_names(self) -> dict[sympy.Symbol, str]:
        """Symbol -> LaTeX, in the form `sympy.latex` takes as ``symbol_names``."""
        return {self.symbol(name): letter.latex for name, letter in self._letters.items()}
