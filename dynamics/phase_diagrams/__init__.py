"""Phases of a sweep: slices of a stored dataset, boundaries, scaling laws, thresholds.

A sweep is a dataset over the swept parameters. ``outcome`` says how each run ended; every other
variable is a number of each run (`dynamics.phase_diagrams.quantities`).
"""

from dynamics.phase_diagrams.boundaries import Refined, boundary, refine
from dynamics.phase_diagrams.boundary_refinement import Question, Refinement, refinement
from dynamics.phase_diagrams.quantities import Quantity
from dynamics.phase_diagrams.scaling import Scaling, scaling
from dynamics.phase_diagrams.selection import Axis, Slice, select
from dynamics.phase_diagrams.threshold import Threshold, threshold

__all__ = [
    "Axis",
    "Quantity",
    "Question",
    "Refined",
    "Refinement",
    "Scaling",
    "Slice",
    "Threshold",
    "boundary",
    "refine",
    "refinement",
    "scaling",
    "select",
    "threshold",
]
