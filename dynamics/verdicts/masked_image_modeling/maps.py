"""Attention maps along training on an image of a cluster: what Section 6 says, and its figure."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from math import isqrt
from typing import Any

import numpy as np
from numpy.typing import ArrayLike

from dynamics.attention_maps import diversity, total_variation
from dynamics.plotting.style import BLUE, GREEN, GREY, VERMILION
from dynamics.problem import FloatArray
from dynamics.results.trajectory import Trajectory
from dynamics.system import System
from dynamics.training.descent import descend
from dynamics.verdicts.figure import Drawing, FigureRequest, page, title
from dynamics.verdicts.findings import Finding
from dynamics.verdicts.masked_image_modeling.runs import (
    of_one_cluster,
    requires,
    sizes_of,
    speed,
    unit,
)
from dynamics.verdicts.rules import Repeat
from dynamics.verdicts.study import TIME, Study, measures
from theory.papers.masked_image_modeling.model import latent_moment
from theory.papers.masked_image_modeling.rows import Rows
from theory.papers.masked_image_modeling.symmetry import feature_offsets

SIZES = {"P": 1024, "C_global": 512, "C_local": 8}
ETA = 1.0
UNITS = 47.0
"""Horizon, in units of K P / C_s."""
KEYS = 10
FEW = 12
LEAST_MAPS = 3
"""Of the start, after one step, and of the end."""
UNMOVED = 1e-3
"""Relative distance from its last value at which the metric moves no more."""
SAME = 0.9
"""Ratio of two values of the metric from which on they do not tell two maps apart."""
LOOKS = ((BLUE, "o", "-"), (GREEN, "s", "--"), (VERMILION, "^", "-."))


def attention_map(rows: Rows, state: ArrayLike, cluster: int = 0, z: float = 1.0) -> FloatArray:
    """Attention of every patch on an image of a cluster with nothing masked.

    Queries are those of masked patches, which hold the position alone: the loss depends on no
    other queries. Every latent has the value z.

    Parameters
    ----------
    rows : Rows
        Of the parameters.
    state : float array, shape (n,)
        Of the reduced problem.
    cluster : int
    z : float

    Returns
    -------
    float array, shape (P, P)
    """
    values, areas = np.asarray(state, dtype=np.float64), rows.parameters.area_ids
    feature = feature_offsets(areas)[cluster] + areas[cluster]
    scores = np.empty((rows.parameters.P, rows.parameters.P))
    for kind, start in zip(rows.types, rows.starts, strict=False):
        ups, phi = values[start:], values[start + len(kind.ups_names) :]
        scores[kind.patches] = ups[kind.ups_of] + z * phi[kind.phi_of[:, feature]]
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


def grid_of(P: int) -> tuple[int, int]:
    """Rows and columns of so many patches, as square as P allows."""
    high = max(h for h in range(1, isqrt(P) + 1) if P % h == 0)
    return high, P // high


def measured_maps(
    rows: Rows, run: Trajectory, keys: Sequence[int] = (KEYS,), count: int = FEW
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
    times = np.geomspace(run.time[1], run.time[-1], count - 1)
    records = np.unique([0, *np.abs(run.time[None, :] - times[:, None]).argmin(axis=1)])
    grid = grid_of(rows.parameters.P)
    law = rows.parameters
    z = float(latent_moment(law.z, law.odds, 1))
    maps = [attention_map(rows, run.states[record], z=z) for record in records]
    return {
        "time": run.time[records],
        "diversity": np.array(
            [[float(diversity(one, grid=grid, k=k)) for one in maps] for k in keys]
        ),
        "total_variation": np.array([float(total_variation(one)) for one in maps]),
    }


def _trained(
    system: System, parameters: Any, eta: float = ETA, units: float = UNITS
) -> tuple[Any, Trajectory]:
    """The reduced problem and a descent whose first step is among its records."""
    problem = system.ReducedPopulation(parameters)
    return problem, descend(problem, eta, int(np.ceil(units * unit(parameters) / eta)))


@measures(
    "diversity of the nearly uniform maps after one step over that at the end",
    "<", SAME, requires(), single=("step size", "time"), again=True,
)  # fmt: skip
def section_6(study: Study) -> Finding:
    """The metric and the total variation after one step and at the end of training."""
    law = study.law(**SIZES)
    k = min(KEYS, law.P)
    units = UNITS * study.repeat.time_factor
    problem, run = _trained(study.system, law, study.rate(ETA) / speed(law), units)
    # Made again, the check needs the maps after one step and at the end alone.
    few = FEW if study.repeat == Repeat() else LEAST_MAPS
    values = measured_maps(problem.rows, run, (k,), 2 * FEW if study.thorough else few)
    (metric,), variation = values["diversity"], values["total_variation"]
    ratio = float(metric[1] / metric[-1]) if metric[-1] > 0 else float("nan")
    different = variation[1] < SAME * variation[-1]
    reason = (
        f"the metric is {metric[0]:.4g} at the start, {metric[1]:.5g} after one step and "
        f"{metric[-1]:.5g} at the end, while the total variation of rows goes from "
        f"{variation[1]:.2g} to {variation[-1]:.3g}"
    )
    if abs(ratio - 1) <= UNMOVED and different:
        reason += ": it sees the order of the weights only, which one step settles"
    elif np.isfinite(ratio):
        reason += f"; after one step it is at {ratio:.3g} of its last value"
    study.curve(f"diversity, top {k}", values["time"][1:], metric[1:] / metric[-1])
    study.curve("total variation", values["time"][1:], variation[1:] / variation[-1])
    study.draw(TIME, "share of the value at the end")
    holds = bool(ratio < SAME) if different else None
    table = {name: part.tolist() for name, part in (values | {"diversity": metric}).items()}
    return study.conclude(ratio, reason, holds=holds, parameters=sizes_of(law), table=table)


def diversity_figure(system: System, request: FigureRequest) -> Drawing:
    """Both measures along a run. Options: ``eta``, ``maps``, ``keys``.

    Parameters
    ----------
    system : System
    request : FigureRequest
    """
    law = of_one_cluster(system, request, SIZES)
    quick: dict[str, Any] = {"eta": ETA / speed(law), "maps": 48, "keys": (10, 8)}
    options = request.options(quick, {"maps": 120}, maps=LEAST_MAPS)
    problem, run = _trained(system, law, options["eta"])
    keys = [min(k, law.P) for k in options["keys"]]
    values = measured_maps(problem.rows, run, keys, options["maps"])
    time, variation = values["time"], values["total_variation"]
    metrics = dict(zip(keys, values["diversity"], strict=True))
    top, metric = keys[0], values["diversity"][0]
    events = {
        f"$E_{name[1]}$": event.time
        for name in ("E2", "E4")
        if (event := run.events[name]).time > 0
    }
    high, wide = grid_of(law.P)
    image = "cluster image" if law.K == 1 else f"image of the first of {law.K} clusters"
    sizes = title(system, law, "P", "C_global", "C_local")
    held = f"{high} × {wide} patches, {image} with nothing masked, {sizes}"
    caption = (
        f"Attention diversity (top {top}) is {metric[0]:.4g} at the start, {metric[1]:.5g} after "
        f"one step and {metric[-1]:.5g} at time {time[-1]:g}: it sees the order of the weights "
        f"only. Total variation grows from {variation[1]:.2g} to {variation[-1]:.3g}."
    )
    data = {"time": time, "diversity": metrics, "variation": variation}
    return Drawing(_panels(data, events, held), data, caption)


def _panels(data: Mapping[str, Any], events: Mapping[str, float], held: str) -> Any:
    """Attention diversity by the number of keys above, mean pairwise total variation below.

    The axis of time is linear up to the second time, so that it shows the start.
    """
    time = data["time"]
    with page(6.4, 4.4, held, nrows=2, sharex=True) as (_, axes):
        style: dict[str, Any] = {"ms": 4.5, "mfc": "white", "mew": 1.1}
        for (keys, values), (colour, marker, dash) in zip(
            data["diversity"].items(), LOOKS, strict=False
        ):
            label = f"top {keys} keys"
            axes[0].plot(time, values, marker + dash, color=colour, label=label, **style)
        axes[1].plot(time, data["variation"], "o-", color=BLUE, **style)
        axes[0].set_ylabel("attention diversity\n(patches)")
        axes[1].set_ylabel("mean pairwise\ntotal variation")
        axes[0].legend(loc="lower right")
        axes[1].set_xscale("symlog", linthresh=float(time[1]), linscale=0.4)
        axes[1].set_xlim(-0.1 * time[1], time[-1] * 1.2)
        axes[1].set_xlabel(r"time $\tau = \eta \times$ steps (linear up to the first step)")
        for panel in axes:
            panel.set_ylim(bottom=0.0)
            panel.margins(y=0.08)
            for at in events.values():
                panel.axvline(at, color=GREY, lw=0.8, zorder=0)
        for label, at in events.items():
            axes[0].annotate(
                label, (at, 1.0), (0, 2), xycoords=("data", "axes fraction"), ha="center",
                textcoords="offset points", fontsize=8,
            )  # fmt: skip
    return axes
