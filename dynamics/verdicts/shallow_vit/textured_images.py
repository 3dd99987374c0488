r"""Section 4.2 on small images: an object on a texture, with background patches dropped before.

The paper puts CIFAR-10 images of 26 x 26 pixels into ImageNet plants of 32 x 32, so that
:math:`\alpha_\star \approx 0.66` of the tokens are relevant. Here a digit of 8 x 8 pixels is put
into a texture of 10 x 10: 16 of 25 patches, 0.64. A small vision transformer
(`dynamics.images.networks`) is trained on N images, from scratch, with background patches dropped
at random before training, in training and test images alike. A trial succeeds at the paper's test
accuracy, 77.5 %.

Spurious background: of two classes, the paper's birds and airplanes, here two digits, one has the
texture in 90 % of its training images and the other in 10 %; all others have a clean background. In
the test images it is half of each.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any, ClassVar

import numpy as np

from dynamics.images import datasets, textures, training
from dynamics.images.datasets import Images, Part
from dynamics.images.networks import Transformer
from dynamics.images.protocol import Estimate, estimate
from dynamics.images.textures import Canvases
from dynamics.images.training import Classification
from dynamics.problem import FloatArray
from dynamics.system import System
from dynamics.training.checkpoint import Checkpoint
from dynamics.training.progress import bar
from dynamics.validation import refuse
from dynamics.verdicts.figure import Drawing, FigureRequest, with_flags
from dynamics.verdicts.images import ascending, request_on_images
from dynamics.verdicts.shallow_vit import texture_pictures
from dynamics.verdicts.wording import counted

SUCCESS = 0.775
"""Test accuracy of a success (Section 4.2)."""
SHARES = (0.64, 0.76, 0.89, 1.0)
"""alpha_*: with 9, 5, 2 and 0 of the 9 background patches."""
SAMPLES = (200, 400, 800, 1300)
PAIR, PAIR_SAMPLES, PAIR_TESTS = (3, 8), 200, 100
USUAL = 0.9
"""Share of the training images of a class that have its usual background."""
TESTS, STEPS, SEEDS = 400, 800, 5
GROUPS = ("all", "usual background", "unusual background")


@dataclass(frozen=True)
class Scene:
    """What one network is trained on.

    Attributes
    ----------
    samples : int
        N.
    share : float
        alpha_* after dropping.
    seed : int
    pair : tuple of int
        The two classes of a spurious background; empty for all classes, each on the texture.
    data, texture : str
        Of `datasets.load` and `textures.texture`.
    side, patch : int
        Of a canvas and a patch, in pixels.
    tests, steps : int
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

    @property
    def name(self) -> str:
        """Of its file."""
        kind = "spurious" if self.pair else "classes"
        return f"{kind}-N-{self.samples}-alpha-{self.share:g}-seed-{self.seed}"


def of_pair(images: Images, pair: Sequence[int]) -> Images:
    """The images of two classes, labelled 0 and 1.

    Parameters
    ----------
    images : Images
    pair : sequence of int
    """
    if len(set(pair)) != 2 or not set(pair) <= {*range(images.classes)}:
        allowed = f"two of the classes 0 to {images.classes - 1}"
        refuse("pair", ",".join(map(str, pair)), "are no two classes", allowed, "0,1")

    def of_classes(part: Part | None) -> Part | None:
        if part is None:
            return None
        rows = np.isin(part.labels, pair)
        return Part(part.pixels[rows], (part.labels[rows] == pair[1]).astype(np.int32))

    train = of_classes(images.train)
    assert train is not None
    return replace(images, train=train, test=of_classes(images.test))


@dataclass(frozen=True)
class SceneData:
    """Training and test canvases of a scene.

    Attributes
    ----------
    train, test : Canvases
    labels, test_labels : int arrays
    present, test_present : bool arrays, shape (N, D)
        Patches that are left.
    unusual : bool array, shape (tests,)
        Test images whose background is unusual for their class.
    """

    train: Canvases
    test: Canvases
    labels: Any
    test_labels: Any
    present: Any
    test_present: Any
    unusual: Any


def scene_data(scene: Scene, images: Images) -> SceneData:
    """The canvases of a scene; those of one seed share split, places and textures.

    Parameters
    ----------
    scene : Scene
    images : Images
        With the two classes of the scene, if it has a pair.
    """
    split = datasets.split(images, scene.samples, scene.tests, scene.seed)
    random = np.random.default_rng([scene.seed, 4])
    background = textures.texture(scene.texture, random)
    canvases: list[Canvases] = []
    present, backgrounds = [], []
    for pixels, labels, usual in (
        (split.pixels, split.labels, USUAL),
        (split.test_pixels, split.test_labels, 0.5),
    ):
        chance = np.where(labels == 1, usual, 1 - usual) if scene.pair else np.ones(len(labels))
        textured = random.random(len(labels)) < chance
        made = textures.integrate(pixels, background, scene.side, scene.patch, textured, random)
        canvases.append(made)
        backgrounds.append(textured)
        present.append(textures.sparsified(made.relevant, scene.share, random))
    unusual = backgrounds[1] != (split.test_labels == 1)
    return SceneData(
        canvases[0], canvases[1], split.labels, split.test_labels, present[0], present[1], unusual
    )


def accuracies(
    scene: Scene,
    images: Images,
    folder: Path | None = None,
    progress: Callable[[int], Any] = lambda steps: None,
) -> tuple[float, ...]:
    """Test accuracy of a trained network: on all images, and by how usual the background is.

    Parameters
    ----------
    scene : Scene
    images : Images
    folder : Path, optional
        Of the checkpoint of the run.
    progress : function, optional
        Called with the number of steps that were made.
    """
    data, network = scene_data(scene, images), Transformer(patch=scene.patch, spread=1.0)
    start = network.start(scene.side, images.channels, images.classes, scene.seed)
    checkpoint = Checkpoint(folder / f"{scene.name}.checkpoint", keep=True) if folder else None
    request = asdict(scene) | {"digest": images.digest(), "network": asdict(network)}
    run = training.train(
        Classification(network), start, (data.train.pixels, data.labels, data.present),
        (scene.steps,), scene.seed, checkpoint=checkpoint, request=request, progress=progress,
    )  # fmt: skip
    every = data.test.pixels, data.test_labels, data.test_present
    right = training.correct(network, run.theta(), every)
    parts = [right, right[~data.unusual], right[data.unusual]] if scene.pair else [right]
    return tuple(float(part.mean()) for part in parts)


@dataclass(frozen=True)
class Trials:
    """Accuracies over shares, samples and seeds.

    Attributes
    ----------
    scene : Scene
        What all have in common.
    shares, samples, seeds : tuple
        Shares as whole patches make them.
    classes : float array, shape (shares, samples, seeds)
        Accuracy on textures.
    spurious : float array, shape (shares, seeds, 3)
        Accuracy with a spurious background, on the `GROUPS` of test images.
    """

    scene: Scene
    shares: tuple[float, ...]
    samples: tuple[int, ...]
    seeds: tuple[int, ...]
    classes: FloatArray
    spurious: FloatArray
    success: ClassVar[float] = SUCCESS

    def rise(self, values: FloatArray) -> Estimate:
        """Accuracy at the largest share minus that at the least, in pairs of one seed."""
        return estimate(values[-1] - values[0])

    def successes(self) -> FloatArray:
        """Share of the trials that succeed, shape (shares, samples)."""
        return np.asarray((self.classes >= SUCCESS).mean(axis=2))

    def needed(self) -> list[float]:
        """The least N at which half of the trials succeed, for each share; infinite for none."""
        return [
            next((n for n, share in zip(self.samples, row, strict=True) if share >= 0.5), np.inf)
            for row in self.successes().tolist()
        ]


def train_all(
    scene: Scene, shares: tuple[float, ...], samples: tuple[int, ...], seeds: tuple[int, ...],
    folder: Path | None = None,
) -> Trials:  # fmt: skip
    """Train a network for every share, number of samples and seed, and for the pair.

    Parameters
    ----------
    scene : Scene
        With the pair of the spurious background.
    shares, samples, seeds : tuple
        Ascending.
    folder : Path, optional
        Of the checkpoints of the runs.
    """
    images = datasets.load(scene.data)
    pair = of_pair(images, scene.pair)
    whole = replace(scene, pair=())
    classes = np.empty((len(shares), len(samples), len(seeds)))
    spurious = np.empty((len(shares), len(seeds), len(GROUPS)))
    total = (classes.size + len(shares) * len(seeds)) * scene.steps
    with bar(f"objects on {scene.texture}", total) as progress:
        for s, seed in enumerate(seeds):
            for a, share in enumerate(shares):
                for n, count in enumerate(samples):
                    one = replace(whole, samples=count, share=share, seed=seed)
                    classes[a, n, s] = accuracies(one, images, folder, progress.update)[0]
                few = min(PAIR_SAMPLES, len(pair.train.labels) - PAIR_TESTS)
                two = replace(scene, samples=few, tests=PAIR_TESTS, share=share, seed=seed)
                spurious[a, s] = accuracies(two, pair, folder, progress.update)
    taken = tuple(taken_share(scene, images.side, share) for share in shares)
    return Trials(scene, taken, samples, seeds, classes, spurious)


def taken_share(scene: Scene, height: int, share: float) -> float:
    """The alpha_* that whole patches make of a requested one.

    Parameters
    ----------
    scene : Scene
    height : int
        Pixels along the side of an object.
    share : float
    """
    own, count = ((side // scene.patch) ** 2 for side in (height, scene.side))
    return own / textures.remaining(own, count, share)


@lru_cache(maxsize=2)
def train_once(samples: tuple[int, ...], seeds: tuple[int, ...]) -> Trials:
    """The trials that claims share, on the digits.

    Parameters
    ----------
    samples, seeds : tuple
    """
    return train_all(Scene(0, 1.0, 0, PAIR), SHARES, samples, seeds)


def rows(trials: Trials) -> list[dict[str, Any]]:
    """The table: a row for each alpha_* and N, and one for each alpha_* with the pair.

    Parameters
    ----------
    trials : Trials
    """
    table: list[dict[str, Any]] = []
    for a, share in enumerate(trials.shares):
        for n, count in enumerate(trials.samples):
            table.append({
                "alpha_*": round(share, 2), "N": count,
                "accuracy": str(estimate(trials.classes[a, n])),
                "successes": f"{trials.successes()[a, n]:.0%}",
            })  # fmt: skip
    for a, share in enumerate(trials.shares):
        entries = {g: str(estimate(trials.spurious[a, :, k])) for k, g in enumerate(GROUPS)}
        table.append({"alpha_*": round(share, 2), "spurious": "90/10"} | entries)
    return table


@with_flags(
    {"resume": "go on after a break"},
    objects="digits, fashion, or a folder of MNIST, CIFAR or SVHN (default digits)",
)
def textures_figure(system: System, request: FigureRequest) -> Drawing:
    """Section 4.2 on small images. Options: those of `Scene`, ``shares``, ``samples``, ``seeds``.

    Parameters
    ----------
    system : System
    request : FigureRequest
    """
    quick = {
        "objects": "digits", "texture": "grass", "side": 10, "patch": 2, "pair": PAIR,
        "shares": SHARES, "samples": SAMPLES, "seeds": SEEDS, "tests": TESTS, "steps": STEPS,
    }  # fmt: skip
    thorough = {"seeds": 10}
    options, folder = request_on_images(system, request, "textures", quick, thorough, pair=0)
    shares, samples = (ascending(options.pop(name)) for name in ("shares", "samples"))
    if not all(0 < share <= 1 for share in shares):
        refuse("shares", [*shares], "are no shares", "numbers above 0 and up to 1", 1.0)
    seeds = options.pop("seeds")
    scene = Scene(0, 1.0, 0, data=options.pop("objects"), **options)
    trials = train_all(scene, shares, samples, seeds, folder)
    example = replace(scene, pair=(), samples=trials.samples[-1], seed=seeds[0])
    images = datasets.load(scene.data)
    examples = [scene_data(replace(example, share=share), images) for share in trials.shares]
    data = {
        "shares": list(trials.shares), "samples": list(trials.samples),
        "accuracy": trials.classes.tolist(), "spurious": trials.spurious.tolist(),
        "needed": trials.needed(),
    }  # fmt: skip
    axes = texture_pictures.draw(trials, [(one.train, one.present) for one in examples])
    return Drawing(axes, data, caption(trials), rows(trials))


def caption(trials: Trials) -> str:
    """How the figure was made and what it shows.

    Parameters
    ----------
    trials : Trials
    """
    scene, rise = trials.scene, trials.rise(trials.spurious[:, :, 0])
    needed = ", ".join(
        f"{n:g} at {share:.2g}"
        if np.isfinite(n)
        else f"more than {trials.samples[-1]} at {share:.2g}"
        for share, n in zip(trials.shares, trials.needed(), strict=True)
    )
    return (
        f"Section 4.2 with objects of {scene.data} on {scene.texture}, {scene.side} x {scene.side} "
        f"pixels, patches of {scene.patch}; two layers of width 32, {scene.steps} steps of Adam, "
        f"{counted(len(trials.seeds), 'seed')}. Least N at which half of the trials "
        f"reach {SUCCESS:.1%}: "
        f"{needed} (alpha_*). Spurious background, classes {scene.pair[0]} and {scene.pair[1]}: "
        f"the accuracy rises by {rise} from alpha_* = {trials.shares[0]:.2g} to "
        f"{trials.shares[-1]:.2g}."
    )
