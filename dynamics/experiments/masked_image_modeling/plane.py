"""The plane of exponents (kappa_c, kappa_s): where training starts with Phase I, and where not."""

from __future__ import annotations

from dataclasses import dataclass, replace
from math import log
from typing import TYPE_CHECKING, Any

import numpy as np

from dynamics.experiments.masked_image_modeling.runs import trained
from dynamics.problem import FloatArray

if TYPE_CHECKING:
    from dynamics.registry import System

LEAST_CORE = 0.5
MOST_CORE = 0.98
MOST_LOCAL = 0.5
"""Ranges of the exponents, as the paper has them: kappa_c from 1/2, kappa_s up to 1/2."""


@dataclass(frozen=True)
class Plane:
    """The ratio of both rates at the start over the plane.

    Attributes
    ----------
    rows : tuple of (float, float array, float array)
        For every local size kappa_s, the kappa_c, and |alpha_0| / alpha_m there.
    boundary : float array, shape (points, 2)
        (kappa_c, kappa_s) where it is 1, between the two nearest sizes.
    trained : float array, shape (runs, 4)
        (kappa_c, kappa_s) on either side of it, whether the run had two phases, and whether the
        ratio is above 1 at the start.
    """

    rows: tuple[tuple[float, FloatArray, FloatArray], ...]
    boundary: FloatArray
    trained: FloatArray


def plane(system: System, law: Any, local: int, core: int) -> Plane:
    """Measure the plane at the patches and masks of a law.

    Parameters
    ----------
    system : System
    law : Parameters
        Of one cluster.
    local, core : int
        Sizes on each axis, evenly spread over its logarithm; fewer where they coincide.
    """
    sizes = np.unique(np.geomspace(2, law.P**MOST_LOCAL, local).round().astype(int))
    rows, crossed, runs = [], [], []
    for size in sizes.tolist():
        laws = _line(law, size, core)
        ratios = np.array([system.ReducedPopulation(one).rho0 for one in laws])
        places = np.array([one.kappa_c for one in laws])
        rows.append((log(size) / log(law.P), places, ratios))
        for k in np.flatnonzero(np.diff(np.sign(np.log(ratios)))):
            share = np.log(ratios[k]) / np.log(ratios[k] / ratios[k + 1])
            kappa = places[k] + share * (places[k + 1] - places[k])
            crossed.append((kappa, rows[-1][0]))
            runs += [_seen(system, one) for one in laws[k : k + 2]]
    return Plane(tuple(rows), np.reshape(crossed, (-1, 2)), np.reshape(runs, (-1, 4)))


def _line(law: Any, size: int, core: int) -> list[Any]:
    """Laws with one local size and global areas of growing size."""
    wanted = law.P ** np.linspace(LEAST_CORE, MOST_CORE, core)
    left = law.P - wanted.round().astype(int)
    sizes = np.unique(law.P - np.maximum(size, left - left % size))
    given = {"C_local": size, "d": None}
    return [replace(law, C_global=int(one), **given) for one in sizes if one >= 1]


def _seen(system: System, law: Any) -> tuple[float, float, float, float]:
    """Exponents of a law, whether its run had two phases, and whether rho says so at the start."""
    case = trained(system, law, horizon=5.0)
    return law.kappa_c, law.kappa_s, float(case.two_phases), float(case.run["rho"][0] > 1)
