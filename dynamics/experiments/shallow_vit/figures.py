"""Figures of Li, Wang, Liu, Chen (2023) that need no image data."""

from __future__ import annotations

from collections.abc import Mapping

from dynamics.experiments.figure import Figure
from dynamics.experiments.shallow_vit import courses, diagrams, tokens

FIGURES: Mapping[str, Figure] = {
    "1a": diagrams.figure_1a,
    "1b": diagrams.figure_1b,
    "2": courses.figure_2,
    "3": diagrams.figure_3,
    "4": courses.figure_4,
    "5": tokens.figure_5,
    "7": courses.figure_7,
    "8": tokens.figure_8,
}
