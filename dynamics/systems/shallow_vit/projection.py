r"""What is read off a state of any problem of this system, through V, K, Q on the patterns.

The scores B = K^T Q and the responses H = W_O V say everything about noise-free samples. Gates and
lucky neurons are those of the two samples of the ``fixed`` law, whatever the training samples are:
``lucky_W`` counts the neurons with a > 0 that are open to query 1 of the positive one, ``lucky_U``
those with a < 0 open to query 2 of the negative one, ``lucky_angle`` those within an angle sigma of
p_1 (Definition 2). Where a neuron has a weight for every position the first two are not numbers.

``odds`` is no function of the scores: it is read off the attention that training computes for its
own samples (`Reader.odds`).
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from functools import cache, cached_property

import numpy as np
from numpy.typing import NDArray

from dynamics.problem import FloatArray, Layout
from dynamics.systems.shallow_vit import sampling
from dynamics.systems.shallow_vit.parameters import Parameters
from dynamics.systems.shallow_vit.sampling import IntArray
from theory.papers.shallow_vit.symmetry import asymmetry, class_means, named, pattern_group
from theory.symmetry import Classes, classes

PARTS = ("W_O", "V", "K", "Q")
GROUPS = ("W_O", "W_V", "W_K", "W_Q")
QUERIES = ("relevant", "confusion", "other")


def layout(parameters: Parameters) -> Layout:
    """W_O (m, d) and V, K, Q (d, M), each with a learning rate of its own."""
    square = (parameters.d, parameters.M)
    return Layout(PARTS, ((parameters.m, parameters.d), square, square, square), GROUPS)


def full_layout(parameters: Parameters) -> Layout:
    """W_O (m, d) and W_V, W_K, W_Q (d, d), each with a learning rate of its own."""
    square = (parameters.d, parameters.d)
    return Layout(GROUPS, ((parameters.m, parameters.d), square, square, square), GROUPS)


def orbit_values(parameters: Parameters, states: FloatArray) -> Mapping[str, FloatArray]:
    """W_O, V, K, Q of states of a full problem, shape (records, ...) each.

    Parameters
    ----------
    parameters : Parameters
    states : float array, shape (records, n)
    """
    full, size = full_layout(parameters), parameters.M
    parts = [full.part(states, name) for name in GROUPS]
    return dict(zip(PARTS, [parts[0], *(part[..., :size] for part in parts[1:])], strict=True))


@cache
def pairs(patterns: int) -> tuple[Classes, dict[str, IntArray]]:
    """Classes of pairs of patterns, and their names."""
    pair_classes = classes(pattern_group(patterns))
    return pair_classes, named(pair_classes)


def attention(scores: FloatArray, counts: IntArray) -> FloatArray:
    """P of count vectors: keys in rows, queries in columns.

    Parameters
    ----------
    scores : float array, shape (..., M, M)
        B.
    counts : int array, shape (S, M)

    Returns
    -------
    float array, shape (..., S, M, M)
    """
    present, each = counts[:, :, None] > 0, scores[..., None, :, :]
    top = np.where(present, each, -np.inf).max(axis=-2, keepdims=True)
    powers = counts[:, :, None] * np.exp(np.where(present, each - top, -np.inf))
    return np.asarray(powers / powers.sum(axis=-2, keepdims=True))


@dataclass(frozen=True, eq=False)
class Reader:
    """What is reported of a state.

    Attributes
    ----------
    parameters : Parameters
    a : float array, shape (m,) or (m, L)
        Output weights.
    p : float array, shape (d, M)
        The orthonormal p_j that V starts near to.
    counts : int array, shape (S, M)
    labels, weights : float arrays, shape (S,)
        The training samples.
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
    def read(self, parts: tuple[FloatArray, ...]) -> dict[str, FloatArray]:
        """Everything but risk, errors and odds; not a number where a run has diverged.

        Parameters
        ----------
        parts : (W_O, V, K, Q)
            Of every record, shapes (records, m, d) and (records, d, M).

        Returns
        -------
        dict
            Name -> float array, shape (records,).
        """
        hidden, values, keys, queries = parts
        scores = keys.swapaxes(1, 2) @ queries
        pair_classes, names = pairs(self.parameters.M)
        means = class_means(scores, pair_classes)
        both = attention(scores, self.pair)
        return (
            self._masses(scores)
            | {f"B_{name}": mean for name, mean in zip(names, means.T, strict=True)}
            | {
                "q1_norm2": np.vecdot(keys[:, :, 0], keys[:, :, 0]),
                "symmetry": asymmetry(scores, pair_classes),
            }
            | self._neurons(hidden, values, both)
        )

    def _masses(self, scores: FloatArray) -> dict[str, FloatArray]:
        """Attention to label-relevant tokens: of all queries, and of each kind."""
        mass = attention(scores, self.counts)
        positive = self.labels > 0
        to_relevant = np.where(positive[:, None], mass[:, :, 0], mass[:, :, 1])
        many = self.weights[:, None] * self.counts
        swapped = np.where(positive[:, None], many[:, :2], many[:, 1::-1])
        own_side = np.where(positive[:, None], to_relevant[..., :2], to_relevant[..., 1::-1])
        kinds = (
            (swapped[:, 0], own_side[..., 0]),
            (swapped[:, 1], own_side[..., 1]),
            (many[:, 2:], to_relevant[..., 2:]),
        )
        shares = {"relevant": _summed(many * to_relevant) / many.sum()}
        for name, (weight, part) in zip(QUERIES, kinds, strict=True):
            total = float(weight.sum()) or float("nan")
            shares[f"relevant_by_{name}"] = _summed(weight * part) / total
        return shares

    def _neurons(
        self, hidden: FloatArray, values: FloatArray, both: FloatArray
    ) -> dict[str, FloatArray]:
        """Lucky neurons, and distinct (sign, gates) among all."""
        inputs = (hidden @ values)[:, None] @ both
        gates = np.concatenate([inputs[:, 0], inputs[:, 1]], axis=2) > 0
        size, unknown = self.parameters.M, np.full(len(hidden), np.nan)
        lucky = {"lucky_W": unknown, "lucky_U": unknown}
        if self.a.ndim == 1:
            positive = self.a > 0
            lucky = {
                "lucky_W": _count(positive & gates[:, :, 0]),
                "lucky_U": _count(~positive & gates[:, :, size + 1]),
            }
            signs = np.broadcast_to(positive[:, None], (*gates.shape[:2], 1))
            gates = np.concatenate([signs, gates], axis=2)
        lengths = np.linalg.norm(hidden, axis=2)
        near = hidden @ self.p[:, 0] >= np.cos(self.parameters.sigma) * lengths
        words = np.packbits(gates, axis=2)
        each = words.view(f"S{words.shape[2]}")[:, :, 0].tolist()
        return lucky | {
            "lucky_angle": _count(near & (lengths > 0)),
            "gate_classes": np.array([float(len({*record})) for record in each]),
        }

    @cached_property
    def ratio(self) -> float:
        """n_* / n_#; not a number where there are no confusion tokens, or not always as many."""
        positive = (self.labels > 0)[:, None]
        pairs = np.where(positive, self.counts[:, :2], self.counts[:, 1::-1])
        star, confusion = pairs[0]
        if (pairs != pairs[0]).any() or star == 0 or confusion == 0:
            return float("nan")
        return float(star / confusion)

    @np.errstate(all="ignore")
    def odds(self, masses: FloatArray, patterns: IntArray, weights: FloatArray) -> FloatArray:
        """Largest relative change of the product of the odds, over query patterns.

        The mean log odds of relevant against confusion keys, over the queries of a pattern in the
        positive samples, and that in the negative ones have the sum 2 log(n_* / n_#) where tokens
        have no noise. Not a number where that says nothing: see `ratio`; or with one label alone.

        Parameters
        ----------
        masses : float array, shape (records, S, 2, queries)
            Attention of every query to all relevant and to all confusion keys of its sample.
        patterns : int array, shape (S, queries)
            Of the queries, from 0.
        weights : float array, shape (S, queries)
            Of the queries in a mean.

        Returns
        -------
        float array, shape (records,)
        """
        if np.isnan(self.ratio):
            return np.full(len(masses), np.nan)
        logs = (np.log(masses[:, :, 0]) - np.log(masses[:, :, 1])).reshape(len(masses), -1)
        each, positive = weights.ravel(), (self.labels > 0)[:, None]
        # The queries of a pattern side by side, the negative samples' first, each in its order.
        place = np.where(weights > 0, 2 * patterns + positive, -1).ravel()
        order = np.argsort(place, kind="stable")
        bounds = np.searchsorted(place[order], np.arange(2 * patterns.max() + 3))
        products, each = np.take(logs * each, order, axis=1), each[order]
        target, changes = 2.0 * np.log(self.ratio), []
        for first, middle, last in zip(bounds[:-1:2], bounds[1::2], bounds[2::2], strict=True):
            if first < middle < last:
                ahead, behind = slice(middle, last), slice(first, middle)
                total = products[:, ahead].sum(axis=1) / each[ahead].sum()
                total += products[:, behind].sum(axis=1) / each[behind].sum()
                changes.append(np.abs(np.expm1(total - target)))
        return np.max(changes, axis=0) if changes else np.full(len(masses), np.nan)


def _summed(terms: FloatArray) -> FloatArray:
    """Sum over all but the first axis."""
    return np.asarray(terms.reshape(len(terms), -1).sum(axis=1))


def _count(neurons: NDArray[np.bool_]) -> FloatArray:
    """How many neurons of each record, shape (records,)."""
    return neurons.sum(axis=1).astype(np.float64)
