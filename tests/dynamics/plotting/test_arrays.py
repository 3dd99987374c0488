"""Arrays by class and the box plot of attention diversity, checked through artists and words."""

import numpy as np
import pytest

from dynamics import plotting
from dynamics.attention_maps import Measured, Setting


def measured(name, images=9, heads=3, seed=0, **setting):
    rng = np.random.default_rng(seed)
    diversity = rng.uniform(2, 20, (images, heads))
    variation = rng.uniform(0, 1, (images, heads))
    return Measured(name, diversity, variation, Setting(**({"grid": (14, 14)} | setting)))


def test_every_box_is_the_quartiles_of_its_head():
    found = measured("mae")
    axes = plotting.diversity(found)
    for panel, values in zip(axes, (found.diversity, found.total_variation), strict=True):
        boxes = [patch.get_path().get_extents() for patch in panel.patches]
        low, high = np.quantile(values, (0.25, 0.75), axis=0)
        np.testing.assert_allclose([(box.y0, box.y1) for box in boxes], np.transpose([low, high]))
        np.testing.assert_allclose([(box.x0 + box.x1) / 2 for box in boxes], range(3), atol=1e-12)
        medians = [line.get_ydata()[0] for line in panel.lines if line.get_linewidth() == 1.8]
        assert medians == pytest.approx(list(np.median(values, axis=0)))
    assert axes[1].get_xlabel() == "head"


def test_what_is_held_is_in_the_title_and_what_differs_in_the_legend():
    (panel, _) = plotting.diversity(measured("mae", skip=1))
    title = panel.figure.get_suptitle().replace("\n", " ")
    assert "mae, 14 × 14 patches, top k = 10 keys, 9 images, first token left out" in title
    assert not panel.figure.legends
    models = [measured("mae", 9), measured("moco", 7, 2, k=5, off_diagonal=True)]
    (panel, _) = plotting.diversity(models)
    assert panel.figure.get_suptitle().startswith("14 × 14 patches")
    assert [text.get_text() for text in panel.figure.legends[0].get_texts()] == [
        "mae\ntop k = 10 keys\n9 images\nall pairs of queries\n3 heads",
        "moco\ntop k = 5 keys\n7 images\npairs of different queries\n2 heads",
    ]
