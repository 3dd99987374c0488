"""Presentation of results of masked image modelling: letters, panels and phases of plots."""

from dynamics.presentation import Panel, PlotDescription, Presentation, conditions
from theory.papers.masked_image_modeling.notation import EVENTS, NOTATION

PRESENTATION = Presentation(
    title="Masked image modelling, feature-position correlations (Huang, Wen, Chi, Liang 2024)",
    notation=NOTATION,
    plot=PlotDescription(
        panels=(
            Panel((("Phi_m", 0), ("Phi_0", 1)), level="0"),
            Panel((("alpha_m", 0), ("alpha_0", 1)), logarithmic=True),
            Panel((("A_m", 0), ("A_g", 2)), level="1/2"),
            Panel((("gap", 0), ("gap_g", 2)), logarithmic=True),
        ),
        spans=(("Phase I", "E0", "E2"), ("Phase II", "E2", "E4"), ("convergence", "E4", None)),
        marks={"E2": "$E_2$", "E4": "$E_4$"},
        asides={"E5": "$E_5$"},
        overlaid=("Phi_m", "Phi_0", "A_m", "gap"),
        alone={"Phase II": "one phase"},
    ),
    event_latex=conditions(EVENTS),
    unused=("d",),
)
