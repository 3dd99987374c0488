"""Train one network on one data set, original or shuffled; statistics over seeds.

A seed fixes the split into training and test images, the order of shuffled blocks, the initial
arrays and the mini-batches. Networks with the same seed share their data and mini-batches, so their
accuracies can be compared in pairs.
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
"""Confidence of the one-sided limits `Estimate.upper` and `Estimate.lower`."""


class Estimate(NamedTuple):
    """Mean over seeds, its standard error (NaN for one seed), and the number of seeds."""

    mean: float
    error: float
    seeds: int

    def __str__(self) -> str:
        if self.seeds < 2:
            return f"{self.mean:.4f} (one seed)"
        return f"{self.mean:.4f} ± {self.error:.4f}"

    @property
    def errors(self) -> float:
        """Mean divided by its standard error; infinite if all seeds agree on a nonzero value."""
        if self.mean == 0 or np.isnan(self.error):
            return 0.0 if self.mean == 0 else nan
        return self.mean / self.error if self.error else float(np.copysign(np.inf, self.mean))

    @property
    def upper(self) -> float:
        """Upper confidence limit of the mean (one-sided, 95 %)."""
        from scipy.stats import t

        if self.seeds < 2:
            return float("inf")
        return self.mean + float(t.ppf(CONFIDENCE, self.seeds - 1)) * self.error

    @property
    def lower(self) -> float:
        """Lower confidence limit of the mean (one-sided, 95 %)."""
        return 2.0 * self.mean - self.upper


def estimate(values: ArrayLike) -> Estimate:
    """Mean and standard error over seeds.

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
    """A network with its data and training settings.

    `shuffle` is the side of the permuted blocks in pixels, or 0 for original images. The network is
    stored at the steps in `records`, which ascend. `samples` and `tests` are numbers of training
    and of test images, 0 for the default.
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
        """Name of the trial in file names: network, shuffle and seed."""
        network, kind = self.network, self.network.name
        if isinstance(network, Transformer):
            kind = f"{network.attention}-patch-{network.patch}-spread-{network.spread:g}"
        return f"{kind}-shuffle-{self.shuffle}-seed-{self.seed}"


@dataclass(frozen=True)
class Trained:
    """A network along its training.

    `accuracy`, shape (records,), is the accuracy on test images. Block k of a shuffled image is
    block ``order[k]`` of the original; `order` is empty for original images. `variance`, shape
    (side, side), is the variance of each pixel over the standardized training images.
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
        """Gram matrix of the positions at a record, shape (D, D)."""
        positions = np.asarray(self.run.thetas["position"][record], np.float64)
        return positions @ positions.T

    def scores(self, record: int = -1) -> FloatArray:
        """Positional attention's scores A / sqrt(d) at a record, shape (layers * heads, D, D)."""
        network, theta = self.trial.network, self.run.theta(record)
        assert isinstance(network, Transformer)
        heads = [
            np.asarray(network.scores(theta, layer, theta["position"][None])[0], np.float64)
            for layer in range(network.layers)
        ]
        return np.concatenate(heads)

    def near(self, as_shuffled: bool = False) -> NDArray[np.bool_]:
        """Mask, shape (D, D), of the pairs of neighbouring patches.

        With `as_shuffled`, patches are neighbours if they are adjacent in the shuffled training
        images; otherwise, if they are adjacent in the original images.
        """
        places = self.places(as_shuffled)
        grid = isqrt(len(places))
        return neighbours(grid, grid)[np.ix_(places, places)]

    def places(self, as_shuffled: bool = False) -> NDArray[np.int64]:
        """Place of each patch in the original (or shuffled) image, counted by rows, shape (D,)."""
        network = self.trial.network
        assert isinstance(network, Transformer)
        if as_shuffled or not len(self.order):
            return np.arange(network.grid(self.side) ** 2)
        return patch_order(self.order, self.trial.shuffle // network.patch)

    def strata(self) -> NDArray[np.int64]:
        """Stratum of each patch by the variance of its pixels, shape (D,)."""
        network = self.trial.network
        assert isinstance(network, Transformer)
        grid = network.grid(self.side)
        parts = self.variance.reshape(grid, network.patch, grid, network.patch)
        return strata(parts.mean(axis=(1, 3)).ravel())

    def association(self, which: str, record: int = -1, as_shuffled: bool = False) -> Association:
        """Patch association at a record, tested by relabelling within `strata`; cached.

        `which` is ``"gram"`` or ``"scores"``. With `as_shuffled`, neighbours are those in the
        shuffled images.
        """
        key = which, record % len(self.run.steps), as_shuffled
        if key not in self._associations:
            matrices = self.gram(record) if which == "gram" else self.scores(record)
            near, seed = self.near(as_shuffled), self.trial.seed
            self._associations[key] = association(matrices, near, seed, within=self.strata())
        return self._associations[key]


def patch_order(order: NDArray[np.int64], across: int) -> NDArray[np.int64]:
    """Original place of every patch, if blocks with `across` patches on a side were permuted.

    Examples
    --------
    >>> patch_order(np.array([1, 0, 2, 3]), 2).reshape(4, 4)[0].tolist()
    [2, 3, 0, 1]
    """
    grid = isqrt(len(order)) * across
    places = np.arange(grid**2, dtype=np.float32).reshape(1, grid, grid, 1)
    return np.asarray(datasets.shuffled(places, order, across).ravel(), np.int64)


def check_shuffle(images: Images, network: Transformer, shuffle: int) -> None:
    """Raise InvalidRequest unless whole patches fill a block, and whole blocks fill the image."""
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
        refuse("shuffle", shuffle, f"does not fit patch={network.patch}", allowed, nearest)


def train_trial(
    images: Images,
    trial: Trial,
    folder: Path | None = None,
    progress: Callable[[int], Any] = lambda steps: None,
) -> Trained:
    """Train the network of a trial and measure its test accuracy at the records.

    A checkpoint with the trial's name is written into `folder`; if the file exists, training
    resumes from it. `progress` is called with the number of newly completed steps.
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
    """Combined p-value of independent tests, by Fisher's method.

    Examples
    --------
    >>> round(combined_p_value([0.5]), 6), round(combined_p_value([0.01, 0.02, 0.03]), 6)
    (0.5, 0.000512)
    """
    from scipy.stats import combine_pvalues

    return float(combine_pvalues(list(p_values), method="fisher").pvalue)


def holm(p_values: ArrayLike) -> FloatArray:
    """P-values of several tests after Holm's correction, in the shape of `p_values`.

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
