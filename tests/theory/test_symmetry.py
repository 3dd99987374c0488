import naive
import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from theory.symmetry import Partition, PermutationGroup, classes


@settings(deadline=None, max_examples=20)
@given(st.lists(st.integers(1, 3), min_size=1, max_size=3), st.randoms(use_true_random=False))
def test_any_partition_equals_brute_force(sizes, random):
    labels = np.repeat(np.arange(len(sizes)), sizes)
    order = list(range(labels.size))
    random.shuffle(order)
    partition = Partition(labels[order])
    found = classes(partition)
    members = {
        frozenset((int(i), int(j)) for i, j in np.argwhere(found.labels == k))
        for k in range(found.count)
    }
    assert members == naive.orbits([tuple(map(int, s)) for s in partition.sets], labels.size)


@pytest.mark.parametrize("labels", [[], [1, 2], [0, 2], [[0, 1]]])
def test_wrong_partitions_are_refused(labels):
    with pytest.raises(ValueError, match="partition"):
        Partition(np.array(labels))


def test_wrong_groups_and_structures_are_refused():
    with pytest.raises(ValueError, match="not a permutation"):
        PermutationGroup(3, (np.array([0, 0, 1]),))
    with pytest.raises(TypeError, match="no symmetry"):
        classes("positional attention")
