"""Phase planes, attention maps and classes of entries, through the data of their artists."""

from dataclasses import replace

import numpy as np
import pytest
from matplotlib.colors import to_hex
from matplotlib.quiver import Quiver

import dynamics
from dynamics import plotting
from dynamics.analysis.phase_portrait import portrait
from dynamics.analysis.phase_portrait.roots import SADDLE, FixedPoint
from dynamics.attention_maps import Measured, Setting
from dynamics.plotting.portrait import MARKS, rest_look
from dynamics.results.outcome import DIVERGED, Outcome


@pytest.fixture(scope="module")
def found():
    system = dynamics.load_system("positional_attention")
    problem = system.ReducedPopulation(system.Parameters(D=12, C=3, q=0.4))
    problem.gradient_error = lambda state: None  # no rate is left out for its error
    return portrait(problem, 2e4, ("gamma", "rho"), starts=2, grid=8)


@pytest.fixture(scope="module")
def axes(found):
    return plotting.portrait(found)


def test_arrows_point_along_the_field_and_are_coloured_by_speed(found, axes):
    (arrows,) = [c for c in axes.collections if isinstance(c, Quiver)]
    u, v = found.rates.reshape(2, -1)
    np.testing.assert_allclose(arrows.U * v, arrows.V * u, rtol=1e-9)
    assert (arrows.U * u + arrows.V * v > 0).all()
    np.testing.assert_allclose(arrows.get_array(), np.hypot(u, v))
    sides = np.ptp(np.array(found.box), axis=1)
    lengths = np.hypot(arrows.U / sides[0], arrows.V / sides[1])
    np.testing.assert_allclose(lengths, lengths[0])
    assert "speed" in axes.figure.axes[-1].get_ylabel()


def test_every_run_branch_and_fixed_point_is_drawn(found, axes):
    drawn = [line.get_xydata() for line in axes.lines]
    for run in found.runs:
        path = np.stack([run[name] for name in found.plane], axis=1)
        assert any(np.array_equal(path, line) for line in drawn)
    for name, line in found.nullclines.items():
        colour, _ = rest_look(found, name)
        shown = [part.get_xydata() for part in axes.lines if part.get_color() == colour]
        assert len(shown) == len(line.branches)
        for branch, part in zip(line.branches, shown, strict=True):
            np.testing.assert_array_equal(branch, part)
    assert axes.get_xlim() == found.box[0]
    assert axes.get_ylim() == found.box[1]


def test_times_and_events_are_where_the_run_was(found, axes):
    run = found.runs[0]
    spots = {line.get_marker(): [] for line in axes.lines}
    for line in axes.lines:
        spots[line.get_marker()].append(line.get_xydata()[0])
    places = [run.layout.slice_of(name).start for name in found.plane]
    happened = [e for e in run.events.values() if e.time > 0]
    expected = sorted(tuple(event.state[places]) for event in happened)
    np.testing.assert_allclose(sorted(map(tuple, spots["*"])), expected)
    latest = np.array([np.interp(4.0, np.log10(run.time[1:]), run[n][1:]) for n in found.plane])
    assert any(np.allclose(spot, latest) for spot in spots["o"])
    written = [text.get_text() for text in axes.texts]
    assert {"$T_0$", "$T_1$", "$10^{4}$"} <= set(written)


def test_what_is_missing_and_what_diverged_is_shown_as_such(found):
    rates = found.rates.copy()
    rates[:, :2, :3] = np.nan
    run = replace(found.runs[0], outcome=Outcome(DIVERGED, None, 1.0, ""))
    point = FixedPoint(np.array([np.mean(side) for side in found.box]), np.array([-1, 1]), SADDLE)
    changed = replace(found, rates=rates, runs=(run,), fixed_points=(point,))
    axes = plotting.portrait(changed)
    missing, ended, saddle = (
        [line for line in axes.lines if line.get_marker() == mark]
        for mark in ("x", "X", MARKS[SADDLE][0])
    )
    assert len(missing[0].get_xdata()) == 6
    np.testing.assert_array_equal(ended[0].get_xydata()[0], [run[n][-1] for n in found.plane])
    np.testing.assert_array_equal(saddle[0].get_xydata()[0], point.position)
    named = " ".join(text.get_text() for text in axes.get_legend().get_texts())
    for word in ("no gradient", "diverged", "saddle"):
        assert word in named


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
