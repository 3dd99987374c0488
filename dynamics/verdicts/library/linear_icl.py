r"""Linear attention in context: final risk, sigmoidal growth, invariant, loss plateaus; a figure.

For D white inputs, N examples and one head with weight u and matrix :math:`U = s I`, the flow obeys
:math:`\dot s = u - u^2 s g` and :math:`\dot u = D (s - u s^2 g)`, where :math:`g = 1 + (1 + D) /
N`. From :math:`u = w_0, s = w_0 / \sqrt D` it stays on :math:`u^2 = D s^2`, and :math:`\sigma = s
u` obeys :math:`\dot\sigma = 2 \sqrt D \sigma (1 - g \sigma)` with the solution

.. math:: \sigma(t) = e^{2 \sqrt D t} / [g (e^{2 \sqrt D t} - 1) + \sqrt D / w_0^2] .

Heads of rank one learn the eigenvectors of the covariance :math:`\Lambda` one by one. After those
of eigenvalues :math:`\lambda_1, ..., \lambda_m`, the loss :math:`2 R` rests at :math:`\mathrm{tr}
\Lambda - \sum_{d \le m} \lambda_d / (1 + (1 + \mathrm{tr} \Lambda / \lambda_d) / N)`.
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dynamics.plotting.style import BLUE, GREEN, GREY, ORANGE, PURPLE
from dynamics.problem import FloatArray
from dynamics.system import System
from dynamics.training.flow import flow
from dynamics.verdicts.cases import Case, descent, flow_to
from dynamics.verdicts.claim import TIME, Picture, claim
from dynamics.verdicts.figure import Drawing, FigureRequest, page, title
from dynamics.verdicts.findings import Undecided
from dynamics.verdicts.rules import growth
from dynamics.verdicts.wording import listed

RTOL = 1e-11
CLOSED = 1e-8
KEPT = 1e-7
NEAR = 1e-3
"""Maximum distance from a plateau, relative to the plateau, at which a loss counts as on it."""
SEPARATE = {"rank": 1, "heads": 4, "least": 0.1, "slope": 0.1, "w0": 1e-2}
"""Parameters of four heads of rank one; the eigenvalues of Lambda are .4, .3, .2, .1."""
LONG = 60_000.0
"""Time at which the four heads have learned all eigenvectors of Lambda."""


def eigenvalues(law: Any) -> FloatArray:
    """Eigenvalues of the covariance Lambda, shape (D,), in descending order if slope > 0."""
    return np.asarray(law.least + law.slope * np.arange(law.D)[::-1])


def plateaus(law: Any) -> FloatArray:
    """Loss 2 R if the m leading eigenvectors of Lambda are learned, for m = 0, ..., D."""
    values = np.sort(eigenvalues(law))[::-1]
    learned = values / (1 + (1 + values.sum() / values) / law.N)
    return np.asarray(values.sum() - np.concatenate([[0.0], np.cumsum(learned)]))


def merged(law: Any) -> None:
    """Raise Undecided unless the heads are merged."""
    if law.rank:
        raise Undecided("the statement assumes merged heads, rank=0", "law")


def white(law: Any) -> None:
    """Raise Undecided unless heads are merged, inputs are white and the start is balanced."""
    merged(law)
    if law.slope or law.least != 1.0:
        raise Undecided("the closed form assumes white inputs", "law")
    if law.ratio != 1.0:
        raise Undecided("the closed form assumes a balanced start, ratio=1", "law")


def off_saddle(law: Any) -> None:
    """Raise Undecided unless heads are merged and the start is off the path into the saddle."""
    merged(law)
    if law.ratio == -1.0:
        raise Undecided("the start lies on the path into the saddle at 0", "precision")


def heads_enough(law: Any) -> None:
    """Raise Undecided unless there are at least D heads, all of rank one."""
    if law.rank != 1 or law.heads < law.D:
        raise Undecided("the statement assumes at least D heads of rank one", "law")


@claim(
    "Global minimum", "relative distance of the risk at the end from that of the global minimum",
    "<=", 1e-8, laws=({"slope": 0.5, "w0": 0.1},), require=off_saddle,
    run=flow_to(lambda law: 60.0 / eigenvalues(law).min() ** 2, RTOL),
    words="R = {end:.10g} at time {time:.4g}, the least is {lowest:.10g}; eigenvalues {values}",
    picture=Picture(TIME, "distance from the least risk"),
)  # fmt: skip
def global_minimum(case: Case) -> dict[str, Any]:
    """Relative difference of the final risk and its global minimum, the last of `plateaus`."""
    run, least = case.run, plateaus(case.parameters)[-1] / 2
    return {
        "value": abs(run["risk"][-1] / least - 1), "end": run["risk"][-1], "time": run.time[-1],
        "lowest": least, "values": listed(eigenvalues(case.parameters)), "open": "time",
        "curves": {"R - R*": (run.time, np.maximum(run["risk"] - least, 1e-18))},
    }  # fmt: skip


@claim(
    "Closed form", "largest distance of s u from the closed form, over its limit", "<=", CLOSED,
    require=white, run=flow_to(10.0, RTOL), words="{records} records to time 10",
    picture=Picture(TIME, "distance from the closed form"),
)  # fmt: skip
def closed_form(case: Case) -> dict[str, Any]:
    """Distance of the scalars' product s u from its closed form `sigmoid`, along the flow."""
    run, law = case.run, case.parameters
    off = np.abs(run["s"] * run["u"] - sigmoid(run.time, law)) * (1 + (1 + law.D) / law.N)
    return {
        "value": off.max(), "records": run.time.size,
        "curves": {"distance": (run.time, np.maximum(off, 1e-18))},
    }  # fmt: skip


def sigmoid(time: FloatArray, law: Any) -> FloatArray:
    """Closed form of the scalars' product s u, for white inputs and a balanced start."""
    decay, g = np.exp(-2 * np.sqrt(law.D) * time), 1 + (1 + law.D) / law.N
    return np.asarray(1 / (g * (1 - decay) + np.sqrt(law.D) / law.w0**2 * decay))


@claim(
    "Conserved", "largest change of u^2 - |U|^2 along the flow, over the largest u^2", "<=", KEPT,
    laws=({"ratio": 3.0, "w0": 0.1},), require=merged, run=flow_to(10.0, RTOL),
    words="gradient descent to the same time breaks it: {order}",
    picture=Picture(r"learning rate $\eta$", r"largest change of $u^2 - \|U\|^2$"),
)  # fmt: skip
def conserved(case: Case) -> dict[str, Any]:
    """Change of u^2 - |U|^2 along the flow, and exponent in eta of its change by descent."""
    problem, kept = case.problem, _balance(case.problem, case.run)
    rates, broken = [0.04, 0.02, 0.01, 0.005], []
    for eta in rates:
        run = descent(eta, round(10.0 / eta))(case)[1]
        broken.append(float(np.abs(_balance(problem, run) - kept[0]).max()))
    return {
        "value": np.abs(kept - kept[0]).max() / (case.run["u"] ** 2).max(),
        "order": str(growth(rates, broken, 1.0)), "curves": {"gradient descent": (rates, broken)},
    }  # fmt: skip


def _balance(problem: Any, run: Any) -> FloatArray:
    entries = problem.lift(run.states)
    u, U = entries[:, -1], entries[:, :-1]
    return np.asarray(u**2 - (U**2).sum(axis=1))


def _recorded(case: Case) -> tuple[Any, Any]:
    """Flow until all eigenvectors are learned; its 2000 records put several on each plateau."""
    problem = case.system.ReducedPopulation(case.parameters)
    end = LONG / case.parameters.least * 0.1
    return problem, flow(problem, end, record=np.geomspace(1e-3, end, 2000))


@claim(
    "Plateaus", "largest distance of a resting loss from its plateau, relative", "<=", NEAR,
    laws=(SEPARATE,), require=heads_enough, run=_recorded, varies=("seed",),
    picture=Picture(TIME, "loss $2R$", scales=("log", "linear")),
)  # fmt: skip
def one_by_one(case: Case) -> dict[str, Any]:
    """Relative distance of the resting loss from each plateau, as `rest` measures it."""
    run, levels = case.run, plateaus(case.parameters)
    loss = 2 * run["risk"]
    distance = np.array([rest(run.time, np.abs(loss / level - 1)) for level in levels])
    text = f"{len(levels)} plateaus, {', '.join(f'{level:.6f}' for level in levels)}"
    if distance[0] > NEAR:
        text += f"; the start of w_0 = {case.parameters.w0:g} is not near the first"
    return {
        "value": distance.max(), "distances": distance.tolist(), "text": text,
        "open": "law" if distance[0] > NEAR else "time",
        "curves": {"loss": (run.time, loss)}
        | {f"{m} learned": (run.time[[0, -1]], [level] * 2) for m, level in enumerate(levels)},
    }  # fmt: skip


def rest(time: FloatArray, distance: FloatArray) -> float:
    """Minimum over records of the largest `distance` until time has grown by a tenth."""
    last = np.searchsorted(time, 1.1 * time)
    spans = [distance[k : j + 1].max() for k, j in enumerate(last) if j < len(time)]
    return float(min(spans))


def drops(system: System, request: FigureRequest) -> Drawing:
    """Loss over time, with plateaus; options ``slopes`` (of eigenvalues), ``ranks``, ``time``."""
    options = request.options({"slopes": [0.1, 0.0], "ranks": [1, 2, 4], "time": LONG}, slopes=0)
    defaults = {name: value for name, value in SEPARATE.items() if name != "rank"}
    base = request.make_parameters(system, ("rank",), **defaults)
    trace, end, count = eigenvalues(base).sum(), float(options["time"]), len(options["slopes"])
    data: dict[str, Any] = {}
    words = title(system, base, "D", "N", "heads", "w0", width=9.0)
    with page(1.6 + 3.8 * count, 3.8, words, ncols=count, sharey=True, squeeze=False) as (_, grid):
        for axes, slope in zip(grid[0], options["slopes"], strict=True):
            least = (trace - slope * base.D * (base.D - 1) / 2) / base.D
            law = system.Parameters(**(vars(base) | {"least": least, "slope": float(slope)}))
            data[f"plateaus_{slope:g}"] = plateaus(law)
            for m, level in enumerate(plateaus(law)):
                axes.axhline(level, color=GREY, lw=0.8, ls=":", zorder=0)
                axes.annotate(f"{m}", (1, level), (3, 0), xycoords=("axes fraction", "data"),
                              textcoords="offset points", va="center", fontsize=8)  # fmt: skip
            looks = zip(options["ranks"], (BLUE, ORANGE, GREEN, PURPLE) * 4, strict=False)
            for rank, colour in looks:
                own = system.Parameters(**(vars(law) | {"rank": int(rank)}))
                records = np.geomspace(10.0, end, 1200)
                run = flow(system.ReducedPopulation(own), end, record=records)
                data[f"loss_{slope:g}_{rank}"] = 2 * run["risk"]
                axes.plot(run.time, 2 * run["risk"], color=colour, label=f"rank {rank}")
            values = ", ".join(f"{value:.3g}" for value in eigenvalues(law))
            axes.set_title(f"eigenvalues {values}", fontsize=9)
            axes.set(xscale="log", xlim=(10, end), xlabel="time")
        grid[0][0].set_ylabel("loss, $2R$")
        grid[0][-1].legend(loc="upper right", bbox_to_anchor=(1.0, 0.95))
    caption = (
        "Loss of separate heads along the gradient flow from one random start; dotted: the loss "
        "with 0, 1, 2, ... of the largest eigenvectors learned."
    )
    return Drawing(grid, data, caption)


FIGURES = {"drops": drops}
