"""Statistical induction heads: phases, order of layers, equally frequent symbols; a figure."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from dynamics.plotting.style import BLUE, GREY, ORANGE
from dynamics.training.descent import descend
from dynamics.verdicts.cases import Case, descent
from dynamics.verdicts.claim import TIME, Also, Picture, claim
from dynamics.verdicts.figure import Drawing, FigureRequest, page, title

if TYPE_CHECKING:
    from dynamics.problem import Problem
    from dynamics.results.trajectory import Trajectory
    from dynamics.system import System

STEPS = 3000
LATER = 10.0
"""Minimum time to the bigram solution over time to the unigram level, if phases are separate."""
NEAR, RESTING = 0.05, 0.1
"""Maximum excess over the unigram level, as a share of the start's: to reach it, to rest at it."""
WITHOUT_UNIGRAMS = {"chains": "balanced"}


def unigram_level(problem: Problem, L: int) -> float:
    """Minimum risk while first-layer attention is uniform, from training of the second layer.

    The learning rate falls as L^-2 in the context length L, because curvatures grow as L^2.
    """
    return float(descend(problem, min(1.0, 45 / L**2), 400, stages=[("W", 400)])["risk"][-1])


def bayes_risk(system: System, law: Any) -> float:
    """Bayes risk in nats: mean entropy of the next symbol given the previous ones."""
    p = np.array([weight for weight, _ in system.model.law(L=law.L, chains=law.chains)])
    return float((-p @ np.log(p) - np.log(2)) / law.L)


def phases(case: Case) -> dict[str, Any]:
    """Times of the unigram level and of the bigram solution, and risk between these times."""
    run, risk = case.run, case.run["risk"]
    level = unigram_level(case.problem, case.parameters.L)
    fall, bigram = risk[0] - level, run.events["T_previous"].time
    unigram = run.time[np.argmax(risk <= level + NEAR * fall)]
    between = np.interp(np.sqrt(unigram * bigram), run.time, risk)
    return {
        "value": bigram / unigram, "rest": abs(between - level) / fall, "level": level,
        "unigram": unigram, "bigram": bigram, "end": risk[-1], "open": "time",
    }  # fmt: skip


REST = Also("rest", "<=", RESTING, "distance from the unigram level between them, over the fall")
EVERY_STEP = descent(1.0, STEPS, record=1)


@claim(
    "Phases", "time of the bigram solution over that of the unigram level", ">=", LATER,
    run=EVERY_STEP, also=(REST,),
    words="unigram level {level:.5f} at time {unigram:g}, bigram solution at {bigram:g}, risk "
    "{end:.5f} at the end (Bayes {bayes:.5f})",
    picture=Picture(TIME, "risk", scales=("log", "linear")),
)  # fmt: skip
def three_phases(case: Case) -> dict[str, Any]:
    """Times of the phases, exact over all sequences; the picture has the unigram and Bayes risk."""
    row, run = phases(case), case.run
    bayes, ends = bayes_risk(case.system, case.parameters), run.time[[1, -1]]
    curves = {"training": (run.time[1:], run["risk"][1:]), "unigrams": (ends, [row["level"]] * 2)}
    return row | {"bayes": bayes, "curves": curves | {"Bayes": (ends, [bayes] * 2)}}


@claim(
    "Second layer first", "steps of the first layer over those of the second", ">", 1.0,
    run=EVERY_STEP,
    words="W is half way at step {second}, attention to the previous symbol at step {first}; "
    "the contrast of W is {high:.3g} at its step, {low:.3g} at least before the other, {last:.3g} "
    "at the end",
    picture=Picture(TIME, "part of the end"),
)  # fmt: skip
def second_first(case: Case) -> dict[str, Any]:
    """Steps to half the final ``contrast`` of W, and to half attention on the previous symbol."""
    run, contrast = case.run, case.run["contrast"]
    first = run.events["T_previous"].step
    second = int(np.argmax(contrast >= contrast[-1] / 2))
    low = contrast[second : max(first, second + 1)].min()
    return {
        "value": first / second, "first": first, "second": second, "high": contrast[second],
        "low": low, "last": contrast[-1], "open": "time",
        "curves": {
            "W, contrast": (run.time[1:], contrast[1:] / contrast[-1]),
            "v, attention to the previous": (run.time[1:], run["previous"][1:]),
        },
    }  # fmt: skip


@claim(
    "Delay", "time of the bigram solution over that without unigrams", ">", 1.0, run=EVERY_STEP,
    words="at step {step}, and at {without} without unigrams",
)  # fmt: skip
def delayed(case: Case) -> dict[str, Any]:
    """Time of the bigram solution, divided by that for chains of equally frequent symbols."""
    other = replace(case, parameters=replace(case.parameters, **WITHOUT_UNIGRAMS))
    step, without = (run.events["T_previous"].step for run in (case.run, EVERY_STEP(other)[1]))
    return {"value": step / without, "step": step, "without": without, "open": "time"}


def draw_run(axes: Any, run: Trajectory, label: str, colour: str, style: str = "-") -> None:
    """Draw the risk on the first axis, and the attention to the previous symbol on the second."""
    for each, name in zip(axes, ("risk", "previous"), strict=True):
        each.plot(run.time[1:], run[name][1:], color=colour, ls=style, label=label)
        each.set(xscale="log", xlabel="time")


def losses(system: System, request: FigureRequest) -> Drawing:
    """Risk and progress of both layers, with any or equally frequent symbols; option ``steps``."""
    steps = int(request.options({"steps": STEPS})["steps"])
    law = request.make_parameters(system, ("chains",))
    data: dict[str, Any] = {}
    with page(8.6, 3.5, title(system, law, "L", "w0", width=8.6), ncols=2) as (_, (left, right)):
        for chains, colour in (("free", BLUE), ("balanced", ORANGE)):
            own = replace(law, chains=chains)
            problem = system.ReducedPopulation(own)
            run = descend(problem, 1.0, steps, record="log")
            word = f"{chains} chains"
            draw_run((left, right), run, word, colour)
            right.plot(run.time[1:], run["contrast"][1:], color=colour, ls="--")
            levels = {"unigrams": (unigram_level(problem, own.L), ":"),
                      "Bayes": (bayes_risk(system, own), "--")}  # fmt: skip
            for name, (level, look) in levels.items():
                left.axhline(level, color=colour, ls=look, lw=0.8)
                data[f"{word}, {name}"] = level
            data |= {f"{word}, {n}": run[n] for n in ("risk", "previous", "contrast")}
            data[f"{word}, time"] = run.time
        right.axhline(0.5, color=GREY, lw=0.6)
        left.set(ylabel="population risk")
        right.set(ylabel="attention to the previous; contrast of W")
        left.legend(fontsize=8, loc="upper right")
    caption = (
        "Left: risk by gradient descent of rate 1 on all sequences, for free "
        "chains and for those whose symbols are equally frequent; dotted, the "
        "unigram level; dashed, the Bayes risk. Right: attention of the last place to the one "
        "before it (lines) and contrast of W (dashed)."
    )
    return Drawing(np.array([left, right]), data, caption)


FIGURES = {"losses": losses}
