"""Spikes of the loss of an associative memory, and growth of its margins; a figure."""

from __future__ import annotations

from dataclasses import replace
from itertools import cycle
from typing import TYPE_CHECKING, Any

import numpy as np

from dynamics.plotting import style
from dynamics.problem import FloatArray
from dynamics.training.descent import descend
from dynamics.verdicts.cases import Case, descent, flow_to
from dynamics.verdicts.claim import TIME, Also, Picture, claim
from dynamics.verdicts.figure import Drawing, FigureRequest, page, title
from dynamics.verdicts.findings import Undecided
from dynamics.verdicts.stability import Trained
from dynamics.verdicts.wording import listed

if TYPE_CHECKING:
    from dynamics.system import System

LARGE, SMALL, STEPS = 10.0, 1.0, 34
"""The paper's experiment: large learning rate, small learning rate, and number of steps."""
MANY = 10_000
LATE = 1e7
NEAR = 1e-3
"""Maximum distance from 1 of a margin's slope in ln t that counts as 1."""
ROUNDING = 1e-13
COLOURS = (style.GREEN, style.VERMILION, style.BLUE, style.PURPLE)


def interfering(law: Any) -> None:
    """Raise Undecided if tokens are uncorrelated or equally frequent, so that no margin falls."""
    if law.alpha == 0 or law.p == 0.5:
        raise Undecided("the statement assumes correlated tokens of different frequency", "law")


def rises(values: FloatArray) -> int:
    """Number of rises between successive values, apart from rounding."""
    return int((np.diff(values) > ROUNDING).sum())


def reversals(values: FloatArray) -> int:
    """Number of sign reversals among the changes of successive values, apart from rounding."""
    moves = np.diff(values)
    moves = np.sign(moves[np.abs(moves) > ROUNDING])
    return int((moves[1:] != moves[:-1]).sum())


def trained(case: Case, eta: float, steps: int = STEPS, **law: Any) -> Any:
    """Gradient descent at rate `eta` with the case's parameters, some replaced by `law`."""
    case = replace(case, parameters=replace(case.parameters, **law))
    return descent(eta, steps, record=1)(case)[1]


@claim(
    "Spikes", "steps that raise the risk at eta = 10, less those at eta = 1", ">", 0,
    require=interfering, also=(Also("left", "<", 1.0, "risk at the end over that at eta = 1"),),
    words="at eta = 10 the risk rises {raised} times in 34 steps, to {peak:.4f} at step {at}, and "
    "ends at {end:.5f}; at eta = 1 it rises {calm} times and ends at {slow:.5f}",
    picture=Picture("steps", "risk", scales=("linear", "linear")),
)  # fmt: skip
def spikes(case: Case) -> dict[str, Any]:
    """Risk along 34 steps from W = 0, at the large and the small learning rate."""
    runs = {eta: trained(case, eta) for eta in (LARGE, SMALL)}
    large, small = (run["risk"] for run in runs.values())
    return {
        "value": rises(large) - rises(small), "left": large[-1] / small[-1], "open": "step size",
        "raised": rises(large), "calm": rises(small), "peak": large.max(),
        "at": int(large.argmax()), "end": large[-1], "slow": small[-1],
        "trained": [Trained.of(case.parameters, run) for run in runs.values()],
        "curves": {f"eta = {eta:g}": (run.steps, run["risk"]) for eta, run in runs.items()},
    }  # fmt: skip


@claim(
    "Speed", "risk after 10,000 steps at eta = 10 over that at eta = 1", "<", 1.0,
    varies=("step size",), words="{value:.4f}, where the ratio of the learning rates makes 0.1",
    picture=Picture("steps", "risk"),
)  # fmt: skip
def faster(case: Case) -> dict[str, Any]:
    """Risk after 10,000 steps at the large and at the small learning rate."""
    runs = {eta: trained(case, eta, MANY) for eta in (LARGE, SMALL)}
    large, small = runs.values()
    return {
        "value": large["risk"][-1] / small["risk"][-1],
        "trained": [Trained.of(case.parameters, run) for run in runs.values()],
        "curves": {f"eta = {eta:g}": (run.steps[1:], run["risk"][1:]) for eta, run in runs.items()},
    }  # fmt: skip


@claim(
    "Interference", "turns of the rarer token's margin at eta = 10", ">", 1, require=interfering,
    words="{value} turns in 34 steps, {balanced} at p = 1/2 and {orthogonal} at alpha = 0",
    picture=Picture("steps", "margin of the rarer token", scales=("linear", "linear")),
)  # fmt: skip
def interference(case: Case) -> dict[str, Any]:
    """Sign reversals of a margin's change, also with equal frequencies or without correlation."""
    name = "m_2" if case.parameters.p > 0.5 else "m_1"
    laws: dict[str, dict[str, Any]] = {
        "both": {}, "p = 1/2": {"p": 0.5}, "alpha = 0": {"alpha": 0.0},
    }  # fmt: skip
    runs = {label: trained(case, LARGE, **law) for label, law in laws.items()}
    both, balanced, orthogonal = (reversals(run[name]) for run in runs.values())
    holds = False if balanced + orthogonal else both > 1 or None
    return {
        "value": both, "balanced": balanced, "orthogonal": orthogonal, "holds": holds,
        "missing": "step size", "trained": [Trained.of(case.parameters, runs["both"])],
        "curves": {label: (run.steps, run[name]) for label, run in runs.items()},
    }  # fmt: skip


@claim(
    "Margins", "largest distance of dm / d ln t from 1 over the last decade of time", "<=", NEAR,
    run=flow_to(LATE),
    words="slopes {slopes}; ln(2 (1 - alpha) p t) is off by {off:.1e} at the end",
    picture=Picture(TIME, "margin", scales=("log", "linear")),
)  # fmt: skip
def logarithmic(case: Case) -> dict[str, Any]:
    """Slope of each margin in ln t, and distance of each margin from its predicted late value."""
    law, run = case.parameters, case.run
    last, shares = run.time >= run.time[-1] / 10, {"m_1": law.p, "m_2": 1 - law.p}
    slopes = [np.polyfit(np.log(run.time[last]), run[name][last], 1)[0] for name in shares]
    limit = {name: np.log(2 * (1 - law.alpha) * p * run.time[-1]) for name, p in shares.items()}
    return {
        "value": max(abs(slope - 1) for slope in slopes), "slopes": listed(slopes, 6),
        "off": max(abs(run[name][-1] - end) for name, end in limit.items()), "open": "time",
        "curves": {name: (run.time[1:], run[name][1:]) for name in shares},
    }  # fmt: skip


def spikes_figure(system: System, request: FigureRequest) -> Drawing:
    """Paths of both margins on contours of the risk, and risk; options ``rates``, ``steps``."""
    options, law = (
        request.options({"rates": [LARGE, SMALL], "steps": STEPS}),
        request.make_parameters(system),
    )
    problem = system.ReducedPopulation(law)
    runs = {eta: descend(problem, eta, options["steps"], record=1) for eta in options["rates"]}
    data: dict[str, Any] = {}
    with page(6.8, 3.0, title(system, law, "p", "alpha", width=6.8), ncols=2) as (_, panels):
        plane, curve = panels
        for (eta, run), colour in zip(runs.items(), cycle(COLOURS)):
            label = rf"$\eta = {eta:g}$"
            plane.plot(run["m_1"], run["m_2"], ".-", color=colour, lw=1.0, ms=4)
            curve.plot(run.steps, run["risk"], color=colour, label=label)
            curve.plot(run.steps[1:], run["error"][1:], color=colour, ls="--", lw=1.0)
            data |= {f"{name}, eta={eta:g}": run[name] for name in ("m_1", "m_2", "risk", "error")}
        landscape(plane, law)
        curve.plot([], [], color=style.GREY, ls="--", lw=1.0, label="error (dashed)")
        curve.set(xlabel="steps", ylabel="risk, error", ylim=(0.0, None))
        curve.legend()
    most = ", ".join(f"{run['risk'].max():.4f} at eta={eta:g}" for eta, run in runs.items())
    caption = (
        "Margins of the two tokens over the levels of the risk (a token is recalled where its "
        "margin is positive; grey: not both), and risk and error at each step of gradient descent "
        f"from zero. Largest risk {most}."
    )
    return Drawing(panels, data, caption)


def landscape(axes: Any, law: Any) -> None:
    """Draw contours of the risk within the axes' limits, and the region of failed recall."""
    (left, right), (low, high) = axes.get_xlim(), axes.get_ylim()
    first, second = np.meshgrid(np.linspace(left, right, 200), np.linspace(low, high, 200))
    risk = law.p * np.logaddexp(0, -first) + (1 - law.p) * np.logaddexp(0, -second)
    wrong = (first <= 0) | (second <= 0)
    axes.contourf(first, second, wrong, levels=[0.5, 1.5], colors=["#EEEEEE"], zorder=0)
    levels = np.geomspace(0.05, max(risk.max(), 0.1), 9)
    axes.contour(first, second, risk, levels=levels, colors=[style.GREY], linewidths=0.5, zorder=1)
    axes.set(xlabel="margin of the first token", ylabel="margin of the second token")


FIGURES = {"spikes": spikes_figure}
