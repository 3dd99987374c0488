"""Attention maps along training on an image of a cluster: what Section 6 says, and its figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isqrt
from typing import Any

import numpy as np

from dynamics.attention_maps import diversity, total_variation
from dynamics.plotting.style import BLUE, GREEN, GREY, VERMILION
from dynamics.problem import FloatArray
from dynamics.results.trajectory import Trajectory
from dynamics.system import System
from dynamics.training.descent import descend
from dynamics.verdicts.claim import TIME, Case, Picture, Row
from dynamics.verdicts.figure import Drawing, FigureRequest, page, title
from dynamics.verdicts.masked_image_modeling import grid
from dynamics.verdicts.masked_image_modeling.figures import one_cluster
from dynamics.verdicts.rules import Repeat
from theory.papers.masked_image_modeling.model import latent_moment

SIZES = {"P": 1024, "C_global": 512, "C_local": 8}
ETA = 1.0
UNITS = 47.0
"""Horizon, in units of K P / C_s."""
KEYS, FEW = 10, 12
LEAST_MAPS = 3
"""Of the start, after one step, and of the end."""
SAME = 0.9
"""Ratio of two values of the metric from which on they do not tell two maps apart."""
LOOKS = ((BLUE, "o-"), (GREEN, "s--"), (VERMILION, "^-."))


def grid_of(P: int) -> tuple[int, int]:
    """Rows and columns of P patches, as square as P allows."""
    high = max(h for h in range(1, isqrt(P) + 1) if P % h == 0)
    return high, P // high


def _trained(make: Any, law: Any, eta: float, units: float = UNITS) -> tuple[Any, Trajectory]:
    """The reduced problem and a descent whose first step is among its records."""
    problem = make(law)
    return problem, descend(problem, eta, int(np.ceil(units * grid.unit(law) / eta)))


def measured_maps(
    rows: Any, run: Trajectory, keys: Sequence[int] = (KEYS,), count: int = FEW
) -> dict[str, FloatArray]:
    """Diversity and total variation of the maps along a run, at the start, after one step and on.

    On an image all of whose latents are the mean one of the law.

    Parameters
    ----------
    rows : Rows
    run : Trajectory
        Of the reduced problem.
    keys : sequence of int
        How many keys of each query; one measure of diversity each.
    count : int
        Maps that are measured, evenly spread over the logarithm of time.

    Returns
    -------
    dict
        ``time`` and ``total_variation``, shape (maps,), and ``diversity`` (in patches), shape
        (keys, maps).
    """
    times, law = np.geomspace(run.time[1], run.time[-1], count - 1), rows.parameters
    records = np.unique([0, *np.abs(run.time[None, :] - times[:, None]).argmin(axis=1)])
    z = float(latent_moment(law.z, law.odds, 1))
    maps = [rows.attention_map(run.states[record], z=z) for record in records]
    metrics = [[float(diversity(one, grid=grid_of(law.P), k=k)) for one in maps] for k in keys]
    variation = np.array([float(total_variation(one)) for one in maps])
    return {
        "time": run.time[records], "diversity": np.array(metrics), "total_variation": variation
    }  # fmt: skip


def _run(case: Case) -> tuple[Any, Any]:
    eta = case.rate(ETA) / grid.speed(case.parameters)
    return _trained(case.system.ReducedPopulation, case.parameters, eta, case.time(UNITS))


@grid.claim(
    "Section 6", "diversity of the nearly uniform maps after one step over that at the end", "<",
    SAME, laws=(SIZES,), run=_run, require=grid.requires(), varies=("step size", "time"),
    words="the metric is {start:.4g} at the start, {step:.5g} after one step and {end:.5g} at the "
    "end; the total variation of rows goes from {uniform:.2g} to {local:.3g}",
    picture=Picture(TIME, "share of the value at the end"),
)  # fmt: skip
def section_6(case: Case) -> Row:
    """The metric and the total variation after one step and at the end of training."""
    k = min(KEYS, case.parameters.P)
    # Made again, the claim needs the maps after one step and at the end alone.
    few = FEW * (1 + case.thorough) if case.repeat == Repeat() else LEAST_MAPS
    values = measured_maps(case.problem.rows, case.run, (k,), few)
    (metric,), variation, time = values["diversity"], values["total_variation"], values["time"]
    row = {"start": metric[0], "step": metric[1], "end": metric[-1], "uniform": variation[1]}
    row |= {"local": variation[-1], "value": metric[1] / metric[-1] if metric[-1] > 0 else np.nan}
    shares = {f"diversity, top {k}": metric, "total variation": variation}
    row |= {"curves": {name: (time[1:], part[1:] / part[-1]) for name, part in shares.items()}}
    # Maps that are alike need no metric that tells them apart.
    return row | ({} if variation[1] < SAME * variation[-1] else {"holds": None})


def diversity_figure(system: System, request: FigureRequest) -> Drawing:
    """Both measures along a run. Options: ``eta``, ``maps``, ``keys``.

    Parameters
    ----------
    system : System
    request : FigureRequest
    """
    law = one_cluster(system, request, SIZES)
    quick: dict[str, Any] = {"eta": ETA / grid.speed(law), "maps": 48, "keys": (10, 8)}
    options = request.options(quick, {"maps": 120}, maps=LEAST_MAPS)
    problem, run = _trained(system.ReducedPopulation, law, options["eta"])
    keys = [min(k, law.P) for k in options["keys"]]
    values = measured_maps(problem.rows, run, keys, options["maps"])
    time, variation, metric = values["time"], values["total_variation"], values["diversity"][0]
    high, wide = grid_of(law.P)
    image = "cluster image" if law.K == 1 else f"image of the first of {law.K} clusters"
    sizes = title(system, law, "P", "C_global", "C_local")
    held = f"{high} × {wide} patches, {image} with nothing masked, {sizes}"
    caption = (
        f"Attention diversity (top {keys[0]}) is {metric[0]:.4g} at the start, {metric[1]:.5g} "
        f"after one step and {metric[-1]:.5g} at time {time[-1]:g}. Total variation grows from "
        f"{variation[1]:.2g} to {variation[-1]:.3g}."
    )
    metrics = dict(zip(keys, values["diversity"], strict=True))
    data = {"time": time, "diversity": metrics, "variation": variation}
    return Drawing(_panels(data, run, held), data, caption)


def _panels(data: Mapping[str, Any], run: Trajectory, held: str) -> Any:
    """Attention diversity by the number of keys above, mean pairwise total variation below.

    The axis of time is linear up to the second time, so that it shows the start.
    """
    time = data["time"]
    with page(6.4, 4.4, held, nrows=2, sharex=True) as (_, axes):
        style: dict[str, Any] = {"ms": 4.5, "mfc": "white", "mew": 1.1}
        for (keys, values), (colour, look) in zip(data["diversity"].items(), LOOKS, strict=False):
            axes[0].plot(time, values, look, color=colour, label=f"top {keys} keys", **style)
        axes[1].plot(time, data["variation"], "o-", color=BLUE, **style)
        axes[0].set_ylabel("attention diversity\n(patches)")
        axes[1].set_ylabel("mean pairwise\ntotal variation")
        axes[0].legend(loc="lower right")
        axes[1].set_xscale("symlog", linthresh=float(time[1]), linscale=0.4)
        axes[1].set_xlim(-0.1 * time[1], time[-1] * 1.2)
        axes[1].set_xlabel(r"time $\tau = \eta \times$ steps (linear up to the first step)")
        for name in ("E2", "E4"):
            if (at := run.events[name].time) > 0:
                axes[0].annotate(
                    f"$E_{name[1]}$", (at, 1.0), (0, 2), xycoords=("data", "axes fraction"),
                    ha="center", textcoords="offset points", fontsize=8,
                )  # fmt: skip
                for panel in axes:
                    panel.axvline(at, color=GREY, lw=0.8, zorder=0)
        for panel in axes:
            panel.set_ylim(bottom=0.0)
            panel.margins(y=0.08)
    return axes
