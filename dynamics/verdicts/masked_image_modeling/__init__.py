"""Huang, Wen, Chi, Liang (2024): what could contradict each claim, and the figures."""

from __future__ import annotations

from collections.abc import Mapping

from dynamics.verdicts.figure import Figure
from dynamics.verdicts.findings import Check
from dynamics.verdicts.masked_image_modeling import (
    averaged_claims,
    convergence,
    correlations,
    figures,
    maps,
    masks,
    phases,
    positions,
    real_images,
    significance,
    token_vectors,
)

CHECKS: Mapping[str, Check] = {
    "Appendix A.1": averaged_claims.appendix_a_1,
    "Lemma A.8": averaged_claims.lemma_a_8,
    "Lemma 5.1": averaged_claims.lemma_5_1,
    "Lemma 5.2": averaged_claims.lemma_5_2,
    "Equation (5.1)": averaged_claims.equation_5_1,
    "Equation (4.1)": correlations.equation_4_1,
    "Section 5.1, monotone": correlations.monotone,
    "Section 5.1, key observation": positions.key_observation,
    "Section 5.2, stage 1": phases.stage_1,
    "Lemma 5.3": phases.lemma_5_3,
    "Section 5.2, intuition": phases.intuition,
    "Section 5.2, separation": phases.separation,
    "Section 5.3, rapid growth": convergence.rapid_growth,
    "Section 5.3, convergence": convergence.end_of_growth,
    "Theorem 4.1, loss": convergence.loss,
    "Theorem 4.1, attention": convergence.attention,
    "Theorem F.3, local areas": correlations.theorem_f_3_local,
    "Theorem F.3, frozen": convergence.frozen,
    "Theorem F.3, global areas": correlations.theorem_f_3_global,
    "Theorem F.4": correlations.theorem_f_4,
    "Section 5.4, PP": positions.section_5_4,
    "Lemma A.1": token_vectors.lemma_a_1,
    "Equation (3.2)": token_vectors.equation_3_2,
    "Section 3.1": significance.section_3_1,
    "Lemma A.6": masks.lemma_a_6,
    "Lemma A.7": masks.lemma_a_7,
    "Lemma A.10": masks.lemma_a_10,
    "Lemma A.9": masks.lemma_a_9,
    "Section 6": maps.section_6,
    "Figure 3": real_images.figure_3,
}

FIGURES: Mapping[str, Figure] = {
    "phases": phases.phases_figure,
    "gap": figures.gap_figure,
    "diversity": maps.diversity_figure,
    "digits": real_images.digits_figure,
    "scaling": figures.scaling_figure,
}
