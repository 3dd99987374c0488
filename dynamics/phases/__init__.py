"""Phases of a sweep: slices of a stored dataset, boundaries, scaling laws; no pictures.

A sweep is a dataset whose dimensions are the swept parameters; ``outcome`` says how each run
ended, every other variable is a number of each run: `dynamics.phases.quantity`. A `threshold` is
the level at which half of the runs succeed.
"""

from dynamics.phases.axis import Axis, Span
from dynamics.phases.boundary import boundary
from dynamics.phases.quantity import Quantity
from dynamics.phases.refine import Refined, refine
from dynamics.phases.scaling import Scaling, scaling
from dynamics.phases.select import Slice, select
from dynamics.phases.threshold import Power, Threshold, power, threshold

__all__ = [
    "Axis",
    "Power",
    "Quantity",
    "Refined",
    "Scaling",
    "Slice",
    "Span",
    "Threshold",
    "boundary",
    "power",
    "refine",
    "scaling",
    "select",
    "threshold",
]
