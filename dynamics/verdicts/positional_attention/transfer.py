r"""Transfer: the value vector is fine-tuned on a new feature, under attention that is frozen.

Section 5 of the paper. The downstream law has the same sets and a new feature
:math:`\tilde w^\star`, uniform on the sphere. Only v is trained, from :math:`v^{(0)} \sim
\mathcal N(0, (0.016/D)^2 I)`, by gradient descent on the :math:`\tilde N` samples of (E~). While S
is frozen it pools every sample once and for all:

.. math:: \tilde X_i = D \sum_j S_{ij} X_j, \qquad
          F = \sum_i \sigma(\langle v, \tilde X_i\rangle).

Equal rows of S are one row that counts several times: L rows for attention to the own set
(`block_attention`), one for `uniform_attention`. There F has the sign of :math:`\langle v, \sum_j
X_j\rangle`: a linear rule, and its error is that of sign(Z) at least
(`theory.papers.positional_attention.linear_rules`), however many the samples.

Pooled noise is Gaussian with covariance :math:`\sigma^2 D^2 S S^T` between rows, so it is sampled
as such, with one vector a distinct row; test data need one number a patch
(`theory.papers.positional_attention.samples`).

The paper's descent has one rate. Here the rate of a run is halved wherever its loss rises, so that
one rate does at every number of samples.

The start is symmetric and the activation nearly so: with one sample, v may grow along a patch that
carries -y, and the run then learns :math:`-\tilde w^\star` and errs on almost everything. The
median over seeds says what usually happens; the mean is that of a mixture. The share of the seeds
whose error stays above 1/2 (`Downstream.lost`) says how often it does not: at D = 16, 32 and 64,
q(D - C) = 8, under learned attention 14, 17 and 12 % of 200 seeds with one sample, and 0, 0.5 and
0 % with log2 D samples.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.random import Generator
from numpy.typing import ArrayLike

from dynamics.problem import FloatArray
from dynamics.training.descent import descend
from theory.papers.positional_attention import samples as sampling
from theory.papers.positional_attention.attention import own_attention, same_set, softmax
from theory.symmetry import Partition

if TYPE_CHECKING:
    from dynamics.papers.positional_attention.parameters import Parameters
    from dynamics.results.trajectory import Trajectory
    from dynamics.system import System

NUMBERS_AT_ONCE = 1 << 18
"""Numbers of pooled samples that are trained at once: several seeds, within the cache."""
TEST_NUMBERS_AT_ONCE = 1 << 15
LARGEST_TEST = 2e7
"""Values of patches of the test data beyond which there are fewer samples."""
HALF = 0.5
"""Error above which a run has learned the opposite feature rather than a poor one."""
ROUNDING = 1e-13
"""A margin below this share of the largest term is a tie, which counts as an error."""


# Attention matrices S to be frozen.


def _partition(parameters: Parameters) -> Partition:
    return Partition.contiguous([parameters.C] * parameters.L)


def block_attention(parameters: Parameters) -> FloatArray:
    """Ideal attention: 1/C inside the true sets, shape (D, D)."""
    return np.asarray(same_set(_partition(parameters)) / parameters.C)


def uniform_attention(parameters: Parameters) -> FloatArray:
    """No attention: 1/D everywhere, shape (D, D)."""
    return np.full((parameters.D, parameters.D), 1 / parameters.D)


def orbit_attention(parameters: Parameters, state: ArrayLike) -> FloatArray:
    """S of the A with beta, gamma and rho on its orbits (Lemma 4.1).

    Parameters
    ----------
    parameters : Parameters
    state : float array, shape (3,)
        (alpha, gamma, rho); alpha is not used.

    Returns
    -------
    float array, shape (D, D)
    """
    _, gamma, rho = np.asarray(state, dtype=np.float64)
    matrix = np.where(same_set(_partition(parameters)), gamma, rho)
    np.fill_diagonal(matrix, parameters.beta)
    return softmax(matrix, parameters.scale)


def trained_attention(
    system: System, parameters: Parameters, samples: int, time: float, **options: Any
) -> tuple[FloatArray, Trajectory]:
    """S of a full empirical run, and the run: v and A trained on N samples from a random start.

    Parameters
    ----------
    system : System
    parameters : Parameters
    samples : int
        N.
    time : float
        eta times steps.
    **options
        ``eta`` (default 0.02), and those of `FullEmpirical`: ``seed``, ``dtype``.
    """
    eta = options.pop("eta", 0.02)
    problem = system.FullEmpirical(parameters, samples=samples, **options)
    steps = max(1, round(time / eta))
    run = descend(problem, eta=eta, steps=steps, record=np.array([0, steps]))
    matrix = problem.layout.part(run.final_state, "A")
    return softmax(np.asarray(matrix), parameters.scale), run


def own_set_share(parameters: Parameters, weights: FloatArray) -> float:
    """Share of the attention that falls inside the own set, G/D.

    Parameters
    ----------
    parameters : Parameters
    weights : float array, shape (D, D)
        S.
    """
    return own_attention(weights, _partition(parameters)) / parameters.D


# Fine-tuning of v under frozen attention.


START = 0.016
"""D times the spread of v at the start."""
TRAINED = 1e-3
"""Training loss at which a run stops."""
STEPS = 2000
"""Steps after which it stops anyway."""
TEST_SAMPLES = 40_000
"""Fresh samples for the test error, the same for all seeds."""


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

    def draw(
        self, law: sampling.SignalSets, feature: FloatArray, count: int, generator: Generator
    ) -> FloatArray:
        """Draw pooled samples times their label, y X~.

        Parameters
        ----------
        law : SignalSets
        feature : float array, shape (d,)
            w*, of length 1.
        count : int
        generator : Generator

        Returns
        -------
        float array, shape (count, R, d)
        """
        for_values, for_noise = generator.spawn(2)
        x, y = law.values(count, for_values)
        noise = for_noise.standard_normal((count, len(self.rows), feature.size))
        noise -= (noise @ feature)[..., None] * feature
        signal = y[:, None] * (x @ self.rows.T)
        root = np.linalg.qr(self.rows.T)[1].T  # of the covariance of pooled noise, rows rows^T
        return np.asarray(signal[..., None] * feature + law.sigma * (root @ noise))


def even_power(values: FloatArray, degree: int) -> FloatArray:
    """values^degree by products: ``**`` is ten times slower.

    Parameters
    ----------
    values : float array
    degree : int
        Even.
    """
    square = values * values
    power = square
    for _ in range(degree // 2 - 1):
        power = power * square
    return power


def loss_and_gradient(
    value: FloatArray, pooled: FloatArray, counts: FloatArray, law: Parameters
) -> tuple[FloatArray, FloatArray]:
    """The loss of (E~) and its gradient by v, for many data sets at once.

    Parameters
    ----------
    value : float array, shape (sets, d)
        v of each.
    pooled : float array, shape (sets, samples, R, d)
        y X~.
    counts : float array, shape (R,)
    law : Parameters
        Of which p and nu, of the activation x^p + nu x, are used.

    Returns
    -------
    float arrays, shapes (sets,) and (sets, d)
    """
    from scipy.special import expit

    degree, nu = law.p, law.nu
    sets, samples, rows, depth = pooled.shape
    flat = pooled.reshape(sets, samples * rows, depth)
    inner = (flat @ value[:, :, None]).reshape(sets, samples, rows)
    power = even_power(inner, degree - 1)
    margin = (inner * (power + nu)) @ counts
    weight = expit(-margin)[..., None] * counts * (degree * power + nu) / samples
    gradient = -(weight.reshape(sets, 1, samples * rows) @ flat)[:, 0]
    return np.logaddexp(0.0, -margin).mean(axis=1), gradient


def fine_tune(
    value: FloatArray,
    pooled: FloatArray,
    counts: FloatArray,
    law: Parameters,
    rate: float,
) -> FloatArray:
    """Gradient descent on v until the loss is reached; a rate is halved where the loss rises.

    Parameters
    ----------
    value : float array, shape (sets, d)
        v of each data set at the start.
    pooled : float array, shape (sets, samples, R, d)
        y X~.
    counts : float array, shape (R,)
    law : Parameters
        Of which p and nu are used.
    rate : float
        Learning rate at the start.

    Returns
    -------
    float array, shape (sets, d)
        v at the end; not finite where the run diverged.
    """
    final, running = value.copy(), np.arange(len(value))
    rates, last = np.full(len(value), rate), np.full(len(value), np.inf)
    for _ in range(STEPS):
        with np.errstate(over="ignore", invalid="ignore"):
            loss, gradient = loss_and_gradient(value, pooled, counts, law)
        rates = np.where(loss > last, rates / 2, rates)
        last = loss
        done = loss <= TRAINED
        if done.any():
            final[running[done]] = value[done]
            running, value, pooled = running[~done], value[~done], pooled[~done]
            gradient, rates, last = gradient[~done], rates[~done], last[~done]
            if not running.size:
                break
        value = value - rates[:, None] * gradient
    final[running] = value
    return final


class Downstream:
    """The law of Assumption 1 with a new feature, under frozen attention.

    Parameters
    ----------
    parameters : Parameters
        The sets are consecutive patches.
    weights : float array, shape (D, D)
        S, every row with sum 1.
    seed : int
        Of the test data, and of everything random for the seeds of `errors`.
    test_samples : int
    """

    def __init__(
        self,
        parameters: Parameters,
        weights: FloatArray,
        seed: int = 0,
        test_samples: int = TEST_SAMPLES,
    ) -> None:
        self.parameters, self.seed = parameters, seed
        self.pool, self.law = Pool.of(weights), sampling.assumption_1(parameters)
        count = min(test_samples, int(LARGEST_TEST / parameters.D) + 1)
        test = sampling.fresh(self.law, count, np.random.default_rng([seed, 0, 1]))
        y, rows = test.labels[:, None], self.pool.rows
        values, noise = y * (test.values @ rows.T), y * (test.noise @ rows.T)
        width = max(1, TEST_NUMBERS_AT_ONCE // len(rows))
        parts = [slice(first, first + width) for first in range(0, count, width)]
        self.test = [
            sampling.Fresh(values[part], noise[part], test.labels[part], self.law.sigma)
            for part in parts
        ]

    @property
    def rate(self) -> float:
        """Learning rate: below the limit of stability where F is of order one, by a factor."""
        D, C = self.parameters.D, self.parameters.C
        if len(self.pool.rows) == 1:
            return float(0.3 / (D ** (2 / 3) * (C**2 + self.parameters.q * (D - C))))
        return 0.1 / D**2

    def errors(self, samples: int, seeds: int) -> FloatArray:
        """Test error after fine-tuning, for each seed.

        Every seed has a feature, a start and samples of its own; more samples begin with the fewer
        ones.

        Parameters
        ----------
        samples, seeds : int

        Returns
        -------
        float array, shape (seeds,)
        """
        together = max(1, NUMBERS_AT_ONCE // (samples * len(self.pool.rows) * self.parameters.d))
        errors = []
        for first in range(0, seeds, together):
            tasks = [self.draw(k, samples) for k in range(first, min(seeds, first + together))]
            features, starts, pooled = (np.array(parts) for parts in zip(*tasks, strict=True))
            values = fine_tune(starts, pooled, self.pool.counts, self.parameters, self.rate)
            pairs = zip(values, features, strict=True)
            errors += [self.error(value, feature) for value, feature in pairs]
        return np.array(errors)

    def medians(self, counts: Sequence[int], seeds: int) -> list[float]:
        """Median test error over the seeds, for each number of samples.

        Parameters
        ----------
        counts : sequence of int
            Numbers of samples.
        seeds : int
        """
        return [float(np.median(self.errors(count, seeds))) for count in counts]

    def lost(self, samples: int, seeds: int) -> int:
        """Number of seeds whose test error stays above 1/2.

        Parameters
        ----------
        samples, seeds : int
        """
        return int((self.errors(samples, seeds) > HALF).sum())

    def draw(self, k: int, samples: int) -> tuple[FloatArray, FloatArray, FloatArray]:
        """Feature, start and pooled samples of one seed; shapes (d,), (d,), (samples, R, d).

        Parameters
        ----------
        k : int
            Number of the seed.
        samples : int
        """
        streams = np.random.default_rng([self.seed, k]).spawn(3)
        feature = sampling.unit_vector(self.parameters.d, streams[0])
        spread = START / self.parameters.D
        start = spread * streams[1].standard_normal(self.parameters.d)
        return feature, start, self.pool.draw(self.law, feature, samples, streams[2])

    def error(self, value: FloatArray, feature: FloatArray) -> float:
        """Share of the test data with yF <= 0; a v that is not finite errs on all.

        Parameters
        ----------
        value, feature : float array, shape (d,)
            v and w*.
        """
        along = float(value @ feature)
        across = float(np.linalg.norm(value - along * feature))
        degree, nu = self.parameters.p, self.parameters.nu
        wrong = 0
        for part in self.test:
            inner = part.projections(along, across)
            terms = inner * (even_power(inner, degree - 1) + nu)
            rounding = ROUNDING * float(self.pool.counts.max()) * max(terms.max(), -terms.min())
            wrong += int(np.count_nonzero(~(terms @ self.pool.counts > rounding)))
        return wrong / sum(part.labels.size for part in self.test)
