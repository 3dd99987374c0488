"""Colour refinement against 1-WL on dictionaries."""

import naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from theory import color_refinement
from theory.color_refinement import RelationalStructure, is_stable, refine

EDGES = [(0, 1), (1, 2), (2, 0), (3, 4), (4, 5), (5, 6), (6, 3)]
TRIANGLE_AND_SQUARE = RelationalStructure(np.zeros(7), EDGES)


def bijective(left, right):
    """Whether two labellings describe one partition."""
    pairs = set(zip(left, right, strict=True))
    return len(pairs) == len(set(left)) == len(set(right))


@st.composite
def structures(draw):
    n = draw(st.integers(1, 7))
    kinds = draw(st.lists(st.integers(0, 1), min_size=n, max_size=n))
    ends = [(a, b) for a in range(n) for b in range(a)]
    chosen = draw(st.lists(st.sampled_from(ends), unique=True)) if ends else []
    return kinds, chosen


@settings(deadline=None, max_examples=150)
@given(structures())
def test_equals_refinement_of_the_disjoint_union_on_dictionaries(given_structure):
    kinds, edges = given_structure
    n = len(kinds)
    found = refine(RelationalStructure(kinds, edges))
    reference = naive.rooted_colours(kinds, edges, range(n))
    colours = np.stack([found.colours(root) for root in range(n)])
    assert bijective(
        colours.ravel().tolist(), [reference[r, v] for r in range(n) for v in range(n)]
    )
    histograms = [tuple(sorted(reference[r, v] for v in range(n))) for r in range(n)]
    assert bijective(found.types.tolist(), histograms)


def test_the_check_refuses_what_is_too_coarse_or_loses_the_root():
    structure = TRIANGLE_AND_SQUARE
    right = np.stack([refine(structure).colours(r) for r in range(7)])
    for colours, stable in ((right, True), (0 * right, False), (np.eye(7, dtype=np.int32), False)):
        assert is_stable(structure, structure.rows, colours) is stable


def test_hashes_that_collide_are_noticed(monkeypatch):
    mix = color_refinement._mix
    monkeypatch.setattr(
        color_refinement, "_mix", lambda values, salt: mix(values, salt) % np.uint64(2)
    )
    with pytest.raises(ArithmeticError, match="collided"):
        refine(TRIANGLE_AND_SQUARE)
