"""A first layer that learns a causal tree: its scores, initial gradient and stages; a figure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import matplotlib as mpl
import numpy as np

from dynamics.models.causal_tree import PARENTS
from dynamics.plotting.style import BLUE, BOXED, RC
from dynamics.problem import FloatArray, Problem
from dynamics.training.descent import descend
from dynamics.verdicts.cases import Case, descent
from dynamics.verdicts.claim import TIME, Also, Picture, claim
from dynamics.verdicts.figure import Drawing, FigureRequest, page, title

if TYPE_CHECKING:
    from dynamics.system import System

RATE, STEPS, STAGE = 0.5, 6000, 2000
CHOOSING = range(2, 5)
"""Positions 2 to 4, which have a parent and more than one earlier position."""
SOLVED = 0.01
"""The task is learned if the risk minus the Bayes risk is below this share of its start value."""


def between_places(problem: Problem, state: FloatArray) -> FloatArray:
    """Matrix (6, 6) of A1's entries between positions, from a reduced state or gradient."""
    return np.asarray(problem.lift(state)[:64].reshape(8, 8)[2:, 2:])  # type: ignore[attr-defined]


def lead(scores: FloatArray) -> FloatArray:
    """Score of the parent minus the largest score of another earlier position, for `CHOOSING`."""
    others = [np.delete(scores[i, :i], PARENTS[i]).max() for i in CHOOSING]
    return np.array([scores[i, PARENTS[i]] for i in CHOOSING]) - others


def bayes_risk(system: System, law: Any) -> float:
    """Bayes risk in nats: mean entropy of the next token given the sequence."""
    p = np.array([weight for weight, _ in system.model.law(nodes=law.nodes)]).reshape(-1, 2)
    return float(-(p * np.log(p / p.sum(axis=1, keepdims=True))).sum())


def _excess(case: Case, risk: FloatArray) -> FloatArray:
    """Risk minus Bayes risk, divided by the same difference at the start."""
    bayes = bayes_risk(case.system, case.parameters)
    return np.asarray((risk - bayes) / (risk[0] - bayes))


@claim(
    "Causal graph", "places (of 3) whose largest score is of the parent", "==", 3.0,
    run=descent(RATE, STEPS), also=(Also("excess", "<=", SOLVED, "excess risk, over the first"),),
    words="risk {risk:.6f} (Bayes {bayes:.6f}) after {steps} steps; the parents have {tree:.3g} of "
    "the attention by places to earlier ones",
    picture=Picture(TIME, "excess risk, over the first"),
)  # fmt: skip
def encoded(case: Case) -> dict[str, Any]:
    """Risk, and scores between positions, after all layers are trained together."""
    run, excess = case.run, _excess(case, case.run["risk"])
    ahead = lead(between_places(case.problem, run.final_state))
    return {
        "value": int((ahead > 0).sum()), "excess": excess[-1], "risk": run["risk"][-1],
        "bayes": bayes_risk(case.system, case.parameters), "tree": run["tree"][-1],
        "steps": int(run.steps[-1]), "open": "time",
        "curves": {"together": (run.time[1:], excess[1:])},
    }  # fmt: skip


@claim(
    "Largest gradient", "least lead of a parent over other earlier places, over its slope", ">",
    0.0, run=lambda case: (case.system.ReducedPopulation(case.parameters), None),
    words="slopes of the parents {slopes}, leads {leads}, of places 2 to 4",
)  # fmt: skip
def largest(case: Case) -> dict[str, Any]:
    """Negative gradient of the risk, at the start, with respect to the scores between positions."""
    problem = case.problem
    slopes = between_places(problem, -problem.gradient(problem.initial_state))
    own, ahead = np.array([slopes[i, PARENTS[i]] for i in CHOOSING]), lead(slopes)
    words = [", ".join(f"{each:.3g}" for each in part) for part in (own, ahead)]
    return {"value": (ahead / np.abs(own)).min(), "slopes": words[0], "leads": words[1]}


def staged(case: Case) -> tuple[Any, Any]:
    """Gradient descent in three stages: scores A1 alone, scores A2 alone, then output W alone."""
    problem = case.system.ReducedPopulation(case.parameters)
    stages = [(name, STAGE) for name in ("A1", "A2", "W")]
    return problem, descend(problem, RATE, 3 * STAGE, stages=stages, record=20)


@claim(
    "Two stages", "places (of 3) whose largest score is of the parent after A1 alone", "==", 3.0,
    laws=({"beta": 1.0},), run=staged, also=(Also("gain", ">", 0.0, "fall of the risk by W"),),
    words="risk {first:.5f} after A1, {second:.5f} after A2, {third:.5f} after W (Bayes "
    "{bayes:.5f})",
    picture=Picture(TIME, "excess risk, over the first"),
)  # fmt: skip
def by_stages(case: Case) -> dict[str, Any]:
    """Scores A1 after the first stage, and the risk after each of three stages (see `staged`)."""
    run, excess = case.run, _excess(case, case.run["risk"])
    ends = [int(np.flatnonzero(run.steps == k * STAGE)[0]) for k in (1, 2, 3)]
    first, second, third = run["risk"][ends]
    ahead = lead(between_places(case.problem, run.states[ends[0]]))
    return {
        "value": int((ahead > 0).sum()), "gain": second - third, "first": first, "open": "time",
        "second": second, "third": third, "bayes": bayes_risk(case.system, case.parameters),
        "curves": {"stages": (run.time[1:], excess[1:])},
    }  # fmt: skip


def tree(system: System, request: FigureRequest) -> Drawing:
    """Gradients, trained scores between positions, and risk minus Bayes risk; option ``steps``."""
    steps, law = int(request.options({"steps": STEPS})["steps"]), request.make_parameters(system)
    problem, bayes = system.ReducedPopulation(law), bayes_risk(system, law)
    run = descend(problem, RATE, steps)
    slopes = between_places(problem, -problem.gradient(problem.initial_state))
    scores, excess = between_places(problem, run.final_state), run["risk"] - bayes
    words = title(system, law, "beta", "nodes", width=9.4)
    with page(9.4, 3.2, words, RC | BOXED, ncols=3) as (figure, (first, second, third)):
        for axes, values, name in (
            (first, slopes, r"$-\partial R / \partial A_1$ at the start"),
            (second, scores, f"$A_1$ after {steps} steps"),
        ):
            span = np.abs(values).max()
            earlier = np.where(np.tri(6, k=-1, dtype=bool), values, np.nan)
            image = axes.imshow(earlier, cmap="PuOr_r", vmin=-span, vmax=span)
            for i in range(1, 5):
                box = (PARENTS[i] - 0.5, i - 0.5)
                axes.add_patch(mpl.patches.Rectangle(box, 1, 1, fill=False, lw=1.5))
            axes.set(xlabel="key, place", ylabel="query, place", xticks=range(6), yticks=range(6))
            axes.set_title(name, fontsize=9)
            figure.colorbar(image, shrink=0.8)
        third.plot(run.steps[1:], excess[1:], color=BLUE)
        third.set(xscale="log", yscale="log", xlabel="steps", ylabel="risk over the Bayes risk")
    caption = (
        f"Scores between places in the first layer, earlier places alone; boxes: the parents. "
        f"Right: risk over the Bayes risk {bayes:.6f} by descent of rate {RATE:g} on the scalars, "
        f"{excess[-1]:.3g} after {steps} steps."
    )
    data = {"slopes": slopes, "scores": scores, "steps": run.steps, "excess": excess}
    return Drawing(np.array([first, second, third]), data, caption)


FIGURES = {"tree": tree}
