"""Attention that finds distinct tokens: the tokens' order, and when attention slows; a figure."""

from __future__ import annotations

from typing import Any

import numpy as np

from dynamics.problem import FloatArray
from dynamics.system import System
from dynamics.verdicts.cases import Case, flow_to, reduced_flow
from dynamics.verdicts.claim import TIME, Also, Picture, claim
from dynamics.verdicts.figure import Drawing, FigureRequest, title
from dynamics.verdicts.findings import Undecided
from dynamics.verdicts.library.lines import over_time

LONG = 1e8
TILTED = {"common": 4, "distinct": 4, "ratio": 0.5}
"""Parameters with four distinct tokens, which have four frequencies."""
ROUNDING = 1e-9
WINNER = 0.99
"""Minimum share of the attention on distinct tokens with which one token counts as winner."""
FIXED = 0.01
"""Maximum change during a factor of ten in time at which attention counts as constant."""
run_long = flow_to(LONG)


def tilted(law: Any) -> None:
    """Raise Undecided if all distinct tokens of a next token have equal frequency."""
    if law.ratio == 1 or law.distinct == 1:
        raise Undecided("all distinct tokens of a next token have equal frequency", "law")


def logits(case: Case) -> FloatArray:
    """Attention logits of tokens distinct for the first next token, shape (records, distinct)."""
    law, entries = case.parameters, case.problem.lift(case.run.states)
    return np.asarray(entries[:, law.common : law.common + law.distinct])


@claim(
    "Scan", "largest rise of attention on the common tokens between records", "<=", ROUNDING,
    laws=({}, TILTED), run=run_long,
    also=(Also("left", "<=", 0.5, "attention left, of the share"),),
    words="attention on the common tokens falls to {left:.3g} of their share",
    picture=Picture(TIME, "attention on the common tokens"),
)  # fmt: skip
def scans(case: Case) -> dict[str, Any]:
    """Attention on the common tokens along the flow, which starts at uniform attention."""
    attention = case.run["attention_c"]
    return {
        "value": np.diff(attention).max(), "left": attention[-1] / case.parameters.share,
        "curves": {case.label or "attention": (case.run.time, attention)},
    }  # fmt: skip


@claim(
    "Order", "least logit of a distinct token less that of the next, rarer one, at the end", ">=",
    0.0, laws=(TILTED,), run=run_long, require=tilted,
    words="logits {low:.3g} to {high:.3g}, from the rarest to the most frequent",
    picture=Picture(TIME, "logit of a distinct token"),
)  # fmt: skip
def in_order(case: Case) -> dict[str, Any]:
    """Final attention logits of distinct tokens; the claim orders them by frequency."""
    z = logits(case)
    curves = {f"distinct token {k + 1}": (case.run.time, row) for k, row in enumerate(z.T)}
    low, high = z[-1].min(), z[-1].max()
    return {"value": -np.diff(z[-1]).max(), "low": low, "high": high, "curves": curves}


@claim(
    "Snap", "change of attention among distinct tokens within the last factor of ten of time", "<=",
    FIXED, laws=(TILTED,), run=run_long, require=tilted,
    also=(
        Also("slower", "<", 1.0, "that change over the largest of any factor of ten"),
        Also("first", "<", WINNER, "attention on the most frequent distinct token"),
    ),
    words="the most frequent distinct token ends with {first:.4g} of the attention on distinct "
    "ones; a factor of ten of time changes it by {value:.2g}, {most:.2g} at most",
    picture=Picture(TIME, "attention on the most frequent distinct token"),
)  # fmt: skip
def snaps(case: Case) -> dict[str, Any]:
    """Attention on the most frequent distinct token, and its change while time grows tenfold."""
    time, first = case.run.time, case.run["attention_d"]
    after = np.interp(np.log(10 * time[1:]), np.log(time[1:]), first[1:])
    change = np.abs(after - first[1:])[time[1:] <= time[-1] / 10]
    return {
        "value": change[-1], "most": change.max(), "slower": change[-1] / change.max(),
        "first": first[-1], "open": "time", "curves": {"most frequent": (time, first)},
    }  # fmt: skip


def attention(system: System, request: FigureRequest) -> Drawing:
    """Attention on common tokens and on the most frequent distinct one; option ``time``."""
    end = float(request.options({"time": LONG})["time"])
    law = request.make_parameters(system, (), **TILTED)
    run = reduced_flow(system.ReducedPopulation, law, end)[1]
    curves = {
        "on the common tokens": (run.time, run["attention_c"]),
        "on the most frequent distinct token,\nof that on distinct ones": (
            run.time, run["attention_d"],
        ),
    }  # fmt: skip
    caption = (
        "Attention along the gradient flow: it leaves the common tokens, gathers on the most "
        "frequent distinct token, and slows down before this token has all of it."
    )
    words = title(system, law, "common", "distinct", "share", "ratio", width=6.4)
    look = {"xlim": (0.1, end), "ylim": (0, 1), "ylabel": "attention"}
    return over_time(words, curves, caption, **look)


FIGURES = {"attention": attention}
