"""Max-margin token selection: direction, attention and norm of the query; a figure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from scipy.optimize import nnls

from dynamics.models.token_selection import tokens
from dynamics.plotting.style import BLUE, GREY, ORANGE
from dynamics.problem import FloatArray
from dynamics.training.descent import descend
from dynamics.training.rules import rule
from dynamics.verdicts.cases import Case, descent
from dynamics.verdicts.claim import Also, Picture, claim
from dynamics.verdicts.figure import Drawing, FigureRequest, page, title
from dynamics.verdicts.findings import Undecided

if TYPE_CHECKING:
    from dynamics.system import System

STEPS = 4000
RATE, EPS = 0.1, 1e-12
"""Normalized descent of the published code: learning rate, and epsilon added to the norm."""
NEAR = 0.99
"""Minimum cosine with the max-margin direction, and minimum attention, that count as converged."""
FASTER = 10.0
STRAIGHT = 0.01
"""Maximum distance of the query's norm from a line in log(time), divided by the final norm."""


def max_margin(law: Any) -> FloatArray:
    """Shortest query p, shape (2,), with p.(x_1 - x_t) >= 1 for every token x_t but the first.

    The query is found by non-negative least squares (Lawson and Hanson 1974, chapter 23: least
    distance programming). Raises Undecided if no query separates the optimal tokens.
    """
    X = tokens(law.inputs, law.spread, law.draw)
    rows = (X[:, :1] - X[:, 1:]).reshape(-1, 2)
    matrix, target = np.vstack([rows.T, np.ones(len(rows))]), np.array([0.0, 0.0, 1.0])
    weights, distance = nnls(matrix, target)
    if distance < 1e-9:
        raise Undecided("no query separates the optimal tokens of all inputs", "law")
    rest = target - matrix @ weights
    return np.asarray(-rest[:2] / rest[2])


def separable(law: Any) -> None:
    """Raise Undecided unless first tokens have the largest score and a query separates them."""
    if law.other >= 1:
        raise Undecided("the score of the first token must be the largest", "law")
    max_margin(law)


def normalized(case: Case) -> tuple[Any, Any]:
    """Normalized descent of the query from 0."""
    problem = case.system.ReducedPopulation(case.parameters)
    chosen = rule("normalized", eps=EPS)
    return problem, descend(problem, RATE, STEPS, rule=chosen, record=10)


def cosines(law: Any, run: Any) -> FloatArray:
    """Cosine of the query with the max-margin direction, at all records after the start."""
    best = max_margin(law)
    p = np.stack([run["p1"], run["p2"]], axis=1)[1:]
    return np.asarray(p @ best / np.linalg.norm(p, axis=1) / np.linalg.norm(best))


@claim(
    "Direction", "cosine of p with the direction of the largest margin", ">=", NEAR,
    require=separable, run=normalized,
    also=(Also("gain", ">", 0.0, "gain of the cosine over the second half of the steps"),),
    words="p of norm {norm:.4g} after {steps} steps; half way the cosine is {half:.4f}",
    picture=Picture("steps", "1 - cosine with the largest margin"),
)  # fmt: skip
def converges(case: Case) -> dict[str, Any]:
    """Cosine of the query with the max-margin direction; plain descent is exponentially slow."""
    run, cosine = case.run, cosines(case.parameters, case.run)
    half = cosine[len(cosine) // 2]
    return {
        "value": cosine[-1], "half": half, "gain": cosine[-1] - half, "norm": run["norm"][-1],
        "steps": STEPS, "open": "time", "curves": {"normalized": (run.steps[1:], 1 - cosine)},
    }  # fmt: skip


@claim(
    "Selection", "least attention to the optimal token over inputs", ">=", NEAR,
    require=separable, run=normalized, words="on average it passes .9 at step {T_select}",
    picture=Picture("steps", "mean attention to other tokens"),
)  # fmt: skip
def selects(case: Case) -> dict[str, Any]:
    """Final attention to the optimal token, minimized over the inputs."""
    run, law = case.run, case.parameters
    p = np.array([run["p1"][-1], run["p2"][-1]])
    scores = tokens(law.inputs, law.spread, law.draw) @ p
    shares = 1 / np.exp(scores - scores[:, :1]).sum(axis=1)
    return {
        "value": shares.min(), "T_select": run.events["T_select"].step, "open": "time",
        "curves": {"normalized": (run.steps, 1 - run["selected"])},
    }  # fmt: skip


@claim(
    "Normalized", "steps of descent to a norm, over those of normalized descent", ">=", FASTER,
    require=separable, run=descent(1.0, STEPS, record=10),
    also=(Also("bend", "<=", STRAIGHT, "distance of the norm from a line in log(time)"),),
    words="norm {norm:.4g} after {steps} steps at rate 1, after {fast} normalized steps; it grows "
    "by {decade:.3g} in a decade of time",
    picture=Picture("steps", "norm of p", scales=("log", "linear")),
)  # fmt: skip
def grows(case: Case) -> dict[str, Any]:
    """Steps of gradient descent, and of normalized descent, to the same norm of the query."""
    run, fast = case.run, normalized(case)[1]
    reached = np.flatnonzero(fast["norm"] >= run["norm"][-1])
    if not reached.size:
        raise Undecided("normalized descent does not reach the norm of gradient descent", "time")
    late = run.time >= run.time[-1] / 10
    x, y = np.log10(run.time[late]), run["norm"][late]
    slope, level = np.polyfit(x, y, 1)
    steps, bend = int(fast.steps[reached[0]]), np.abs(slope * x + level - y).max() / y[-1]
    return {
        "value": run.steps[-1] / steps, "fast": steps, "steps": int(run.steps[-1]),
        "norm": run["norm"][-1], "decade": slope, "bend": bend,
        "curves": {"descent": (run.steps[1:], run["norm"][1:]),
                   "normalized": (fast.steps[1:], fast["norm"][1:])},
    }  # fmt: skip


def directions(system: System, request: FigureRequest) -> Drawing:
    """Tokens, and the query's direction, norm and angle to max-margin; option ``steps``."""
    steps, law = int(request.options({"steps": STEPS})["steps"]), request.make_parameters(system)
    best, problem = max_margin(law), system.ReducedPopulation(law)
    X, record = tokens(law.inputs, law.spread, law.draw), np.geomspace(1, steps, 300).astype(int)
    fast = descend(problem, RATE, steps, rule=rule("normalized", eps=EPS), record=record)
    runs = {"descent": (BLUE, descend(problem, 1.0, steps, record=record))}
    runs |= {"normalized descent": (ORANGE, fast)}
    data: dict[str, Any] = {"margin": best}
    words = title(system, law, "inputs", "other", "spread", "draw", width=9.4)
    with page(9.4, 3.3, words, ncols=3) as (_, (plane, norm, angle)):
        plane.plot(*X[:, 1:].reshape(-1, 2).T, "o", color=GREY, ms=3, label="other tokens")
        plane.plot(*X[:, 0].T, "*", color="k", ms=7, ls="", label="optimal tokens")
        _ray(plane, best, color="k", ls=":", lw=1.2, label="largest margin")
        for name, (colour, run) in runs.items():
            off = np.degrees(np.arccos(np.minimum(cosines(law, run), 1.0)))
            data |= {f"{name}, steps": run.steps[1:], f"{name}, angle": off}
            data[f"{name}, norm"] = run["norm"][1:]
            _ray(plane, run.final_state, color=colour)
            norm.plot(run.steps[1:], run["norm"][1:], color=colour, label=name)
            angle.plot(run.steps[1:], off, color=colour)
        plane.set(xlim=(-1.6, 2.4), ylim=(-2.0, 2.0), aspect="equal")
        plane.set(xlabel="first coordinate", ylabel="second coordinate")
        norm.set(xscale="log", xlabel="steps", ylabel=r"$\|p\|$")
        angle.set(xscale="log", xlabel="steps", ylabel="angle to the largest margin, degrees")
        angle.set_ylim(bottom=0.0)
        plane.legend(loc="lower right", fontsize=8)
        norm.legend(loc="upper left", fontsize=8)
    ends = [run["norm"][-1] for _, run in runs.values()]
    caption = (
        f"Tokens of {law.inputs} inputs and directions of the query: of the largest margin, and "
        f"after {steps} steps from 0 of descent (rate 1, norm {ends[0]:.3g}) and of normalized "
        f"descent (rate {RATE:g}, norm {ends[1]:.3g}). Its norm and its angle to the direction of "
        "the largest margin."
    )
    return Drawing(np.array([plane, norm, angle]), data, caption)


def _ray(axes: Any, direction: FloatArray, **look: Any) -> None:
    axes.plot(*np.outer(direction / np.linalg.norm(direction), (0, 2.2)), **look)


FIGURES = {"directions": directions}
