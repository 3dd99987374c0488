"""Recall of trained sentences and of their reversals, and weights between tokens; a figure."""

from __future__ import annotations

from typing import Any

import numpy as np

from dynamics.system import System
from dynamics.verdicts.cases import Case, flow_to, reduced_flow
from dynamics.verdicts.claim import TIME, Also, Picture, claim
from dynamics.verdicts.figure import Drawing, FigureRequest, title
from dynamics.verdicts.library.lines import over_time

LONG = 1e5
LEARNED = 0.99
ROUNDING = 1e-9
run_long = flow_to(LONG)


def tokens(law: Any) -> int:
    """Number of tokens of the model, including the forward and the backward arrow."""
    return int(2 + 2 * (law.both + 2 * law.one))


@claim(
    "Training", "mean probability of the right token of trained sentences, at the end", ">=",
    LEARNED, run=run_long, words="T_learned = {T_learned:.4g}",
    picture=Picture(TIME, "probability of the right token"),
)  # fmt: skip
def trained(case: Case) -> dict[str, Any]:
    """Mean probability of the right token in trained sentences, along training."""
    run = case.run
    return {
        "value": run["known"][-1], "T_learned": run.events["T_learned"].time, "open": "time",
        "curves": {"trained": (run.time, run["known"])},
    }  # fmt: skip


@claim(
    "Reversal", "largest held-out probability along training, times the number of tokens", "<=",
    1.0 + ROUNDING, run=run_long,
    words="{tokens} tokens: the held-out risk goes from {first:.4f}, which is ln {tokens}, to "
    "{last:.4g}",
    picture=Picture(TIME, "held-out probability, times the number of tokens"),
)  # fmt: skip
def reversal(case: Case) -> dict[str, Any]:
    """Probability of the right token in held-out reversals of facts trained in one direction."""
    run, count = case.run, tokens(case.parameters)
    risk, known = run["held_out_risk"], run["held_out_known"] * count
    return {
        "value": known.max(), "tokens": count, "first": risk[0], "last": risk[-1],
        "curves": {"held out": (run.time, known)},
    }  # fmt: skip


@claim(
    "Asymmetry", "largest weight of the way back along training", "<=", ROUNDING, run=run_long,
    also=(Also("forth", ">", 1.0, "weight of the trained direction at the end"),),
    words="weights of a fact that is trained in one direction: {forth:.4g} forth, {back:.4g} back",
    picture=Picture(TIME, "weight", scales=("log", "linear")),
)  # fmt: skip
def asymmetry(case: Case) -> dict[str, Any]:
    """Weights, in both directions, between tokens of a fact trained in one direction only."""
    run, law = case.run, case.parameters
    decoder = case.problem.lift(run.states)[:, 2 * tokens(law) :]
    decoder = decoder.reshape(len(run.time), tokens(law), tokens(law))
    first = 2 + 2 * law.both
    forth, back = decoder[:, first, first + 1], decoder[:, first + 1, first]
    return {
        "value": back.max(), "forth": forth[-1], "back": back[-1],
        "curves": {"forth": (run.time, forth), "back": (run.time, back)},
    }  # fmt: skip


def directions(system: System, request: FigureRequest) -> Drawing:
    """Risk of trained sentences and of held-out directions along the flow; option ``time``."""
    end, law = float(request.options({"time": LONG})["time"]), request.make_parameters(system)
    run = reduced_flow(system.ReducedPopulation, law, end)[1]
    curves = {
        "trained sentences": (run.time, run["risk"]),
        "the other directions, held out": (run.time, run["held_out_risk"]),
        f"a guess among {tokens(law)} tokens": (
            run.time, np.full(run.time.size, np.log(tokens(law))),
        ),
    }  # fmt: skip
    caption = (
        "Loss of trained sentences and of the other directions of facts that are trained in one "
        "direction, along the gradient flow."
    )
    look = {"xlim": (1.0, end), "ylim": (0, None), "ylabel": "loss"}
    return over_time(title(system, law, "both", "one", width=6.4), curves, caption, **look)


FIGURES = {"directions": directions}
