"""Rounding of the terms of a loss or a rate, at entries of Q up to some size."""

from __future__ import annotations

from typing import Any

import numpy as np

ROUNDING = 1e-12
SPREADS = (0.0, 0.5, 1.0, 2.0, 4.0)
"""Standard deviations of the entries of a random Q."""


def known_error(law: Any, entry: float = SPREADS[-1]) -> float:
    """Share of a term that rounding may make: of scores up to U times the largest entry of Q.

    Parameters
    ----------
    law : Parameters
    entry : float
        That entry.
    """
    return float(16 * np.finfo(np.float64).eps * max(1.0, law.U * entry))


def rounding_of_rates(law: Any, entry: float) -> float:
    """How far rounding may bring a rate of Phi from what it is, at entries of Q up to a size.

    Parameters
    ----------
    law : Parameters
    entry : float
        That size.
    """
    return known_error(law, entry) * float(law.gamma * law.U**3 / law.K)


def scale_of(law: Any, largest: float, power: int) -> float:
    """Scale of a difference: the largest value, but at least the rounding of its terms.

    Where attention is saturated, terms of size z^power cancel: two values may be equal in all of
    their digits but the last of the terms. Those are within `ROUNDING` of this scale.

    Parameters
    ----------
    law : Parameters
    largest : float
        Of the values.
    power : int
        Of the latent, in a term: 2 of a loss or a rate of Ups, 3 of a rate of Phi.
    """
    return max(float(largest), known_error(law) / ROUNDING * law.gamma * law.U**power)
