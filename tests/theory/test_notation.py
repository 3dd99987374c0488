import pytest
import sympy

from theory.notation import Notation, NotationEntry

TABLE = Notation(
    "a paper",
    (NotationEntry("alpha", "α", r"\alpha", "a scalar"), NotationEntry("D", "D", "D", "n")),
)


def test_symbols_labels_and_latex_come_from_one_row():
    assert TABLE.symbol("alpha") == sympy.Symbol("alpha", real=True)
    assert TABLE.label("alpha") == r"$\alpha$"
    assert TABLE.letters()["alpha"] == r"\alpha"
    assert (TABLE.latex("alpha"), TABLE.latex("u")) == (r"\alpha", "u")
    assert TABLE.latex("long_name") == r"\mathrm{long\ name}"
    assert list(TABLE) == ["alpha", "D"]
    assert len(TABLE) == 2


def test_a_name_appears_once():
    with pytest.raises(ValueError, match="twice"):
        Notation("a paper", (TABLE["D"], TABLE["D"]))
