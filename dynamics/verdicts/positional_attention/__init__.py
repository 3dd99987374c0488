"""Jelassi, Sander, Li (2022): what could contradict each claim, and the figures."""

from __future__ import annotations

from collections.abc import Mapping
from functools import wraps
from math import nan
from typing import Any

from dynamics.verdicts.claim import checks_of
from dynamics.verdicts.figure import Figure
from dynamics.verdicts.findings import Check, Finding, Protocol
from dynamics.verdicts.positional_attention import (
    association,
    convolution,
    figures,
    finite_samples,
    image_claims,
    learned_attention,
    linear,
    phases,
    population,
    real_images,
    realistic,
    third_event,
    transverse,
    unknown_partition,
    update_rules,
)
from theory.papers.positional_attention.data_law import MIXED

ANY_LAW = ("Lemma 4.1", "Lemma 4.2", "Lemma 4.3", "Section 4.2", "Zero error")
"""Claims that need the symmetry of the law and not Assumption 1 itself, and ours."""


def _under_assumption_1(check: Check) -> Check:
    """A check that decides nothing at a user's parameters with another law of the random sets."""

    @wraps(check)
    def screened(system: Any, protocol: Protocol) -> Finding:
        if getattr(protocol.parameters, "random_sets", None) == MIXED:
            reason = "the claim is of Assumption 1, and random_sets=mixed is another law"
            return Finding(None, "not measured", nan, nan, reason, missing=("law",))
        return check(system, protocol)

    return screened


_CHECKS: Mapping[str, Check] = {
    "Figure 2": convolution.figure_2,
    "Theorem 3.1": linear.theorem_3_1,
    "Theorem 3.2": linear.theorem_3_2,
    "Lemma 4.1": population.lemma_4_1,
    "Lemma 4.2": population.lemma_4_2,
    "Lemma 4.3": population.lemma_4_3,
    "Theorem 4.1": phases.theorem_4_1,
    "Theorem 4.2": finite_samples.theorem_4_2,
    "Figure 4": finite_samples.figure_4,
    "Event I": phases.event_1,
    "Event II": phases.event_2,
    "Event III": phases.event_3,
    "Section 4.2": transverse.check,
    "Theorem 5.1": learned_attention.theorem_5_1,
    "Theorem 5.2": unknown_partition.theorem_5_2,
    "Figure 1a": image_claims.figure_1a,
    "Figure 5a": image_claims.figure_5a,
    "Figure 5c": image_claims.figure_5c,
    "Figure 7": image_claims.figure_7,
    "Zero error": third_event.zero_error,
    "Adam": update_rules.adam,
}
CHECKS: Mapping[str, Check] = {
    source: check if source in ANY_LAW else _under_assumption_1(check)
    for source, check in _CHECKS.items()
} | checks_of(association)

STABILITY = transverse.stability

FIGURES: Mapping[str, Figure] = {
    "1b": figures.partitions,
    "2": convolution.convolution,
    "3": figures.data_point,
    "4": figures.association,
    "deviation": realistic.deviation_figure,
    "phase": realistic.phase_figure,
    "transverse": transverse.transverse_figure,
    "omega": transverse.omega_figure,
    "plane": figures.plane,
    "event_III": third_event.event_III,
    "rules": update_rules.rules_figure,
    "images": real_images.images_figure,
}
