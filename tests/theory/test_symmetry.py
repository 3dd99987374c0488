"""Classes of partitions, of relational structures and of stated symmetries, beside slow twins."""

import naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from theory import color_refinement
from theory.closure.orbits import generators_of, orbit_classes
from theory.color_refinement import RelationalStructure, is_stable, refine
from theory.law import ModelError
from theory.symmetry import Partition, PermutationGroup, classes

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
    ends = [reference[r, v] for r in range(n) for v in range(n)]
    assert bijective(colours.ravel().tolist(), ends)
    histograms = [tuple(sorted(reference[r, v] for v in range(n))) for r in range(n)]
    assert bijective(found.types.tolist(), histograms)


def test_the_check_refuses_what_is_too_coarse_or_loses_the_root():
    structure = TRIANGLE_AND_SQUARE
    right = np.stack([refine(structure).colours(r) for r in range(7)])
    for colours, stable in ((right, True), (0 * right, False), (np.eye(7, dtype=np.int32), False)):
        assert is_stable(structure, structure.rows, colours) is stable


def test_hashes_that_collide_are_noticed(monkeypatch):
    mix = color_refinement._mix
    monkeypatch.setattr(color_refinement, "_mix", lambda *given: mix(*given) % np.uint64(2))
    with pytest.raises(ArithmeticError, match="collided"):
        refine(TRIANGLE_AND_SQUARE)


@settings(deadline=None, max_examples=20)
@given(st.lists(st.integers(1, 3), min_size=1, max_size=3), st.randoms(use_true_random=False))
def test_any_partition_equals_brute_force(sizes, random):
    labels = np.repeat(np.arange(len(sizes)), sizes)
    order = list(range(labels.size))
    random.shuffle(order)
    partition = Partition(labels[order])
    found = classes(partition)
    pairs = [np.argwhere(found.labels == k).tolist() for k in range(found.count)]
    members = {frozenset(map(tuple, each)) for each in pairs}
    assert members == naive.orbits([tuple(map(int, s)) for s in partition.sets], labels.size)


def test_wrong_partitions_and_groups_are_refused():
    for labels in ([], [1, 2], [0, 2], [[0, 1]]):
        with pytest.raises(ValueError, match="partition"):
            Partition(np.array(labels))
    with pytest.raises(ValueError, match="not a permutation"):
        PermutationGroup(3, (np.array([0, 0, 1]),))


def generators(stated, axes=("i",), name="a"):
    return generators_of([stated], {name: axes}, {"a": (2,)})


@pytest.mark.parametrize(
    ("signs", "start", "labels", "expected"),
    [
        ([1.0, -1.0], [0.0, 0.0], [-1, -1], [0, 0]),  # its square is -1
        ([-1.0, -1.0], [0.5, -0.5], [0, 0], [1, -1]),
    ],
)
def test_signs_carry_over_and_an_entry_that_is_minus_itself_vanishes(
    signs, start, labels, expected
):
    stated = {"i": (np.array([1, 0]), np.array(signs))}
    made = orbit_classes(np.array(start), generators(stated))
    assert made.labels.tolist() == labels
    assert (made.signs * (made.labels >= 0)).tolist() == expected


def test_a_start_that_is_not_symmetric_is_refused():
    with pytest.raises(ModelError, match=r"start is not symmetric: generator 0 \(i: 1 0\) moves"):
        orbit_classes(np.array([0.1, 0.2]), generators([1, 0]))


@pytest.mark.parametrize(
    ("stated", "axes", "name", "message"),
    [
        ([0, 0], ("i",), "a", "not a permutation of 0..1 on 'i'"),
        ({"j": [1, 0]}, ("i",), "a", "permutes 'j', not in axes"),
        ([1, 0], ("i",), "b", "does not name the array a"),
        ([1, 0], ("i", "i"), "a", "the array has 1"),
        ({"i": (np.arange(2), np.array([2.0, 1.0]))}, ("i",), "a", "signs other than 1 and -1"),
    ],
)
def test_wrong_generators_are_refused(stated, axes, name, message):
    with pytest.raises(ModelError, match=message):
        generators(stated, axes, name)
