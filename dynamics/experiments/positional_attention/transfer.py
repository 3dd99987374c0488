r"""Transfer: the value vector is fine-tuned on a new feature, under attention that is frozen.

Section 5 of the paper. The downstream law has the same sets and a new feature
:math:`\tilde w^\star`, uniform on the sphere. Only v is trained, from :math:`v^{(0)} \sim
\mathcal N(0, (0.016/D)^2 I)`, by gradient descent on the :math:`\tilde N` samples of (E~). While S
is frozen it pools every sample once and for all:

.. math:: \tilde X_i = D \sum_j S_{ij} X_j, \qquad
          F = \sum_i \sigma(\langle v, \tilde X_i\rangle).

Equal rows of S are one row that counts several times: L rows for attention to the own set
(*block*), one for *uniform* attention. There F has the sign of :math:`\langle v, \sum_j
X_j\rangle`: a linear rule, and its error is that of sign(Z) at least
(`theory.systems.positional_attention.linear_rules`), however many the samples.

Pooled noise is Gaussian with covariance :math:`\sigma^2 D^2 S S^T` between rows, so it is drawn as
such, with one vector a distinct row; test data need one number a patch
(`dynamics.systems.positional_attention.empirical.sampling`).

The start is symmetric and the activation nearly so: with one sample, v may grow along a patch that
carries -y, and the run then learns :math:`-\tilde w^\star` and errs on almost everything. The
median over seeds says what usually happens; the mean is that of a mixture.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from dynamics.problem import FloatArray
from dynamics.systems.positional_attention.empirical import sampling

if TYPE_CHECKING:
    from dynamics.systems.positional_attention.parameters import Parameters

ROOM = 1 << 18
"""Numbers of pooled samples that are trained at once: several seeds, within the cache."""
CACHED = 1 << 15
"""Numbers of pooled test data that are read at once."""
LARGEST_TEST = 2e7
"""Values of patches of the test data beyond which fewer samples are drawn."""
ROUNDING = 1e-13
"""A margin below this share of the largest term is a tie, which counts as an error."""


@dataclass(frozen=True)
class Tuning:
    """How v is fine-tuned.

    Attributes
    ----------
    start : float
        D times the spread of v at the start.
    loss : float
        Training loss at which a run stops.
    steps : int
        Steps after which it stops anyway.
    test_samples : int
        Fresh samples for the test error, the same for all seeds.
    """

    start: float = 0.016
    loss: float = 1e-3
    steps: int = 2000
    test_samples: int = 40_000


@dataclass(frozen=True)
class Pool:
    """What frozen attention makes of the patches.

    Attributes
    ----------
    rows : float array, shape (R, D)
        The distinct rows of D S.
    counts : float array, shape (R,)
        How many patches have each.
    """

    rows: FloatArray
    counts: FloatArray

    @classmethod
    def of(cls, weights: FloatArray) -> Pool:
        """Pool by S, shape (D, D)."""
        rows, counts = np.unique(weights, axis=0, return_counts=True)
        return cls(len(weights) * rows, counts.astype(np.float64))

    @property
    def root(self) -> FloatArray:
        """A square root of the covariance of pooled noise, rows rows^T; shape (R, R)."""
        return np.asarray(np.linalg.qr(self.rows.T)[1].T)

    def draw(
        self, law: sampling.SignalSets, feature: FloatArray, count: int, generator: Generator
    ) -> FloatArray:
        """Pooled samples times their label, y X~; shape (count, R, d)."""
        for_values, for_noise = generator.spawn(2)
        x, y = law.values(count, for_values)
        noise = for_noise.standard_normal((count, len(self.rows), feature.size))
        noise -= (noise @ feature)[..., None] * feature
        signal = y[:, None] * (x @ self.rows.T)
        return np.asarray(signal[..., None] * feature + law.sigma * (self.root @ noise))


def even_power(values: FloatArray, degree: int) -> FloatArray:
    """values^degree for an even degree, by products: ``**`` is ten times slower."""
    square = values * values
    power = square
    for _ in range(degree // 2 - 1):
        power = power * square
    return power


def loss_and_slope(
    value: FloatArray, pooled: FloatArray, counts: FloatArray, head: tuple[int, float]
) -> tuple[FloatArray, FloatArray]:
    """The loss of (E~) and its gradient by v, for many data sets at once.

    Parameters
    ----------
    value : float array, shape (sets, d)
        v of each.
    pooled : float array, shape (sets, samples, R, d)
        y X~.
    counts : float array, shape (R,)
    head : (p, nu)

    Returns
    -------
    float arrays, shapes (sets,) and (sets, d)
    """
    from scipy.special import expit

    degree, nu = head
    sets, samples, rows, depth = pooled.shape
    flat = pooled.reshape(sets, samples * rows, depth)
    seen = (flat @ value[:, :, None]).reshape(sets, samples, rows)
    power = even_power(seen, degree - 1)
    margin = (seen * (power + nu)) @ counts
    pull = expit(-margin)[..., None] * counts * (degree * power + nu) / samples
    slope = -(pull.reshape(sets, 1, samples * rows) @ flat)[:, 0]
    return np.logaddexp(0.0, -margin).mean(axis=1), slope


def descend(
    value: FloatArray,
    pooled: FloatArray,
    counts: FloatArray,
    head: tuple[int, float],
    rate: float,
    tuning: Tuning,
) -> FloatArray:
    """Gradient descent on v until the loss is reached; a rate is halved where the loss rises.

    Returns
    -------
    float array, shape (sets, d)
        v at the end.
    """
    final, going = value.copy(), np.arange(len(value))
    rates, last = np.full(len(value), rate), np.full(len(value), np.inf)
    for _ in range(tuning.steps):
        with np.errstate(over="ignore", invalid="ignore"):  # a run that diverges ends as NaN
            loss, slope = loss_and_slope(value, pooled, counts, head)
        rates = np.where(loss > last, rates / 2, rates)
        last = loss
        done = loss <= tuning.loss
        if done.any():
            final[going[done]] = value[done]
            kept = ~done
            going, value, pooled = going[kept], value[kept], pooled[kept]
            slope, rates, last = slope[kept], rates[kept], last[kept]
            if not going.size:
                break
        value = value - rates[:, None] * slope
    final[going] = value
    return final


@dataclass(frozen=True)
class Downstream:
    """A downstream task under frozen attention: what a number of samples makes of it.

    Attributes
    ----------
    parameters : Parameters
    pool : Pool
    tuning : Tuning
    law : SignalSets
    test : tuple of Fresh
        Of the pooled patches, times the label: projections of y X~ instead of X. In parts that the
        cache holds.
    seed : int
    """

    parameters: Parameters
    pool: Pool
    tuning: Tuning
    law: sampling.SignalSets
    test: tuple[sampling.Fresh, ...]
    seed: int

    @property
    def rate(self) -> float:
        """Learning rate: below the limit of stability where F is of order one, by a factor."""
        D, C = self.parameters.D, self.parameters.C
        if len(self.pool.rows) == 1:
            return float(0.3 / (D ** (2 / 3) * (C**2 + self.parameters.q * (D - C))))
        return 0.1 / D**2

    def errors(self, samples: int, seeds: int) -> FloatArray:
        """Test error after fine-tuning, for each seed; shape (seeds,).

        Every seed has a feature, a start and samples of its own; more samples begin with the fewer
        ones.
        """
        depth, head = self.parameters.d, (self.parameters.p, self.parameters.nu)
        together = max(1, ROOM // (samples * len(self.pool.rows) * depth))
        found = []
        for first in range(0, seeds, together):
            drawn = [self._drawn(k, samples) for k in range(first, min(seeds, first + together))]
            features, starts, pooled = (np.array(parts) for parts in zip(*drawn, strict=True))
            values = descend(starts, pooled, self.pool.counts, head, self.rate, self.tuning)
            pairs = zip(values, features, strict=True)
            found += [self.error(value, feature) for value, feature in pairs]
        return np.array(found)

    def _drawn(self, k: int, samples: int) -> tuple[FloatArray, FloatArray, FloatArray]:
        streams = np.random.default_rng([self.seed, k]).spawn(3)
        feature = sampling.unit_vector(self.parameters.d, streams[0])
        spread = self.tuning.start / self.parameters.D
        start = spread * streams[1].standard_normal(self.parameters.d)
        return feature, start, self.pool.draw(self.law, feature, samples, streams[2])

    def error(self, value: FloatArray, feature: FloatArray) -> float:
        """Share of the test data with yF <= 0; a v that is not finite errs on all."""
        along = float(value @ feature)
        across = float(np.linalg.norm(value - along * feature))
        head, wrong = (self.parameters.p, self.parameters.nu), 0
        for part in self.test:
            seen = part.projections(along, across)
            terms = seen * (even_power(seen, head[0] - 1) + head[1])
            rounding = ROUNDING * float(self.pool.counts.max()) * max(terms.max(), -terms.min())
            wrong += int(np.count_nonzero(~(terms @ self.pool.counts > rounding)))
        return wrong / sum(part.labels.size for part in self.test)


def downstream(
    parameters: Parameters, weights: FloatArray, seed: int = 0, tuning: Tuning | None = None
) -> Downstream:
    """The law of Assumption 1 with a new feature, under frozen attention.

    Parameters
    ----------
    parameters : Parameters
        The sets are consecutive patches.
    weights : float array, shape (D, D)
        S, every row with sum 1 (`attention` makes some).
    seed : int
        Of the test data, and of everything that is drawn for the seeds of `Downstream.errors`.
    tuning : Tuning, optional
    """
    pool, law, chosen = Pool.of(weights), sampling.assumption_1(parameters), tuning or Tuning()
    count = min(chosen.test_samples, int(LARGEST_TEST / parameters.D) + 1)
    drawn = sampling.fresh(law, count, np.random.default_rng([seed, 0, 1]))
    y = drawn.labels[:, None]
    values, noise = y * (drawn.values @ pool.rows.T), y * (drawn.noise @ pool.rows.T)
    width = max(1, CACHED // len(pool.rows))
    cuts = [slice(first, first + width) for first in range(0, count, width)]
    test = tuple(
        sampling.Fresh(values[cut], noise[cut], drawn.labels[cut], law.sigma) for cut in cuts
    )
    return Downstream(parameters, pool, chosen, law, test, seed)


def fine_tune(
    parameters: Parameters,
    weights: FloatArray,
    samples: int,
    seeds: int,
    seed: int = 0,
    tuning: Tuning | None = None,
) -> FloatArray:
    """Test error of every seed after fine-tuning v on so many samples; see `downstream`."""
    return downstream(parameters, weights, seed, tuning).errors(samples, seeds)


def medians(task: Downstream, counts: Sequence[int], seeds: int) -> list[float]:
    """Median test error over the seeds, for each number of samples."""
    return [float(np.median(task.errors(count, seeds))) for count in counts]


def samples_needed(counts: Sequence[int], errors: ArrayLike, error: float) -> float | None:
    """Samples at which an error is reached, interpolated in the logarithms of both.

    Parameters
    ----------
    counts : sequence of ints
        Numbers of samples, ascending.
    errors : float array, shape (counts,)
        The (median) error at each.
    error : float

    Returns
    -------
    float or None
        The first of the counts where it suffices; None where none does.
    """
    x, y = np.log(counts), np.log(np.maximum(errors, 1e-12))
    reached = np.flatnonzero(y <= np.log(error))
    if not reached.size:
        return None
    last = int(reached[0])
    if last == 0:
        return float(counts[0])
    share = (y[last - 1] - np.log(error)) / (y[last - 1] - y[last])
    return float(np.exp(x[last - 1] + share * (x[last] - x[last - 1])))
