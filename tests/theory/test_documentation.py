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
    meanings = [documentation.meaning(name) for name in ("E", "w_3", "w_last", "v")]
    assert meanings == ["sizes of the two layers", "weight, $w_k$", "last weight", ""]


@pytest.mark.parametrize(
    ("text", "markdown"),
    [
        ("", ""),
        ("A net.\n\n:math:`R` is the risk.\n", "$R$ is the risk."),  # no field
        ("A net.\n\n$$\nx\n$$\n", "$$\nx\n$$"),
    ],
)
def test_texts_without_fields(text, markdown):
    documentation = Documentation(text)
    assert (documentation.fields, documentation.markdown) == ({}, markdown)


@pytest.mark.parametrize(
    "left_open", ["~~~", "~~~~ python", "``````", "$$", "$$ x $$ $$", "Part\n~~~~\n\nNext\n~~~~~"]
)
def test_a_fence_that_a_docstring_leaves_open_ends_with_it(left_open):
    text = Documentation(f"A net.\n\n{left_open}\nwords\n").markdown
    page = fragment(f"{text}\n\n## The file\n\n$$\ny\n$$\n\n~~~\ncode\n~~~\n")
    assert '<h2 id="the-file">' in page
    assert page.endswith("<pre><code>code\n</code></pre>\n")
