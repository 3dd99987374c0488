"""Topics from masked words: topic blocks of values and of attention, stability; two figures."""

from __future__ import annotations

from functools import lru_cache
from math import inf
from typing import Any

import numpy as np

from dynamics.analysis.stability import departure, off_start
from dynamics.results.stability import OFF
from dynamics.system import System
from dynamics.verdicts.cases import Case, flow_to, reduced_flow
from dynamics.verdicts.claim import TIME, Also, Picture, claim
from dynamics.verdicts.figure import Drawing, FigureRequest, page, title
from dynamics.verdicts.findings import Undecided
from dynamics.verdicts.library import escape
from dynamics.verdicts.stability import stability_of

LONG = 2e4


def tells_apart(law: Any) -> None:
    """Raise Undecided if every document has all topics."""
    if law.chosen >= law.T:
        raise Undecided("every document has all topics, so topics cannot be told apart", "law")


def _records(case: Case) -> int:
    """Number of records up to the time at which full training leaves the classes."""
    found = stability_of(case.system, case.parameters, LONG)
    until = found.until if found and found.limited else LONG
    return int(np.searchsorted(case.run.time, until, side="right"))


@lru_cache(maxsize=4)
def _off(reduced: Any, full: Any, law: Any) -> dict[str, Any]:
    """Value matrix, logit matrix and risk at the end of full training from a displaced start."""
    run, whole, n = reduced_flow(reduced, law, LONG)[1], full(law), law.T * law.v
    end = departure(whole, run, off_start(whole), inf).states[-1]
    values, logits = (whole.layout.part(end, name)[:n, :n] for name in "VA")
    return {"values": values, "logits": logits, "risk": whole.risk(end)}


def _afterwards(case: Case, name: str) -> dict[str, Any]:
    """Columns of a row on the matrix `name`, values or logits, after training left the classes."""
    law, found = case.parameters, stability_of(case.system, case.parameters, LONG)
    if found is None or not found.limited:
        return {"after": ""}
    kinds: Any = case.system.ReducedPopulation, case.system.FullPopulation
    off = _off(*kinds, law)
    table, topic = off[name], np.arange(law.T * law.v) // law.v
    own = topic[:, None] == topic
    least = np.where(own, table, inf).min(axis=1)
    largest = np.where(own, -inf, table).max(axis=1)
    row = {
        "off_risk": off["risk"], "off_below": int((least < largest).sum()),
        "off_least": least.min(), "off_largest": largest.max(),
        "off_ahead": table[own].mean() - table[~own].mean(),
    }  # fmt: skip
    after = (
        f"; at time {LONG:g} full training from a start off by {OFF:g} has risk "
        f"{off['risk']:.4f}, on the classes it is {case.run['risk'][-1]:.4f}: in "
        f"{row['off_below']} of {len(table)} rows of its {name} a word of the own topic "
        f"({least.min():.2g} at least) is below one of another ({largest.max():.2g} at most), and "
        f"on average the own topic is ahead by {row['off_ahead']:.3g}"
    )
    return row | {"after": after}


@claim(
    "Blocks of values", "least of V_same - V_other while the classes hold, over the largest", ">=",
    0.0, run=flow_to(LONG), require=tells_apart,
    picture=Picture(TIME, "value", scales=("log", "linear")),
)  # fmt: skip
def blocks_of_values(case: Case) -> dict[str, Any]:
    """Value within a topic minus value across topics, while full training stays on the classes."""
    run, held = case.run, _records(case)
    gap, last, row = (run["V_same"] - run["V_other"])[1:held], held - 1, _afterwards(case, "values")
    text = (
        f"V_same = {run['V_same'][last]:.4g}, V_other = {run['V_other'][last]:.4g} at time "
        f"{run.time[last]:.4g}, all trained at once{row.pop('after')}"
    )
    curves = {name: (run.time, run[name]) for name in ("V_same", "V_other", "V_mask")}
    return {"value": gap.min() / gap.max(), "text": text, "curves": curves, **row}


@claim(
    "Blocks of attention", "logit of the same topic less that of another, while the classes hold",
    ">", 0.0, run=flow_to(LONG), require=tells_apart,
    also=(Also("least", ">=", -1e-12, "least gap of the logits along the run"),),
    picture=Picture(TIME, "logit", scales=("log", "linear")),
)  # fmt: skip
def blocks_of_attention(case: Case) -> dict[str, Any]:
    """Logit within a topic minus across topics; times at which values and logits are learned."""
    run, held = case.run, _records(case)
    gap, row = (run["A_same"] - run["A_other"])[:held], _afterwards(case, "logits")
    text = (
        f"attention on a word of the own topic is e^{gap[-1]:.3g} times that on one of another "
        f"topic at time {run.time[held - 1]:.4g}; values reach 1/(2v) at "
        f"{run.events['T_V'].time:.4g}, logits are 1 apart at {run.events['T_A'].time:.4g}"
        f"{row.pop('after')}"
    )
    curves = {name: (run.time, run[name]) for name in ("A_same", "A_other", "A_to_mask")}
    return {"value": gap[-1], "least": gap.min(), "text": text, "curves": curves, **row}


escapes = escape.claimed(LONG, require=tells_apart)


def blocks(system: System, request: FigureRequest) -> Drawing:
    """Matrices of values and of attention logits after training; option ``time``."""
    end = float(request.options({"time": LONG})["time"])
    law = request.make_parameters(system)
    problem, run = reduced_flow(system.ReducedPopulation, law, end)
    whole, n = system.FullPopulation(law), law.T * law.v
    entries = whole.lift(run.final_state, problem.scalars)
    values, logits = (whole.layout.part(entries, name) for name in "VA")
    names = title(system, law, "T", "v", "chosen", "masked", width=7.2)
    with page(7.2, 3.5, names, ncols=2) as (figure, panels):
        parts, marks = (("values $V$", values), ("logits $A$", logits)), [*range(1, n + 1), "M"]
        for axes, (word, matrix) in zip(panels, parts, strict=True):
            size = float(np.abs(matrix).max())
            image = axes.imshow(matrix, cmap="PuOr_r", vmin=-size, vmax=size)
            for k in range(1, law.T):
                axes.axhline(k * law.v - 0.5, color="k", lw=0.4)
                axes.axvline(k * law.v - 0.5, color="k", lw=0.4)
            axes.axvline(n - 0.5, color="k", lw=1.0)
            axes.set_title(word, fontsize=9)
            axes.set_xticks(range(n + 1), marks, fontsize=7)
            axes.set_yticks(range(len(matrix)), marks[: len(matrix)], fontsize=7)
            figure.colorbar(image, ax=axes, shrink=0.8)
    caption = (
        f"Values (rows: predicted words, columns: shown words) and attention logits (rows: "
        f"queries, columns: keys) at time {run.time[-1]:g} of the gradient flow; words of a topic "
        "are adjacent, M is MASK."
    )
    return Drawing(panels, {"V": values, "A": logits}, caption)


FIGURES = {
    "blocks": blocks, "escape": escape.figure(LONG, "T", "v", "chosen", "masked"),
}  # fmt: skip
