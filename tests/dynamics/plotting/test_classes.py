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
