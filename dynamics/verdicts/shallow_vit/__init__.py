"""Li, Wang, Liu, Chen (2023): what could contradict each claim, and the figures."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from functools import wraps

from dynamics.system import System
from dynamics.verdicts.figure import Figure
from dynamics.verdicts.findings import Check, Finding, Protocol
from dynamics.verdicts.shallow_vit import (
    attention,
    diagrams,
    figures,
    inequalities,
    iterations,
    neurons,
    noiseless,
    samples,
    sparsification,
    texture_claims,
    textured_images,
)

NOISY = {
    "Remark 2", "Figure 4", "Figure 5", "Figures 7 and 8", "Section 4.1, initialization", "Lemma 1",
    "Equation (70)", "Figure 6a", "Figure 6b", "Figure 6c",
}  # fmt: skip
"""Claims that are measured on noisy tokens, or on none."""
FREEZING = {"Theorem 1, samples", "Proposition 1", "Remark 1", "Figure 3"}
"""Claims that say themselves what is frozen."""


def _with_notes(source: str, check: Check) -> Check:
    """The check, whose reason says which of the user's parameters it did not use."""

    @wraps(check)
    def noted(system: System, protocol: Protocol) -> Finding:
        finding, law = check(system, protocol), protocol.parameters
        words = [finding.reason]
        if law is not None and law.noise > 0 and source not in NOISY:
            words.append("on tokens without noise")
        if law is not None and law.frozen != "none" and source in FREEZING:
            words.append(f"frozen as the claim says, not frozen={law.frozen}")
        return replace(finding, reason="; ".join(words))

    return noted


_MEASURED: Mapping[str, Check] = {
    "Pattern closure": noiseless.pattern_closure,
    "Gram form": noiseless.gram_form,
    "Odds identity": noiseless.odds_identity,
    "Symmetric collapse": noiseless.symmetric_collapse,
    "Margin and output weights": noiseless.margin_and_weights,
    "Theorem 1, generalization": samples.generalization,
    "Theorem 1, iterations": iterations.theorem_1,
    "Theorem 1, samples": samples.samples,
    "Equation (9)": inequalities.equation_9,
    "Equation (70)": inequalities.equation_70,
    "Figure 1a": samples.figure_1a_check,
    "Figure 1b": samples.figure_1b_check,
    "Figure 2, in proportion": iterations.in_proportion,
    "Figure 2, other shares": iterations.not_in_proportion,
    "Proposition 1": samples.proposition_1,
    "Figure 3": samples.figure_3_check,
    "Remark 1": samples.remark_1,
    "Remark 2": sparsification.remark_2,
    "Figure 5": sparsification.figure_5_check,
    "Remark 3, samples": samples.remark_3_samples,
    "Remark 3, convergence": iterations.remark_3,
    "Proposition 2": attention.proposition_2,
    "Proposition 2, rate": attention.rate,
    "Figure 4": attention.figure_4,
    "Figures 7 and 8": attention.figures_7_and_8,
    "Lemma 1": inequalities.lemma_1,
    "Lemma 2, claim 1": neurons.growth_of_neurons,
    "Lemma 2, claim 2": neurons.growth_of_keys,
    "Lemma 2, claim 3": neurons.growth_of_values,
    "Lemma 3": neurons.lemma_3,
    "Lemma 4": neurons.lemma_4,
    "Section 4.1, initialization": noiseless.initialization,
    "Figure 6a": texture_claims.figure_6a,
    "Figure 6b": texture_claims.figure_6b,
    "Figure 6c": texture_claims.figure_6c,
}

CHECKS: Mapping[str, Check] = {
    source: _with_notes(source, check) for source, check in _MEASURED.items()
}

FIGURES: Mapping[str, Figure] = {
    "1a": diagrams.figure_1a,
    "1b": diagrams.figure_1b,
    "2": iterations.figure_2,
    "3": diagrams.figure_3,
    "4": figures.figure_4,
    "5": sparsification.figure_5,
    "7": figures.figure_7,
    "8": sparsification.figure_8,
    "textures": textured_images.textures_figure,
}
