"""Sparse parity at dimensions whose inputs cannot be listed, with a figure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import numpy as np

from dynamics.training.descent import descend
from dynamics.verdicts.figure import Drawing, FigureRequest, page, title
from dynamics.verdicts.findings import Finding
from dynamics.verdicts.study import TIME, Study, measures

if TYPE_CHECKING:
    from dynamics.system import System

LARGE = 51
"""A dimension with 2^51 inputs, at which no bias of the start meets a kink."""
LEARNED = 0.01
"""Part of the risk at the start below which a parity is learned."""
DIMENSIONS = (8, 12, 21, 51, 101)


@measures("largest risk at the end, over that at the start", "<=", LEARNED)
def learned(study: Study) -> Finding:
    """Gradient descent at the dimension asked for, and at one with 2^51 inputs."""
    law, model = study.law(), study.system.model
    parts = []
    for each in (law, study.system.Parameters(**(vars(law) | {"D": max(LARGE, law.D)}))):
        run = descend(study.system.ReducedPopulation(each), model.eta, model.steps)
        parts.append(float(run["risk"][-1] / run["risk"][0]))
        study.row({"D": each.D, "k": each.k}, part=parts[-1])
        study.curve(f"D = {each.D}", run.time, run["risk"])
    study.draw(TIME, "risk")
    reason = (
        f"eta={model.eta:g}, {model.steps} steps, {2 * law.half} neurons, k={law.k}, from one "
        f"start; {parts[0]:.2g} at D={law.D} and {parts[1]:.2g} at D={max(LARGE, law.D)}"
    )
    return study.conclude(max(parts), reason, may_still_come=True)


def losses(system: System, request: FigureRequest) -> Drawing:
    """The risk at several dimensions.

    Options: ``dimensions``, ``steps``.

    Parameters
    ----------
    system : System
    request : FigureRequest
    """
    options = request.options({"dimensions": DIMENSIONS, "steps": system.model.steps})
    base = request.make_parameters(system, ("D",))
    data: dict[str, Any] = {}
    dimensions = [int(D) for D in options["dimensions"]]
    colours = mpl.colormaps["viridis"](np.linspace(0, 0.88, len(dimensions)))
    with page(6.4, 3.6, title(system, base, "k", "half", width=6.4)) as (_, axes):
        for D, colour in zip(dimensions, colours, strict=True):
            problem = system.ReducedPopulation(system.Parameters(**(vars(base) | {"D": D})))
            run = descend(problem, system.model.eta, int(options["steps"]))
            data[f"steps_{D}"], data[f"risk_{D}"] = run.steps, run["risk"]
            axes.plot(run.steps[1:], run["risk"][1:], color=colour, label=f"D = {D}")
        axes.set(xscale="log", yscale="log", xlabel="steps", ylabel="population risk")
        axes.legend(loc="lower left")
    caption = (
        f"Population risk of the parity of {base.k} bits under gradient descent, "
        f"eta = {system.model.eta:g}, at several dimensions; the largest has 2^{max(dimensions)} "
        f"inputs, in {(base.k + 1) * (max(dimensions) - base.k + 1)} configurations."
    )
    return Drawing(axes, data, caption)


CHECKS = {"Learned": learned}
FIGURES = {"losses": losses}
