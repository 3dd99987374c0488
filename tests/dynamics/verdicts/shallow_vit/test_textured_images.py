"""Section 4.2 of Li et al. on small images: figure and claims."""

from dataclasses import replace

import numpy as np
import pytest
from small_images import write_bars

import dynamics
from dynamics.images import datasets
from dynamics.validation import InvalidRequest
from dynamics.verdicts.draw import draw
from dynamics.verdicts.shallow_vit import textured_images
from dynamics.verdicts.shallow_vit.textured_images import SHARES, Scene, Trials

SYSTEM = dynamics.load_system("shallow_vit")
CLAIMS = ("Figure 6a", "Figure 6b", "Figure 6c", "Figure 6c, initial model")
SMALL = {
    "texture": "noise", "side": 6, "patch": 1, "pair": (0, 1), "shares": (0.5, 1.0),
    "samples": (20, 40), "seeds": 2, "tests": 30, "steps": 3,
}  # fmt: skip


@pytest.fixture(scope="module")
def folder(tmp_path_factory):
    return write_bars(tmp_path_factory.mktemp("bars"), train=400, test=200)


def test_the_figure_and_its_table(folder):
    drawing = draw(SYSTEM, "textures", options=SMALL | {"objects": folder})
    assert [row.get("spurious") for row in drawing.table] == [None] * 4 + ["90/10"] * 2
    values = np.array(drawing.data["accuracy"])
    assert values.shape == (2, 2, 2)
    curves = [np.array(one.lines[0].get_ydata(), float) for one in drawing.axes[2].containers]
    np.testing.assert_allclose(curves, 100 * values.mean(axis=2))
    with pytest.raises(InvalidRequest, match="pair='0,7' are not two classes"):
        draw(SYSTEM, "textures", options=SMALL | {"objects": folder, "pair": (0, 7)})


def test_a_spurious_background_is_of_nine_in_ten(folder):
    images = textured_images.of_pair(datasets.load(folder), (1, 0))
    scene = Scene(300, 1.0, 0, (1, 0), side=6, patch=1, tests=150, texture="noise")
    train, test = textured_images.scene_data(scene, images)
    assert 0.84 < (_textured(train.canvases) == (train.labels == 1)).mean() < 0.96
    assert 0.35 < test.unusual.mean() < 0.65
    whole, _ = textured_images.scene_data(replace(scene, pair=()), images)
    assert _textured(whole.canvases).all()


def _textured(canvases):
    """Canvases whose background is not of one colour."""
    outside = np.where(canvases.relevant, np.nan, canvases.pixels.reshape(300, -1))
    return np.nanstd(outside, axis=1) > 0


def made_up(groups, seeds, along=0.0, gain=0.2, shares=SHARES):
    """Accuracies that rise with the share, and along the second axis."""
    random = np.random.default_rng(0)
    share, second = np.linspace(0, gain, len(shares)), np.linspace(0, along, groups)
    noise = 0.01 * random.normal(size=(len(shares), groups, seeds))
    values = 0.4 + share[:, None, None] + second[None, :, None] + noise
    return Trials(shares, tuple(range(groups)), values)


@pytest.mark.parametrize(
    ("changes", "lost"),
    [
        ({}, set()),
        ({"gain": 0.0}, {"Figure 6a", "Figure 6b"}),
        ({"growth": 0.0}, {"Figure 6a", "Figure 6b"}),
        ({"spurious": 0.0}, {"Figure 6c"}),
        ({"model": 0.0}, {"Figure 6c, initial model"}),
    ],
)
def test_claims_follow_what_is_measured(changes, lost, monkeypatch):
    given = {"gain": 0.2, "growth": 0.3, "spurious": 0.2, "model": 0.2} | changes

    def classes(samples, seeds, shares=SHARES):
        trials = made_up(len(samples), len(seeds), given["growth"], given["gain"], shares)
        return replace(trials, samples=tuple(samples))

    monkeypatch.setattr(textured_images, "classes", classes)
    for name, groups, change in (("spurious", 3, (0, given["spurious"])),
                                 ("from_other_classes", 2, (given["model"],))):  # fmt: skip
        monkeypatch.setattr(
            textured_images, name, lambda seeds, *_, g=groups, c=change: made_up(g, len(seeds), *c)
        )
    found = dynamics.verify(SYSTEM, claims=CLAIMS)
    assert {v.claim.source for v in found if v.holds is not True} == lost
    assert all(v.holds is None for v in found if v.claim.source in lost)


def test_a_difference_of_few_trials_may_be_chance(monkeypatch):
    def classes(samples, seeds, shares=SHARES):
        values = np.zeros((len(shares), len(samples), 5))
        values[0, -1, :2] = values[-1, -1, :3] = 0.9
        return Trials(shares, tuple(samples), values)

    monkeypatch.setattr(textured_images, "classes", classes)
    (verdict,) = dynamics.verify(SYSTEM, claims=["Figure 6b"])
    assert verdict.word.startswith("not decidable with so few trials")


def test_the_shares_of_trials_are_those_of_whole_patches(monkeypatch, folder):
    monkeypatch.setattr(textured_images, "_once", lambda *_: np.zeros(1))
    scene = Scene(0, 1.0, 0, side=6, patch=1, texture="noise", data=folder)
    trials = textured_images.classes((20,), (0,), (0.1, 0.7, 1.0), scene)
    own = datasets.load(folder).side ** 2
    assert trials.shares == (own / 36, own / round(own / 0.7), 1.0)


def test_an_initial_model_is_all_but_the_last_layer_of_one_of_the_other_classes(monkeypatch):
    scene = Scene(20, 1.0, 0, (3, 8), tests=10, steps=3, texture="noise", before=30)
    seen = []
    trained = textured_images.training.train

    def train(task, start, data, *rest, **options):
        seen.append((start, data))
        return trained(task, start, data, *rest, **options)

    monkeypatch.setattr(textured_images.training, "train", train)
    textured_images.accuracies(scene)
    (_, images), (start, _) = seen
    assert len(images[0]) == 30
    assert not set(np.unique(images[1])) & {3, 8}
    before = textured_images.before(scene)
    for name, part in start.items():
        assert np.array_equal(part, before[name]) == ("head" not in name)
