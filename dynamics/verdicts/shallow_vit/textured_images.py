r"""Section 4.2 on small images: objects on textures, with background patches dropped.

The paper puts CIFAR-10 images of 26 x 26 pixels into ImageNet plants of 32 x 32, so that
:math:`\alpha_\star \approx 0.66` of the tokens are relevant. Here a digit of 8 x 8 pixels is put
into a texture of 10 x 10, so 16 of 25 patches are relevant, or 0.64. A small vision transformer
(`dynamics.images.networks`) is trained from scratch on N images. Training and test images lose the
same share of background patches, at random.

With a spurious background there are two classes (birds and airplanes in the paper, two digits
here). The texture is the background of 90 % of the training images of one class and of 10 % of the
other; other images have a clean background. Half of the test images of either class have the
texture.
"""

from __future__ import annotations

import itertools
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from dynamics.images import datasets, textures, training
from dynamics.images.datasets import Images, Part
from dynamics.images.networks import Transformer
from dynamics.images.textures import Canvases
from dynamics.images.training import Classification
from dynamics.problem import FloatArray
from dynamics.training.checkpoint import Checkpoint
from dynamics.training.progress import bar
from dynamics.validation import refuse

SHARES = (0.64, 0.76, 0.89, 1.0)
"""Values of alpha_*; 9, 5, 2 and 0 of the 9 background patches stay, the others are removed."""
ENDS = (SHARES[0], SHARES[-1])
SAMPLES = (200, 400, 800, 1300)
FEWER, MORE = 80, 1000
"""Numbers of images of other classes on which two initial models are pretrained."""
PAIR, PAIR_SAMPLES, PAIR_TESTS = (3, 8), 200, 100
USUAL = 0.9
"""Share of a class's training images that have the class's usual background."""
TESTS, STEPS, SEEDS = 400, 800, 5
SUCCESS = 0.775
"""Minimum test accuracy of a successful trial (Section 4.2)."""
GROUPS = ("all", "usual background", "unusual background")


@dataclass(frozen=True)
class Scene:
    """Data and settings of one network.

    `samples`: number N; `share`: alpha_* after dropping; `pair`: the two classes with a spurious
    background, or empty for all classes on the texture; `data`, `texture`: names as in
    `datasets.load` and `textures.texture`; `side`, `patch`: sides of a canvas and a patch in
    pixels; `before`: number of images of other classes for pretraining, 0 for a random start.
    """

    samples: int
    share: float
    seed: int
    pair: tuple[int, ...] = ()
    data: str = "digits"
    texture: str = "grass"
    side: int = 10
    patch: int = 2
    tests: int = TESTS
    steps: int = STEPS
    before: int = 0

    @property
    def name(self) -> str:
        """Name of the scene's checkpoint file."""
        kind = "spurious" if self.pair else "classes"
        kind += f"-after-{self.before}" if self.before else ""
        return f"{kind}-N-{self.samples}-alpha-{self.share:g}-seed-{self.seed}"


def of_pair(images: Images, pair: Sequence[int], others: bool = False) -> Images:
    """Images of two classes, labelled 0 and 1, or with `others` the images of all other classes."""
    if len(set(pair)) != 2 or not set(pair) <= {*range(images.classes)}:
        allowed = f"two of the classes 0 to {images.classes - 1}"
        refuse("pair", ",".join(map(str, pair)), "are not two classes", allowed, "0,1")

    def of_classes(part: Part) -> Part:
        rows = np.isin(part.labels, pair) != others
        labels = part.labels[rows] if others else part.labels[rows] == pair[1]
        return Part(part.pixels[rows], labels.astype(np.int32))

    test = None if images.test is None else of_classes(images.test)
    return replace(images, train=of_classes(images.train), test=test)


class Shown(NamedTuple):
    """Images of a scene: canvases, labels, kept patches, and whether the background is textured."""

    canvases: Canvases
    labels: Any
    present: Any
    textured: Any

    @property
    def inputs(self) -> tuple[Any, Any, Any]:
        """Pixels, labels and kept patches, the inputs of a network."""
        return self.canvases.pixels, self.labels, self.present

    @property
    def unusual(self) -> Any:
        """Mask of the images whose background is unusual for their class."""
        return self.textured != (self.labels == 1)


def scene_data(scene: Scene, images: Images) -> tuple[Shown, Shown]:
    """Training and test images of a scene; its seed determines split, places and textures."""
    split = datasets.split(images, scene.samples, scene.tests, scene.seed)
    random = np.random.default_rng([scene.seed, 4])
    background = textures.texture(scene.texture, random)

    def shown(pixels: Any, labels: Any, usual: float) -> Shown:
        chance = np.where(labels == 1, usual, 1 - usual) if scene.pair else np.ones(len(labels))
        textured = random.random(len(labels)) < chance
        made = textures.integrate(pixels, background, scene.side, scene.patch, textured, random)
        present = textures.sparsified(made.relevant, scene.share, random)
        return Shown(made, labels, present, textured)

    train = shown(split.pixels, split.labels, USUAL)
    return train, shown(split.test_pixels, split.test_labels, 0.5)


def accuracies(
    scene: Scene, folder: Path | None = None, progress: Callable[[int], Any] = lambda steps: None
) -> tuple[float, ...]:
    """Test accuracies of a trained network, for each group of test images in `GROUPS`."""
    every = datasets.load(scene.data)
    images = of_pair(every, scene.pair) if scene.pair else every
    start = {}
    if scene.before:
        start = {name: part for name, part in before(scene).items() if "head" not in name}
    checkpoint = Checkpoint(folder / f"{scene.name}.checkpoint", keep=True) if folder else None
    network, theta, test = _trained(scene, images, start, checkpoint=checkpoint, progress=progress)
    right = training.correct(network, theta, test.inputs)
    parts = [right, right[~test.unusual], right[test.unusual]] if scene.pair else [right]
    return tuple(float(part.mean()) for part in parts)


def _trained(
    scene: Scene, images: Images, known: dict[str, Any], **options: Any
) -> tuple[Transformer, dict[str, Any], Shown]:
    """Trained network, weights and test images; weights in `known` replace random ones."""
    (train, test), network = scene_data(scene, images), Transformer(patch=scene.patch, spread=1.0)
    start = network.start(scene.side, images.channels, images.classes, scene.seed) | known
    request = asdict(scene) | {"digest": images.digest(), "network": asdict(network)}
    task = Classification(network)
    run = training.train(
        task, start, train.inputs, (scene.steps,), scene.seed, request=request, **options
    )
    return network, dict(run.theta()), test


def before(scene: Scene) -> dict[str, Any]:
    """Weights pretrained on images of classes outside the pair, without dropped patches."""
    first = replace(scene, samples=scene.before, share=1e-9, pair=(), before=0, tests=1, seed=0)
    return _before(first, scene.pair)


@lru_cache(maxsize=4)
def _before(scene: Scene, pair: tuple[int, ...]) -> dict[str, Any]:
    return _trained(scene, of_pair(datasets.load(scene.data), pair, others=True), {})[1]


@dataclass(frozen=True)
class Trials:
    """Accuracies for several shares, seeds, and samples or groups of test images.

    `shares`: alpha_* realized by whole patches; `samples`: numbers of images for training or
    pretraining; `values`, shape (shares, samples or groups of test images, seeds): accuracies.
    """

    shares: tuple[float, ...]
    samples: tuple[int, ...]
    values: FloatArray

    def successes(self) -> FloatArray:
        """Share of seeds whose trial succeeds, for each alpha_* and N, shape (shares, samples)."""
        return np.asarray((self.values >= SUCCESS).mean(axis=2))

    def needed(self) -> list[float]:
        """Minimum N at which half of the trials succeed, for each share; infinite if none does."""
        half = self.successes() >= 0.5
        return [min(itertools.compress(self.samples, row), default=np.inf) for row in half]


def train_all(scenes: Sequence[Scene], folder: Path | None = None) -> list[tuple[float, ...]]:
    """Train the networks of scenes, two at a time, with checkpoints in `folder`."""
    with (
        bar("objects on textures", sum(scene.steps for scene in scenes)) as progress,
        ThreadPoolExecutor(2) as pool,
    ):
        if folder is not None:  # only the main thread can be interrupted
            return [accuracies(scene, folder, progress.update) for scene in scenes]
        return list(pool.map(_once, scenes))


@lru_cache(maxsize=512)
def _once(scene: Scene) -> tuple[float, ...]:
    """Accuracies of a scene, cached because claims share scenes."""
    return accuracies(scene)


def _grid(scene: Scene, folder: Path | None, **axes: Sequence[Any]) -> Any:
    """Accuracies on a grid, shape (*axes, test groups); `axes`: field of `Scene` -> values."""
    every = itertools.product(*axes.values())
    scenes = [replace(scene, **dict(zip(axes, each, strict=True))) for each in every]
    return np.array(train_all(scenes, folder)).reshape(*map(len, axes.values()), -1)


def classes(
    samples: Sequence[int], seeds: Sequence[int], shares: Sequence[float] = SHARES,
    scene: Scene = Scene(0, 1.0, 0), folder: Path | None = None,
) -> Trials:  # fmt: skip
    """Accuracies with all classes on the texture, for every share, N and seed."""
    values = _grid(replace(scene, pair=()), folder, share=shares, samples=samples, seed=seeds)
    return Trials(taken_shares(scene, shares), tuple(samples), values[..., 0])


def spurious(
    seeds: Sequence[int], shares: Sequence[float] = SHARES, scene: Scene = Scene(0, 1.0, 0, PAIR),
    folder: Path | None = None,
) -> Trials:  # fmt: skip
    """Accuracies of two classes with a spurious background, on the `GROUPS` of test images."""
    most = len(of_pair(datasets.load(scene.data), scene.pair).train.labels)
    scene = replace(scene, samples=min(PAIR_SAMPLES, most - PAIR_TESTS), tests=PAIR_TESTS)
    values = _grid(scene, folder, share=shares, seed=seeds)
    return Trials(taken_shares(scene, shares), (), values.swapaxes(1, 2))


def from_other_classes(seeds: Sequence[int]) -> Trials:
    """Accuracies with a spurious background, after pretraining on few and many other images."""
    scene, models = Scene(PAIR_SAMPLES, 1.0, 0, PAIR, tests=PAIR_TESTS), (FEWER, MORE)
    values = _grid(scene, None, share=ENDS, before=models, seed=seeds)[..., 0]
    return Trials(taken_shares(scene, ENDS), models, values)


def taken_shares(scene: Scene, shares: Sequence[float]) -> tuple[float, ...]:
    """The alpha_* that whole patches realize, one for each requested share."""
    sides = datasets.load(scene.data).side, scene.side
    own, count = ((side // scene.patch) ** 2 for side in sides)
    return tuple(own / textures.remaining(own, count, share) for share in shares)
