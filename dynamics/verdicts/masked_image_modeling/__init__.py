"""Huang, Wen, Chi, Liang (2024): what could contradict each claim, and the figures."""

from __future__ import annotations

from collections.abc import Mapping

from dynamics.verdicts.claim import checks_of
from dynamics.verdicts.figure import Figure
from dynamics.verdicts.findings import Check
from dynamics.verdicts.masked_image_modeling import (
    chances,
    figures,
    gap,
    identities,
    late,
    maps,
    phases,
    positions,
    real_images,
)

CHECKS: Mapping[str, Check] = checks_of(
    identities, chances, gap, phases, late, positions, maps, real_images
)
FIGURES: Mapping[str, Figure] = {
    "phases": figures.phases_figure,
    "gap": figures.gap_figure,
    "diversity": maps.diversity_figure,
    "digits": real_images.digits_figure,
    "scaling": figures.scaling_figure,
}
