"""Attention diversity of masked and of supervised training on small images."""

import numpy as np
import pytest
from small_images import write_bars

import dynamics
from dynamics.cli import main
from dynamics.images import datasets
from dynamics.validation import InvalidRequest
from dynamics.verdicts.draw import draw
from dynamics.verdicts.masked_image_modeling import diversity
from dynamics.verdicts.masked_image_modeling.diversity import Measures, Plan

SYSTEM = dynamics.load_system("masked_image_modeling")
SMALL = {"seeds": 2, "steps": 4, "keys": 3, "shown": 2, "layers": 1}


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_bars(tmp_path_factory.mktemp("bars"))


def test_the_figure_measures_both_trainings_from_one_start(folder, tmp_path, monkeypatch, capsys):
    drawing = draw(SYSTEM, "digits", options=SMALL | {"images": folder})
    masked, supervised = (np.array(drawing.data[f"{task}, 1"]) for task in ("masked", "supervised"))
    assert masked.shape == (2, 2, 2)
    np.testing.assert_allclose(masked[:, 0], supervised[:, 0])
    assert not np.allclose(masked[:, 1], supervised[:, 1])
    assert len(drawing.table) == 4
    curves = [np.array(one.lines[0].get_ydata(), float) for one in drawing.axes[0, 0].containers]
    np.testing.assert_allclose(curves, [masked[:, :, 0].mean(0), supervised[:, :, 0].mean(0)])
    monkeypatch.chdir(tmp_path)
    words = [f"--option={name}={entry}" for name, entry in SMALL.items()]
    assert main(["figure", "masked_image_modeling", "digits", "--images", folder, *words]) == 0
    assert "supervised  1" in capsys.readouterr().out
    assert main(["figure", "masked_image_modeling", "digits", "--option", "patch=3"]) == 2
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
