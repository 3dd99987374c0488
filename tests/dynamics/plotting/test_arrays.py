"""Classes of entries and the box plot of attention diversity, checked through artists and words."""

import numpy as np
import pytest
from matplotlib.colors import to_hex

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
    models = [measured("mae", 9), measured("moco", 7, 2, k=5, off_diagonal=True)]
    (panel, _) = plotting.diversity(models)
    assert panel.figure.get_suptitle().startswith("14 × 14 patches")
    (_, other) = panel.figure.legends[0].get_texts()
    assert other.get_text() == "moco\ntop k = 5 keys\n7 images\npairs of different queries\n2 heads"


def test_each_of_many_classes_has_a_letter_and_a_colour_of_its_own():
    labels = np.diag(np.arange(1, 18))
    labels[0, 1] = -1
    names = [f"s{k}" for k in range(17)]
    axes = plotting.entry_classes({
        "labels": {"W": labels.tolist()}, "names": names, "sizes": [2] + [1] * 16,
        "scalars": 17, "entries": 289, "frozen": 271,
    })  # fmt: skip
    cells = {text.get_position(): text.get_text() for text in axes[0, 0].texts}
    assert cells == {(k, k): "abcdefghijkmnopqr"[k] for k in range(17)} | {(1, 0): "−a"}
    (named,) = axes[0, 0].figure.legends
    assert [text.get_text() for text in named.get_texts()][:2] == ["a   s0: 2", "b   s1: 1"]
    assert len({to_hex(patch.get_facecolor()) for patch in named.get_patches()}) == 18
