"""Figures of masked image modelling at laws and options on the edge of what can be drawn."""

import numpy as np
import pytest

import dynamics
from dynamics.validation import InvalidRequest
from dynamics.verdicts.draw import draw

SYSTEM = dynamics.load_system("masked_image_modeling")
SMALL = {"P": 12, "C_global": 8, "C_local": 4, "masked": 3}


def test_a_plane_without_equal_rates_says_so():
    drawing = draw(
        SYSTEM, "gap", parameters={"P": 64, "masked": 63}, options={"local": 3, "core": 4}
    )
    ratios = np.concatenate([row[2] for row in drawing.data["rows"]])
    assert ratios.max() < 1
    assert drawing.data["boundary"].shape == (0, 2)
    assert "passes 1 in no row: one phase" in drawing.caption


def test_the_caption_of_the_scaling_says_what_is_not_reached():
    options = {"sizes": (512, 1024), "kappa_c": 0.6, "kappa_s": 0.4}
    drawing = draw(SYSTEM, "scaling", options=options)
    assert "E1 not reached, not reached; E2" in drawing.caption
    assert "nan" not in drawing.caption
    assert drawing.data["limit"] is None


@pytest.mark.parametrize(
    ("name", "given", "options", "told"),
    [
        ("phases", {"P": 16, "C_global": 4, "C_local": 4}, {},
         "as large as the global area; C_local can be 2, 3, 6, 12"),
        ("phases", {"family": "two_cluster_grid"}, {}, "is not the family of this figure"),
        ("gap", {"P": 64}, {"local": float("nan")}, "local=nan is not finite"),
        ("diversity", SMALL, {"maps": 1}, "maps=1 is too small"),
        ("scaling", {}, {"sizes": (4,)}, "sizes=4 is too small"),
        ("5", {}, {}, "known are phases, gap, diversity, digits, scaling"),
    ],
)  # fmt: skip
def test_what_cannot_be_drawn_is_refused_with_the_reason(name, given, options, told):
    with pytest.raises(InvalidRequest) as refusal:
        draw(SYSTEM, name, parameters=given, options=options)
    assert told in str(refusal.value)
    assert "\n" not in str(refusal.value)


def test_figures_show_what_was_measured():
    small = {"P": 256, "C_global": 128, "C_local": 4}
    phases = draw(SYSTEM, "phases", parameters=small, options={"steps": 400})
    run = dynamics.descend(SYSTEM.ReducedPopulation(SYSTEM.Parameters(**small)), 1.0, 400)
    shown = [run["Phi_m"][1:], -run["alpha_0"][1:], run["local_masked"][1:]]
    for panel, line, values in zip(phases.axes, (0, 1, 3), shown, strict=True):
        np.testing.assert_array_equal(panel.lines[line].get_ydata(), values)
    diversity = draw(SYSTEM, "diversity", parameters=small, options={"maps": 5, "keys": (4,)})
    np.testing.assert_array_equal(
        diversity.axes[1].lines[0].get_ydata(), diversity.data["variation"]
    )
    scaling = draw(SYSTEM, "scaling", options={"sizes": (512, 1024)})
    assert "E2 1.33, 1.29, as P^-0.04" in scaling.caption
    assert scaling.data["limit"] == pytest.approx(4 / 3, rel=1e-4)


def test_the_plane_agrees_with_training():
    drawing = draw(SYSTEM, "gap", parameters={"P": 256}, options={"local": 3, "core": 6})
    boundary, trained = drawing.data["boundary"], drawing.data["trained"]
    assert len(boundary) == 3
    np.testing.assert_array_equal(trained[:, 2], trained[:, 3])
    assert set(trained[:, 2]) == {0.0, 1.0}
    for kappa_s, places, ratios in drawing.data["rows"]:
        assert (np.diff(places) > 0).all()
        assert (np.diff(ratios) > 0).all()
        assert kappa_s <= 0.5
