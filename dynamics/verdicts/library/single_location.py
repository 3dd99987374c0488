"""Single-location regression: key and value recover their directions, value first; a figure."""

from __future__ import annotations

from typing import Any

import numpy as np

from dynamics.system import System
from dynamics.verdicts.cases import Case, flow_to, reduced_flow
from dynamics.verdicts.claim import TIME, Also, Picture, claim
from dynamics.verdicts.figure import Drawing, FigureRequest, title
from dynamics.verdicts.library.lines import over_time

LONG = 1e5
RECOVERED = 0.01
"""Key and value count as recovered if the risk is at most this share of its start value."""


@claim(
    "Recovery", "risk at the end over that of the start", "<=", RECOVERED, run=flow_to(LONG),
    words="kappa = {kappa:.4g}, nu = {nu:.6g} at time {end:g}; the risk falls as time^{slope:.2f} "
    "there",
    picture=Picture(TIME, "risk"),
)  # fmt: skip
def recovers(case: Case) -> dict[str, Any]:
    """Final overlaps of key and value with their directions; final risk over its start value."""
    run, risk = case.run, case.run["risk"]
    slope = np.polyfit(np.log(run.time[-40:]), np.log(risk[-40:]), 1)[0]
    return {
        "value": risk[-1] / risk[0], "kappa": run["kappa"][-1], "nu": run["nu"][-1], "end": LONG,
        "slope": slope, "open": "time", "curves": {"risk": (run.time, risk)},
    }  # fmt: skip


@claim(
    "Order", "time at which the key finds the token in half of its attention, over that of nu", ">",
    1.0, run=flow_to(LONG), also=(Also("start", "<=", 1e-15, "gradient by kappa at the start"),),
    words="T_v = {T_v:.5g}, T_k = {T_k:.5g}; kappa begins with gradient {start:g}",
)  # fmt: skip
def label_first(case: Case) -> dict[str, Any]:
    """Times of the events T_k of the key and T_v of the value, and initial gradient of the key."""
    times = {name: case.run.events[name].time for name in ("T_k", "T_v")}
    start = abs(float(case.problem.gradient(case.problem.initial_state)[0]))
    return {"value": times["T_k"] / times["T_v"], "start": start, "open": "time", **times}


def overlaps(system: System, request: FigureRequest) -> Drawing:
    """Overlaps of key and value, and attention on the informative token; option ``time``."""
    end, law = float(request.options({"time": 3000.0})["time"]), request.make_parameters(system)
    run = reduced_flow(system.ReducedPopulation, law, end)[1]
    labels = {
        r"$\kappa$, key on the mark": "kappa", r"$\nu$, value on the label": "nu",
        "attention on the informative token": "found",
    }  # fmt: skip
    caption = (
        "Overlaps of key and value with the mark and the label direction along the gradient flow."
    )
    curves = {label: (run.time, run[name]) for label, name in labels.items()}
    words, axes = title(system, law, "L", width=6.4), {"ylabel": "overlap, attention"}
    return over_time(words, curves, caption, xlim=(0.1, end), **axes)


FIGURES = {"overlaps": overlaps}
