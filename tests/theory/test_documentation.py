"""Docstrings of model files."""

from theory.documentation import Documentation

TEXT = """A net.

    Its risk is :math:`R(w)`, or

    .. math:: R = \\tfrac12
       w^2 .

    :D, E: sizes of the
        two layers
    :w*: weight, :math:`w_k`
    :w_last: last weight
    """


def test_title_paragraphs_and_fields():
    documentation = Documentation(TEXT)
    assert documentation.title == "A net"
    assert documentation.markdown == "Its risk is $R(w)$, or\n\n$$\nR = \\tfrac12 w^2 .\n$$"
    assert documentation.meaning("E") == "sizes of the two layers"
    assert documentation.meaning("w_3") == "weight, $w_k$"
    assert documentation.meaning("w_last") == "last weight"
    assert documentation.meaning("v") == ""


def test_a_formula_at_the_beginning_of_a_line_is_no_field():
    documentation = Documentation("A net.\n\n:math:`R` is the risk.\n")
    assert documentation.fields == {}
    assert documentation.markdown == "$R$ is the risk."


def test_no_docstring():
    assert (Documentation("").title, Documentation("").markdown) == ("", "")
