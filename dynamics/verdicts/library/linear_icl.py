r"""Linear attention in context: where training ends, its sigmoid, what is conserved, the plateaus.

White inputs, one head, :math:`U = s I`, :math:`g = 1 + (1 + D) / N`: the flow obeys :math:`\dot s =
u - u^2 s g`, :math:`\dot u = D (s - u s^2 g)`. On :math:`u^2 = D s^2`, where a start :math:`s_0 =
w_0 / \sqrt D, u_0 = w_0` lies, :math:`\sigma = s u` obeys :math:`\dot\sigma = 2 \sqrt D \sigma (1 -
g \sigma)`, whose solution is

.. math:: \sigma(t) = e^{2 \sqrt D t} / [g (e^{2 \sqrt D t} - 1) + \sqrt D / w_0^2] .

With heads of rank one the matrix M learns the eigenvectors of :math:`\Lambda` one by one; between
two of them the loss :math:`2 R` rests at :math:`\mathrm{tr} \Lambda - \sum_{d \le m} \lambda_d / (1
+ (1 + \mathrm{tr} \Lambda / \lambda_d) / N)`.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dynamics.plotting.style import BLUE, GREEN, GREY, ORANGE, PURPLE
from dynamics.problem import FloatArray
from dynamics.training.descent import descend
from dynamics.training.flow import flow
from dynamics.verdicts.figure import Drawing, FigureRequest, page, title
from dynamics.verdicts.findings import Finding, Undecided
from dynamics.verdicts.rules import growth
from dynamics.verdicts.study import TIME, Study, measures

if TYPE_CHECKING:
    from dynamics.system import System

RTOL = 1e-11
CLOSED = 1e-8
KEPT = 1e-7
NEAR = 1e-3
"""Relative distance of the slowest loss from a plateau that counts as resting on it."""
SEPARATE = {"rank": 1, "heads": 4, "least": 0.1, "slope": 0.1, "w0": 1e-2}
"""Four heads of rank one on eigenvalues .4, .3, .2, .1."""
LONG = 60_000.0
"""Time by which they have learned all four."""


def eigenvalues(law: Any) -> FloatArray:
    """Of Lambda, largest first, shape (D,)."""
    return np.asarray(law.least + law.slope * np.arange(law.D)[::-1])


def plateaus(law: Any) -> FloatArray:
    """2 R with the m largest eigenvectors learned, m = 0 ... D, shape (D + 1,)."""
    values = np.sort(eigenvalues(law))[::-1]
    learned = values / (1 + (1 + values.sum() / values) / law.N)
    return np.asarray(values.sum() - np.concatenate([[0.0], np.cumsum(learned)]))


def _merged(study: Study, **defaults: Any) -> Any:
    law = study.law(**defaults)
    if law.rank:
        raise Undecided("the statement is of merged heads, rank=0", "law")
    return law


def _white(study: Study, **defaults: Any) -> Any:
    law = _merged(study, **defaults)
    if law.slope or law.least != 1.0:
        raise Undecided("the closed form is of white inputs", "law")
    return law


@measures("relative distance of the risk at the end from that of the global minimum", "<=", 1e-8)
def global_minimum(study: Study) -> Finding:
    """M* = Gamma^-1."""
    law = _merged(study, slope=0.5, w0=0.1)
    if law.ratio == -1.0:
        raise Undecided("the start lies on the path into the saddle at 0", "precision")
    least = plateaus(law)[-1] / 2
    time = 60.0 / eigenvalues(law).min() ** 2
    run = flow(study.system.ReducedPopulation(law), time, rtol=RTOL)
    study.curve("R - R*", run.time, np.maximum(run["risk"] - least, 1e-18))
    study.draw(TIME, "distance from the least risk")
    values = ", ".join(f"{value:.3g}" for value in eigenvalues(law))
    reason = (
        f"R = {run['risk'][-1]:.10g} at time {time:.4g}, the least is {least:.10g}; eigenvalues "
        f"{values}, N = {law.N}, the one start of w_0 = {law.w0:g}"
    )
    return study.conclude(abs(run["risk"][-1] / least - 1), reason, may_still_come=True)


@measures("largest distance of s u from the closed form, over its limit", "<=", CLOSED)
def closed_form(study: Study) -> Finding:
    """The sigmoid of a balanced start of white inputs."""
    law = _white(study)
    if law.ratio != 1.0:
        raise Undecided("the closed form is of a balanced start, ratio=1", "law")
    run = flow(study.system.ReducedPopulation(law), 10.0, rtol=RTOL)
    exact = sigmoid(run.time, law)
    off = np.abs(run["s"] * run["u"] - exact) * (1 + (1 + law.D) / law.N)
    study.curve("distance", run.time, np.maximum(off, 1e-18))
    study.draw(TIME, "distance from the closed form")
    return study.conclude(float(off.max()), f"{run.time.size} records to time 10")


def sigmoid(time: FloatArray, law: Any) -> FloatArray:
    """The product s u along the flow from a balanced start of white inputs.

    Parameters
    ----------
    time : float array
    law : Parameters
    """
    decay, g = np.exp(-2 * np.sqrt(law.D) * time), 1 + (1 + law.D) / law.N
    return np.asarray(1 / (g * (1 - decay) + np.sqrt(law.D) / law.w0**2 * decay))


@measures("largest change of u^2 - |U|^2 along the flow, over the largest u^2", "<=", KEPT)
def conserved(study: Study) -> Finding:
    """Kept by the flow; what descent breaks of it, in powers of eta."""
    law = _merged(study, ratio=3.0, w0=0.1)
    problem = study.system.ReducedPopulation(law)
    run = flow(problem, 10.0, rtol=RTOL)
    size = float((run["u"] ** 2).max())
    change = float(np.abs(_balance(problem, run) - _balance(problem, run)[0]).max()) / size
    rates, broken = [0.04, 0.02, 0.01, 0.005], []
    for eta in rates:
        descent = descend(problem, eta, round(10.0 / eta))
        broken.append(float(np.abs(_balance(problem, descent) - _balance(problem, run)[0]).max()))
        study.row({"eta": eta}, broken=broken[-1])
    order = growth(rates, broken, 1.0)
    study.curve("gradient descent", rates, broken)
    study.draw(r"learning rate $\eta$", r"largest change of $u^2 - \|U\|^2$")
    return study.conclude(change, f"gradient descent to the same time breaks it: {order}")


def _balance(problem: Any, run: Any) -> FloatArray:
    entries = problem.lift(run.states)
    u, U = entries[:, -1], entries[:, :-1]
    return np.asarray(u**2 - (U**2).sum(axis=1))


@measures("largest distance of a resting loss from its plateau, relative", "<=", NEAR)
def one_by_one(study: Study) -> Finding:
    """While time grows by a tenth the loss is at tr Lambda less the gains of the largest."""
    law = study.law(**SEPARATE)
    if law.rank != 1 or law.heads < law.D:
        raise Undecided("the statement is of at least D heads of rank one", "law")
    study.single = ("seed",)
    end = LONG / law.least * 0.1
    run = flow(study.system.ReducedPopulation(law), end, record=np.geomspace(1e-3, end, 2000))
    loss, levels = 2 * run["risk"], plateaus(law)
    distance = np.array([_rest(run.time, np.abs(loss / level - 1)) for level in levels])
    for m, level in enumerate(levels):
        study.row({"learned": m}, plateau=float(level), distance=float(distance[m]))
    study.curve("loss", run.time, loss)
    study.draw(TIME, "loss $2R$", {f"{m} learned": level for m, level in enumerate(levels)},
               y_scale="linear")  # fmt: skip
    reason = f"{law.D + 1} plateaus, {', '.join(f'{level:.6f}' for level in levels)}"
    if distance[0] > NEAR:
        reason += f"; the start of w_0 = {law.w0:g} is not near the first"
    missing = "law" if distance[0] > NEAR else "time"
    return study.conclude(float(distance.max()), reason, may_still_come=True, missing=missing)


def _rest(time: FloatArray, distance: FloatArray) -> float:
    """Least over the run of the largest distance while time grows by a tenth."""
    last = np.searchsorted(time, 1.1 * time)
    spans = [distance[k : j + 1].max() for k, j in enumerate(last) if j < len(time)]
    return float(min(spans))


def drops(system: System, request: FigureRequest) -> Drawing:
    """Loss against time, for spectra and for ranks of the heads, with the plateaus as lines.

    Options: ``slopes`` of the eigenvalues, whose sum is fixed, ``ranks``, ``time``.

    Parameters
    ----------
    system : System
    request : FigureRequest
    """
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
        "with so many of the largest eigenvectors learned."
    )
    return Drawing(grid, data, caption)


CHECKS = {
    "Global minimum": global_minimum,
    "Closed form": closed_form,
    "Conserved": conserved,
    "Plateaus": one_by_one,
}
FIGURES = {"drops": drops}
