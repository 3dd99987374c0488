"""Presentation (letters, panels, phases) and events of all problems of positional attention."""

from collections.abc import Mapping

from dynamics.presentation import Panel, PlotDescription, Presentation, conditions
from dynamics.problem import Problem
from theory.papers.positional_attention.notation import (
    EVENTS,
    NOTATION,
    ORDER_PARAMETERS,
    RATES,
)

MEMORISED = "training error is zero: memorisation"
"""Remark for a rise of alpha (event_III) at which fresh samples are still misclassified."""
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
        marks={"T0": "$T_0$", "T1": "$T_1$", "event_III": r"$\min\,\alpha$"},
        asides={"T1_paper": r"$T_1$ (paper)"},
        overlaid=("alpha", "gamma", "rho", "risk"),
    ),
    event_latex=conditions(EVENTS),
    unused=("d", "sigma", "omega"),
)


class PositionalProblem(Problem):
    """Base of the problems of positional attention."""

    system = "positional_attention"
    presentation = PRESENTATION
    events = EVENTS
    order_names = ORDER_PARAMETERS
    rates = RATES

    def remarks(self, final: Mapping[str, float]) -> Mapping[str, str]:
        """Remark on event_III if the training error is zero and the test error is positive."""
        memorised = final.get("error") == 0 < final.get("test_error", 0.0)
        return {"event_III": MEMORISED} if memorised else {}
