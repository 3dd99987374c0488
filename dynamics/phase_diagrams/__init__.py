"""Phases of a sweep: slices of a stored dataset, boundaries, scaling laws; no pictures.

A sweep is a dataset whose dimensions are the swept parameters; ``outcome`` says how each run
ended, every other variable is a number of each run: `dynamics.phase_diagrams.quantity`.
A `threshold` is
the level at which half of the runs succeed.
"""

from dynamics.phase_diagrams.adaptive_boundary import Refined, refine
from dynamics.phase_diagrams.axis import Axis, Span
from dynamics.phase_diagrams.boundary import boundary
from dynamics.phase_diagrams.quantity import Quantity
from dynamics.phase_diagrams.scaling import Scaling, scaling
from dynamics.phase_diagrams.selection import Slice, select
from dynamics.phase_diagrams.threshold import Threshold, threshold

__all__ = [
    "Axis",
    "Quantity",
    "Refined",
    "Scaling",
    "Slice",
    "Span",
    "Threshold",
    "boundary",
    "refine",
    "scaling",
    "select",
    "threshold",
]
