r"""E and T, the derivatives of the loss by H = W_O V and by B = K^T Q, as plain matrices.

What `kernels` does vector by vector, done for all vectors at once; the recursions of `gram` and
`collapse` are driven by it.
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np

from dynamics.problem import FloatArray
from dynamics.systems.shallow_vit.full.projection import attention
from dynamics.systems.shallow_vit.realization import Instance
from dynamics.systems.shallow_vit.reduced.expectation import weight_table


@dataclass(frozen=True, eq=False)
class Slopes:
    """E and T of the samples of an instance.

    Attributes
    ----------
    instance : Instance
    """

    instance: Instance

    def of(
        self, responses: FloatArray, scores: FloatArray, step: int | None = None
    ) -> tuple[FloatArray, FloatArray]:
        """E (m, M) and T (M, M); T is 0 where attention is frozen.

        Parameters
        ----------
        responses : float array, shape (m, M)
            H.
        scores : float array, shape (M, M)
            B.
        step : int or None
            Whose batch it is of; None is all samples.
        """
        found, parameters = self.instance, self.instance.parameters
        index, share = found.taken(step)
        counts, labels = found.vectors.counts[index], found.vectors.labels[index]
        table, rows, scale = weight_table(found.start.a, found.vectors, parameters.L)
        weights = (scale[index][:, :, None] * table[rows[index]]).transpose(0, 2, 1)
        mass = attention(scores, counts)
        before = responses @ mass
        reached = labels * (weights * np.maximum(before, 0.0)).sum(axis=(1, 2))
        pushed = -labels * share
        if parameters.loss == "hinge":
            pushed = pushed * (reached < parameters.margin)
        back = pushed[:, None, None] * weights * (before > 0.0)
        by_response = np.asarray((back @ mass.transpose(0, 2, 1)).sum(axis=0))
        if parameters.frozen == "attention":
            return by_response, np.zeros_like(scores)
        pulled = responses.T @ back
        mean = (mass * pulled).sum(axis=1, keepdims=True)
        return by_response, np.asarray((mass * (pulled - mean)).sum(axis=0))
