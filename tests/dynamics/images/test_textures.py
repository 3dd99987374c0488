"""Objects on backgrounds: where they are, what is dropped, what textures are."""

import sys

import numpy as np
import pytest

from dynamics.images import textures
from dynamics.images.networks import patches_of
from dynamics.validation import InvalidRequest


def made(textured=True, count=30, side=10, patch=2):
    random = np.random.default_rng(0)
    objects = random.normal(size=(count, 8, 8, 1)).astype(np.float32)
    background = textures.texture("noise", random)
    flags = np.full(count, textured)
    return objects, textures.integrate(objects, background, side, patch, flags, random)


def test_the_relevant_patches_are_those_of_the_object():
    objects, (pixels, relevant) = made()
    assert relevant.sum(axis=1).tolist() == [16] * 30
    for image, own, mask in zip(pixels, objects, relevant, strict=True):
        inside = patches_of(image[None], 2)[0][mask]
        np.testing.assert_array_equal(inside, patches_of(own[None], 2)[0])
    assert len(np.unique(relevant, axis=0)) == 4


def test_textures_are_those_of_the_wheel_and_standardized():
    pytest.importorskip("skimage")
    every = [textures.texture(name, np.random.default_rng(0)) for name in textures.TEXTURES]
    for field in every:
        assert field.shape == (128, 128)
        assert abs(field.mean()) < 1e-9
        assert field.std() == pytest.approx(1)
    neighbours = [float((field[1:] * field[:-1]).mean()) for field in every]
    assert abs(neighbours[-1]) < 0.05  # noise is independent
    assert min(neighbours[:-1]) > 0.2


@pytest.mark.parametrize(
    ("share", "left"), [(0.64, 25), (0.76, 21), (0.89, 18), (1.0, 16), (0.1, 25)]
)
def test_the_share_of_relevant_patches_is_as_requested(share, left):
    _, (_, relevant) = made()
    present = textures.sparsified(relevant, share, np.random.default_rng(1))
    assert present.sum(axis=1).tolist() == [left] * 30
    assert (present & relevant).sum(axis=1).tolist() == [16] * 30


def test_what_cannot_be_is_refused(monkeypatch):
    with pytest.raises(InvalidRequest, match=r"texture='grasss' is unknown.*nearest: grass"):
        textures.texture("grasss", np.random.default_rng(0))
    for side in (6, 11):
        with pytest.raises(InvalidRequest, match=f"side={side} cannot hold objects of 8 pixels"):
            made(side=side)
    monkeypatch.setitem(sys.modules, "skimage.data", None)
    with pytest.raises(InvalidRequest, match="scikit-image, which is not installed"):
        textures.texture("brick", np.random.default_rng(0))
