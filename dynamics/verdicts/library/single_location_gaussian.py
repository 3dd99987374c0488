"""Single-location regression with Gaussian tokens: what training recovers, over draws."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dynamics.plotting.style import BLUE, GREEN, ORANGE, legend
from dynamics.training.flow import flow
from dynamics.verdicts.figure import Drawing, FigureRequest, page, title
from dynamics.verdicts.findings import Finding
from dynamics.verdicts.study import TIME, Measurement, Study, measures
from dynamics.verdicts.wording import counted

if TYPE_CHECKING:
    from dynamics.system import System

LONG = 1e4
SAMPLES = 2000
FOUND = 0.9
"""Mean attention on the token from which on it is recovered."""


@measures("mean attention on the token at the end, least of the seeds", ">=", FOUND)
def recovers(study: Study) -> Finding:
    """The closed equations at the same draws; their spread over seeds is that of the law."""
    law, ends = study.law(), []
    for seed in study.seeds(3, 8):
        problem = study.system.ReducedPopulation(law, samples=SAMPLES, seed=seed)
        run = flow(problem, LONG)
        ends.append((run["found"][-1], run["nu"][-1], run["kappa"][-1]))
        study.row({"seed": seed}, found=float(ends[-1][0]), nu=float(ends[-1][1]))
        study.curve(f"seed {seed}", run.time, run["found"])
    study.draw(TIME, "attention on the token", y_scale="linear")
    mean, error = np.mean(ends, axis=0), np.std(ends, axis=0, ddof=1) / np.sqrt(len(ends))
    reason = (
        f"at time {LONG:g}, d = {law.d}, {len(ends)} seeds of {SAMPLES} draws: attention "
        f"{mean[0]:.4f} +- {error[0]:.4f}, nu {mean[1]:.4f} +- {error[1]:.4f}, kappa {mean[2]:.3f} "
        f"+- {error[2]:.3f}"
    )
    direction = Measurement("least nu", min(end[1] for end in ends), ">=", 0.9)
    return study.conclude(min(end[0] for end in ends), reason, direction, may_still_come=True)


def overlaps(system: System, request: FigureRequest) -> Drawing:
    """The two overlaps and the attention on the token along the flow, a line for each seed.

    Options: ``seeds``, ``time``.

    Parameters
    ----------
    system : System
    request : FigureRequest
    """
    options = request.options({"seeds": 3, "time": LONG})
    law = request.make_parameters(system)
    data: dict[str, Any] = {}
    looks = (
        ("kappa", BLUE, r"$\kappa$, key on $k^*$"),
        ("nu", ORANGE, r"$\nu$, value on $v^*$"),
        ("found", GREEN, "attention on the token"),
    )
    with page(6.4, 3.6, title(system, law, "d", "L", "gamma", width=6.4)) as (_, axes):
        for number, seed in enumerate(request.seeds(int(options["seeds"]))):
            problem = system.ReducedPopulation(law, samples=SAMPLES, seed=seed)
            run = flow(problem, float(options["time"]))
            for name, colour, label in looks:
                data[f"{name}_{seed}"] = run[name]
                word = None if number else label
                axes.plot(run.time, run[name], color=colour, lw=1.0, label=word)
            data[f"time_{seed}"] = run.time
        axes.set(xscale="log", xlim=(0.1, run.time[-1]), xlabel="time", ylabel="overlap, attention")
        legend(axes)
    seeds = options["seeds"]
    caption = (
        f"Overlaps along the gradient flow, {counted(seeds, 'seed')} of {SAMPLES} draws of "
        "the law each."
    )
    return Drawing(axes, data, caption)


CHECKS = {"Recovery": recovers}
FIGURES = {"overlaps": overlaps}
