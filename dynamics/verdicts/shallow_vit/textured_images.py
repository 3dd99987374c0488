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

import itertools
from collections.abc import Callable, Sequence
from concurrent.futures import ThreadPoolExecutor
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from pathlib import Path
from typing import Any

import numpy as np

from dynamics.images import datasets, textures, training
from dynamics.images.datasets import Images, Part
from dynamics.images.networks import Transformer
from dynamics.images.protocol import estimate
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
from dynamics.verdicts.shallow_vit.texture_pictures import SUCCESS
from dynamics.verdicts.wording import counted

SHARES = (0.64, 0.76, 0.89, 1.0)
"""alpha_*: with 9, 5, 2 and 0 of the 9 background patches."""
ENDS = (SHARES[0], SHARES[-1])
SAMPLES = (200, 400, 800, 1300)
FEWER, MORE = 80, 1000
"""Images of the other classes on which the two initial models are trained."""
PAIR, PAIR_SAMPLES, PAIR_TESTS = (3, 8), 200, 100
USUAL = 0.9
"""Share of the training images of a class that have its usual background."""
TESTS, STEPS, SEEDS = 400, 800, 5
GROUPS = ("all", "usual background", "unusual background")


@dataclass(frozen=True)
class Scene:
    """Data and settings of one network.

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
    before : int
        Images of the other classes on which the network was trained before; 0 for a random start.
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
        """Of its file."""
        kind = "spurious" if self.pair else "classes"
        kind += f"-after-{self.before}" if self.before else ""
        return f"{kind}-N-{self.samples}-alpha-{self.share:g}-seed-{self.seed}"


def of_pair(images: Images, pair: Sequence[int], others: bool = False) -> Images:
    """The images of two classes, labelled 0 and 1; or those of all others, by their classes.

    Parameters
    ----------
    images : Images
    pair : sequence of int
    others : bool
    """
    if len(set(pair)) != 2 or not set(pair) <= {*range(images.classes)}:
        allowed = f"two of the classes 0 to {images.classes - 1}"
        refuse("pair", ",".join(map(str, pair)), "are not two classes", allowed, "0,1")

    def of_classes(part: Part | None) -> Part | None:
        if part is None:
            return None
        rows = np.isin(part.labels, pair) != others
        labels = part.labels[rows] if others else part.labels[rows] == pair[1]
        return Part(part.pixels[rows], labels.astype(np.int32))

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
    scene: Scene, folder: Path | None = None, progress: Callable[[int], Any] = lambda steps: None
) -> tuple[float, ...]:
    """Test accuracy of a trained network: on all images, and by how usual the background is.

    Parameters
    ----------
    scene : Scene
    folder : Path, optional
        Of the checkpoint of the run.
    progress : function, optional
        Called with the number of steps that were made.
    """
    every = datasets.load(scene.data)
    images = of_pair(every, scene.pair) if scene.pair else every
    data, network = scene_data(scene, images), Transformer(patch=scene.patch, spread=1.0)
    start = network.start(scene.side, images.channels, images.classes, scene.seed)
    if scene.before:
        start |= {name: part for name, part in before(scene).items() if "head" not in name}
    checkpoint = Checkpoint(folder / f"{scene.name}.checkpoint", keep=True) if folder else None
    request = asdict(scene) | {"digest": images.digest(), "network": asdict(network)}
    run = training.train(
        Classification(network), start, (data.train.pixels, data.labels, data.present),
        (scene.steps,), scene.seed, checkpoint=checkpoint, request=request, progress=progress,
    )  # fmt: skip
    tests = data.test.pixels, data.test_labels, data.test_present
    right = training.correct(network, run.theta(), tests)
    parts = [right, right[~data.unusual], right[data.unusual]] if scene.pair else [right]
    return tuple(float(part.mean()) for part in parts)


def before(scene: Scene) -> dict[str, Any]:
    """The network that images of the other classes have trained, whole ones on the texture."""
    first = replace(scene, samples=scene.before, share=1e-9, pair=(), before=0, tests=1, seed=0)
    return _before(first, scene.pair)


@lru_cache(maxsize=4)
def _before(scene: Scene, pair: tuple[int, ...]) -> dict[str, Any]:
    images = of_pair(datasets.load(scene.data), pair, others=True)
    data, network = scene_data(scene, images), Transformer(patch=scene.patch, spread=1.0)
    start = network.start(scene.side, images.channels, images.classes, scene.seed)
    own = data.train.pixels, data.labels, data.present
    run = training.train(Classification(network), start, own, (scene.steps,), scene.seed)
    return dict(run.theta())


@dataclass(frozen=True)
class Trials:
    """Accuracies over shares, what varies beside them, and seeds.

    Attributes
    ----------
    shares : tuple of float
        As whole patches make them.
    samples : tuple
        Numbers of images, of training or of training before.
    values : float array, shape (shares, samples or groups of test images, seeds)
    """

    shares: tuple[float, ...]
    samples: tuple[int, ...]
    values: FloatArray

    def successes(self) -> FloatArray:
        """Share of the trials that succeed, shape (shares, samples)."""
        return np.asarray((self.values >= SUCCESS).mean(axis=2))

    def needed(self) -> list[float]:
        """The least N at which half of the trials succeed, for each share; infinite for none."""
        return [
            next((n for n, share in zip(self.samples, row, strict=True) if share >= 0.5), np.inf)
            for row in self.successes().tolist()
        ]


def train_all(scenes: Sequence[Scene], folder: Path | None = None) -> list[tuple[float, ...]]:
    """The accuracies of scenes, two networks at a time.

    Parameters
    ----------
    scenes : sequence of Scene
    folder : Path, optional
        Of the checkpoints of the runs.
    """
    with (
        bar("objects on textures", sum(scene.steps for scene in scenes)) as progress,
        ThreadPoolExecutor(2) as pool,
    ):
        if folder is not None:  # interruptions reach the main thread alone
            return [accuracies(scene, folder, progress.update) for scene in scenes]
        return list(pool.map(_once, scenes))


@lru_cache(maxsize=512)
def _once(scene: Scene) -> tuple[float, ...]:
    """The accuracies of a scene that claims share."""
    return accuracies(scene)


def _grid(scene: Scene, changes: Sequence[Sequence[dict[str, Any]]], folder: Path | None) -> Any:
    """Accuracies at all combinations of changes, shape of the combinations and the groups."""
    scenes = [
        replace(scene, **{k: v for change in every for k, v in change.items()})
        for every in itertools.product(*changes)
    ]
    found = np.array(train_all(scenes, folder))
    return found.reshape(*map(len, changes), -1)


def _each(name: str, values: Sequence[Any]) -> list[dict[str, Any]]:
    return [{name: value} for value in values]


def classes(
    samples: Sequence[int], seeds: Sequence[int], shares: Sequence[float] = SHARES,
    scene: Scene = Scene(0, 1.0, 0), folder: Path | None = None,
) -> Trials:  # fmt: skip
    """All classes on the texture, for every share, number of samples and seed.

    Parameters
    ----------
    samples, seeds, shares : sequences
    scene : Scene
        What all have in common.
    folder : Path, optional
        Of the checkpoints of the runs.
    """
    changes = _each("share", shares), _each("samples", samples), _each("seed", seeds)
    values = _grid(replace(scene, pair=()), changes, folder)[..., 0]
    return Trials(taken_shares(scene, shares), tuple(samples), values)


def spurious(
    seeds: Sequence[int], shares: Sequence[float] = SHARES, scene: Scene = Scene(0, 1.0, 0, PAIR),
    folder: Path | None = None,
) -> Trials:  # fmt: skip
    """Two classes with a spurious background, on the `GROUPS` of test images.

    Parameters
    ----------
    seeds, shares, scene, folder
        As of `classes`.
    """
    most = len(of_pair(datasets.load(scene.data), scene.pair).train.labels)
    scene = replace(scene, samples=min(PAIR_SAMPLES, most - PAIR_TESTS), tests=PAIR_TESTS)
    values = _grid(scene, (_each("share", shares), _each("seed", seeds)), folder)
    return Trials(taken_shares(scene, shares), (), values.swapaxes(1, 2))


def from_other_classes(seeds: Sequence[int]) -> Trials:
    """Spurious background, from networks pretrained on few and many images of other classes."""
    scene = Scene(PAIR_SAMPLES, 1.0, 0, PAIR, tests=PAIR_TESTS)
    models = _each("before", (FEWER, MORE))
    values = _grid(scene, (_each("share", ENDS), models, _each("seed", seeds)), None)[..., 0]
    return Trials(taken_shares(scene, ENDS), (FEWER, MORE), values)


def taken_shares(scene: Scene, shares: Sequence[float]) -> tuple[float, ...]:
    """The alpha_* that whole patches make of those that are requested.

    Parameters
    ----------
    scene : Scene
    shares : sequence of float
    """
    sides = datasets.load(scene.data).side, scene.side
    own, count = ((side // scene.patch) ** 2 for side in sides)
    return tuple(own / textures.remaining(own, count, share) for share in shares)


def rows(whole: Trials, pair: Trials) -> list[dict[str, Any]]:
    """The table: a row for each alpha_* and N, and one for each alpha_* with the pair.

    Parameters
    ----------
    whole, pair : Trials
        Of all classes, and with a spurious background.
    """
    successes = whole.successes()
    table: list[dict[str, Any]] = [
        {"alpha_*": round(share, 2), "N": count, "accuracy": str(estimate(whole.values[a, n])),
         "successes": f"{successes[a, n]:.0%}"}
        for a, share in enumerate(whole.shares) for n, count in enumerate(whole.samples)
    ]  # fmt: skip
    for a, share in enumerate(pair.shares):
        entries = {g: str(estimate(pair.values[a, k])) for k, g in enumerate(GROUPS)}
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
        refuse("shares", [*shares], "are not shares", "numbers above 0 and up to 1", 1.0)
    seeds = options.pop("seeds")
    scene = Scene(0, 1.0, 0, data=options.pop("objects"), **options)
    pair = spurious(seeds, shares, scene, folder)
    whole = classes(samples, seeds, shares, scene, folder)
    example = replace(scene, pair=(), samples=samples[-1], seed=seeds[0])
    images = datasets.load(scene.data)
    examples = [scene_data(replace(example, share=share), images) for share in whole.shares]
    data = {
        "shares": list(whole.shares), "samples": list(samples), "needed": whole.needed(),
        "accuracy": whole.values.tolist(), "spurious": pair.values.swapaxes(1, 2).tolist(),
    }  # fmt: skip
    pictures = [(one.train, one.present) for one in examples]
    axes = texture_pictures.draw(scene, whole, pair, pictures)
    return Drawing(axes, data, _caption(scene, whole, pair), rows(whole, pair))


def _caption(scene: Scene, whole: Trials, pair: Trials) -> str:
    """The protocol of the figure and its numbers."""
    rise = estimate(pair.values[-1, 0] - pair.values[0, 0])
    last = whole.samples[-1]
    needed = ", ".join(
        f"{n:g} at {share:.2g}" if np.isfinite(n) else f"more than {last} at {share:.2g}"
        for share, n in zip(whole.shares, whole.needed(), strict=True)
    )
    return (
        f"Section 4.2 with objects of {scene.data} on {scene.texture}, {scene.side} x {scene.side} "
        f"pixels, patches of {scene.patch}; two layers of width 32, {scene.steps} steps of Adam, "
        f"{counted(whole.values.shape[-1], 'seed')}. Least N at which half of the trials "
        f"reach {SUCCESS:.1%}: "
        f"{needed} (alpha_*). Spurious background, classes {scene.pair[0]} and {scene.pair[1]}: "
        f"the accuracy rises by {rise} from alpha_* = {pair.shares[0]:.2g} to "
        f"{pair.shares[-1]:.2g}."
    )
