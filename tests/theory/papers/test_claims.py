"""Every claim of the papers says what would falsify it, once; every page defines its letters."""

import importlib

import pages
import pytest

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


@pytest.mark.parametrize(
    ("paper", "options"), [(paper, each) for paper, all_of in PAGES.items() for each in all_of]
)
def test_pages_are_short_and_define_their_letters(paper, options):
    printed = importlib.import_module(f"theory.papers.{paper}.derivation").page(*options)
    text = printed.as_text()
    assert len(text.splitlines()) <= 101
    assert max(map(len, text.splitlines())) <= 100
    assert "Derivative(" not in text
    pages.check_letters(printed)
    for still in FROZEN[options[2]] if len(options) == 3 else ():
        assert f"{still.name}' =" not in text
