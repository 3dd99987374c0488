r"""Samples of the data laws: patches :math:`X_j = x_j w^\star + \xi_j`, noise orthogonal to w*.

- `SignalSets` is the law of Assumption 1. The values x_j of the signal set are the label; all other
  values are +1, -1, 0 with probability q/2, q/2, 1 - q. In a mixed random set, the values are
  neither all +1 nor all -1.
- `Convolution` is the law of Figure 2. Patches are standard Gaussian, and the label is the sign of
  :math:`f^\star(X) = \sum_\ell \big(\sum_{i \in S_\ell} \langle w^\star, X_i\rangle\big)^3`.

The output F depends on a patch only through :math:`\langle v, X_j\rangle = x_j \langle v,
w^\star\rangle + \sigma |v_\perp|\, g_j`, where g_j is standard Gaussian and :math:`v_\perp` the
part of v orthogonal to w*. `Fresh` therefore stores only x_j and g_j. Labels, signal sets, values
and noise have separate random streams, so a larger sample begins with a smaller one of equal seed.
"""

from __future__ import annotations

from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.random import Generator
from numpy.typing import NDArray

from theory.papers.positional_attention.data_law import ANY, MIXED
from theory.symmetry import Partition

FloatArray = NDArray[np.float64]


@dataclass(frozen=True)
class SignalSets:
    """Samples of Assumption 1, with one signal set; all other sets are random.

    The sets of `partition` can have any sizes. A patch of a random set has a feature with
    probability `q`. `sigma` is the standard deviation of the noise per coordinate; `random_sets` is
    ``"any"`` or ``"mixed"`` (`data_law`).
    """

    partition: Partition
    q: float
    sigma: float
    random_sets: str = ANY

    def values(self, count: int, generator: Generator) -> tuple[FloatArray, FloatArray]:
        """Draw values x, shape (count, D), and labels y, shape (count,)."""
        return self.draw(count, generator)[:2]

    def draw(
        self, count: int, generator: Generator
    ) -> tuple[FloatArray, FloatArray, NDArray[np.int64]]:
        """Draw values, shape (count, D), and labels and indices of signal sets, shape (count,)."""
        labels, streams = self.partition.labels, generator.spawn(3)
        y = np.where(streams[0].random(count) < 0.5, -1.0, 1.0)
        signal = streams[1].integers(labels.max() + 1, size=count)
        chance = streams[2].random((count, labels.size))
        if self.random_sets == MIXED:
            x = np.empty_like(chance)
            for members in self.partition.sets:
                x[:, members] = self._mixed_set(chance[:, members])
        else:
            x = (chance < self.q / 2).astype(np.float64) - (chance >= 1 - self.q / 2)
        return np.where(labels == signal[:, None], y[:, None], x), y, signal

    def _mixed_set(self, chance: FloatArray) -> FloatArray:
        """Map uniform numbers to the values of a mixed random set, both of shape (count, set size).

        Patches are drawn in sequence. After patches of only one sign, the weight q/2 of this sign
        is multiplied by the probability that some later patch lacks it.
        """
        plain, x = self.q / 2, np.empty_like(chance)
        # `plus`: all patches so far are +1; `minus`: all patches so far are -1.
        plus, minus = np.ones((2, len(chance)), dtype=bool)
        for k in range(chance.shape[1]):
            left = plain ** (chance.shape[1] - k)
            completed = left / plain
            allowed = 1 - left * plus - left * minus
            up = plain * (1 - completed * plus) / allowed
            down = plain * (1 - completed * minus) / allowed
            x[:, k] = (chance[:, k] < up).astype(np.float64) - (chance[:, k] >= 1 - down)
            plus, minus = plus & (x[:, k] > 0), minus & (x[:, k] < 0)
        return x


@dataclass(frozen=True)
class Convolution:
    """Law of Figure 2: Gaussian patches; the label is the sign of a cubic convolution."""

    partition: Partition
    sigma: float = 1.0

    def values(self, count: int, generator: Generator) -> tuple[FloatArray, FloatArray]:
        """Draw values x, shape (count, D), and labels y, shape (count,)."""
        x = generator.standard_normal((count, self.partition.size))
        inside = np.stack([x[:, members].sum(axis=1) for members in self.partition.sets])
        return x, np.where((inside**3).sum(axis=0) > 0, 1.0, -1.0)


Law = SignalSets | Convolution


def assumption_1(parameters: Any, partition: Partition | None = None) -> SignalSets:
    """Law of Assumption 1 for given parameters; by default, sets are runs of C patches."""
    sets = partition or Partition.contiguous([parameters.C] * parameters.L)
    return SignalSets(sets, parameters.q, parameters.sigma, parameters.random_sets)


def samples(
    law: Law, depth: int, count: int, generator: Generator
) -> tuple[FloatArray, FloatArray]:
    """Draw `count` samples of a law in d = `depth` dimensions; w* is the first unit vector.

    Returns patches, shape (count, D, d), and labels, shape (count,).
    """
    for_values, for_noise = generator.spawn(2)
    x, y = law.values(count, for_values)
    noise = law.sigma * for_noise.standard_normal((*x.shape, depth))
    noise[:, :, 0] = x
    return noise, y


def unit_vector(depth: int, generator: Generator) -> FloatArray:
    """Random feature, uniform on the unit sphere in d = `depth` dimensions, shape (d,)."""
    direction = generator.standard_normal(depth)
    return np.asarray(direction / np.linalg.norm(direction))


@dataclass(frozen=True)
class Fresh:
    """Fresh test data; the arrays `values` and `noise` of shape (count, D) hold x_j and g_j."""

    values: FloatArray
    noise: FloatArray
    labels: FloatArray
    sigma: float

    def projections(self, along: float, across: float) -> FloatArray:
        """Projections on v with <v, w*> = `along` and orthogonal part of length `across`."""
        return along * self.values + self.sigma * across * self.noise

    def pairs(self) -> FloatArray:
        """Patches as vectors (x_j, sigma g_j), shape (count, D, 2); w* is the first unit vector."""
        return np.stack([self.values, self.sigma * self.noise], axis=2)


def fresh(law: Law, count: int, generator: Generator) -> Fresh:
    """Draw fresh test data, with `count` samples of a law."""
    for_values, for_noise = generator.spawn(2)
    x, y = law.values(count, for_values)
    return Fresh(x, for_noise.standard_normal(x.shape), y, law.sigma)
