"""Observables common to all problems of this system, from V, K, Q on the patterns.

Gates of neurons (open for a positive input) and lucky neurons are evaluated on the two samples of
the ``fixed`` law, for any data. ``lucky_W`` counts the neurons with output weight a > 0 and an open
gate at query 1 of the positive sample, ``lucky_U`` the neurons with a < 0 and an open gate at query
2 of the negative sample, ``lucky_angle`` the neurons within an angle sigma of p_1 (Definition 2).
With output weights per position, ``lucky_W`` and ``lucky_U`` are NaN. Attention to relevant tokens
and ``odds`` come from the attention that training computes on its samples.
"""

from __future__ import annotations

from dataclasses import dataclass
from functools import cached_property

import numpy as np

from dynamics.papers.shallow_vit import sampling
from dynamics.papers.shallow_vit.parameters import Parameters
from dynamics.papers.shallow_vit.sampling import IntArray, Tokens
from dynamics.problem import FloatArray
from theory.papers.shallow_vit.attention import attention
from theory.papers.shallow_vit.symmetry import asymmetry, class_means, pairs

QUERIES = ("relevant", "confusion", "other")


@dataclass(frozen=True, eq=False)
class Reader:
    """Observables of a state.

    `a`, shape (m,) or (m, L), has the output weights; `p`, shape (d, M), has orthonormal p_j close
    to the initial columns of V. `counts`, shape (S, M), has the number of tokens of every pattern
    in the training samples; `labels` and `weights`, shape (S,), belong to these samples.
    """

    parameters: Parameters
    a: FloatArray
    p: FloatArray
    counts: IntArray
    labels: FloatArray
    weights: FloatArray

    @cached_property
    def pair(self) -> IntArray:
        """Counts of the positive and the negative sample of the ``fixed`` law, shape (2, M)."""
        both = np.tile(sampling.even(self.parameters), (2, 1))
        return sampling.arranged(both, np.array([1.0, -1.0]))

    @np.errstate(all="ignore")
    def read(self, parts: tuple[FloatArray, ...]) -> dict[str, float]:
        """Class means of K^T Q and counts of neurons, from W_O, V, K, Q; NaN after divergence."""
        hidden, values, keys, queries = parts
        scores = keys.T @ queries
        pair_classes, names = pairs(self.parameters.M)
        means = class_means(scores, pair_classes)
        return {f"B_{name}": mean for name, mean in zip(names, means, strict=True)} | {
            "q1_norm2": np.vecdot(keys[:, 0], keys[:, 0]),
            "symmetry": asymmetry(scores, pair_classes),
            **self._neurons(hidden, values, attention(scores, self.pair)),
        }

    def _neurons(
        self, hidden: FloatArray, values: FloatArray, both: FloatArray
    ) -> dict[str, float]:
        """Numbers of lucky neurons, and of distinct pairs (sign, gates) among all neurons."""
        inputs = hidden @ values @ both
        gates = np.concatenate([inputs[0], inputs[1]], axis=1) > 0
        found = {"lucky_W": np.nan, "lucky_U": np.nan}
        if self.a.ndim == 1:
            positive = self.a > 0
            found["lucky_W"] = (positive & gates[:, 0]).sum()
            found["lucky_U"] = (~positive & gates[:, self.parameters.M + 1]).sum()
            gates = np.column_stack([positive, gates])
        lengths = np.linalg.norm(hidden, axis=1)
        near = hidden @ self.p[:, 0] >= np.cos(self.parameters.sigma) * lengths
        words = {row.tobytes() for row in np.packbits(gates, axis=1)}
        return found | {"lucky_angle": (near & (lengths > 0)).sum(), "gate_classes": len(words)}

    @np.errstate(all="ignore")
    def attended(self, tokens: Tokens, masses: FloatArray) -> dict[str, float]:
        """Attention to relevant tokens by kind of query, and the error `odds`.

        `tokens` has the training samples; `masses`, shape (S, n, 2), has the total attention of
        every token to the relevant and to the confusion keys of its sample.
        """
        each = tokens.weights[:, None] * tokens.times
        found = {}
        for kind, name in enumerate(QUERIES):
            weight = np.where(tokens.kinds == kind, each, 0.0)
            total = float(weight.sum()) or float("nan")
            found[f"relevant_by_{name}"] = (weight * masses[:, :, 0]).sum() / total
        return found | {"odds": self.odds(masses, tokens.patterns, each)}

    @cached_property
    def ratio(self) -> float:
        """Ratio n_* / n_# of relevant to confusion tokens, or NaN if a count is 0 or varies."""
        positive = (self.labels > 0)[:, None]
        pairs = np.where(positive, self.counts[:, :2], self.counts[:, 1::-1])
        star, confusion = pairs[0]
        if (pairs != pairs[0]).any() or star == 0 or confusion == 0:
            return float("nan")
        return float(star / confusion)

    @np.errstate(all="ignore")
    def odds(self, masses: FloatArray, patterns: IntArray, weights: FloatArray) -> float:
        """Largest relative error of the identity of log odds below, over all patterns of queries.

        For the queries of one pattern, the log odds of relevant against confusion keys have one
        mean in the positive samples and one in the negative samples. Without noise, the sum of the
        two means is exactly 2 log(n_* / n_#). The result is NaN if `ratio` is NaN, or if one label
        is missing.

        `attended` describes `masses`, shape (S, n, 2). `patterns`, shape (S, n), has the patterns
        of the queries, from 0; `weights`, shape (S, n), has the weights of the queries in a mean.
        """
        if np.isnan(self.ratio):
            return float("nan")
        logs, asked = np.log(masses[:, :, 0]) - np.log(masses[:, :, 1]), weights > 0
        place = (2 * patterns + (self.labels > 0)[:, None])[asked]
        sums, totals = (
            np.bincount(place, each, minlength=2 * patterns.max() + 2).reshape(-1, 2)
            for each in ((weights * logs)[asked], weights[asked])
        )
        both = (totals > 0).all(axis=1)
        sides = (sums[both] / totals[both]).sum(axis=1)
        changes = np.abs(np.expm1(sides - 2.0 * np.log(self.ratio)))
        return float(changes.max()) if changes.size else float("nan")
