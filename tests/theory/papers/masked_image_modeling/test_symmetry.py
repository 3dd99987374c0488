"""Row types, classes of positions and features, families of areas, and the patch of reference."""

import naive
import numpy as np
import pytest

from theory.papers.masked_image_modeling import symmetry
from theory.papers.masked_image_modeling.symmetry import one_cluster, row_types, two_cluster_grid
from theory.symmetry import classes

CUSTOM = np.array([[0, 0, 0, 0, 1, 1, 2, 2], [0, 0, 1, 1, 0, 2, 0, 2]])


@pytest.mark.parametrize(
    ("areas", "types", "count"),
    [(one_cluster(12, 8, 2), 2, 12), (two_cluster_grid(4, 4, 2, 2), 3, 31), (CUSTOM, 4, 44)],
)
def test_classes_equal_refinement_on_dictionaries(areas, types, count):
    K, P = areas.shape
    offsets = symmetry.feature_offsets(areas)
    kinds = [0] * P + [1] * offsets[-1] + [2] * K
    edges = [(p, P + offsets[k] + areas[k, p]) for k in range(K) for p in range(P)]
    ends = [(k, f) for k in range(K) for f in range(offsets[k], offsets[k + 1])]
    edges += [(P + f, P + offsets[-1] + k) for k, f in ends]
    reference = naive.rooted_colours(kinds, edges, range(P))
    pairs = set()
    for number, row in enumerate(row_types(areas)):
        for line, p in enumerate(row.patches):
            pairs |= {((number, "Y", int(row.ups_of[line, q])), reference[p, q]) for q in range(P)}
            phi = enumerate(row.phi_of[line, : offsets[-1]].tolist())
            pairs |= {((number, "F", of), reference[p, P + f]) for f, of in phi}
    assert len(pairs) == len({a for a, _ in pairs}) == len({b for _, b in pairs}) == count
    assert (len(row_types(areas)), classes(symmetry.structure(areas)).count) == (types, count)


def test_families():
    assert one_cluster(6, 2, 2).tolist() == [[0, 0, 1, 1, 2, 2]]
    assert two_cluster_grid(1, 2, 2, 1).tolist() == [
        [0, 0, 0, 1, 1, 2, 2, 3, 3],
        [0, 1, 1, 0, 0, 2, 3, 2, 3],
    ]


@pytest.mark.parametrize(
    ("make", "message"),
    [
        (lambda: one_cluster(12, 5, 2), "do not partition P=12"),
        (lambda: two_cluster_grid(8, 6, 4, 1), "C_local divides b10"),
        (lambda: two_cluster_grid(0, 0, 4, 1), "some patch is global"),
        (lambda: row_types([[0, 2, 2]]), "cluster 0 have the ids 0, 2"),
        (lambda: row_types([[0, 1], [0]]), "one list per cluster"),
        (lambda: row_types([[0.5, 1]]), "area id"),
    ],
)
def test_areas_that_do_not_partition_are_refused(make, message):
    with pytest.raises(ValueError, match=message):
        make()


def by_loops(areas, local):
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
    found = symmetry.reference(areas, local)
    found = found and (found.patch, found.cluster, found.own, found.globally)
    assert found == by_loops(areas, local)
