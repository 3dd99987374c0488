"""One network on one data set with original or shuffled pixels, and statistics over seeds.

A seed decides the split into training and test images, the order of the shuffled blocks, the start
and the mini-batches; networks of one seed share all of these, so that their differences are paired.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field
from math import isqrt, nan
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynamics.images import datasets, training
from dynamics.images.association import Association, association, neighbours, strata
from dynamics.images.datasets import Images
from dynamics.images.networks import Convolution, Transformer
from dynamics.images.training import Adam, Classification, Run
from dynamics.problem import FloatArray
from dynamics.results.storage import versions
from dynamics.training.checkpoint import Checkpoint
from dynamics.validation import refuse

CONFIDENCE = 0.95
"""One-sided confidence of the limits of means."""


class Estimate(NamedTuple):
    """A mean over seeds, its standard error (NaN for one seed), and how many seeds there are."""

    mean: float
    error: float
    seeds: int

    def __str__(self) -> str:
        if self.seeds < 2:
            return f"{self.mean:.4f} (one seed)"
        return f"{self.mean:.4f} ± {self.error:.4f}"

    @property
    def errors(self) -> float:
        """The mean in standard errors; infinite where all seeds agree on another number than 0."""
        if self.mean == 0 or np.isnan(self.error):
            return 0.0 if self.mean == 0 else nan
        return self.mean / self.error if self.error else float(np.copysign(np.inf, self.mean))

    @property
    def upper(self) -> float:
        """The number that the mean of all seeds is below, with a confidence of 95 %."""
        from scipy.stats import t

        if self.seeds < 2:
            return float("inf")
        return self.mean + float(t.ppf(CONFIDENCE, self.seeds - 1)) * self.error

    @property
    def lower(self) -> float:
        """The number that it is above, with the same confidence."""
        return 2.0 * self.mean - self.upper


def estimate(values: ArrayLike) -> Estimate:
    """Mean and standard error over seeds.

    `values`, shape (seeds,).

    Examples
    --------
    >>> print(estimate([0.9, 0.92, 0.94]))
    0.9200 ± 0.0115
    """
    array = np.asarray(values, np.float64)
    error = float(array.std(ddof=1) / len(array) ** 0.5) if len(array) > 1 else nan
    return Estimate(float(array.mean()), error, len(array))


@dataclass(frozen=True)
class Trial:
    """A network and how it is trained.

    `shuffle`: side of the blocks that are moved; 0 for original images; `records`: ascending steps
    at which the network is looked at; `samples`, `tests`: of `datasets.split`.
    """

    network: Transformer | Convolution
    seed: int = 0
    shuffle: int = 0
    records: tuple[int, ...] = (0, 500)
    samples: int = 0
    tests: int = 0
    adam: Adam = field(default_factory=Adam)

    @property
    def name(self) -> str:
        """A short name: of a file."""
        network, kind = self.network, self.network.name
        if isinstance(network, Transformer):
            kind = f"{network.attention}-patch-{network.patch}-spread-{network.spread:g}"
        return f"{kind}-shuffle-{self.shuffle}-seed-{self.seed}"


@dataclass(frozen=True)
class Trained:
    """A network along its training.

    `accuracy`, shape (records,): on test images; `order`, shape (blocks,): block k of a shuffled
    image is block ``order[k]`` of the original; empty without; `side`: of an image in pixels;
    `variance`, shape (side, side): of each pixel over the training images, as the network sees
    them.
    """

    trial: Trial
    run: Run
    accuracy: FloatArray
    order: NDArray[np.int64]
    side: int
    variance: FloatArray
    _associations: dict[tuple[str, int, bool], Association] = field(
        default_factory=dict, init=False, repr=False, compare=False
    )

    def gram(self, record: int = -1) -> FloatArray:
        """The Gram matrix of the positions at a record, shape (D, D)."""
        positions = np.asarray(self.run.thetas["position"][record], np.float64)
        return positions @ positions.T

    def scores(self, record: int = -1) -> FloatArray:
        """Scores A of positional attention at a record, shape (layers * heads, D, D)."""
        network, theta = self.trial.network, self.run.theta(record)
        assert isinstance(network, Transformer)
        heads = [
            np.asarray(network.scores(theta, layer, theta["position"][None])[0], np.float64)
            for layer in range(network.layers)
        ]
        return np.concatenate(heads)

    def near(self, as_shuffled: bool = False) -> NDArray[np.bool_]:
        """Pairs of patches that are neighbours, shape (D, D).

        `as_shuffled`: in the shuffled images that the network trains on; else in the original ones.
        """
        places = self.places(as_shuffled)
        grid = isqrt(len(places))
        return neighbours(grid, grid)[np.ix_(places, places)]

    def places(self, as_shuffled: bool = False) -> NDArray[np.int64]:
        """Where each patch is, counted row by row, shape (D,); ``as_shuffled`` as of `near`."""
        network = self.trial.network
        assert isinstance(network, Transformer)
        if as_shuffled or not len(self.order):
            return np.arange(network.grid(self.side) ** 2)
        return patch_order(self.order, self.trial.shuffle // network.patch)

    def strata(self) -> NDArray[np.int64]:
        """Patches whose pixels have about equal variance, shape (D,)."""
        network = self.trial.network
        assert isinstance(network, Transformer)
        grid = network.grid(self.side)
        parts = self.variance.reshape(grid, network.patch, grid, network.patch)
        return strata(parts.mean(axis=(1, 3)).ravel())

    def association(self, which: str, record: int = -1, as_shuffled: bool = False) -> Association:
        """Patch association at a record, patches relabelled within `strata`; computed once.

        `which`: ``"gram"`` or ``"scores"``; `as_shuffled`: as of `near`.
        """
        key = which, record % len(self.run.steps), as_shuffled
        if key not in self._associations:
            matrices = self.gram(record) if which == "gram" else self.scores(record)
            near, seed = self.near(as_shuffled), self.trial.seed
            self._associations[key] = association(matrices, near, seed, within=self.strata())
        return self._associations[key]


def patch_order(order: NDArray[np.int64], across: int) -> NDArray[np.int64]:
    """The original position of every patch, where blocks of several patches were moved.

    `order`, shape (blocks,): of the blocks; `across`: patches along the side of a block.

    Examples
    --------
    >>> patch_order(np.array([1, 0, 2, 3]), 2).reshape(4, 4)[0].tolist()
    [2, 3, 0, 1]
    """
    grid = isqrt(len(order)) * across
    places = np.arange(grid**2, dtype=np.float32).reshape(1, grid, grid, 1)
    return np.asarray(datasets.shuffled(places, order, across).ravel(), np.int64)


def check_shuffle(images: Images, network: Transformer, shuffle: int) -> None:
    """Refuse a grid size that does not divide an image, or does not hold whole patches."""
    network.grid(images.side)
    sizes = [n for n in range(network.patch, images.side) if images.side % n == 0]
    sizes = [n for n in sizes if n % network.patch == 0]
    if not sizes:
        parts = [n for n in range(1, images.side) if images.side % n == 0]
        problem = f"makes one patch of {images.side} x {images.side} pixels: nothing to shuffle"
        refuse("patch", network.patch, problem, f"one of {', '.join(map(str, parts))}", parts[-1])
    if shuffle not in sizes:
        allowed = f"one of {', '.join(map(str, sizes))}: whole patches, and less than an image"
        nearest = min(sizes, key=lambda n: abs(n - shuffle))
        refuse("shuffle", shuffle, f"cannot be at patch={network.patch}", allowed, nearest)


def train_trial(
    images: Images,
    trial: Trial,
    folder: Path | None = None,
    progress: Callable[[int], Any] = lambda steps: None,
) -> Trained:
    """Train a network and look at it along the way.

    `folder`: of its checkpoint, under the name of the trial; a run that has one there goes on;
    `progress`: called with the number of steps that were made.
    """
    split = datasets.split(images, trial.samples, trial.tests, trial.seed)
    order = np.empty(0, np.int64)
    pixels, tests = split.pixels, split.test_pixels
    if trial.shuffle:
        blocks = (images.side // trial.shuffle) ** 2
        order = np.random.default_rng([trial.seed, 3]).permutation(blocks)
        pixels, tests = (datasets.shuffled(part, order, trial.shuffle) for part in (pixels, tests))
    start = trial.network.start(images.side, images.channels, images.classes, trial.seed)
    checkpoint = Checkpoint(folder / f"{trial.name}.checkpoint", keep=True) if folder else None
    request = {
        "data": f"{images.name} ({images.digest()})",
        "network": asdict(trial.network) | {"kind": trial.network.name},
        "shuffle": trial.shuffle, "samples": len(pixels), "tests": len(tests),
        "versions": versions(),
    }  # fmt: skip
    run = training.train(
        Classification(trial.network), start, (pixels, split.labels), trial.records, trial.seed,
        trial.adam, checkpoint, request, progress,
    )  # fmt: skip
    accuracy = [
        training.accuracy(trial.network, run.theta(record), (tests, split.test_labels))
        for record in range(len(run.steps))
    ]
    variance = pixels.var(axis=0).mean(axis=-1)
    return Trained(trial, run, np.array(accuracy), order, images.side, variance)


def combined_p_value(p_values: Sequence[float]) -> float:
    """The p-value of several independent ones together (Fisher).

    Examples
    --------
    >>> round(combined_p_value([0.5]), 6), round(combined_p_value([0.01, 0.02, 0.03]), 6)
    (0.5, 0.000512)
    """
    from scipy.stats import combine_pvalues

    return float(combine_pvalues(list(p_values), method="fisher").pvalue)


def holm(p_values: ArrayLike) -> FloatArray:
    """P-values of several tests by Holm's correction, shape as given.

    Examples
    --------
    >>> holm([0.01, 0.04, 0.03]).round(6).tolist()
    [0.03, 0.06, 0.06]
    """
    values = np.asarray(p_values, np.float64)
    order = np.argsort(values, axis=None)
    adjusted = np.empty(values.size)
    factors = np.arange(values.size, 0, -1)
    adjusted[order] = np.minimum(1.0, np.maximum.accumulate(factors * values.ravel()[order]))
    return adjusted.reshape(values.shape)
