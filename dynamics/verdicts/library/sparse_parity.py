"""Sparse parity at dimensions too large to list the inputs; a figure."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import matplotlib as mpl
import numpy as np

from dynamics.system import System
from dynamics.training.descent import descend
from dynamics.verdicts.cases import Case, descent
from dynamics.verdicts.claim import TIME, Picture, claim
from dynamics.verdicts.figure import Drawing, FigureRequest, title
from dynamics.verdicts.library.lines import over_time

LARGE = 51
"""Dimension at which inputs are too many to list and no initial bias is at a kink."""
LEARNED = 0.01
"""A parity counts as learned if the risk is at most this share of its start value."""
DIMENSIONS = (8, 12, 21, 51, 101)


@claim(
    "Learned", "largest risk at the end, over that at the start", "<=", LEARNED,
    family=lambda law: (law, replace(law, D=max(LARGE, law.D))),
    run=lambda case: descent(case.system.model.eta, case.system.model.steps)(case),
    words="{value:.2g} after {steps} steps", picture=Picture(TIME, "risk"),
)  # fmt: skip
def learned(case: Case) -> dict[str, Any]:
    """Ratio of the risk after gradient descent to its start value, at D and at `LARGE`."""
    run = case.run
    return {
        "value": run["risk"][-1] / run["risk"][0], "steps": int(run.steps[-1]), "open": "time",
        "curves": {f"D = {case.parameters.D}": (run.time, run["risk"])},
    }  # fmt: skip


def losses(system: System, request: FigureRequest) -> Drawing:
    """Risk along training at several dimensions; options ``dimensions``, ``steps``."""
    eta, options = system.model.eta, {"dimensions": DIMENSIONS, "steps": system.model.steps}
    options, base = request.options(options), request.make_parameters(system, ("D",))
    dimensions, curves = [int(D) for D in options["dimensions"]], {}
    for D in dimensions:
        run = descend(system.ReducedPopulation(replace(base, D=D)), eta, int(options["steps"]))
        curves[f"D = {D}"] = run.steps[1:], run["risk"][1:]
    caption = (
        f"Population risk of the parity of {base.k} bits under gradient descent, eta = {eta:g}, at "
        f"several dimensions; the largest has 2^{max(dimensions)} inputs, in "
        f"{(base.k + 1) * (max(dimensions) - base.k + 1)} configurations."
    )
    look = {"yscale": "log", "xlabel": "steps", "ylabel": "population risk"}
    colours = mpl.colormaps["viridis"](np.linspace(0, 0.88, len(dimensions)))
    words = title(system, base, "k", "half", width=6.4)
    return over_time(words, curves, caption, colours, **look)


FIGURES = {"losses": losses}
