"""Pictures: one file per kind, functions that take results and return Axes.

Results never import this package. Labels come from the notation table of the system.
"""

from dynamics.plotting.arrays import attention, entry_classes
from dynamics.plotting.branches import branches
from dynamics.plotting.comparison import comparison, deviation, realistic
from dynamics.plotting.diversity import diversity
from dynamics.plotting.evidence import evidence
from dynamics.plotting.overlay import overlay, several
from dynamics.plotting.phase import phase
from dynamics.plotting.portrait import portrait, portraits
from dynamics.plotting.refined import refined
from dynamics.plotting.scaling import scaling
from dynamics.plotting.slices import slices
from dynamics.plotting.stability import stability
from dynamics.plotting.style import write
from dynamics.plotting.training import training
from dynamics.plotting.transverse_growth import transverse_growth

__all__ = [
    "attention",
    "branches",
    "comparison",
    "deviation",
    "diversity",
    "entry_classes",
    "evidence",
    "overlay",
    "phase",
    "portrait",
    "portraits",
    "realistic",
    "refined",
    "scaling",
    "several",
    "slices",
    "stability",
    "training",
    "transverse_growth",
    "write",
]
