r"""The least loss that correlations with positions alone can reach (Section 3.1).

Where Phi = 0 the weights of a patch p do not depend on the image: :math:`u_q = w_q / D` is any
point of the simplex, and :math:`A_a` is linear in it, so that the loss is a convex quadratic

.. math:: L_p(u) = \frac{\gamma}{2 K} \sum_k E\Big[z_m^2 (1 - A_m)^2 + \sum_{a \neq m} z_a^2 A_a^2
   \,\Big|\, p \in M\Big].

Its least value over the simplex is what all Ups together can reach. It is bounded from below by the
duality gap, so that nothing rests on the accuracy of the minimizer.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np

from theory.law import FloatArray
from theory.papers.masked_image_modeling.model import latent_moment


class Quadratic(NamedTuple):
    """The loss c - b u + u H u / 2 of a patch whose attention is u wherever it looks.

    `linear`, shape (P,); `square`, shape (P, P): rows and columns of p itself, which is masked, are
    zero.
    """

    constant: float
    linear: FloatArray
    square: FloatArray

    def value(self, u: FloatArray) -> float:
        """The loss at an attention."""
        return float(self.constant - self.linear @ u + u @ self.square @ u / 2)

    def slope(self, u: FloatArray) -> FloatArray:
        """Its gradient."""
        return np.asarray(self.square @ u - self.linear)


def position_loss(law: Any, p: int) -> Quadratic:
    """The loss of patch p as a function of attention that is the same in all images."""
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
    """Least loss of a patch with attention that is the same in all images.

    `lower`, `upper`: bounds on it: from the duality gap, and at the attention; `attention`, shape
    (P,): of the minimizer.
    """

    lower: float
    upper: float
    attention: FloatArray


def least_by_positions(law: Any, p: int) -> Least:
    """Minimize the loss of patch p over attention that is the same in all images."""
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
