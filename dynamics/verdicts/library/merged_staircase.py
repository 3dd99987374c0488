r"""The merged staircase: what is learned and in which order, with a figure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dynamics.plotting.style import BLUE, GREEN, ORANGE
from dynamics.training.flow import flow
from dynamics.verdicts.figure import Drawing, FigureRequest, page, title
from dynamics.verdicts.findings import Finding, Undecided
from dynamics.verdicts.study import TIME, Measurement, Study, measures

if TYPE_CHECKING:
    from dynamics.system import System

LONG = 3000.0
LEARNED = 0.01
"""Risk below which a target is learned."""
APART = 2.0
"""Ratio of two times from which one is after the other, not with it."""
SAME = 1e-10
"""Relative difference of two risks that counts as rounding."""
BOUNDS = {"leap": 0.5, "parity": 0.5}
"""Half the squared coefficients that a network blind to x_2 and x_3 cannot fit."""


@measures("risk at the end", "<=", LEARNED)
def learned(study: Study) -> Finding:
    """Of the staircase, at two dimensions; the runs are the same."""
    law = study.law()
    if law.target != "staircase":
        raise Undecided("the statement is of the staircase", "law")
    larger = study.system.Parameters(**(vars(law) | {"D": law.D + 2}))
    runs = [flow(study.system.ReducedPopulation(each), LONG) for each in (law, larger)]
    for run, each in zip(runs, (law, larger), strict=True):
        study.curve(f"D = {each.D}", run.time, run["risk"])
    study.draw(TIME, "risk")
    apart = float(abs(runs[0]["risk"][-1] - runs[1]["risk"][-1]))
    moving = [run.final_state.size for run in runs]
    reason = (
        f"at time {LONG:g} the risk is {runs[0]['risk'][-1]:.3g} at D={law.D} and differs by "
        f"{apart:.1e} at D={larger.D}; {moving[0]} and {moving[1]} scalars; seen with "
        f"{law.neurons} neurons"
    )
    same = Measurement("difference of the risks at two dimensions", apart, "<=", 1e-6)
    return study.conclude(float(runs[0]["risk"][-1]), reason, same, may_still_come=True)


@measures("least risk along the run over the risk that a leap leaves", ">=", 1.0 - SAME)
def not_learned(study: Study) -> Finding:
    """Of two targets without the property; the weights of the missing coordinates stay zero."""
    targets = [study.parameters.target] if study.parameters is not None else [*BOUNDS]
    ratios = []
    for target in targets:
        if target not in BOUNDS:
            raise Undecided("the statement is of targets without the property", "law")
        base = vars(study.parameters) if study.parameters is not None else {}
        law = study.system.Parameters(**(base | {"target": target}))
        run = flow(study.system.ReducedPopulation(law), LONG)
        ratios.append(float(run["risk"].min()) / BOUNDS[target])
        still = max(float(run["w_2"].max()), float(run["w_3"].max()))
        study.row({"target": target}, least=ratios[-1] * BOUNDS[target], size=still)
        study.curve(target, run.time, run["risk"])
    study.draw(TIME, "risk")
    sizes = max(study.column("size"))
    reason = (
        f"targets {', '.join(targets)}, to time {LONG:g} from w = 0: the weights of x_2 and x_3 "
        f"are {sizes:g} at every record, so the risk cannot fall below {BOUNDS[targets[0]]:g}"
    )
    return study.conclude(min(ratios), reason)


@measures("least ratio of the time of a monomial to that of the one before", ">=", APART)
def one_by_one(study: Study) -> Finding:
    """Times at which the coefficient of each monomial of the staircase is half of its end."""
    law = study.law()
    if law.target != "staircase":
        raise Undecided("the statement is of the staircase", "law")
    run = flow(study.system.ReducedPopulation(law), LONG)
    times = [run.events[f"T_{name}"].time for name in ("1", "12", "123")]
    for name in ("1", "12", "123"):
        study.curve(f"coefficient {name}", run.time, run[f"F_{name}"])
    study.draw(TIME, "Fourier coefficient", y_scale="linear")
    reason = (
        f"half of each coefficient at times {', '.join(f'{time:.4g}' for time in times)}, with "
        f"{law.neurons} neurons and one start"
    )
    ratio = min(times[1] / times[0], times[2] / times[1])
    missing = "size" if np.isfinite(ratio) else "time"
    return study.conclude(ratio, reason, may_still_come=True, missing=missing)


def losses(system: System, request: FigureRequest) -> Drawing:
    """The risk of targets with and without the merged-staircase property.

    Option: ``time``.

    Parameters
    ----------
    system : System
    request : FigureRequest
    """
    options = request.options({"time": LONG})
    base = request.make_parameters(system, ("target",))
    data: dict[str, Any] = {}
    words = {
        "staircase": (r"$x_1 + x_1 x_2 + x_1 x_2 x_3$", BLUE, "-"),
        "leap": (r"$x_1 + x_1 x_2 x_3$", ORANGE, "-"),
        "parity": (r"$x_1 x_2 x_3$", GREEN, "--"),
    }
    with page(6.4, 3.6, title(system, base, "D", "neurons", width=6.4)) as (_, axes):
        for target, (label, colour, dash) in words.items():
            law = system.Parameters(**(vars(base) | {"target": target}))
            run = flow(system.ReducedPopulation(law), float(options["time"]))
            data[f"time_{target}"], data[f"risk_{target}"] = run.time, run["risk"]
            axes.plot(run.time, run["risk"], color=colour, ls=dash, label=label)
        axes.set(
            xscale="log",
            xlim=(0.3, float(options["time"])),
            xlabel="time",
            ylabel="population risk",
        )
        axes.set_ylim(bottom=0.0)
        axes.legend()
    caption = (
        "Population risk along the gradient flow from w = 0. The staircase is learned; what leaps "
        "over two coordinates stays at its level. Largest risk "
        f"{max(np.max(data[f'risk_{t}']) for t in words):.4g}."
    )
    return Drawing(axes, data, caption)


CHECKS = {"Staircase": learned, "Leaps": not_learned, "Order": one_by_one}
FIGURES = {"losses": losses}
