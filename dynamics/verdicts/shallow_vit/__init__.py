"""Claims and figures of Li, Wang, Liu, Chen (2023), "the shallow ViT"."""

from __future__ import annotations

from dynamics.verdicts.claim import checks_of
from dynamics.verdicts.shallow_vit import (
    attention,
    diagrams,
    exact,
    figures,
    image_claims,
    iterations,
    lemmas,
    samples,
    texture_pictures,
    tokens,
)

CHECKS = checks_of(exact, samples, iterations, attention, tokens, lemmas, image_claims)
FIGURES = {
    "1a": diagrams.figure_1a, "1b": diagrams.figure_1b, "2": figures.figure_2,
    "3": diagrams.figure_3, "4": figures.figure_4, "5": figures.figure_5, "7": figures.figure_7,
    "8": figures.figure_8, "textures": texture_pictures.textures_figure,
}  # fmt: skip


def nothing_to_leave(*_: object) -> None:
    """None in place of a stability: projected on patterns, full training is the reduced run."""


STABILITY = nothing_to_leave
