"""Arrays by class and the box plot of attention diversity, checked through artists and words."""

import numpy as np
import pytest
from matplotlib.patches import PathPatch

from dynamics import plotting
from dynamics.attention_maps import Measured, Setting


def measured(name, images=9, heads=3, seed=0, **setting):
    rng = np.random.default_rng(seed)
    diversity = rng.uniform(2, 20, (images, heads))
    variation = rng.uniform(0, 1, (images, heads))
    return Measured(name, diversity, variation, Setting(**({"grid": (14, 14)} | setting)))


def boxes(panel):
    return [patch for patch in panel.patches if isinstance(patch, PathPatch)]


def extent(box):
    return box.get_path().get_extents()


def legend(axes):
    return [text.get_text() for key in axes[0].figure.legends for text in key.get_texts()]


def title(axes):
    return axes[0].figure.get_suptitle().replace("\n", " ")


def test_every_box_is_the_quartiles_of_its_head():
    found = measured("mae")
    axes = plotting.diversity(found)
    for panel, values in zip(axes, (found.diversity, found.total_variation), strict=True):
        drawn = boxes(panel)
        assert len(drawn) == 3
        for head, box in enumerate(drawn):
            low, high = np.quantile(values[:, head], (0.25, 0.75))
            assert (extent(box).y0, extent(box).y1) == pytest.approx((low, high))
            assert (extent(box).x0 + extent(box).x1) / 2 == pytest.approx(head)
        medians = [line.get_ydata()[0] for line in panel.lines if line.get_linewidth() == 1.8]
        assert medians == pytest.approx(list(np.median(values, axis=0)))
        assert panel.get_ylim()[0] == 0
    assert axes[0].get_ylabel() == "attention diversity\n(patches)"
    assert axes[1].get_ylabel() == "mean pairwise\ntotal variation"
    assert axes[1].get_xlabel() == "head"
    assert [int(tick) for tick in axes[1].get_xticks()] == [0, 1, 2]


def test_what_is_held_is_in_the_title_and_what_differs_in_the_legend():
    axes = plotting.diversity(measured("mae", skip=1))
    assert "mae, 14 × 14 patches, top k = 10 keys, 9 images, first token left out" in title(axes)
    assert "all pairs of queries" in title(axes)
    assert legend(axes) == []
    models = [measured("mae", 9), measured("moco", 7, 2, k=5, off_diagonal=True)]
    axes = plotting.diversity(models)
    assert title(axes).startswith("14 × 14 patches boxes: quartiles and median over images")
    assert legend(axes) == [
        "mae\ntop k = 10 keys\n9 images\nall pairs of queries\n3 heads",
        "moco\ntop k = 5 keys\n7 images\npairs of different queries\n2 heads",
    ]
