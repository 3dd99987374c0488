"""Numerical values of the formulas in Lemmas A.1, A.8, 5.1 and 5.2, averaged over all images.

The formulas are evaluated as the paper states them, so no loss is differentiated. `paper_values`
evaluates Lemmas A.8, 5.1 and 5.2 from the attention to areas. `stated_gradient` evaluates Lemma A.1
from token vectors.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any, NamedTuple

import numpy as np

from theory.law import FloatArray
from theory.papers.masked_image_modeling import lemmas
from theory.papers.masked_image_modeling.images import Images, all_images
from theory.papers.masked_image_modeling.recursion import MASKED, OTHER, OWN
from theory.papers.masked_image_modeling.symmetry import feature_offsets


class Query(NamedTuple):
    """Images of one cluster in which one given patch is masked, with the attention of this patch.

    The array `areas`, shape (P,), holds the area of every patch, and `weight`, shape (images,), the
    probability of each image. The mask `masked`, shape (images, P), marks the masked patches. The
    latents `z` of the areas and the attention `A` to the unmasked patches of each area have shape
    (images, areas). The attention `u` to each key has shape (images, P).
    """

    cluster: int
    patch: int
    areas: Any
    weight: FloatArray
    masked: Any
    z: FloatArray
    u: FloatArray
    A: FloatArray

    @property
    def own(self) -> int:
        """Area of the masked patch."""
        return int(self.areas[self.patch])

    @property
    def loss(self) -> FloatArray:
        """Loss of the masked patch on every image by Lemma A.8, shape (images,)."""
        shares = dict(enumerate(self.A.T))
        return np.asarray(lemmas.paper_loss(tuple(self.z.T), shares, self.own))

    @property
    def alpha(self) -> FloatArray:
        """Minus the derivative of `loss` by Phi of each area (Lemma 5.1), shape (images, areas)."""
        squares, m = self.z**2 * self.A**2, self.own
        rest = squares.sum(axis=1) - squares[:, m]
        z, shares, rates = tuple(self.z.T), dict(enumerate(self.A.T)), []
        for i in range(len(z)):
            others = rest - squares[:, i] if i != m else rest
            rates.append(lemmas.paper_feature_rate(z, shares, m, i, others))
        return np.stack(rates, axis=1)

    @property
    def beta(self) -> FloatArray:
        """Minus the derivative of `loss` by Ups of each key (Lemma 5.2), shape (images, P)."""
        z, A, m = self.z, self.A, self.own
        r = (z[:, m] ** 2 * A[:, m] - (z**2 * A**2).sum(axis=1))[:, None]
        z, A = z[:, self.areas], A[:, self.areas]
        own, other, masked = (
            lemmas.paper_position_rate(kind, z, A, r) for kind in (OWN, OTHER, MASKED)
        )
        return self.u * np.where(self.masked, masked, np.where(self.areas == m, own, other))


def queries(
    law: Any, phi: Any, ups: Any, images: Images | None = None, patches: Iterable[int] | None = None
) -> Iterator[Query]:
    """Yield a `Query` for every cluster and every patch p that is masked in some images.

    `phi[p]` holds the correlations of patch p with all features, ordered by cluster, and `ups[p]`
    those with all positions. By default, all images and all patches are used.
    """
    images = all_images(law) if images is None else images
    hidden, offsets = images.hidden, feature_offsets(law.area_ids)
    for k, areas in enumerate(law.area_ids):
        inside = np.eye(areas.max() + 1)[areas]
        for p in range(law.P) if patches is None else patches:
            used = (images.cluster == k) & hidden[:, p]
            z, masked = images.latent[used], hidden[used]
            u = attention(z, masked, phi[p][offsets[k] : offsets[k + 1]][areas], ups[p])
            A = np.where(masked, 0.0, u) @ inside
            latents = z[:, inside.argmax(axis=0)]
            yield Query(k, p, areas, images.weight[used], masked, latents, u, A)


def attention(z: FloatArray, masked: Any, phi: FloatArray, ups: FloatArray) -> FloatArray:
    """Attention of one masked patch to every key, on every image, shape (images, P).

    The array `z`, shape (images, P), holds the latent of each patch's area; the mask `masked` has
    the same shape. The arrays `phi` and `ups`, shape (P,), hold the correlations of the masked
    patch with the feature of each key's area, and with each key's position.
    """
    scores = ups + np.where(masked, 0.0, z * phi)
    u = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(u / u.sum(axis=1, keepdims=True))


class PaperValues(NamedTuple):
    """Numerical values of the expectations in Lemmas A.8, 5.1 and 5.2.

    The array `loss`, shape (P,), holds the loss L_p of each patch (Lemma A.8). The array `alpha`,
    shape (P, features), holds the rates of Phi (Lemma 5.1), and `beta`, shape (K, P, P), the rates
    of Ups in each of the K clusters (Lemma 5.2).
    """

    loss: FloatArray
    alpha: FloatArray
    beta: FloatArray


def paper_values(law: Any, phi: FloatArray, ups: FloatArray) -> PaperValues:
    """Evaluate Lemmas A.8, 5.1 and 5.2 at given correlations, by enumerating all masked images."""
    offsets = feature_offsets(law.area_ids)
    values = PaperValues(np.zeros(law.P), np.zeros_like(phi), np.zeros((law.K, *ups.shape)))
    for query in queries(law, phi, ups):
        k, p = query.cluster, query.patch
        values.loss[p] += query.weight @ query.loss
        values.alpha[p, offsets[k] : offsets[k + 1]] += query.weight @ query.alpha
        values.beta[k, p] += query.weight @ query.beta
    return values


class TokenImage(NamedTuple):
    """Masked image, given by the vectors of its tokens.

    `weight` is the probability of the image, and `masked`, shape (M,), lists its masked patches.
    The arrays `contents` and `visible`, shape (P, d), hold the contents of all patches; in
    `visible`, masked patches have zeros. `u`, shape (M, P), is the attention of the masked patches
    to all keys.
    """

    weight: float
    cluster: int
    masked: Any
    contents: FloatArray
    visible: FloatArray
    u: FloatArray


def token_images(
    law: Any, positions: FloatArray, features: FloatArray, Q: FloatArray
) -> Iterator[TokenImage]:
    """Yield every masked image with its tokens and with the attention computed from the full Q.

    The rows of `positions`, shape (P, d), and `features`, shape (features, d), are orthonormal. The
    trained matrix `Q` has shape (d, d).
    """
    areas, first = law.area_ids, feature_offsets(law.area_ids)
    for k, z, masked, weight in zip(*all_images(law), strict=True):
        contents = z[:, None] * features[areas[k] + first[k]]
        visible = contents.copy()
        visible[masked] = 0.0
        tokens = visible + positions
        scores = tokens[masked] @ Q @ tokens.T
        u = np.exp(scores - scores.max(axis=1, keepdims=True))
        u /= u.sum(axis=1, keepdims=True)
        yield TokenImage(float(weight), int(k), masked, contents, visible, u)


def stated_gradient(
    law: Any, positions: FloatArray, features: FloatArray, Q: FloatArray
) -> FloatArray:
    r"""Gradient of the loss by Q, shape (d, d), from the formula of Lemma A.1.

    Patch p has content X_p, token :math:`\tilde X_p`, output F_p and attention :math:`u_{pq}`. For
    one image, the gradient is minus the sum over masked patches p of

    .. math:: \sum_q u_{pq} \langle X_p - F_p,\; 1\{q \notin M\} X_q - F_p \rangle\, \tilde X_p
       \tilde X_q^\top.
    """
    total = np.zeros_like(Q)
    for image in token_images(law, positions, features, Q):
        output = image.u @ image.visible
        missing = image.contents[image.masked] - output
        along = missing @ image.visible.T - (missing * output).sum(axis=1, keepdims=True)
        tokens = image.visible + positions
        total -= image.weight * tokens[image.masked].T @ (image.u * along) @ tokens
    return total
