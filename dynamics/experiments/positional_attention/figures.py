"""Figures of Jelassi, Sander, Li (2022) that need no image data, and those behind the verdicts.

Figure 1a, 5 and later ones show networks trained on images.
"""

from __future__ import annotations

from collections.abc import Mapping

from dynamics.experiments.figure import Figure
from dynamics.experiments.positional_attention import verdict_figures
from dynamics.experiments.positional_attention.association import association
from dynamics.experiments.positional_attention.convolution import convolution
from dynamics.experiments.positional_attention.patches import data_point, partitions
from dynamics.experiments.positional_attention.plane import plane

FIGURES: Mapping[str, Figure] = {
    "1b": partitions,
    "2": convolution,
    "3": data_point,
    "4": association,
    "deviation": verdict_figures.deviation,
    "phase": verdict_figures.phase,
    "transverse": verdict_figures.transverse,
    "omega": verdict_figures.spread,
    "plane": plane,
}
