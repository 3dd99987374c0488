r"""Single-location regression: what training recovers and in which order, with a figure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dynamics.plotting.style import BLUE, GREEN, ORANGE, legend
from dynamics.training.flow import flow
from dynamics.verdicts.figure import Drawing, FigureRequest, page, title
from dynamics.verdicts.findings import Finding
from dynamics.verdicts.study import TIME, Measurement, Study, measures

if TYPE_CHECKING:
    from dynamics.system import System

LONG = 1e5
RECOVERED = 0.01
"""Risk, of that of the start, below which the location and the label direction are recovered."""


@measures("risk at the end over that of the start", "<=", RECOVERED)
def recovers(study: Study) -> Finding:
    """On the finite twin: nothing but the two overlaps moves, and the risk goes to 0."""
    law = study.law()
    run = flow(study.system.ReducedPopulation(law), LONG)
    study.curve("risk", run.time, run["risk"])
    study.draw(TIME, "risk")
    slope = np.polyfit(np.log(run.time[-40:]), np.log(run["risk"][-40:]), 1)[0]
    reason = (
        f"kappa = {run['kappa'][-1]:.4g}, nu = {run['nu'][-1]:.6g} at time {LONG:g}; the risk "
        f"falls as time^{slope:.2f} there"
    )
    return study.conclude(float(run["risk"][-1] / run["risk"][0]), reason, may_still_come=True)


@measures(
    "time at which the key finds the token in half of its attention, over that of nu", ">", 1.0
)
def label_first(study: Study) -> Finding:
    """From zero the key has no gradient; nu has."""
    law = study.law()
    problem = study.system.ReducedPopulation(law)
    run = flow(problem, LONG)
    slope = problem.gradient(problem.initial_state)
    times = [run.events[name].time for name in ("T_k", "T_v")]
    reason = f"T_v = {times[1]:.5g}, T_k = {times[0]:.5g}; kappa begins with gradient {slope[0]:g}"
    at_start = Measurement("gradient by kappa at the start", abs(float(slope[0])), "<=", 1e-15)
    return study.conclude(times[0] / times[1], reason, at_start, may_still_come=True)


def overlaps(system: System, request: FigureRequest) -> Drawing:
    """The two overlaps and the attention on the informative token along the flow.

    Option: ``time``.

    Parameters
    ----------
    system : System
    request : FigureRequest
    """
    options = request.options({"time": 3000.0})
    law = request.make_parameters(system)
    run = flow(system.ReducedPopulation(law), float(options["time"]))
    data: dict[str, Any] = {"time": run.time}
    looks = (
        ("kappa", BLUE, r"$\kappa$, key on the mark"),
        ("nu", ORANGE, r"$\nu$, value on the label"),
    )
    with page(6.4, 3.6, title(system, law, "L", width=6.4)) as (_, axes):
        for name, colour, label in (*looks, ("found", GREEN, "attention on the informative token")):
            data[name] = run[name]
            axes.plot(run.time, run[name], color=colour, label=label)
        axes.set(xscale="log", xlim=(0.1, run.time[-1]), xlabel="time", ylabel="overlap, attention")
        legend(axes)
    caption = (
        "Overlaps of key and value with the mark and the label direction along the gradient flow."
    )
    return Drawing(axes, data, caption)


CHECKS = {"Recovery": recovers, "Order": label_first}
FIGURES = {"overlaps": overlaps}
