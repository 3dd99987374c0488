r"""Deep linear networks: the sigmoid of a mode, the time it takes, and the two drawn.

With two layers and balanced weights a mode's strength :math:`a = w^2` obeys
:math:`\dot a = 2 a (s - a)`, so :math:`a(t) = s e^{2 s t} / (e^{2 s t} - 1 + s / a_0)`, and half of
it is reached at :math:`\ln(s / a_0 - 1) / 2 s`. Deeper networks have no closed form; for them the
time is measured.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import numpy as np

from dynamics.experiments.figure import Drawing, FigureRequest, page, title
from dynamics.experiments.measurement import TIME, Study, Undecided, measures
from dynamics.experiments.rules import growth
from dynamics.experiments.verify import Finding
from dynamics.plotting.style import (
    BLUE,
    GREEN,
    GREY,
    ORANGE,
    PURPLE,
    VERMILION,
    legend_on_the_right,
    number,
)
from dynamics.problem import FloatArray
from dynamics.training.flow import flow

if TYPE_CHECKING:
    from dynamics.registry import System

RTOL = 1e-11
COLOURS = (BLUE, ORANGE, GREEN, PURPLE, VERMILION)
"""Of modes; more of them share a sequential colour map."""
MOST_NAMED = 12
"""Modes up to which all are in the legend."""
CLOSED = 1e-8
"""Largest distance of the flow from the closed form, of the largest singular value."""


def singular_values(parameters: Any) -> FloatArray:
    """The singular values of the target, shape (D,)."""
    return np.asarray(parameters.s1 * parameters.ratio ** np.arange(parameters.D))


def sigmoid(time: FloatArray, s: float, a0: float) -> FloatArray:
    """Strength of a mode of two layers at times, from a0 at time 0.

    Parameters
    ----------
    time : float array
    s, a0 : float
        Singular value of the mode, its strength at the start.
    """
    decay = np.exp(-2 * s * time)
    return np.asarray(s / (1 - decay + s / a0 * decay))


def horizon(parameters: Any) -> float:
    """A time by which the slowest mode of two layers is learned."""
    s = singular_values(parameters).min()
    return float(2 * np.log(max(s / parameters.a0, 4.0)) / s)


@measures("largest distance of a mode's strength from the closed form, over s_1", "<=", CLOSED)
def closed_form(study: Study) -> Finding:
    """The closed form of two layers, along the flow."""
    law = study.law()
    if law.layers != 2:
        raise Undecided(f"the closed form is of two layers, not of {law.layers}", "law")
    run = flow(study.system.ReducedPopulation(law), horizon(law), rtol=RTOL)
    off = 0.0
    for k, s in enumerate(singular_values(law)):
        strength, exact = run[f"w{k + 1}"] ** 2, sigmoid(run.time, s, law.a0)
        off = max(off, float(np.abs(strength - exact).max()) / law.s1)
        study.curve(f"mode {k + 1}", run.time, np.maximum(np.abs(strength - exact), 1e-18))
    study.draw(TIME, "distance from the closed form")
    reason = f"{law.D} modes at {run.time.size} records to time {run.time[-1]:.4g}"
    return study.conclude(off, reason)


@measures("exponent of the time to half of a mode in its singular value", "==", -1.0)
def learning_time(study: Study) -> Finding:
    """The start of every mode is the same part of its end, else ln(s/a0) enters."""
    base = study.law(D=1)
    sizes, times = np.array([0.5, 1.0, 2.0, 4.0, 8.0]), []
    for s in sizes:
        values = vars(base) | {"D": 1, "s1": float(s), "a0": base.a0 * float(s) / base.s1}
        law = study.system.Parameters(**values)
        problem = study.system.ReducedPopulation(law)
        depth = max(1.0, float(s) ** (2 - 2 / law.layers) / law.a0 ** (1 - 2 / law.layers))
        run = flow(problem, 4 * horizon(law) * depth / min(1.0, float(s)), rtol=RTOL)
        times.append(run.events["T1"].time)
        study.row({"s": float(s), "a0": law.a0}, time=times[-1])
    found = growth(sizes, times, -1.0)
    study.curve(f"{base.layers} layers", sizes, times)
    study.draw("singular value $s$", "time to half of the mode")
    claimed = "" if base.layers == 2 else f"; of {base.layers} layers, the paper speaks of two"
    return study.conclude(
        found.fit.exponent,
        f"{found}, from starts of the same part of s{claimed}",
        holds=found.holds,
    )


def near_half(s: float, a0: float) -> FloatArray:
    """Times about the middle of the way from a0 to s; soon after the start if a0 is beyond it.

    Parameters
    ----------
    s, a0 : float
        Singular value of the mode, its strength at the start.
    """
    if a0 >= s / 2:
        return np.array([0.1, 0.25, 0.5, 1, 2, 4]) / s
    return np.log(s / a0 - 1) / (2 * s) + np.array([-2, -1, 0, 1, 2, 4]) / s


def modes(system: System, request: FigureRequest) -> Drawing:
    """The strength of each mode along the flow, and its sigmoid.

    Parameters
    ----------
    system : System
    request : FigureRequest
    """
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
            label = f"mode {k + 1}, $s = {number(s)}$" if k in named else None
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
            axes.plot([], [], "o", mfc="white", color=GREY, ms=4, label="closed form")
        handles, labels = axes.get_legend_handles_labels()
        legend_on_the_right(axes, handles=handles, labels=labels)
    words = "; circles are the closed form" if circles else ""
    caption = f"Strength of each mode under the gradient flow{words}."
    return Drawing(axes, data, caption)


CHECKS = {"Sigmoid": closed_form, "Learning time": learning_time}
FIGURES = {"modes": modes}
