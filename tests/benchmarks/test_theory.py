"""Seconds that the symmetries of large problems take."""

import numpy as np
import pytest
from timing import best

from theory.color_refinement import RelationalStructure, refine
from theory.papers.masked_image_modeling import symmetry
from theory.symmetry import Partition, classes

pytestmark = pytest.mark.benchmark_run


def sparse_graph(size):
    """A random graph of so many nodes and about twice as many edges."""
    ends = np.sort(np.random.default_rng(0).integers(0, size, (2 * size, 2)), axis=1)
    ends = np.unique(ends, axis=0)
    return RelationalStructure(np.zeros(size), ends[ends[:, 0] != ends[:, 1]])


WORK = {
    "pairs of 1024 patches": (lambda: classes(Partition.contiguous([4] * 256)), 2.0),
    "random graph of 800 nodes": (lambda: refine(sparse_graph(800)), 30.0),
    "rows of 4096 patches": (
        lambda: symmetry.row_types(symmetry.one_cluster(4096, 2048, 16)),
        10.0,
    ),
}


@pytest.mark.parametrize("name", WORK)
def test_symmetries_of_large_problems(name, capsys):
    work, limit = WORK[name]
    seconds = best(work, 1)
    with capsys.disabled():
        print(f"\n{name:<30}{seconds:8.2f} s (limit {limit:g} s)")
    assert seconds < limit
