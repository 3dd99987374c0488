r"""Other update rules than descent: which of the three events exist, and when; and association.

Classes of equal entries stay equal under any coordinatewise rule, so that these are runs of the
three scalars. Events are those of descent; their order is not: :math:`T_1` is sought from
:math:`T_0` on, and where both are one step, half of the attention was inside the own set before.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.lines import Line2D

from dynamics.plotting import style
from dynamics.results.trajectory import Trajectory
from dynamics.system import System
from dynamics.training.descent import descend
from dynamics.verdicts.claim import Case, Picture, flow_to
from dynamics.verdicts.figure import Drawing, FigureRequest, page, state, stated
from dynamics.verdicts.findings import Undecided
from dynamics.verdicts.positional_attention.grid import claim
from theory.papers.positional_attention.data_law import ANY, MIXED

RATES = {"gd": 0.03, "momentum": 0.003, "adam": 0.001, "sign": 0.001}
"""Rules of the figure -> learning rate."""
LOOKS: Mapping[str, tuple[str, Any]] = {
    "gd": (style.BLUE, "-"),
    "momentum": (style.ORANGE, (0, (4, 3))),
    "adam": (style.VERMILION, (0, (7, 1.5, 1, 1.5))),
    "sign": ("black", (0, (1, 1.2))),
}
EVENTS = {"T0": ("o", "$T_0$"), "T1": ("s", "$T_1$"), "event_III": ("^", "Event III")}
"""Event -> its mark and what it is called."""
LAWS = {
    MIXED: "mixed: no random set of one sign (toy law)",
    ANY: "any: the law of the paper",
}
RECORDS = 600
"""Records of a run of the figure."""
SIZES = tuple({"D": D, "C": C, "q": 0.8} for D, C in ((12, 3), (16, 4)))
MORE_SIZES = tuple({"D": D, "C": C, "q": 0.8} for D, C in ((24, 3), (32, 4), (48, 3), (64, 4)))
ADAM_RATES, ADAM_STEPS = (1e-2, 1e-3, 1e-4), 100_000
LONG = 1e7
"""Time of the flow that Adam is compared with."""


def rules_figure(system: System, request: FigureRequest) -> Drawing:
    """The three events under descent, momentum, Adam and sign descent, under both laws.

    Options: ``steps``, and the learning rate of each rule by its name. ``data``: ``runs``, each
    with law, rule, eta, the steps of the events, ``half`` (the first record with half of the
    attention inside the own set), alpha, gamma and rho at the end, and the outcome; ``steps``.

    Parameters
    ----------
    system : System
    request : FigureRequest
    """
    options = request.options({"steps": 100_000, **RATES})
    law = request.make_parameters(system, ("random_sets",), D=9, C=3)
    at = np.unique(np.geomspace(1, options["steps"], RECORDS).astype(np.int64))
    runs: dict[tuple[str, str], Trajectory] = {}
    for name in LAWS:
        problem = system.ReducedPopulation(replace(law, random_sets=name))
        for rule in RATES:
            runs[name, rule] = descend(problem, options[rule], options["steps"], rule, record=at)
    rows = [
        {"random_sets": name, "rule": rule, "eta": options[rule]} | _measured(run)
        for (name, rule), run in runs.items()
    ]
    rates = ", ".join(f"{rule} {options[rule]:g}" for rule in RATES)
    caption = (
        f"The three events of the paper under four update rules ({stated(law, 'D', 'C')}, "
        f"{stated(law, 'q', 'p', 'nu', 'beta')}; exact reduced runs of {options['steps']:,} steps; "
        f"learning rates: {rates}; other constants are optax's). Left: no random set is all of one "
        f"sign; right: the paper's law. Top: the step of each event; the others are named on the "
        f"right. Where T0 and T1 are one step, half of the attention was inside the own set before "
        f"attention took over the growth of the signal: {_early(rows)}. Middle: alpha, with the "
        f"events. Bottom: the share of the attention inside the own set, G/D."
    )
    axes = _picture(runs, options)
    state(axes, system, law, "D", "C", "q", "p", "nu", "beta")
    return Drawing(axes, {"runs": rows, "steps": options["steps"]}, caption)


def _measured(run: Trajectory) -> dict[str, Any]:
    """Steps of the events, of half the attention, and where the run ends."""
    inside = run["G"] >= run.parameters["D"] / 2
    return {
        **{name: run.events[name].step for name in EVENTS},
        "half": int(run.steps[inside.argmax()]) if inside.any() else None,
        **{name: float(run[name][-1]) for name in ("alpha", "gamma", "rho")},
        "outcome": str(run.outcome),
    }


def _early(rows: Sequence[Mapping[str, Any]]) -> str:
    """Runs in which T1 came with T0, in words."""
    parts = [
        f"{row['rule']} under {row['random_sets']} at step {row['half']:,}, T0 at {row['T0']:,}"
        for row in rows
        if row["T0"] is not None and row["T0"] == row["T1"]
    ]
    return "; ".join(parts) or "in no run"


def _picture(runs: Mapping[tuple[str, str], Trajectory], options: Mapping[str, Any]) -> Any:
    """A column for each law: lines of time with the events, alpha, the share of attention."""
    look: dict[str, Any] = {"sharex": True, "sharey": "row", "height_ratios": (1.15, 1.3, 1.0)}
    with page(8.6, 6.4, nrows=3, ncols=2, **look) as (figure, axes):
        for column, name in enumerate(LAWS):
            top, middle, bottom = axes[:, column]
            for row, (rule, (colour, dash)) in enumerate(LOOKS.items()):
                run = runs[name, rule]
                _timeline(top, run, row, colour, options["steps"])
                for panel, values in (
                    (middle, run["alpha"]), (bottom, run["G"] / run.parameters["D"]),
                ):  # fmt: skip
                    panel.plot(run.steps, values, ls=dash, color=colour, label=rule)
                    for event, (mark, _) in EVENTS.items():
                        if (step := run.events[event].step) is not None:
                            y = np.interp(np.log(step), np.log(run.steps[1:]), values[1:])
                            panel.plot(step, y, **_mark(mark, colour))
            top.set_title(LAWS[name], fontsize=9)
            bottom.axhline(0.5, color=style.GREY, lw=0.8, ls=":")
            bottom.set(xlabel="step", xscale="log", xlim=(1, 1.3 * options["steps"]))
        names = [rf"{rule}, $\eta={style.number(options[rule])}$" for rule in LOOKS]
        axes[0, 0].set(yticks=range(len(names)), yticklabels=names, ylim=(len(names) - 0.4, -0.8))
        style.logarithmic(axes[1, 0])
        axes[1, 0].set_ylabel(r"$\alpha$")
        axes[2, 0].set(ylabel="attention inside\nthe own set, $G/D$", ylim=(0.3, 1.03))
        marks = [
            Line2D([], [], ls="", label=label, **_mark(mark, style.GREY))
            for mark, label in EVENTS.values()
        ]
        lines = [Line2D([], [], color=c, ls=dash, label=rule) for rule, (c, dash) in LOOKS.items()]
        style.legend_below(figure, [*lines, *marks], most=7)
    return axes


def _mark(mark: str, colour: str) -> dict[str, Any]:
    """Look of the mark of an event; T1 is a frame, so that T0 is seen inside it."""
    face = "none" if mark == "s" else colour
    return {"marker": mark, "ms": 8 if mark == "s" else 5, "mfc": face, "mec": colour, "mew": 1.3}


def _timeline(panel: Axes, run: Trajectory, row: int, colour: str, steps: int) -> None:
    """Events of one run on a line, with their steps; those that did not happen, in words."""
    panel.axhline(row, color=colour, lw=0.8, alpha=0.5)
    placed: dict[int, None] = {}
    for event, (mark, _) in EVENTS.items():
        step = run.events[event].step
        if step is None:
            continue
        panel.plot(step, row, ls="", **_mark(mark, colour))
        if step not in placed:
            style.note(panel, f"{step:,}", (step, row), (0, 6), ha="center", fontsize=7)
        placed[step] = None
    missing = [label for event, (_, label) in EVENTS.items() if not run.events[event]]
    if missing:
        words = f"no {', '.join(missing)}"
        style.note(panel, words, (steps, row), (6, 3), ha="right", fontsize=7, color=style.GREY)


@claim(
    "Adam", "learning rates at which Adam associates and the flow does not", ">", 0.0,
    laws=SIZES, thorough=MORE_SIZES, exists=True, run=flow_to(LONG),
    words="the flow ends at gamma = {gamma:.3g}, rho = {rho:.3g}; Adam associates at {rates} "
    f"({ADAM_STEPS:,} steps at {', '.join(map(str, ADAM_RATES))}), T1 at steps {{T1}}",
    picture=Picture("step", "attention inside the own set, $G/D$", {"half": 0.5},
                    ("log", "linear")),
)  # fmt: skip
def adam(case: Case) -> dict[str, Any]:
    """Association at the end of Adam, where the flow ends without it."""
    if _associated(case.run):
        raise Undecided("the flow associates too: nothing is left for Adam", "law")
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
    """Whether a run ends with association and half of the attention inside."""
    inside = run["G"][-1] >= run.parameters["D"] / 2
    return bool(run["patch_association"][-1] == 1 and inside)
