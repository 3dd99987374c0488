"""Pictures of closures: colours and letters of the classes of entries."""

import numpy as np
from matplotlib.colors import to_hex

from dynamics import plotting


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


def test_classes_of_large_arrays_have_one_letter_each():
    labels = np.repeat(np.arange(1, 13), 600).reshape(72, 100)
    axes = plotting.entry_classes({
        "labels": {"W": labels.tolist()}, "names": [f"s{k}" for k in range(12)],
        "sizes": [600] * 12, "scalars": 12, "entries": 7200, "frozen": 0,
    })  # fmt: skip
    assert sorted(text.get_text() for text in axes[0, 0].texts) == list("abcdefghijkm")


def test_a_long_legend_stays_inside_and_beside_the_arrays():
    labels = {"W": np.arange(1, 61).reshape(12, 5), "a": np.arange(1, 13), "b": np.arange(1, 13)}
    axes = plotting.entry_classes({
        "labels": {name: array.tolist() for name, array in labels.items()},
        "names": [f"W_{k}_{k}" for k in range(60)], "sizes": [1] * 60,
        "scalars": 60, "entries": 84, "frozen": 0,
    })  # fmt: skip
    figure = axes[0, 0].figure
    figure.draw_without_rendering()
    (legend,) = figure.legends
    frame, page = legend.get_window_extent(), figure.bbox
    assert page.y0 <= frame.y0 <= frame.y1 <= page.y1
    titles = [panel.title.get_window_extent() for panel in axes[0]]
    assert titles[0].x1 < titles[1].x0 < titles[1].x1 < titles[2].x0
    assert titles[2].x1 < frame.x0
