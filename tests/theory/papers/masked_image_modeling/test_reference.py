"""Which patch and which cluster speak for local areas: by sizes, whatever areas are called."""

import numpy as np
import pytest

from theory.papers.masked_image_modeling import information_gap
from theory.papers.masked_image_modeling.symmetry import (
    one_cluster,
    reference,
    row_types,
    two_cluster_grid,
    view,
)

RENAMED = (
    ([[0, 0, 0, 0, 0, 0, 1, 1, 1, 1, 2, 2]], [[0, 0, 0, 0, 0, 0, 2, 2, 2, 2, 1, 1]]),
    ([[0, 0, 0, 0, 1, 2, 2, 2]], [[0, 0, 0, 0, 2, 1, 1, 1]]),
    (
        [[0, 0, 0, 0, 1, 1, 2, 2], [0, 0, 1, 1, 0, 2, 0, 2]],
        [[0, 0, 0, 0, 2, 2, 1, 1], [0, 0, 2, 2, 0, 1, 0, 1]],
    ),
)


def naive(areas, local):
    """By loops: with a mate, local in most clusters, in the largest area, the first."""
    best, found = None, None
    for p in range(len(areas[0])):
        often = sum((row[p] > 0) == local for row in areas)
        for k, row in enumerate(areas):
            if (row[p] > 0) != local:
                continue
            size = sum(area == row[p] for area in row)
            key = (size > 1, often, size)
            if best is None or key > best:
                best, found = key, (p, k, size, sum(area == 0 for area in row))
    return found


@pytest.mark.parametrize("seed", range(60))
@pytest.mark.parametrize("local", [True, False])
def test_the_reference_is_that_of_loops(seed, local):
    random = np.random.default_rng(seed)
    areas = random.integers(0, 5, size=(random.integers(1, 4), random.integers(4, 14)))
    areas[:, 0] = 0
    areas = [np.unique(row, return_inverse=True)[1].tolist() for row in areas]
    found = reference(areas, local)
    expected = naive(areas, local)
    if expected is None:
        assert found is None
    else:
        assert (found.patch, found.cluster, found.own, found.globally) == expected


@pytest.mark.parametrize(("areas", "renamed"), RENAMED)
def test_names_of_areas_do_not_matter(areas, renamed):
    assert reference(areas, True) == reference(renamed, True)
    views = [view(one, row_types(one), True) for one in (areas, renamed)]
    assert views[0].row == views[1].row
    found = reference(areas, True)
    gaps = [information_gap.rho_at_start(one, found.cluster, found.patch, 3) for one in
            (areas, renamed)]  # fmt: skip
    assert gaps[0] == gaps[1]


def test_a_patch_with_a_mate_speaks_before_one_without():
    areas = [[0, 0, 0, 0, 1, 2, 2, 2]]
    assert (reference(areas, True).patch, reference(areas, True).own) == (5, 3)
    types = row_types(areas)
    assert 5 in types[view(areas, types, True).row].patches
    # Local in both clusters but alone there, against local in one with a mate.
    areas = [[0, 0, 0, 1, 1, 2], [0, 0, 0, 0, 0, 1]]
    assert reference(areas, True).patch == 3
    assert reference([[0, 0, 1, 2]], True).own == 1


def test_the_cluster_is_one_in_which_the_patch_is_local():
    found = reference([[0] * 8, [0, 0, 0, 0, 1, 1, 1, 1]], True)
    assert (found.patch, found.cluster, found.own, found.globally) == (4, 1, 4, 4)
    assert reference([[0, 0, 0]], True) is None
    assert reference([[0, 0, 0]], False).own == 3


def test_families_have_the_sizes_that_they_are_made_of():
    near, far = (reference(one_cluster(12, 8, 2), local) for local in (True, False))
    assert (near.patch, near.own, near.globally) == (8, 2, 8)
    assert (far.patch, far.own, far.globally) == (0, 8, 8)
    for b11, b10, T in ((8, 8, 1), (8, 8, 0), (0, 4, 2), (3, 0, 1)):
        near = reference(two_cluster_grid(b11, b10, 4, T), True)
        assert (near.own, near.globally) == (4, b11 + b10)


def test_rho_is_a_ratio_of_sizes_where_the_global_feature_rises():
    """One patch is global and another area holds most others: alpha_0 is positive at the start."""
    import naive as slow

    areas, p = np.array([[0, 1, 1, 2, 2, 2, 2, 2]]), 1
    row = (np.zeros(3), np.zeros(8))
    rates, _ = slow.masked_rates(areas.tolist(), p, 2, [(1, 1)], row, width=1e-4)
    assert rates[0] > 0
    found = information_gap.rho_at_start(areas, 0, p, 2)
    assert found == pytest.approx(rates[0] / rates[1], rel=1e-7)
