"""Section 4.2 of Li et al. on small images: figure and claims."""

from dataclasses import replace

import numpy as np
import pytest
from small_images import write_bars

import dynamics
from dynamics.cli import main
from dynamics.images import datasets
from dynamics.images.textures import sparsified
from dynamics.validation import InvalidRequest
from dynamics.verdicts.figure import draw
from dynamics.verdicts.shallow_vit import textured_images
from dynamics.verdicts.shallow_vit.textured_images import SHARES, Scene, Trials

SYSTEM = dynamics.load_system("shallow_vit")
CLAIMS = ("Figure 6a", "Figure 6b", "Figure 6c")
SMALL = {
    "texture": "noise", "side": 6, "patch": 1, "pair": (0, 1), "shares": (0.5, 1.0),
    "samples": (20, 40), "seeds": 2, "tests": 30, "steps": 3,
}  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_bars(tmp_path_factory.mktemp("bars"), train=400, test=200)


def test_the_figure_and_its_table(folder, tmp_path, monkeypatch):
    drawing = draw(SYSTEM, "textures", options=SMALL | {"objects": folder})
    assert len(drawing.table) == 2 * 2 + 2
    assert [row.get("spurious") for row in drawing.table] == [None] * 4 + ["90/10"] * 2
    values = np.array(drawing.data["accuracy"])
    assert values.shape == (2, 2, 2)
    curves = [np.array(one.lines[0].get_ydata(), float) for one in drawing.axes[2].containers]
    np.testing.assert_allclose(curves, 100 * values.mean(axis=2))
    monkeypatch.chdir(tmp_path)
    assert main(["figure", "shallow_vit", "textures", "--objects", "none"]) == 2
    with pytest.raises(InvalidRequest, match="pair='0,7' are no two classes"):
        draw(SYSTEM, "textures", options=SMALL | {"objects": folder, "pair": (0, 7)})


def test_a_spurious_background_is_of_nine_in_ten(folder):
    images = textured_images.of_pair(datasets.load(folder), (1, 0))
    scene = Scene(300, 1.0, 0, (1, 0), side=6, patch=1, tests=150, texture="noise")
    data = textured_images.scene_data(scene, images)
    outside = np.where(data.train.relevant, np.nan, data.train.pixels.reshape(300, -1))
    textured = np.nanstd(outside, axis=1) > 0
    assert 0.84 < (textured == (data.labels == 1)).mean() < 0.96
    assert 0.35 < data.unusual.mean() < 0.65
    whole = textured_images.scene_data(replace(scene, pair=()), images)
    outside = np.where(whole.train.relevant, np.nan, whole.train.pixels.reshape(300, -1))
    assert (np.nanstd(outside, axis=1) > 0).all()


def test_scenes_of_a_seed_differ_in_what_is_dropped_alone(folder):
    images = datasets.load(folder)
    scene = Scene(20, 1.0, 0, side=6, patch=1, tests=10, texture="noise")
    one, other = (textured_images.scene_data(replace(scene, share=s), images) for s in (0.5, 1.0))
    np.testing.assert_array_equal(one.train.pixels, other.train.pixels)
    assert (one.present >= other.present).all()
    assert one.present.sum() > other.present.sum()
    assert sparsified(one.train.relevant, 1.0, np.random.default_rng(0)).sum() == 20 * 16


def made_up(samples, seeds, gain=0.2, growth=0.3, spurious=0.2):
    random = np.random.default_rng(0)
    share = np.linspace(0, 1, len(SHARES))[:, None, None]
    count = np.linspace(0, 1, len(samples))[None, :, None]
    noise = 0.01 * random.normal(size=(len(SHARES), len(samples), len(seeds)))
    classes = 0.4 + gain * share + growth * count + noise
    groups = 0.7 + spurious * share + 0.01 * random.normal(size=(len(SHARES), len(seeds), 3))
    return Trials(Scene(0, 1.0, 0, (3, 8)), SHARES, samples, seeds, classes, groups)


@pytest.mark.parametrize(
    ("changes", "lost"),
    [
        ({}, set()),
        ({"gain": 0.0}, {"Figure 6a", "Figure 6b"}),
        ({"growth": 0.0}, {"Figure 6a", "Figure 6b"}),
        ({"spurious": 0.0}, {"Figure 6c"}),
    ],
)
def test_claims_follow_what_is_measured(changes, lost, monkeypatch):
    monkeypatch.setattr(
        textured_images, "train_once", lambda samples, seeds: made_up(samples, seeds, **changes)
    )
    found = dynamics.verify(SYSTEM, claims=CLAIMS)
    assert {v.claim.source for v in found if v.holds is not True} == lost
    assert all(v.holds is None for v in found if v.claim.source in lost)


def test_a_difference_of_few_trials_may_be_chance(monkeypatch):
    """Two of five against three of five, and none of five against all."""
    for shares, decided in (((2, 3), False), ((0, 5), True)):

        def trials(samples, seeds, shares=shares):
            made = made_up(samples, seeds)
            classes = np.zeros_like(made.classes)
            for row, count in zip((0, -1), shares, strict=True):
                classes[row, -1, :count] = 0.9
            return replace(made, classes=classes)

        monkeypatch.setattr(textured_images, "train_once", trials)
        (verdict,) = dynamics.verify(SYSTEM, claims=["Figure 6b"])
        assert verdict.holds is (True if decided else None)
        if not decided:
            assert verdict.word.startswith("not decidable with so few trials")
            assert "differ by chance with p = 1 " in verdict.finding.reason


def test_needed_samples_are_the_least_at_which_half_succeed():
    trials = made_up((10, 20, 40), (0, 1, 2))
    classes = np.zeros((4, 3, 3))
    classes[1, 2, :2] = classes[2, 1:] = classes[3, :, 0] = 0.8
    found = replace(trials, classes=classes).needed()
    assert found == [np.inf, 40, 20, np.inf]


def test_claims_have_no_parameters():
    (verdict,) = dynamics.verify(SYSTEM, SYSTEM.Parameters(), ["Figure 6c"])
    assert verdict.holds is None
    assert "no such parameters" in verdict.finding.reason


def test_the_shares_of_trials_are_those_of_whole_patches(monkeypatch, folder):
    monkeypatch.setattr(textured_images, "accuracies", lambda *_: np.zeros(3))
    scene = Scene(0, 1.0, 0, (0, 1), side=6, patch=1, texture="noise", data=folder)
    trials = textured_images.train_all(scene, (0.1, 0.7, 1.0), (20,), (0,))
    own = datasets.load(folder).side ** 2
    assert trials.shares == (own / 36, own / round(own / 0.7), 1.0)
    assert f"alpha_* = {own / 36:.2g}" in textured_images.caption(trials)
