"""Which patch and which cluster speak for local areas: by sizes, whatever areas are called."""

import numpy as np
import pytest

from theory.papers.masked_image_modeling import information_gap
from theory.papers.masked_image_modeling.symmetry import reference, row_types, view


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


@pytest.mark.parametrize("seed", range(20))
@pytest.mark.parametrize("local", [True, False])
def test_the_reference_is_that_of_loops(seed, local):
    random = np.random.default_rng(seed)
    areas = random.integers(0, 5, size=(random.integers(1, 4), random.integers(4, 14)))
    areas[:, 0] = 0
    areas = [np.unique(row, return_inverse=True)[1].tolist() for row in areas]
    found = reference(areas, local)
    found = found and (found.patch, found.cluster, found.own, found.globally)
    assert found == naive(areas, local)


@pytest.mark.parametrize(
    ("areas", "renamed"),
    [
        ([[0, 0, 0, 0, 1, 2, 2, 2]], [[0, 0, 0, 0, 2, 1, 1, 1]]),
        (
            [[0, 0, 0, 0, 1, 1, 2, 2], [0, 0, 1, 1, 0, 2, 0, 2]],
            [[0, 0, 0, 0, 2, 2, 1, 1], [0, 0, 2, 2, 0, 1, 0, 1]],
        ),
    ],
)
def test_names_of_areas_do_not_matter(areas, renamed):
    assert reference(areas, True) == reference(renamed, True)
    views = [view(one, row_types(one), True) for one in (areas, renamed)]
    assert views[0].row == views[1].row
    found = reference(areas, True)
    gaps = [information_gap.rho_at_start(one, found.cluster, found.patch, 3) for one in
            (areas, renamed)]  # fmt: skip
    assert gaps[0] == gaps[1]
