r"""Minimum loss if all correlations with features are zero (Section 3.1).

For Phi = 0 the attention u of a patch p to the keys is the same for all images, and can be any
point of the simplex. The attention :math:`A_a` to the unmasked patches of an area a is linear in u,
so with p's area m and latents z, the loss is a convex quadratic function of u,

.. math:: L_p(u) = \frac{\gamma}{2 K} \sum_k E\Big[z_m^2 (1 - A_m)^2 + \sum_{a \neq m} z_a^2 A_a^2
   \,\Big|\, p \in M\Big].

The minimum over the simplex is the infimum over all correlations Ups with positions. A lower bound
of the minimum follows from the gradient at any point, so it holds even if the minimizer is
inaccurate.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from theory.law import FloatArray
from theory.papers.masked_image_modeling.model import latent_moment


class Quadratic(NamedTuple):
    """Loss c - b u + u H u / 2 of a masked patch p whose attention u is the same for all images.

    The fields are c = `constant`, b = `linear`, shape (P,), and H = `square`, shape (P, P). The row
    and the column p of H are zero.
    """

    constant: float
    linear: FloatArray
    square: FloatArray

    def value(self, u: FloatArray) -> float:
        """Loss at attention u."""
        return float(self.constant - self.linear @ u + u @ self.square @ u / 2)

    def slope(self, u: FloatArray) -> FloatArray:
        """Gradient of the loss at attention u."""
        return np.asarray(self.square @ u - self.linear)


def position_loss(law: Any, p: int) -> Quadratic:
    """Loss of masked patch p as a function of its attention, which is the same for all images."""
    unmasked = (law.P - law.masked) / (law.P - 1)
    both = unmasked * (law.P - law.masked - 1) / max(law.P - 2, 1)
    scale = law.masked / law.P * latent_moment(law.z, law.odds, 2)
    others, linear, square = np.arange(law.P) != p, np.zeros(law.P), np.zeros((law.P, law.P))
    for areas in law.area_ids:
        together = (areas[:, None] == areas) & others[:, None] & others
        linear += scale / law.K * unmasked * (others & (areas == areas[p]))
        square += scale / law.K * both * together
    square += scale * (unmasked - both) * np.diag(others)
    return Quadratic(scale / 2, linear, square)


class Least(NamedTuple):
    """Bounds of the minimum loss of a patch whose attention is the same for all images."""

    lower: float
    upper: float
    attention: FloatArray


def least_by_positions(law: Any, p: int) -> Least:
    """Minimize the loss of masked patch p over its attention, if it is the same for all images."""
    from scipy.optimize import minimize

    loss = position_loss(law, p)
    result = minimize(
        loss.value, np.full(law.P, 1 / law.P), jac=loss.slope, method="SLSQP",
        bounds=[(0.0, 1.0)] * law.P, options={"ftol": 1e-14, "maxiter": 500},
        constraints={"type": "eq", "fun": lambda u: u.sum() - 1, "jac": np.ones_like},
    )  # fmt: skip
    u = np.maximum(result.x, 0.0) / np.maximum(result.x, 0.0).sum()
    value, slope = loss.value(u), loss.slope(u)
    return Least(value - float(slope @ u - slope.min()), value, u)
