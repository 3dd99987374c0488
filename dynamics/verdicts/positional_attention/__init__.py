"""Claims and figures of Jelassi, Sander, Li (2022), positional attention."""

from __future__ import annotations

from collections.abc import Mapping

from dynamics.verdicts.claim import checks_of
from dynamics.verdicts.figure import Figure
from dynamics.verdicts.findings import Check
from dynamics.verdicts.positional_attention import (
    convolution,
    figures,
    flow_figures,
    image_figure,
    lemmas,
    linear,
    phases,
    plateau,
    real_images,
    samples,
    transfer,
    transverse,
    update_rules,
)

CHECKS: Mapping[str, Check] = checks_of(
    convolution, lemmas, linear, phases, plateau, real_images, samples, transfer, transverse,
    update_rules,
)  # fmt: skip
STABILITY = transverse.stability
FIGURES: Mapping[str, Figure] = {
    "1b": figures.partitions,
    "2": convolution.convolution,
    "3": figures.data_point,
    "4": figures.association,
    "deviation": samples.deviation_figure,
    "phase": samples.phase_figure,
    "transverse": transverse.transverse_figure,
    "omega": transverse.omega_figure,
    "plane": figures.plane,
    "association_ends": flow_figures.association_ends,
    "event_III": flow_figures.event_III,
    "T1": flow_figures.t1_law,
    "rules": update_rules.rules_figure,
    "images": image_figure.images_figure,
}
