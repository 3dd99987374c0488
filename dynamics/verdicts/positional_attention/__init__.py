"""Jelassi, Sander, Li (2022): what could contradict each claim, and the figures."""

from __future__ import annotations

from collections.abc import Mapping

from dynamics.verdicts.claim import checks_of
from dynamics.verdicts.figure import Figure
from dynamics.verdicts.findings import Check
from dynamics.verdicts.positional_attention import (
    association,
    association_time,
    convolution,
    figures,
    image_claims,
    lemmas,
    linear,
    phases,
    plateau,
    real_images,
    sample_figures,
    samples,
    third_event,
    transfer,
    transverse,
    transverse_figures,
    update_rules,
)

CHECKS: Mapping[str, Check] = checks_of(
    association,
    convolution,
    image_claims,
    lemmas,
    linear,
    phases,
    plateau,
    samples,
    third_event,
    transfer,
    transverse,
    update_rules,
)

STABILITY = transverse.stability

FIGURES: Mapping[str, Figure] = {
    "1b": figures.partitions,
    "2": convolution.convolution,
    "3": figures.data_point,
    "4": figures.association,
    "deviation": sample_figures.deviation_figure,
    "phase": sample_figures.phase_figure,
    "transverse": transverse_figures.transverse_figure,
    "omega": transverse_figures.omega_figure,
    "plane": figures.plane,
    "association_ends": plateau.association_ends,
    "event_III": third_event.event_III,
    "T1": association_time.t1_law,
    "rules": update_rules.rules_figure,
    "images": real_images.images_figure,
}
