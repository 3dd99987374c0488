"""Phases of a sweep: slices of its dataset, boundaries, scaling laws and thresholds.

In the dataset of a sweep, the variable ``outcome`` gives the outcome of each run as an index; every
other variable gives one number for each run.
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
