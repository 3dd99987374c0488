r"""Deep linear networks: sigmoidal growth and learning time of each mode; a figure.

With two layers and balanced weights, the strength :math:`a = w^2` of a mode with singular value s
obeys :math:`\dot a = 2 a (s - a)`. From :math:`a_0` at time 0 it is :math:`a(t) = s e^{2 s t} /
(e^{2 s t} - 1 + s / a_0)`, which reaches s / 2 at time :math:`\ln(s / a_0 - 1) / 2 s`. Deeper
networks have no closed form.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import matplotlib as mpl
import numpy as np

from dynamics.plotting import style
from dynamics.problem import FloatArray
from dynamics.system import System
from dynamics.training.flow import flow
from dynamics.verdicts.cases import Case, flow_to, reduced_flow
from dynamics.verdicts.claim import TIME, Picture, claim
from dynamics.verdicts.figure import Drawing, FigureRequest, page, title
from dynamics.verdicts.findings import Undecided
from dynamics.verdicts.rules import growth
from dynamics.verdicts.stability import Trained
from dynamics.verdicts.wording import listed

RTOL = 1e-11
COLOURS = (style.BLUE, style.ORANGE, style.GREEN, style.PURPLE, style.VERMILION)
"""Colours of the modes; if there are more modes, they get a sequential colour map."""
MOST_NAMED = 12
"""Maximum number of modes that the legend names; of more modes it names some, evenly spaced."""
CLOSED = 1e-8
"""Maximum distance of flow and closed form, divided by the largest singular value."""


def singular_values(parameters: Any) -> FloatArray:
    """Singular values of the target, shape (D,)."""
    return np.asarray(parameters.s1 * parameters.ratio ** np.arange(parameters.D))


def sigmoid(time: FloatArray, s: float, a0: float) -> FloatArray:
    """Closed form of a mode's strength in two layers: a0 at time 0, s in the limit."""
    decay = np.exp(-2 * s * time)
    return np.asarray(s / (1 - decay + s / a0 * decay))


def horizon(parameters: Any) -> float:
    """Time at which two layers have learned the slowest mode."""
    s = singular_values(parameters).min()
    return float(2 * np.log(max(s / parameters.a0, 4.0)) / s)


def two_layers(law: Any) -> None:
    """Raise Undecided unless the network has two layers."""
    if law.layers != 2:
        raise Undecided(f"the statement assumes two layers, not {law.layers}", "law")


@claim(
    "Sigmoid", "largest distance of a mode's strength from the closed form, over s_1", "<=", CLOSED,
    require=two_layers, run=flow_to(horizon, RTOL),
    words="{modes} modes at {records} records to time {end:.4g}",
    picture=Picture(TIME, "distance from the closed form"),
)  # fmt: skip
def closed_form(case: Case) -> dict[str, Any]:
    """Distance, along the flow, of each mode's strength from the closed form of two layers."""
    law, run = case.parameters, case.run
    off = {
        f"mode {k + 1}": np.abs(run[f"w{k + 1}"] ** 2 - sigmoid(run.time, s, law.a0))
        for k, s in enumerate(singular_values(law))
    }
    return {
        "value": max(each.max() for each in off.values()) / law.s1,
        "modes": law.D, "records": run.time.size, "end": run.time[-1],
        "curves": {name: (run.time, np.maximum(each, 1e-18)) for name, each in off.items()},
    }  # fmt: skip


@claim(
    "Learning time", "spread of s T / ln(s/a_0 - 1) over singular values, relative", "<=", CLOSED,
    require=two_layers, shown=("layers", "a0", "s1"),
    words="half of a mode of s = {sizes} at times {times}; the plain exponent of T in s is "
    "{exponent:.3g}, the rest is the logarithm",
    picture=Picture("singular value $s$", "time to half of the mode"),
)  # fmt: skip
def learning_time(case: Case) -> dict[str, Any]:
    """Times at which modes with several singular values s, all started at a_0, reach s / 2."""
    law, make = case.parameters, case.system.ReducedPopulation
    sizes = law.s1 * np.array([0.125, 0.25, 0.5, 1.0, 2.0])
    if sizes[0] <= 2.2 * law.a0:
        raise Undecided(f"a mode of s = {sizes[0]:g} is half learned already at the start", "law")
    laws = [replace(law, D=1, s1=float(s)) for s in sizes]
    runs = [reduced_flow(make, each, horizon(each), RTOL)[1] for each in laws]
    times = np.array([run.events["T1"].time for run in runs])
    scaled = sizes * times / np.log(sizes / law.a0 - 1)
    return {
        "value": scaled.max() / scaled.min() - 1, "sizes": listed(sizes), "times": listed(times, 4),
        "exponent": growth(sizes, times, -1.0).fit.exponent,
        "curves": {"two layers": (sizes, times)},
        "trained": [Trained.of(each, run) for each, run in zip(laws, runs, strict=True)],
    }  # fmt: skip


def near_half(s: float, a0: float) -> FloatArray:
    """Times around the one at which a mode reaches s / 2; early times if it starts above s / 2."""
    if a0 >= s / 2:
        return np.array([0.1, 0.25, 0.5, 1, 2, 4]) / s
    return np.log(s / a0 - 1) / (2 * s) + np.array([-2, -1, 0, 1, 2, 4]) / s


def modes(system: System, request: FigureRequest) -> Drawing:
    """Strength of each mode along the flow, with the closed form if there are two layers."""
    request.options({})
    law = request.make_parameters(system)
    run = flow(system.ReducedPopulation(law), 0.6 * horizon(law), rtol=RTOL)
    data: dict[str, Any] = {"time": run.time}
    many = len(COLOURS) < law.D
    colours = list(mpl.colormaps["viridis"](np.linspace(0, 0.92, law.D))) if many else COLOURS
    named = set(np.linspace(0, law.D - 1, min(law.D, MOST_NAMED)).round().astype(int))
    circles = False
    with page(6.4, 3.6, title(system, law, "D", "layers", "a0", width=6.4)) as (_, axes):
        for k, s in enumerate(singular_values(law)):
            strength, colour = run[f"w{k + 1}"] ** law.layers, colours[k]
            label = f"mode {k + 1}, $s = {style.number(s)}$" if k in named else None
            axes.plot(run.time, strength, color=colour, label=label)
            data[f"a{k + 1}"] = strength
            if law.layers == 2:
                some = near_half(s, law.a0)
                some = some[(some > 0) & (some < run.time[-1])]
                circles = circles or some.size > 0
                look = {"mfc": "white", "color": colour, "ms": 4}
                axes.plot(some, sigmoid(some, s, law.a0), "o", **look)
        axes.set(xlabel="time", ylabel=f"strength of the mode, $w^{{{law.layers}}}$")
        if circles:
            axes.plot([], [], "o", mfc="white", color=style.GREY, ms=4, label="closed form")
        handles, labels = axes.get_legend_handles_labels()
        style.legend_on_the_right(axes, handles=handles, labels=labels)
    words = "; circles are the closed form" if circles else ""
    caption = f"Strength of each mode under the gradient flow{words}."
    return Drawing(axes, data, caption)


FIGURES = {"modes": modes}
