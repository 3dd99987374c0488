"""Attention maps of the trained model on an image of a cluster, and what Section 6 says of them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import ArrayLike

from dynamics.descend import descend
from dynamics.diversity import diversity, total_variation
from dynamics.experiments.curves import curve, over_time
from dynamics.experiments.masked_image_modeling.runs import outside, sizes_of, unit
from dynamics.experiments.verify import Finding, Protocol
from dynamics.problem import FloatArray
from dynamics.systems.masked_image_modeling.projection import Rows

if TYPE_CHECKING:
    from dynamics.systems import System
    from dynamics.trajectory import Trajectory

USUAL = {"P": 1024, "C_global": 512, "C_local": 8}
ETA = 1.0
UNITS = 47.0
"""Horizon, in units of K P / C_s."""
KEYS = 10
FEW = 12
SAME = 0.9
"""Ratio of two values of the metric from which on they do not tell two maps apart."""


def attention_map(rows: Rows, state: ArrayLike, cluster: int = 0, z: float = 1.0) -> FloatArray:
    """Attention of every patch on an image of a cluster with nothing masked, shape (P, P).

    A query is what it is where it is masked, its position alone: only then the model has to
    reconstruct it. Every latent has the value z.

    Parameters
    ----------
    rows : Rows
        Of the parameters.
    state : float array, shape (n,)
        Of the reduced problem.
    cluster : int
    z : float
    """
    values, areas = np.asarray(state, dtype=np.float64), rows.parameters.area_ids
    first = int((areas[:cluster].max(axis=1) + 1).sum())
    owner = first + areas[cluster]
    scores = np.empty((rows.parameters.P, rows.parameters.P))
    for kind, start in zip(rows.types, rows.starts, strict=False):
        ups, phi = values[start:], values[start + len(kind.ups_names) :]
        scores[kind.patches] = ups[kind.ups_of] + z * phi[kind.phi_of[:, owner]]
    weights = np.exp(scores - scores.max(axis=1, keepdims=True))
    return np.asarray(weights / weights.sum(axis=1, keepdims=True))


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


def grid_of(P: int) -> tuple[int, int]:
    """Rows and columns of so many patches, as square as P allows."""
    high = max(h for h in range(1, int(np.sqrt(P)) + 1) if P % h == 0)
    return high, P // high


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
    if holds is False:
        reason += ": it sees the order of the weights only, which one step settles"
    curves = [
        curve(label, found["time"][1:], values[1:] / values[-1])
        for label, values in ((f"diversity, top {k}", spread), ("total variation", variation))
    ]
    plot = over_time("share of the value at the end", curves)
    table = {name: values.tolist() for name, values in found.items()}
    evidence = {"parameters": sizes_of(parameters), "table": table, "plot": plot}
    return Finding(holds, quantity, ratio, SAME, reason, evidence)
