"""Words at events cover nothing."""

import numpy as np
import pytest

from dynamics.plotting import style
from dynamics.plotting.phases import _free_place


@pytest.mark.parametrize(
    ("curves", "place"),
    [
        ([], (0.02, True)),
        ([lambda _: 0.07], (0.45, True)),
        ([lambda _: 0.07, lambda _: 0.5], (0.85, True)),
        ([lambda time: 0.95 - 0.9 * (time > 500)], (0.02, False)),
    ],
)
def test_the_word_at_an_event_covers_no_curve(curves, place):
    _, axes = style.new_figure(6.0, 2.0)
    time = np.geomspace(1, 1e3, 2000)
    axes.set(xscale="log", ylim=(0, 1))
    for curve in curves:
        axes.plot(time, [curve(t) for t in time])
    assert _free_place(axes, 400.0, (1.0, 1e3)) == place
    axes.axvline(450.0)
    assert not _free_place(axes, 400.0, (1.0, 1e3))[1]
    axes.axvline(1.5)
    assert _free_place(axes, 1.2, (1.0, 1e3))[1]  # there is no room on the left
