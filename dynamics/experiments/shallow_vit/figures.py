"""Figures of Li, Wang, Liu, Chen (2023) that need no image data."""

from __future__ import annotations

from collections.abc import Mapping

from dynamics.experiments.figure import Figure
from dynamics.experiments.shallow_vit import diagrams, tokens, training_curves

FIGURES: Mapping[str, Figure] = {
    "1a": diagrams.figure_1a,
    "1b": diagrams.figure_1b,
    "2": training_curves.figure_2,
    "3": diagrams.figure_3,
    "4": training_curves.figure_4,
    "5": tokens.figure_5,
    "7": training_curves.figure_7,
    "8": tokens.figure_8,
}
