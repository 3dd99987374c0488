"""How results of positional attention are shown: its letters, panels and phases."""

from dynamics.results.presentation import Panel, PlotDescription, Presentation, conditions
from theory.systems.positional_attention.notation import EVENTS, NOTATION

PRESENTATION = Presentation(
    title="Positional attention and patch association (Jelassi, Sander, Li 2022)",
    notation=NOTATION,
    plot=PlotDescription(
        panels=(
            Panel((("alpha", 0),)),
            Panel((("gamma", 1), ("rho", 2)), level="0"),
            Panel((("G", 3), ("alpha_G", 4)), logarithmic=True, level="D/2"),
            Panel((("risk", 5),), logarithmic=True),
        ),
        spans=(
            ("Event I", None, "T0"),
            ("Event II", "T0", "T1"),
            ("Event III", "event_III", None),
        ),
        marks={"T0": "$T_0$", "T1": "$T_1$"},
        asides={"T1_paper": r"$T_1$ (paper)"},
        overlaid=("alpha", "gamma", "rho", "risk"),
    ),
    event_latex=conditions(EVENTS),
)
