r"""Initial weights of Assumption 1, with patterns :math:`\mu_j = e_j`.

.. math:: W_V = O_V + E_V \mu^\top, \quad W_K = O_K + E_K \mu^\top, \quad
   W_Q = O_K + E_Q \mu^\top, \quad W_O \sim N(0, \xi^2)

O_V and O_K are Haar-orthogonal; without errors E, values are :math:`p_j = O_V \mu_j`, keys and
queries :math:`q_j = r_j = O_K \mu_j`. The columns of E_V are random vectors of length sigma, those
of E_K and E_Q of length delta. The output weights a are :math:`\pm 1/\sqrt m` and never trained.

Every matrix has its own random stream, so no parameter changes the draws of another matrix. A
smaller m gives the first neurons of a larger m, with larger output weights a.
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from math import factorial, sqrt

import numpy as np
from numpy.random import Generator

from dynamics.papers.shallow_vit.parameters import Parameters
from dynamics.problem import FloatArray
from dynamics.validation import check_cost, refuse

MOST_IN_MATRIX, MOST_NUMBERS = 2**24, 2**29
"""Maximum count of numbers in a matrix orthogonalized in seconds, and in all weights together."""
SYMMETRIC = "symmetric"
"""Name of the start that is invariant under the symmetries of the data law."""


@dataclass(frozen=True)
class Start:
    """Initial weights.

    The output weights `a` have shape (m,), or (m, L) if given per position; `W_O` has shape (m, d);
    `W_V`, `W_K` and `W_Q` have shape (d, d). `p`, shape (d, M), has the orthonormal p_j, close to
    the columns of W_V mu.
    """

    a: FloatArray
    W_O: FloatArray
    W_V: FloatArray
    W_K: FloatArray
    W_Q: FloatArray
    p: FloatArray

    def on_patterns(self, patterns: int) -> tuple[FloatArray, ...]:
        """W_O (m, d), and the products V, K, Q (d, M) of W_V, W_K, W_Q with the M patterns."""
        return self.W_O, *(part[:, :patterns] for part in (self.W_V, self.W_K, self.W_Q))

    @property
    def weights(self) -> tuple[FloatArray, ...]:
        """Trained weights W_O, W_V, W_K, W_Q."""
        return self.W_O, self.W_V, self.W_K, self.W_Q


def orthogonal(depth: int, generator: Generator) -> FloatArray:
    """Random Haar-orthogonal matrix of dimension `depth`."""
    q, upper = np.linalg.qr(generator.standard_normal((depth, depth)))
    return np.asarray(q * np.sign(np.diag(upper)))


def directions(depth: int, many: int, generator: Generator) -> FloatArray:
    """Random columns of length 1, shape (depth, many)."""
    columns = generator.standard_normal((many, depth)).T
    return np.asarray(columns / np.linalg.norm(columns, axis=0))


def random_start(parameters: Parameters, generator: Generator) -> Start:
    """Draw a random start."""
    many, depth, patterns = parameters.m, parameters.d, parameters.M
    for_a, for_v, for_k, for_errors, for_o = generator.spawn(5)
    shared = parameters.output_weights == "shared"
    signs = for_a.integers(2, size=many if shared else (many, parameters.L))
    values, keys = orthogonal(depth, for_v), orthogonal(depth, for_k)
    queries, frame = keys.copy(), values[:, :patterns].copy()
    lengths = (parameters.sigma, parameters.delta, parameters.delta)
    streams = for_errors.spawn(3)
    for matrix, length, stream in zip((values, keys, queries), lengths, streams, strict=True):
        matrix[:, :patterns] += length * directions(depth, patterns, stream)
    return Start(
        a=np.asarray((2.0 * signs - 1.0) / sqrt(many), dtype=np.float64),
        W_O=parameters.xi * for_o.standard_normal((many, depth)),
        W_V=values,
        W_K=keys,
        W_Q=queries,
        p=frame,
    )


def symmetric_start(parameters: Parameters, generator: Generator) -> Start:
    """Draw a start invariant under the symmetries of the law.

    The symmetries are permutations of the patterns other than 1 and 2, and the exchange of patterns
    1 and 2 together with a change of the sign of the output weights a. Neurons are completed to
    whole orbits. A permutation of patterns permutes the components of rows of W_O along the p_j.

    `parameters` need sigma = delta = 0, shared output weights, and m a multiple of 2 (M - 2)!, the
    order of the group. Raises InvalidRequest if the start cannot be symmetric.
    """
    for name in ("sigma", "delta"):
        if getattr(parameters, name) > 0:
            refuse(name, getattr(parameters, name), "breaks a symmetric start", "0", 0)
    if parameters.output_weights != "shared":
        weights = parameters.output_weights
        refuse("output_weights", weights, "breaks a symmetric start", "shared", "shared")
    order = 2 * factorial(parameters.M - 2)
    if parameters.m % order:
        near = order * max(1, round(parameters.m / order))
        problem = f"is not a whole number of orbits of {order} neurons, as a symmetric start needs"
        refuse("m", parameters.m, problem, f"a multiple of {order}", near)
    start, base, size = random_start(parameters, generator), parameters.m // order, parameters.M
    inside = start.W_O[:base] @ start.p
    outside = start.W_O[:base] - inside @ start.p.T
    rows, signs = [], []
    for others in itertools.permutations(range(2, size)):
        for first, sign in (((0, 1), 1.0), ((1, 0), -1.0)):
            rows.append(inside[:, [*first, *others]] @ start.p.T + outside)
            signs.append(sign * start.a[:base])
    return replace(start, a=np.concatenate(signs), W_O=np.concatenate(rows))


def start_of(parameters: Parameters, generator: Generator, symmetric: bool) -> Start:
    """Draw a random or a symmetric start; raises InvalidRequest if the weights exceed memory."""
    wide = 8 * (parameters.d + parameters.M)
    wide += parameters.L if parameters.output_weights == "per_position" else 0
    for name in ("M", "d"):
        square = "numbers in a matrix"
        check_cost(name, getattr(parameters, name), lambda side: side**2, MOST_IN_MATRIX, square)
    check_cost("m", parameters.m, lambda m: m * wide, MOST_NUMBERS, "numbers")
    return (symmetric_start if symmetric else random_start)(parameters, generator)
