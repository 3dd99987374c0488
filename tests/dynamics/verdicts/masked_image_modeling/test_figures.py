"""Figures of masked image modelling, and attention diversity of training on small images."""

import numpy as np
import pytest
from small_images import write_bars

import dynamics
from dynamics.images import datasets
from dynamics.validation import InvalidRequest
from dynamics.verdicts.draw import draw
from dynamics.verdicts.masked_image_modeling import diversity
from dynamics.verdicts.masked_image_modeling.diversity import Measures, Plan

SYSTEM = dynamics.load_system("masked_image_modeling")


def test_the_plane_agrees_with_training_and_without_equal_rates_says_so():
    drawing = draw(SYSTEM, "gap", parameters={"P": 256}, options={"local": 3, "core": 6})
    boundary, trained = drawing.data["boundary"], drawing.data["trained"]
    assert len(boundary) == 3
    np.testing.assert_array_equal(trained[:, 2], trained[:, 3])
    assert set(trained[:, 2]) == {0.0, 1.0}
    for _, _, ratios in drawing.data["rows"]:
        assert (np.diff(ratios) > 0).all()
    none = {"parameters": {"P": 64, "masked": 63}, "options": {"local": 3, "core": 4}}
    assert "passes 1 in no row: one phase" in draw(SYSTEM, "gap", **none).caption


def test_figures_show_what_was_measured():
    small = {"P": 256, "C_global": 128, "C_local": 4}
    phases = draw(SYSTEM, "phases", parameters=small, options={"steps": 400})
    run = dynamics.descend(SYSTEM.ReducedPopulation(SYSTEM.Parameters(**small)), 1.0, 400)
    shown = [run["Phi_m"][1:], -run["alpha_0"][1:], run["local_masked"][1:]]
    for panel, line, values in zip(phases.axes, (0, 1, 3), shown, strict=True):
        np.testing.assert_array_equal(panel.lines[line].get_ydata(), values)
    scaling = draw(SYSTEM, "scaling", options={"sizes": (512, 1024)})
    assert "E2 1.33, 1.29, as P^-0.04" in scaling.caption
    assert scaling.data["limit"] == pytest.approx(4 / 3, rel=1e-4)
    options = {"sizes": (512, 1024), "kappa_c": 0.6, "kappa_s": 0.4}
    assert "E1 not reached" in draw(SYSTEM, "scaling", options=options).caption


SMALL = {"seeds": 2, "steps": 4, "keys": 3, "shown": 2, "layers": 1}


def test_the_figure_measures_both_trainings_from_one_start(tmp_path):
    folder = write_bars(tmp_path)
    drawing = draw(SYSTEM, "digits", options=SMALL | {"images": folder})
    masked, supervised = (np.array(drawing.data[f"{task}, 1"]) for task in ("masked", "supervised"))
    assert masked.shape == (2, 2, 2)
    np.testing.assert_allclose(masked[:, 0], supervised[:, 0])
    assert not np.allclose(masked[:, 1], supervised[:, 1])
    assert len(drawing.table) == 4
    curves = [np.array(one.lines[0].get_ydata(), float) for one in drawing.axes[0, 0].containers]
    np.testing.assert_allclose(curves, [masked[:, :, 0].mean(0), supervised[:, :, 0].mean(0)])
    whole = SMALL | {"images": folder, "patch": datasets.load(folder).side}
    with pytest.raises(InvalidRequest, match="keys=3 is more than there are patches"):
        draw(SYSTEM, "digits", options=whole)
    assert (Plan(steps=70).records, Plan(steps=4).records) == ((0, 20, 50, 70), (0, 4))


def made_up(plan, gap):
    random = np.random.default_rng(0)
    shape = (len(plan.seeds), len(plan.records), 2)
    return Measures(plan, {
        (task, layers): 10 + gap * (task == "masked") + 0.1 * random.normal(size=shape)
        for task in ("masked", "supervised") for layers in plan.layers
    })  # fmt: skip


@pytest.mark.parametrize(("gap", "holds"), [(2.0, True), (0.0, None), (-2.0, None)])
def test_the_claim_follows_what_is_measured(gap, holds, monkeypatch):
    monkeypatch.setattr(diversity, "measure_once", lambda plan: made_up(plan, gap))
    (verdict,) = dynamics.verify(SYSTEM, claims=["Figure 3"])
    assert verdict.holds is holds
