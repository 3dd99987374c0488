"""Every claim of the papers says what would falsify it, once; every page defines its letters."""

import importlib
import re

import pytest
import sympy
from sympy.core.function import AppliedUndef

from theory.papers.shallow_vit.derivation import FROZEN

PAGES = {
    "masked_image_modeling": [()],
    "positional_attention": [(None, "any"), (None, "mixed")],
    "shallow_vit": [
        (data, *how)
        for data in ("fixed", "fixed_disc", "iid")
        for how in (("hinge", "none"), ("linear", "attention"), ("hinge", "values"))
    ],
}


@pytest.mark.parametrize("paper", PAGES)
def test_every_claim_can_be_falsified(paper):
    claims = importlib.import_module(f"theory.papers.{paper}.claims").CLAIMS
    assert len({claim.source for claim in claims}) == len(claims)
    assert all(c.falsified_by and c.statement and c.hypothesis for c in claims)


OPERATORS = {"E", "mean", "inner", "gate"}


def base(name):
    """A letter without its indices."""
    return re.sub(r"(_([a-zA-Z\d]{1,2}|self|own|target|global|other|local))+$", "", name)


def undefined(page, lettered):
    """Letters of equations that no list, sentence or left side of the page defines."""
    defined, used = set(), set()
    for section in page.sections:
        defined |= {name for name, _ in section.letters} if lettered else set()
        defined |= {part for text in section.sentences for part in text.split("``")[1::2]}
        for left, right, *_ in section.equations:
            if isinstance(right, sympy.Basic):
                defined.add(str(left))
                bound = set().union(*(part.free_symbols for part in getattr(left, "args", ())))
                used |= {str(letter) for letter in right.free_symbols - bound}
                used |= {one.func.__name__ for one in right.atoms(AppliedUndef)} - OPERATORS
    heads = {re.split(r"[(\[]", name)[0] for name in defined}
    letters = {base(letter) for letter in used - heads if "[" not in letter}
    return letters - heads - {base(head) for head in heads}


@pytest.mark.parametrize(
    ("paper", "options"), [(paper, each) for paper, all_of in PAGES.items() for each in all_of]
)
def test_pages_are_short_and_define_their_letters(paper, options):
    printed = importlib.import_module(f"theory.papers.{paper}.derivation").page(*options)
    text = printed.as_text()
    assert len(text.splitlines()) <= 101
    assert max(map(len, text.splitlines())) <= 100
    assert "Derivative(" not in text
    assert undefined(printed, True) == set()
    assert undefined(printed, False)
    for still in FROZEN[options[2]] if len(options) == 3 else ():
        assert f"{still.name}' =" not in text
