"""Pages as text and as LaTeX."""

import pytest
import sympy

from theory.page import Entries, HandWritten, Page, Section, functions, plain

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


def test_mathematics_in_sentences():
    made = page(words=("Of `alpha*x_j` and ``<v, x>``, 5 % of `m_1, ..., m_K >= 0`.",))
    assert "    Of alpha*x_j and <v, x>, 5 % of m_1, ..., m_K >= 0." in made.as_text()
    written = made.as_latex().replace("  ", " ")
    assert r"Of $\alpha x_{j}$ and $\langle v , x \rangle$, 5 \% of" in written
    assert r"\dots , m_{K} \geq 0$." in written


def test_long_sums_are_broken_and_bounds_are_kept():
    rows = (("y", sympy.Add(*sympy.symbols("c_1:60"))), ("y", HandWritten("z", "z"), "<="))
    latex = page(*rows).as_latex()
    assert latex.count(r"&\quad") >= 2
    assert r"&\leq z" in latex
    assert page(*rows).as_text().endswith("y <= z")


def test_sentences_in_markdown_end_with_one_stop_and_lead_on_with_a_colon():
    section = Section("Sums", ("of all `a`:", "they vanish", "so do others."), (("s", "t"),))
    text = Page("A page", "", (section,), {}).as_markdown()
    assert text.startswith("## Sums\n\nOf all $a$:\n\nThey vanish.\n\nSo do others.\n\n$$")
