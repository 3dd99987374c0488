"""Attention maps along training on an image of a cluster, and what Section 6 says of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dynamics.attention_maps import diversity, total_variation
from dynamics.experiments.curves import curve, over_time
from dynamics.experiments.masked_image_modeling.runs import outside, sizes_of, unit
from dynamics.experiments.verify import Finding, Protocol
from dynamics.problem import FloatArray
from dynamics.systems.masked_image_modeling.reduced.attention import attention_map, grid_of
from dynamics.training.gradient_descent import descend

if TYPE_CHECKING:
    from dynamics.registry import System
    from dynamics.results.trajectory import Trajectory
    from dynamics.systems.masked_image_modeling.full.projection import Rows

USUAL = {"P": 1024, "C_global": 512, "C_local": 8}
ETA = 1.0
UNITS = 47.0
"""Horizon, in units of K P / C_s."""
KEYS = 10
FEW = 12
SETTLED = 1e-3
"""Relative distance from its last value at which the metric is settled."""
SAME = 0.9
"""Ratio of two values of the metric from which on they do not tell two maps apart."""


def measured(rows: Rows, run: Trajectory, k: int = KEYS, count: int = FEW) -> dict[str, FloatArray]:
    """Both measures of the maps along a run, at the start, after one step and on.

    Parameters
    ----------
    rows : Rows
    run : Trajectory
        Of the reduced problem, recorded at every step that is wanted.
    k : int
        Keys of each query.
    count : int
        Maps that are measured, evenly spread over the logarithm of time.

    Returns
    -------
    dict
        ``time``, ``diversity`` (in patches) and ``total_variation``, shape (maps,).
    """
    wanted = np.geomspace(run.time[1], run.time[-1], count - 1)
    at = np.unique([0, *np.abs(run.time[None, :] - wanted[:, None]).argmin(axis=1)])
    grid = grid_of(rows.parameters.P)
    maps = [attention_map(rows, run.states[place]) for place in at]
    return {
        "time": run.time[at],
        "diversity": np.array([float(diversity(one, grid=grid, k=k)) for one in maps]),
        "total_variation": np.array([float(total_variation(one)) for one in maps]),
    }


def trained_maps(system: System, parameters: Any, eta: float = ETA) -> tuple[Any, Trajectory]:
    """The reduced problem and a descent whose first step is among its records."""
    problem = system.ReducedPopulation(parameters)
    return problem, descend(problem, eta, int(np.ceil(UNITS * unit(parameters) / eta)))


def section_6(system: System, protocol: Protocol) -> Finding:
    """The metric and the total variation after one step and at the end of training."""
    quantity = "diversity of the nearly uniform maps after one step over that at the end"
    undecided = outside(protocol, quantity, SAME)
    if undecided is not None:
        return undecided
    parameters = protocol.parameters or system.Parameters(**USUAL)
    k = min(KEYS, parameters.P)
    problem, run = trained_maps(system, parameters)
    found = measured(problem.rows, run, k, 2 * FEW if protocol.thorough else FEW)
    spread, variation = found["diversity"], found["total_variation"]
    ratio = float(spread[1] / spread[-1]) if spread[-1] > 0 else float("nan")
    told_apart = variation[1] < SAME * variation[-1]
    holds = bool(ratio < SAME) if told_apart else None
    reason = (
        f"the metric is {spread[0]:.4g} at the start, {spread[1]:.5g} after one step and "
        f"{spread[-1]:.5g} at the end, while the total variation of rows goes from "
        f"{variation[1]:.2g} to {variation[-1]:.3g}"
    )
    if abs(ratio - 1) <= SETTLED and told_apart:
        reason += ": it sees the order of the weights only, which one step settles"
    elif np.isfinite(ratio):
        reason += f"; after one step it is at {ratio:.3g} of its last value"
    curves = [
        curve(label, found["time"][1:], values[1:] / values[-1])
        for label, values in ((f"diversity, top {k}", spread), ("total variation", variation))
    ]
    plot = over_time("share of the value at the end", curves)
    table = {name: values.tolist() for name, values in found.items()}
    evidence = {"parameters": sizes_of(parameters), "table": table, "plot": plot}
    return Finding(holds, quantity, ratio, SAME, reason, evidence)
