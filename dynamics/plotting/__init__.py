"""Plots: functions that take results and return matplotlib Axes.

A figure of several panels is returned as an array of its Axes. Labels come from the notation table
of the result's system.
"""

from dynamics.plotting.arrays import attention, diversity
from dynamics.plotting.choices import look
from dynamics.plotting.classes import entry_classes
from dynamics.plotting.departure import departure
from dynamics.plotting.evidence import evidence
from dynamics.plotting.phase import phase, refined
from dynamics.plotting.portrait import portrait, portraits
from dynamics.plotting.runs import comparison, deviation, realistic, training
from dynamics.plotting.slices import scaling, slices
from dynamics.plotting.step_size import branches, overlay, several, stability, transverse_growth
from dynamics.plotting.style import write

__all__ = [
    "attention",
    "branches",
    "comparison",
    "departure",
    "deviation",
    "diversity",
    "entry_classes",
    "evidence",
    "look",
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
