r"""Deep linear networks: the sigmoid of a mode and the time it takes, with a figure.

With two layers and balanced weights a mode's strength :math:`a = w^2` obeys
:math:`\dot a = 2 a (s - a)`, so :math:`a(t) = s e^{2 s t} / (e^{2 s t} - 1 + s / a_0)`, and half of
it is reached at :math:`\ln(s / a_0 - 1) / 2 s`. Deeper networks have no closed form; for them the
time is measured.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import numpy as np

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
from dynamics.verdicts.figure import Drawing, FigureRequest, page, title
from dynamics.verdicts.findings import Finding, Undecided
from dynamics.verdicts.rules import growth
from dynamics.verdicts.study import TIME, Study, measures

if TYPE_CHECKING:
    from dynamics.system import System

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


@measures("spread of s T / ln(s/a_0 - 1) over singular values, relative", "<=", CLOSED)
def learning_time(study: Study) -> Finding:
    """T is the time to half of a mode, from the same a_0 for every singular value."""
    base = study.law(D=1)
    if base.layers != 2:
        raise Undecided(f"the statement is of two layers, not of {base.layers}", "law")
    sizes, times = base.s1 * np.array([0.125, 0.25, 0.5, 1.0, 2.0]), []
    if sizes[0] <= 2.2 * base.a0:
        raise Undecided(f"a mode of s = {sizes[0]:g} is half learned at the start", "law")
    for s in sizes:
        law = study.system.Parameters(**(vars(base) | {"D": 1, "s1": float(s)}))
        run = flow(study.system.ReducedPopulation(law), horizon(law), rtol=RTOL)
        times.append(run.events["T1"].time)
        study.row({"s": float(s), "a0": law.a0}, time=times[-1])
    scaled = sizes * np.array(times) / np.log(sizes / base.a0 - 1)
    study.curve("two layers", sizes, times)
    study.draw("singular value $s$", "time to half of the mode")
    spread = float(scaled.max() / scaled.min() - 1)
    reason = (
        f"from a_0 = {base.a0:g}; the plain exponent of T in s is "
        f"{growth(sizes, times, -1.0).fit.exponent:.3g}, the rest is the logarithm"
    )
    return study.conclude(spread, reason)


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
