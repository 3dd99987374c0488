"""Formulas as text and as MathML."""

from xml.etree import ElementTree

import pytest

from dynamics.results.formulas import mathml, plain, plain_text


@pytest.mark.parametrize(
    ("latex", "text"),
    [
        (r"G \geq D/2", "G ≥ D/2"),
        (r"\frac{a + b}{c}", "(a + b)/c"),
        (r"\frac12 E", "1/2 E"),
        (r"M^{-1}", "M^(−1)"),
        (r"\gamma > \max_t |\rho|", "γ > max_t|ρ|"),
        (r"\mathrm{softmax}_l(X k)", "softmax_l(X k)"),
        (r"\sqrt{D}", "√D"),
        (r"e^{2st}", "e^(2 s t)"),
        (r"W_{l+1}^T", "W_(l+1)^T"),
        (r"\dot\alpha", "α̇"),
        (r"\alpha \text{ rises again}", "α rises again"),
        (r"\{-1, 1\}^D", "{−1, 1}^D"),
    ],
)
def test_a_formula_as_text(latex, text):
    assert plain(latex) == text


def test_formulas_in_words():
    assert plain_text("of $D$ patches, ``risk`` and `G`") == "of D patches, risk and G"


HOSTILE = "<script>alert(6)</script>"


@pytest.mark.parametrize(
    "latex",
    [
        rf"\text{{{HOSTILE}}}", rf"\mbox{{{HOSTILE}}}", rf"\textbf{{{HOSTILE}}} & x",
        r"\href{javascript:alert(6)}{x}", r"\style{x}{y}", r"\class{x}{y}", r"\color{red}{x}",
        rf"\unicode{{3c}} {HOSTILE}", rf"\verb|{HOSTILE}|", r"\def\x{\x\x} \x", r"\text{\x01}",
        rf"\left( {HOSTILE}", "{" * 5000, r"\text{&lt;script&gt;}", r"a \\\href{b}{c}",
    ],
)  # fmt: skip
def test_a_hostile_formula_is_text(latex):
    tree = ElementTree.fromstring(mathml(latex))
    assert {element.tag.rpartition("}")[2][:1] for element in tree.iter()} == {"m"}
    names = {name for element in tree.iter() for name in element.attrib}
    assert names <= {"display", "displaystyle", "scriptlevel", "mathvariant", "stretchy"}


def test_a_formula_with_an_unknown_command_is_its_source():
    assert mathml(r"\mystery{a} < b") == r"<math><mtext>\mystery{a} &lt; b</mtext></math>"
    assert plain(r"\mystery{a}") == r"\mystery{a}"
