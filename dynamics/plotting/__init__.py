"""Pictures: one file per kind, functions that take results and return Axes.

Results never import this package. Labels come from the notation table of the system.
"""

from dynamics.plotting.attention import attention
from dynamics.plotting.branches import branches
from dynamics.plotting.comparison import comparison
from dynamics.plotting.cost import cost
from dynamics.plotting.deviation import deviation
from dynamics.plotting.overlay import overlay, several
from dynamics.plotting.stability import stability
from dynamics.plotting.style import write
from dynamics.plotting.training import training
from dynamics.plotting.transverse import transverse

__all__ = [
    "attention",
    "branches",
    "comparison",
    "cost",
    "deviation",
    "overlay",
    "several",
    "stability",
    "training",
    "transverse",
    "write",
]
