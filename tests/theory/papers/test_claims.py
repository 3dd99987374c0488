"""Every claim of the papers says what would falsify it, once."""

import importlib

import pytest


@pytest.mark.parametrize("paper", ["masked_image_modeling", "positional_attention", "shallow_vit"])
def test_every_claim_can_be_falsified(paper):
    claims = importlib.import_module(f"theory.papers.{paper}.claims").CLAIMS
    assert len({claim.source for claim in claims}) == len(claims)
    assert all(c.falsified_by and c.statement and c.hypothesis for c in claims)
