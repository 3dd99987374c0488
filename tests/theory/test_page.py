"""Pages as text and as LaTeX, docstrings of model files, and results in a few lines."""

import dataclasses
from typing import Any

import numpy as np
import pytest
import sympy

from dynamics.results.hypertext import fragment
from theory.documentation import Documentation
from theory.page import Entries, HandWritten, Page, Section, functions, plain
from theory.summary import ROWS, WIDTH, summarized

a, k = Entries("a"), sympy.Symbol("k", integer=True)
alpha, x, K, C, D = sympy.symbols("alpha x K C D", real=True)
h, dh, E, inner = functions("h dh E inner")


def page(*rows, words=()):
    letters = {"alpha": r"\alpha", "R": "R"}
    return Page("A page", "", (Section("Here", words, rows, (), ()),), letters, True)


@pytest.mark.parametrize(
    ("side", "text", "latex"),
    [
        (a[k] * h(k), "a_k*h(k)", r"a_{k} h\left(k\right)"),
        (sympy.Sum(a[k], (k, 0, K)), "sum(a_k, k = 0..K)", r"\sum_{k=0}^{K} a_{k}"),
        (sympy.factorial(a[k]), "a_k!", "a_{k}!"),
        (sympy.factorial(C - 1), "(C - 1)!", r"\left(C - 1\right)!"),
        (D - C, "D - C", "D - C"),
        (C - D, "C - D", "C - D"),
        (E(x**2), "E[x**2]", r"\mathbb{E}\left[x^{2}\right]"),
        (inner(x, alpha), "<x, alpha>", r"\langle x, \alpha \rangle"),
        (dh(k, alpha), "dh(k, alpha)", r"\partial_{\alpha} h\left(k\right)"),
        (h(x) ** 2, "h(x)**2", r"{h\left(x\right)}^{2}"),
        (sympy.Symbol("dR/dalpha"), "dR/dalpha", r"\partial R / \partial \alpha"),
        (sympy.Symbol("alpha'"), "alpha'", r"\alpha'"),
    ],
)
def test_expressions(side, text, latex):
    assert plain(side) == text
    assert f"y &= {latex}\n" in page(("y", side)).as_latex().replace(r"\mathrm{y}", "y")


def test_long_sums_are_broken_and_bounds_are_kept():
    rows = (("y", sympy.Add(*sympy.symbols("c_1:60"))), ("y", HandWritten("z", "z"), "<="))
    latex = page(*rows).as_latex()
    assert latex.count(r"&\quad") >= 2
    assert r"&\leq z" in latex
    assert page(*rows).as_text().endswith("y <= z")


def test_mathematics_in_sentences():
    words = "Of `alpha*x_j` and ``<v, x>``, 5 % of `m_1, ..., m_K >= 0`:"
    made = page(words=(words, "they vanish"))
    assert "    Of alpha*x_j and <v, x>, 5 % of m_1, ..., m_K >= 0:" in made.as_text()
    written = made.as_latex().replace("  ", " ")
    assert r"Of $\alpha x_{j}$ and $\langle v , x \rangle$, 5 \% of" in written
    assert ":\n\nThey vanish." in made.as_markdown()


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
    [("", ""), ("A net.\n\n:math:`R` is the risk.\n", "$R$ is the risk.")],  # no field
)
def test_texts_without_fields(text, markdown):
    documentation = Documentation(text)
    assert (documentation.fields, documentation.markdown) == ({}, markdown)


@pytest.mark.parametrize("left_open", ["~~~~ python", "``````", "$$ x $$ $$", "A\n~~~~\n\n~~~~~"])
def test_a_fence_that_a_docstring_leaves_open_ends_with_it(left_open):
    text = Documentation(f"A net.\n\n{left_open}\nwords\n").markdown
    page = fragment(f"{text}\n\n## The file\n\n$$\ny\n$$\n\n~~~\ncode\n~~~\n")
    assert '<h2 id="the-file">' in page
    assert page.endswith("<pre><code>code\n</code></pre>\n")


@summarized
@dataclasses.dataclass(frozen=True)
class Many:
    first: Any = "<b>bold</b> & more"
    numbers: Any = None
    table: Any = None
    rows: Any = ()
    a: float = 1 / 3
    b: bool = True
    c: int = 7
    d: Any = None
    e: str = ""


def test_arrays_and_long_texts_are_cut():
    shown = Many(
        numbers=np.linspace(0, 2, 9).reshape(3, 3),
        table={"none": None, **{f"k{n}": 0.5 for n in range(999)}},
        rows=[Many()] * 40, d={"x": [1, 2]},
    )  # fmt: skip
    name, *lines = repr(shown).splitlines()
    assert (name, len(lines)) == ("Many", ROWS)
    assert lines[1].endswith("float64 array (3, 3), 0 to 2")
    assert lines[2].split(maxsplit=1)[1].startswith("k0=0.5, k1=0.5, ")
    assert lines[3].split(maxsplit=1) == ["rows", "40 Many"]
    assert lines[6].split(maxsplit=1) == ["and", "c, d"]
    assert max(map(len, lines)) <= WIDTH + 2 + len("numbers") + 2


def test_little_is_shown_in_one_line():
    expected = "Many(first=word, numbers=[1, 2.5], a=0.333333, b=True, c=7)"
    assert repr(Many("word", np.array([1.0, 2.5]))) == expected
