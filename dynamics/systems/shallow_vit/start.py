r"""Initial weights (Assumption 1), with patterns :math:`\mu_j = e_j`.

.. math:: W_V = O_V + E_V \mu^\top, \quad W_K = O_K + E_K \mu^\top, \quad
   W_Q = O_K + E_Q \mu^\top, \quad W_O \sim N(0, \xi^2)

O_V and O_K are Haar-orthogonal: :math:`p_j = O_V \mu_j`, and :math:`q_j = r_j = O_K \mu_j`. The
columns of the E are random directions of length sigma (E_V) or delta (E_K, E_Q). The output weights
a are :math:`\pm 1/\sqrt m`, never trained.

Every part comes from a stream of its own, so no parameter changes what another part draws, and more
neurons begin with the fewer ones (up to the size of a).
"""

from __future__ import annotations

import itertools
from dataclasses import dataclass, replace
from math import factorial, sqrt

import numpy as np
from numpy.random import Generator

from dynamics.problem import FloatArray
from dynamics.systems.shallow_vit.parameters import Parameters
from dynamics.validation import refuse


@dataclass(frozen=True)
class Start:
    """Weights before training.

    Attributes
    ----------
    a : float array, shape (m,), or (m, L) where the output weights are per position
    W_O : float array, shape (m, d)
    W_V, W_K, W_Q : float arrays, shape (d, d)
    p : float array, shape (d, M)
        The orthonormal p_j that V is near to.
    """

    a: FloatArray
    W_O: FloatArray
    W_V: FloatArray
    W_K: FloatArray
    W_Q: FloatArray
    p: FloatArray

    def on_patterns(self, patterns: int) -> tuple[FloatArray, FloatArray, FloatArray, FloatArray]:
        """W_O, V, K, Q: the last three (d, M), what W_V, W_K, W_Q do to the M patterns."""
        first = [np.ascontiguousarray(w[:, :patterns]) for w in (self.W_V, self.W_K, self.W_Q)]
        return self.W_O, first[0], first[1], first[2]


def orthogonal(depth: int, generator: Generator) -> FloatArray:
    """A Haar-orthogonal matrix, shape (d, d)."""
    found, upper = np.linalg.qr(generator.standard_normal((depth, depth)))
    return np.asarray(found * np.sign(np.diag(upper)))


def directions(depth: int, many: int, generator: Generator) -> FloatArray:
    """Columns of length 1, each in a random direction, shape (d, many)."""
    drawn = generator.standard_normal((many, depth)).T
    return np.asarray(drawn / np.linalg.norm(drawn, axis=0))


def drawn(parameters: Parameters, generator: Generator) -> Start:
    """A random start.

    Parameters
    ----------
    parameters : Parameters
    generator : numpy Generator
    """
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


def symmetric(parameters: Parameters, generator: Generator) -> Start:
    """A start that permutations of the non-discriminative patterns leave as it is.

    And the exchange of patterns 1 and 2 with that of the signs a. Neurons of a random start are
    completed to whole orbits; an element of the group turns a row of W_O as it permutes the p_j.

    Parameters
    ----------
    parameters : Parameters
        With sigma = delta = 0, shared output weights, and neurons in whole orbits.
    generator : numpy Generator

    Raises
    ------
    InvalidRequest
        If the start cannot be symmetric.
    """
    for name in ("sigma", "delta"):
        if getattr(parameters, name) > 0:
            refuse(name, getattr(parameters, name), "breaks a symmetric start", "0 there", 0)
    if parameters.output_weights != "shared":
        given = parameters.output_weights
        refuse("output_weights", given, "breaks a symmetric start", "shared there", "shared")
    order = 2 * factorial(parameters.M - 2)
    if parameters.m % order:
        near = order * max(1, round(parameters.m / order))
        problem = f"is no whole number of orbits of {order} neurons, as a symmetric start needs"
        refuse("m", parameters.m, problem, f"a multiple of {order}", near)
    found, base, size = drawn(parameters, generator), parameters.m // order, parameters.M
    inside = found.W_O[:base] @ found.p
    outside = found.W_O[:base] - inside @ found.p.T
    rows, signs = [], []
    for others in itertools.permutations(range(2, size)):
        for first, sign in (((0, 1), 1.0), ((1, 0), -1.0)):
            rows.append(inside[:, [*first, *others]] @ found.p.T + outside)
            signs.append(sign * found.a[:base])
    return replace(found, a=np.concatenate(signs), W_O=np.concatenate(rows))
