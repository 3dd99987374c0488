"""Docstrings of model files."""

import pytest

from dynamics.results.hypertext import fragment
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


@pytest.mark.parametrize(
    "left_open", ["~~~", "~~~~ python", "``````", "$$", "$$ x $$ $$", "Part\n~~~~\n\nNext\n~~~~~"]
)
def test_what_a_docstring_leaves_open_ends_with_it(left_open):
    """A fence that is not closed made the rest of the page code, two dollars a formula."""
    text = Documentation(f"A net.\n\n{left_open}\nwords\n").markdown
    page = fragment(f"{text}\n\n## The file\n\n$$\ny\n$$\n\n~~~\ncode\n~~~\n")
    assert '<h2 id="the-file">' in page
    assert page.endswith("<pre><code>code\n</code></pre>\n")


def test_a_formula_between_two_dollars_stays():
    assert Documentation("A net.\n\n$$\nx\n$$\n").markdown == "$$\nx\n$$"
