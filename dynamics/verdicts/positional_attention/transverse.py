"""Section 4.2: deviations of a random start from the three scalars, and their growth.

Two measurements use the exact population dynamics: the amplification Phi_max of small deviations
from the symmetric manifold (`dynamics.analysis.transverse_stability`), and the full flow from A_ij
~ N(0, omega^2). The figures ``transverse`` and ``omega`` show both measurements.
"""

from __future__ import annotations

from dataclasses import replace
from functools import lru_cache
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, SymmetricalLogLocator
from numpy.typing import NDArray

from dynamics.analysis.stability import of_growth
from dynamics.analysis.transverse_growth import TransverseGrowth
from dynamics.analysis.transverse_stability import Transverse, split, transverse
from dynamics.papers.positional_attention.configurations import number_of_configurations
from dynamics.papers.positional_attention.manifold import Manifold
from dynamics.plotting import style
from dynamics.results.stability import Stability
from dynamics.results.trajectory import Trajectory
from dynamics.system import System
from dynamics.training.flow import flow
from dynamics.validation import InvalidRequest
from dynamics.verdicts.cases import Case
from dynamics.verdicts.claim import Picture
from dynamics.verdicts.figure import Drawing, FigureRequest, edges, page, state, stated
from dynamics.verdicts.findings import Undecided
from dynamics.verdicts.positional_attention.grid import SHOWN, claim

LARGER = (1e-2, 5e-2)
"""Spreads omega of the start that are larger than the paper assumes."""
HORIZON, RECORDS = 1e5, 240
AFFORDABLE, FEW_RECORDS = 1e8, 48
"""Maximum `number_of_configurations` times D^4 (first), number of states of a run (second)."""
SAFE = 1.0
"""Maximum omega (spread at the start) times amplification at which deviations count as small."""


KINDS = {
    "patches": (style.VERMILION, "patches of one set differ"),
    "sets": (style.BLUE, "sets differ"),
    "gamma": (style.ORANGE, r"other, inside sets ($\gamma$)"),
    "rho": (style.GREEN, r"other, between sets ($\rho$)"),
}
"""Kind of a transverse direction -> colour, label."""
EXACT_FIRST = ("sets", "patches", "gamma", "rho")
SMALLEST = 1e-5
"""Size of a curvature below which the symmetric logarithmic axis is linear."""


@lru_cache(maxsize=16)
def spectrum(reduced: Any, law: Any, horizon: float) -> Transverse:
    """Transverse spectrum along the reduced flow up to the time `horizon`; cached."""
    times = [0.0, *np.geomspace(1e-3, horizon, RECORDS).tolist()]
    return transverse(Manifold(law), flow(reduced(law), horizon, rtol=1e-10, record=times))


def stability(system: System, law: Any, horizon: float) -> Stability:
    """Time up to which symmetric states are stable; unknown above `AFFORDABLE` configurations."""
    size = f"at D={law.D}, C={law.C}"
    if number_of_configurations(law.L, law.C) * law.D**4 > AFFORDABLE:
        return Stability(horizon, where=f"{size} there are too many multisets of types")
    reduced: Any = system.ReducedPopulation
    found = of_growth(_growth(reduced, law, horizon), 1 + law.D * (law.D - 1))
    return replace(found, where=f"transverse growth {size}")


@lru_cache(maxsize=8)
def _growth(reduced: Any, law: Any, horizon: float) -> TransverseGrowth:
    """Growth of departures from the symmetric states, by the least transverse curvature; cached."""
    manifold = Manifold(law)
    times = [0.0, *np.geomspace(1e-3, horizon, FEW_RECORDS)]
    run, across = flow(reduced(law), horizon, record=times), split(manifold.symmetry)[1]
    hessians = (across.T @ manifold.hessian(state) @ across for state in run.states)
    return TransverseGrowth.of(run.time, np.array([np.linalg.eigvalsh(h)[0] for h in hessians]))


@lru_cache(maxsize=16)
def perturbed(full: Any, law: Any, seed: int, horizon: float) -> Trajectory:
    """Cached full population flow from a matrix A with noise of spread omega off the diagonal."""
    problem = full(law)
    start, noise = problem.initial_state, np.random.default_rng(seed).normal(size=(law.D,) * 2)
    matrix = problem.layout.part(start, "A")  # writes into start
    matrix += law.omega * noise * ~np.eye(law.D, dtype=bool)
    return flow(problem, horizon, initial=start, record=60)


@claim(
    "Section 4.2", "omega times the largest amplification of a deviation from the three scalars",
    "<", SAFE, laws=({"D": 8, "C": 2, "q": 0.5},), thorough=({"D": 9, "C": 3, "q": 0.6},),
    require=None, shown=(*SHOWN, "omega"), seeds=(1, 3), varies=("seed",),
    words="deviations grow up to {peak:.0f}-fold ({negative} of {directions} directions repel at "
    "T0), so omega becomes {value:.2g}; rows associated in the end: {ends}",
    picture=Picture("time", "amplification"),
)  # fmt: skip
def section_4_2(case: Case) -> dict[str, Any]:
    """Amplification of deviations, and association at the end from random starts at this omega."""
    law, ends = case.parameters, {}
    make: Any = case.system.ReducedPopulation
    full: Any = case.system.FullPopulation
    try:
        result = spectrum(make, law, HORIZON)
    except InvalidRequest as refusal:
        raise Undecided(str(refusal)) from refusal
    try:
        for omega in (law.omega, *(each for each in LARGER if each > law.omega)):
            run = perturbed(full, replace(law, omega=omega), case.seed, HORIZON)
            ends[omega] = float(run["patch_association"][-1])
        ends_text = ", ".join(f"{share:.2f} at omega={omega:g}" for omega, share in ends.items())
    except InvalidRequest as refusal:
        ends_text = str(refusal)
    event, value = result.run.events["T0"], law.omega * result.peak
    plateau = result.at(event.time if event else HORIZON)
    share, symmetric = ends.get(law.omega), float(result.run["patch_association"][-1])
    lost = share is not None and share < symmetric
    positive = result.time > 0
    return {
        "value": value, "peak": result.peak, "negative": int(result.negative[plateau]),
        "directions": result.eigenvalues.shape[1], "ends": ends_text, "shares": list(ends.values()),
        "worst_multiplicity": result.multiplicity(plateau),
        "holds": False if lost else True if value < SAFE and share == 1.0 else None,
        "missing": "size",
        "curves": {case.label: (result.time[positive], result.amplification[positive])},
    }  # fmt: skip


def transverse_figure(system: System, request: FigureRequest) -> Drawing:
    """Transverse eigenvalues and amplification along the reduced flow; option ``time``."""
    options = request.options({"time": HORIZON})
    law = request.make_parameters(system, D=8, C=2, q=0.5)
    make: Any = system.ReducedPopulation
    result = spectrum(make, law, options["time"])
    names = ("time", "eigenvalues", "amplification", "peak", "attracting_from")
    caption = (
        f"Curvature of the population risk across the symmetric manifold along the reduced flow "
        f"({stated(law, 'D', 'C', 'q')}): negative is repelling. A "
        f"deviation grows up to {result.peak:.4g}-fold, against 1/omega = "
        f"{1 / max(law.omega, 1e-300):.4g}."
    )
    axes = state(transverse_picture(result, law.omega), system, law, *SHOWN, "omega")
    return Drawing(axes, {name: getattr(result, name) for name in names}, caption)


def omega_figure(system: System, request: FigureRequest) -> Drawing:
    """Association over omega and time; options ``omegas``, ``seeds``."""
    law = request.make_parameters(system, ("omega",), D=8, C=2, q=0.5)
    few, many = np.geomspace(1e-3, 0.1, 7), np.geomspace(1e-3, 0.1, 13)
    options = request.options({"omegas": few, "seeds": 2}, {"omegas": many, "seeds": 5})
    make: Any = system.ReducedPopulation
    full: Any = system.FullPopulation
    peak, omegas, rows = spectrum(make, law, HORIZON).peak, np.asarray(options["omegas"]), []
    for omega in omegas.tolist():
        start = replace(law, omega=omega)
        runs = [perturbed(full, start, seed, HORIZON) for seed in request.seeds(options["seeds"])]
        late = runs[0].time >= 1e-1
        rows.append(np.mean([run["patch_association"][late] for run in runs], axis=0))
    time, shares = runs[0].time[late], np.array(rows)
    caption = (
        f"Exact population flow from A_ij ~ N(0, omega^2) ({stated(law, 'D', 'C', 'q')}, mean of "
        f"{options['seeds']} seeds): the share of rows that are "
        f"associated. The dashed line is 1/Phi_max = {1 / peak:.3g}."
    )
    with page(6.0, 3.6, rc=style.RC | style.BOXED) as (figure, axes):
        sides = (np.exp(edges(np.log(centres))) for centres in (time, omegas))
        image = axes.pcolormesh(*sides, shares, cmap="viridis", vmin=0, vmax=1, rasterized=True)
        axes.set(xscale="log", yscale="log", xlabel=r"time $\tau$")
        axes.set_ylabel(r"spread of the random start $\omega$")
        # The line is the largest omega at which linear theory predicts association.
        axes.axhline(1 / peak, color=style.VERMILION, lw=1.2, ls="--")
        look: dict[str, Any] = {"color": style.VERMILION, "fontsize": 9}
        style.note(axes, r"$1/\Phi_{max}$", (time[0], 1 / peak), (3, 3), **look)
        figure.colorbar(image, ax=axes, label="share of associated rows")
    state(axes, system, law, *SHOWN, seeds=options["seeds"])
    data = {"omega": omegas, "time": time, "association": shares, "amplification": peak}
    return Drawing(axes, data, caption)


def transverse_picture(result: Transverse, omega: float) -> Any:
    """Draw transverse eigenvalues over time, coloured by kind; below, the amplification.

    `result`: spectrum along a run, whose events T0 and T1 are marked if they occur; `omega`: spread
    of a random start, whose amplification limit 1/omega is marked.
    """
    positive = result.time > 0
    time, peak = result.time[positive], int(result.amplification.argmax())
    with page(6.4, 6.2, nrows=2, sharex=True, height_ratios=(1.5, 1)) as (_, axes):
        _curvatures(axes[0], result, positive)
        below, grey = axes[1], {"color": style.GREY}
        below.plot(time, result.amplification[positive], color=style.VERMILION, label="worst start")
        below.plot(time, result.typical[positive], "--", label="random start (r.m.s.)", **grey)
        if omega > 0:
            below.axhline(1 / omega, lw=0.8, ls=":", **grey)
            words, side = rf"$1/\omega$, $\omega = {omega:g}$", ("axes fraction", "data")
            style.note(below, words, (0.01, 1 / omega), (0, 3), side, **grey)
        if peak > 0:
            spot, red = (result.time[peak], result.peak), {"color": style.VERMILION}
            below.plot(*spot, "o", ms=5, **red)
            style.note(below, rf"$\Phi_{{max}} = {result.peak:.0f}$", spot, (7, 4), **red)
        style.logarithmic(below)
        below.yaxis.set_major_locator(LogLocator())
        below.set_ylabel(r"amplification $\Phi$")
        below.legend(loc="upper left", bbox_to_anchor=(0, 0.86), fontsize=8)
        style.time_axis(below, result.run)
        for name, event in result.run.events.items():
            if name in ("T0", "T1") and event:
                for panel in axes:
                    panel.axvline(event.time, lw=0.8, ls="-.", zorder=0, **grey)
                at, side = (event.time, 1.0), ("data", "axes fraction")
                style.note(axes[0], f"${name[0]}_{name[1]}$", at, (0, 2), side, ha="center", **grey)
    return axes


def _curvatures(axes: Axes, result: Transverse, visible: NDArray[np.bool_]) -> None:
    """Draw the curvature in transverse directions, and the lowest along symmetric states."""
    time, branches = result.time[visible], result.branches(EXACT_FIRST)
    for name, (colour, label) in KINDS.items():
        values = branches[name][visible]
        if values.shape[1]:
            axes.plot(time, values, color=colour, lw=1.1)
            axes.plot([], [], color=colour, label=f"{label}: {values.shape[1]}")
    along = result.symmetric[visible, 0]
    axes.plot(time, along, color="black", lw=1.2, ls=(0, (4, 2)), label="lowest along the manifold")
    axes.set_yscale("symlog", linthresh=SMALLEST, linscale=0.4)
    axes.yaxis.set_major_locator(SymmetricalLogLocator(base=10, linthresh=SMALLEST))
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: style.tick(value, power=True)))
    values = result.eigenvalues[visible]
    low, high = min(2.0 * values.min(), -SMALLEST), max(2.0 * values.max(), SMALLEST)
    axes.set_ylim(low, high)
    axes.axhspan(low, 0, color=style.GREY, alpha=0.10, lw=0)
    corner: dict[str, Any] = {"color": style.GREY, "ha": "right", "style": "italic"}
    style.note(axes, "repelling", (0.99, low), (0, 4), ("axes fraction", "data"), **corner)
    # Row competition, if it is the most repelling mode, is labelled at the time when it fades.
    lowest = result.eigenvalues[:, 0]
    k = int(lowest.argmin())
    if result.shares.get("rows", np.zeros_like(result.eigenvalues))[k, 0] >= 0.9:
        fading = k + int((lowest[k:] > lowest[k] / 8).argmax())
        text = rf"row competition, $\times {result.multiplicity(k)}$"
        look: dict[str, Any] = {"color": style.VERMILION, "va": "center"}
        style.note(axes, text, (result.time[fading], lowest[fading]), (7, -4), **look)
    axes.set_ylabel("curvature across the manifold")
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1.05), ncols=2, fontsize=8, handlelength=1.6)
