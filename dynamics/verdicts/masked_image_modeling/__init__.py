"""Claims and figures of Huang, Wen, Chi, Liang (2024), masked image modelling."""

from __future__ import annotations

from collections.abc import Mapping

from dynamics.verdicts.claim import checks_of
from dynamics.verdicts.figure import Figure
from dynamics.verdicts.findings import Check
from dynamics.verdicts.masked_image_modeling import (
    diversity,
    figures,
    gap,
    identities,
    masks,
    phases,
)

CHECKS: Mapping[str, Check] = checks_of(identities, masks, gap, phases, diversity)
FIGURES: Mapping[str, Figure] = {
    "phases": figures.phases_figure,
    "gap": figures.gap_figure,
    "diversity": diversity.diversity_figure,
    "digits": diversity.digits_figure,
    "scaling": figures.scaling_figure,
}
