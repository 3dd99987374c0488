"""Presentation of runs of the shallow Vision Transformer: letters, panels, phases."""

from __future__ import annotations

from dynamics.presentation import Panel, PlotDescription, Presentation, conditions
from theory.papers.shallow_vit.notation import EVENTS, NOTATION

PRESENTATION = Presentation(
    title="Shallow Vision Transformer, hinge loss (Li, Wang, Liu, Chen 2023)",
    notation=NOTATION,
    plot=PlotDescription(
        panels=(
            Panel(
                (
                    ("relevant", 5), ("relevant_by_relevant", 0), ("relevant_by_confusion", 1),
                    ("relevant_by_other", 2),
                ),
                label="attention to\nrelevant tokens",
                words=("all queries", "relevant", "confusion", "others"),
            ),
            Panel(
                (("risk", 0), ("test_loss", 1), ("active", 2), ("test_error", 4)),
                label="loss, errors",
            ),
            Panel(
                (("B_11", 0), ("B_12", 1), ("B_1k", 3), ("B_k1", 4), ("B_kk", 2), ("B_kl", 5)),
                level="0",
                label="scores, class means",
            ),
            Panel(
                (("lucky_W", 0), ("lucky_U", 1), ("gate_classes", 2)),
                label="neurons",
                words=("open to +", "open to $-$", "gate classes"),
            ),
        ),
        spans=(("below the margin", None, "t_zero"), ("zero loss", "t_zero", None)),
        marks={"t_zero": r"$t_{\mathrm{zero}}$"},
        asides={"mass_75": r"$P_* = 75\,\%$"},
        overlaid=("relevant", "test_loss", "test_error", "B_11", "lucky_W"),
    ),
    event_latex=conditions(EVENTS),
    unused=("noise",),
)  # fmt: skip
