r"""Other update rules than gradient descent: existence and times of the events, and association.

Classes of equal entries stay equal under any coordinatewise rule, so runs use the three scalars.
Events are defined as for gradient descent; their order may differ. The search for :math:`T_1`
begins at :math:`T_0`; if both are one step, half of the attention was inside the own set before.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import replace
from itertools import product
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from dynamics.plotting import style
from dynamics.results.trajectory import Trajectory
from dynamics.system import System
from dynamics.training.descent import descend
from dynamics.verdicts.cases import Case, flow_to
from dynamics.verdicts.claim import Picture
from dynamics.verdicts.figure import Drawing, FigureRequest, page, state, stated
from dynamics.verdicts.findings import Undecided
from dynamics.verdicts.positional_attention.grid import claim
from theory.papers.positional_attention.data_law import ANY, MIXED

RATES = {"gd": 0.03, "momentum": 0.003, "adam": 0.001, "sign": 0.001}
"""Update rule -> learning rate in the figure ``rules``."""
LOOKS: Mapping[str, tuple[str, Any]] = {
    "gd": (style.BLUE, "-"), "momentum": (style.ORANGE, (0, (4, 3))),
    "adam": (style.VERMILION, (0, (7, 1.5, 1, 1.5))), "sign": ("black", (0, (1, 1.2))),
}  # fmt: skip
EVENTS = {"T0": "$T_0$", "T1": "$T_1$", "event_III": "Event III"}
MARKS: Mapping[str, dict[str, Any]] = {
    "T0": {"marker": "o", "ms": 5}, "T1": {"marker": "s", "ms": 8, "mfc": "none"},
    "event_III": {"marker": "^", "ms": 5},
}  # fmt: skip
"""Marker of each event; T1 has an open square, in which the marker of T0 is visible."""
LAWS = {MIXED: "mixed: no random set of one sign (toy law)", ANY: "any: the law of the paper"}
RECORDS = 600
"""Number of records of a run of the figure ``rules``."""
SIZES = tuple({"D": D, "C": C, "q": 0.8} for D, C in ((12, 3), (16, 4)))
MORE_SIZES = tuple({"D": D, "C": C, "q": 0.8} for D, C in ((24, 3), (32, 4), (48, 3), (64, 4)))
ADAM_RATES, ADAM_STEPS = (1e-2, 1e-3, 1e-4), 100_000
LONG = 1e7
"""Final time of the flow with which Adam is compared."""


def rules_figure(system: System, request: FigureRequest) -> Drawing:
    """The three events under each rule in `RATES`, for random sets ``mixed`` and ``any``.

    Options: ``steps``, and the learning rate of each rule by its name. The data are ``runs``, each
    with law, rule, eta, steps of the events, ``half`` (first record with half of the attention
    inside the own set), alpha, gamma and rho at the end, and outcome, and ``steps``.
    """
    options = request.options({"steps": 100_000, **RATES})
    law = request.make_parameters(system, ("random_sets",), D=9, C=3)
    at = np.unique(np.geomspace(1, options["steps"], RECORDS).astype(np.int64))
    runs: dict[tuple[str, str], Trajectory] = {}
    rows, early = [], []
    for name, rule in product(LAWS, RATES):
        problem = system.ReducedPopulation(replace(law, random_sets=name))
        runs[name, rule] = run = descend(problem, options[rule], options["steps"], rule, record=at)
        inside = run["G"] >= law.D / 2
        half = int(run.steps[inside.argmax()]) if inside.any() else None
        steps = {event: run.events[event].step for event in EVENTS}
        rows.append({
            "random_sets": name, "rule": rule, "eta": options[rule], **steps, "half": half,
            **{n: float(run[n][-1]) for n in ("alpha", "gamma", "rho")},
            "outcome": str(run.outcome),
        })  # fmt: skip
        if steps["T0"] is not None and steps["T0"] == steps["T1"]:
            early.append(f"{rule} under {name} at step {half:,}, T0 at {steps['T0']:,}")
    rates = ", ".join(f"{rule} {options[rule]:g}" for rule in RATES)
    caption = (
        f"The three events of the paper under four update rules ({stated(law, 'D', 'C')}, "
        f"{stated(law, 'q', 'p', 'nu', 'beta')}; exact reduced runs of {options['steps']:,} steps; "
        f"learning rates: {rates}; other constants are optax's). Where T0 and T1 are one step, "
        "half of the attention was inside the own set before attention took over the growth of the "
        f"signal: {'; '.join(early) or 'in no run'}."
    )
    axes = _picture(runs, options)
    state(axes, system, law, "D", "C", "q", "p", "nu", "beta")
    return Drawing(axes, {"runs": rows, "steps": options["steps"]}, caption)


def _picture(runs: Mapping[tuple[str, str], Trajectory], options: Mapping[str, Any]) -> Any:
    look: dict[str, Any] = {"sharex": True, "sharey": "row", "height_ratios": (1.15, 1.3, 1.0)}
    with page(8.6, 6.4, nrows=3, ncols=2, **look) as (figure, axes):
        for (name, rule), run in runs.items():
            top, *below = axes[:, list(LAWS).index(name)]
            colour, dash = LOOKS[rule]
            _timeline(top, run, list(LOOKS).index(rule), colour, options["steps"])
            series = run["alpha"], run["G"] / run.parameters["D"]
            for panel, values in zip(below, series, strict=True):
                panel.plot(run.steps, values, ls=dash, color=colour, label=rule)
                for event, step in _reached(run).items():
                    y = np.interp(np.log(step), np.log(run.steps[1:]), values[1:])
                    panel.plot(step, y, color=colour, mew=1.3, **MARKS[event])
        for title, column in zip(LAWS.values(), axes.T, strict=True):
            column[0].set_title(title, fontsize=9)
            column[2].axhline(0.5, color=style.GREY, lw=0.8, ls=":")
            column[2].set(xlabel="step", xscale="log", xlim=(1, 1.3 * options["steps"]))
        names = [rf"{rule}, $\eta={style.number(options[rule])}$" for rule in LOOKS]
        axes[0, 0].set(yticks=range(len(names)), yticklabels=names, ylim=(len(names) - 0.4, -0.8))
        style.logarithmic(axes[1, 0])
        axes[1, 0].set_ylabel(r"$\alpha$")
        axes[2, 0].set(ylabel="attention inside\nthe own set, $G/D$", ylim=(0.3, 1.03))
        lines = [Line2D([], [], color=c, ls=dash, label=rule) for rule, (c, dash) in LOOKS.items()]
        grey: dict[str, Any] = {"ls": "", "color": style.GREY, "mew": 1.3}
        lines += [Line2D([], [], label=EVENTS[n], **grey, **mark) for n, mark in MARKS.items()]
        style.legend_below(figure, lines, most=7)
    return axes


def _reached(run: Trajectory) -> dict[str, int]:
    steps = {event: run.events[event].step for event in EVENTS}
    return {event: step for event, step in steps.items() if step is not None}


def _timeline(panel: Axes, run: Trajectory, row: int, colour: str, end: int) -> None:
    """Draw the events of one run, with their steps, on a line; missing events are named."""
    panel.axhline(row, color=colour, lw=0.8, alpha=0.5)
    steps = _reached(run)
    for event, step in steps.items():
        panel.plot(step, row, color=colour, mew=1.3, **MARKS[event])
    for step in dict.fromkeys(steps.values()):
        style.note(panel, f"{step:,}", (step, row), (0, 6), ha="center", fontsize=7)
    if missing := ", ".join(label for event, label in EVENTS.items() if event not in steps):
        look: dict[str, Any] = {"ha": "right", "fontsize": 7, "color": style.GREY}
        style.note(panel, f"no {missing}", (end, row), (6, 3), **look)


@claim(
    "Adam", "learning rates at which Adam associates and the flow does not", ">", 0.0,
    laws=SIZES, thorough=MORE_SIZES, exists=True, run=flow_to(LONG),
    words="the flow ends at gamma = {gamma:.3g}, rho = {rho:.3g}; Adam associates at {rates} "
    f"({ADAM_STEPS:,} steps at {', '.join(map(str, ADAM_RATES))}), T1 at steps {{T1}}",
    picture=Picture("step", "attention inside the own set, $G/D$", {"half": 0.5},
                    ("log", "linear")),
)  # fmt: skip
def adam(case: Case) -> dict[str, Any]:
    """Association after training by Adam, for laws whose flow ends without association."""
    if _associated(case.run):
        raise Undecided("the flow associates too, so Adam cannot differ", "law")
    runs = {eta: descend(case.problem, eta, ADAM_STEPS, "adam") for eta in ADAM_RATES}
    found = {eta: run for eta, run in runs.items() if _associated(run)}
    return {
        "value": len(found), "rates": ", ".join(map(str, found)) or "none",
        "T1": ", ".join(str(run.events["T1"].step) for run in found.values()) or "none",
        "gamma": case.run["gamma"][-1], "rho": case.run["rho"][-1],
        "curves": {f"{case.label}, Adam, {eta:g}": (run.steps[1:], run["G"][1:] / case.parameters.D)
                   for eta, run in runs.items()},
    }  # fmt: skip


def _associated(run: Trajectory) -> bool:
    """Whether a run ends with association and half of the attention inside the own set."""
    inside = run["G"][-1] >= run.parameters["D"] / 2
    return bool(run["patch_association"][-1] == 1 and inside)
