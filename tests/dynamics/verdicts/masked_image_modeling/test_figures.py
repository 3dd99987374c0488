"""Figures of masked image modelling at laws and options on the edge of what can be drawn."""

import numpy as np
import pytest

import dynamics
from dynamics import plotting
from dynamics.validation import InvalidRequest
from dynamics.verdicts.figure import draw
from dynamics.verdicts.masked_image_modeling.figures import times_picture

SYSTEM = dynamics.load_system("masked_image_modeling")
SMALL = {"P": 12, "C_global": 8, "C_local": 4, "masked": 3}


def labels(panel):
    return [line.get_label() for line in panel.lines if not line.get_label().startswith("_")]


def test_one_local_area_has_no_other_one():
    drawing = draw(SYSTEM, "phases", user_parameters=SMALL, options={"steps": 50})
    words = [label for panel in drawing.axes for label in labels(panel)]
    assert len(words) == 9
    assert not any("other" in word for word in [*words, drawing.caption])


def test_maps_are_at_the_start_after_one_step_and_at_the_end():
    given = {"family": "custom", "areas": "0,0,1,1;0,1,0,1"}
    options = {"maps": 3, "keys": (4,)}
    drawing = draw(SYSTEM, "diversity", user_parameters=given, options=options)
    time = drawing.data["time"]
    assert (len(time), *time[:2]) == (3, 0.0, 1.0)
    assert f"at time {time[-1]:g}" in drawing.caption
    assert "image of the first of 2 clusters" in drawing.axes[0].figure.get_suptitle()


def test_a_plane_without_equal_rates_says_so():
    drawing = draw(
        SYSTEM, "gap", user_parameters={"P": 64, "masked": 63}, options={"local": 3, "core": 4}
    )
    ratios = np.concatenate([row[2] for row in drawing.data["rows"]])
    assert ratios.max() < 1
    assert drawing.data["boundary"].shape == (0, 2)
    assert labels(drawing.axes) == [r"$\Delta = 0$"]
    assert "in no row of this plane" in drawing.axes.get_title(loc="left")
    assert f"from {ratios.min():.3g} to {ratios.max():.3g}" in drawing.caption
    assert "passes 1 in no row: one phase" in drawing.caption


@pytest.mark.parametrize(
    ("options", "told"),
    [
        ({"sizes": (64,)}, "at P=64: E1 1.31; E2 1.52"),
        ({"sizes": (512, 1024), "kappa_c": 0.6, "kappa_s": 0.4}, "E1 not reached, not reached; E2"),
    ],
)
def test_the_caption_of_the_scaling_follows_its_numbers(options, told):
    drawing = draw(SYSTEM, "scaling", options=options)
    assert told in drawing.caption
    assert "nan" not in drawing.caption
    predicted = any("large gap" in label for label in labels(drawing.axes))
    assert predicted == ("kappa_c" not in options) == (drawing.data["limit"] is not None)


@pytest.mark.parametrize(
    ("name", "given", "options", "told"),
    [
        ("phases", {"P": 16, "C_global": 4, "C_local": 4}, {},
         "as large as the global area; C_local can be 2, 3, 6, 12"),
        ("phases", {"P": 5, "C_global": 4, "C_local": 1}, {}, "2 or more, with a smaller C_global"),
        ("phases", {"family": "two_cluster_grid"}, {}, "is not the family of this figure"),
        ("gap", {"C_local": 4}, {}, "C_local is an axis"),
        ("gap", {"P": 64}, {"core": 1}, "core=1 is too small"),
        ("gap", {"P": 64}, {"local": float("nan")}, "local=nan is not finite"),
        ("diversity", SMALL, {"maps": 1}, "maps=1 is too small"),
        ("scaling", {"z": 2.0}, {}, "z cannot be set"),
        ("scaling", {}, {"sizes": (4,)}, "sizes=4 is too small"),
        ("5", {}, {}, "known are phases, gap, diversity, digits, scaling"),
    ],
)  # fmt: skip
def test_what_cannot_be_drawn_is_refused_with_the_reason(name, given, options, told):
    with pytest.raises(InvalidRequest) as refusal:
        draw(SYSTEM, name, user_parameters=given, options=options)
    assert told in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_figures_show_what_was_measured(tmp_path):
    small = {"P": 256, "C_global": 128, "C_local": 4}
    phases = draw(SYSTEM, "phases", user_parameters=small, options={"steps": 400})
    run = dynamics.descend(SYSTEM.ReducedPopulation(SYSTEM.Parameters(**small)), 1.0, 400)
    np.testing.assert_array_equal(phases.axes[0].lines[0].get_ydata(), run["Phi_m"][1:])
    np.testing.assert_array_equal(phases.axes[1].lines[1].get_ydata(), -run["alpha_0"][1:])
    np.testing.assert_array_equal(phases.axes[2].lines[3].get_ydata(), run["local_masked"][1:])
    diversity = draw(SYSTEM, "diversity", user_parameters=small, options={"maps": 5, "keys": (4,)})
    np.testing.assert_array_equal(
        diversity.axes[1].lines[0].get_ydata(), diversity.data["variation"]
    )
    scaling = draw(SYSTEM, "scaling", options={"sizes": (512, 1024)})
    assert "E2 1.33, 1.29, as P^-0.04" in scaling.caption
    assert scaling.data["limit"] == pytest.approx(4 / 3, rel=1e-4)
    assert scaling.axes.lines[1].get_ydata() == pytest.approx([1.33, 1.29], abs=0.02)
    for name, drawing in (("p", phases), ("d", diversity), ("s", scaling)):
        assert plotting.write(drawing.axes, tmp_path / f"{name}.png").stat().st_size > 10_000


def test_what_was_not_reached_is_said():
    found = {"a": np.array([np.nan, 1.0, np.nan]), "b": np.ones(3), "c": np.full(3, np.nan)}
    axes = times_picture(np.array([10.0, 100.0, 1000.0]), found, None, "held")
    assert labels(axes) == ["a, not at 2 sizes", "b", "c: not reached"]


def test_the_plane_agrees_with_training():
    drawing = draw(SYSTEM, "gap", user_parameters={"P": 256}, options={"local": 3, "core": 6})
    boundary, trained = drawing.data["boundary"], drawing.data["trained"]
    assert len(boundary) == 3
    np.testing.assert_array_equal(trained[:, 2], trained[:, 3])
    assert set(trained[:, 2]) == {0.0, 1.0}
    for kappa_s, places, ratios in drawing.data["rows"]:
        assert (np.diff(places) > 0).all()
        assert (np.diff(ratios) > 0).all()
        assert kappa_s <= 0.5
