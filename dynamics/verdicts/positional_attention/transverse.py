r"""Section 4.2: whether a random start falls onto the three scalars or leaves them.

Two measurements of the exact population dynamics. The linear one: the amplification
:math:`\Phi_{max}` of deviations from the symmetric manifold
(`dynamics.analysis.transverse_stability`). The other is
not linear: the full population flow from :math:`A_{ij} \sim N(0, \omega^2)`, at the omega of the
parameters and at larger ones, with the share of rows that stay associated. N is infinite here, so
what is measured is the effect of the random start alone.
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import asdict, replace
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
from dynamics.plotting import style
from dynamics.results.stability import Stability
from dynamics.results.trajectory import Trajectory
from dynamics.system import System
from dynamics.training.flow import flow
from dynamics.validation import InvalidRequest
from dynamics.verdicts.figure import Drawing, FigureRequest, edges, page, state, stated
from dynamics.verdicts.findings import Finding, Undecided
from dynamics.verdicts.positional_attention.manifold import Manifold
from dynamics.verdicts.positional_attention.population import SHOWN
from dynamics.verdicts.study import Study, computed_once, measures

SIZES = ({"D": 8, "C": 2, "q": 0.5},)
MORE_SIZES = (*SIZES, {"D": 9, "C": 3, "q": 0.6})
LARGER = (1e-2, 5e-2)
"""Spreads at which the hypothesis is stretched."""
HORIZON = 1e5
RECORDS = 240
AFFORDABLE, FEW_RECORDS = 1e8, 48
"""Multisets times entries of a Hessian up to which every verdict has the growth of departures, and
states at which their least curvature is computed."""
SAFE = 1.0
"""omega * Phi_max up to which deviations stay below the scale on which A acts on the softmax."""
KINDS = {
    "patches": (style.VERMILION, "patches of one set differ"),
    "sets": (style.BLUE, "sets differ"),
    "gamma": (style.ORANGE, r"other, inside sets ($\gamma$)"),
    "rho": (style.GREEN, r"other, between sets ($\rho$)"),
}
"""What a transverse direction moves -> colour, label."""
EXACT_FIRST = ("sets", "patches", "gamma", "rho")
SMALLEST = 1e-5
"""Curvatures below this are on a linear scale."""


@measures(
    "omega times the largest amplification of a deviation from the three scalars", "<", SAFE,
    single=("seed",), again=True,
)  # fmt: skip
def check(study: Study) -> Finding:
    """Amplification of deviations, and the full flow from random starts.

    Holds where, at every size, omega * Phi_max is below 1 and the flow from the random start ends
    associated; fails where a start at that omega loses association that the symmetric one has.
    Undecided at sizes that the full problem cannot enumerate, where only the linear part is
    measured, as far as that goes.
    """
    seeds, tables = study.seeds(1, 3), []
    study.single = () if len(seeds) > 1 else study.single
    for law in study.laws(*(MORE_SIZES if study.thorough else SIZES)):
        try:
            result = spectrum(study.system, law)
        except InvalidRequest as refusal:
            raise Undecided(str(refusal)) from refusal
        tables.append(_table(study.system, law, result, seeds))
        positive = result.time > 0
        label = f"D={law.D}, C={law.C}, q={law.q}"
        study.curve(label, result.time[positive], result.amplification[positive])
    worst = max(tables, key=lambda table: table["omega_times_peak"])
    omega, value = worst["parameters"]["omega"], worst["omega_times_peak"]
    study.draw("time", "amplification", {"1/omega": 1 / omega} if omega > 0 else {})
    evidence = {"parameters": worst["parameters"], "sizes": tables}
    return study.conclude(value, _reason(worst), holds=_verdict(tables), **evidence)


def spectrum(system: System, parameters: Any, horizon: float = HORIZON) -> Transverse:
    """The transverse spectrum along the reduced flow, with the Hessian of the full problem.

    Where that is too large to enumerate, with the Hessian summed over multisets of types.

    Parameters
    ----------
    system : System
    parameters : Parameters
    horizon : float
        Time of the flow.
    """
    times = (0.0, *np.geomspace(1e-3, horizon, RECORDS).tolist())
    problems: Any = system.ReducedPopulation, system.FullPopulation
    return _spectrum(*problems, parameters, times)


@lru_cache(maxsize=4)
def _spectrum(reduced: Any, full: Any, parameters: Any, times: tuple[float, ...]) -> Transverse:
    """The spectrum at times, the same for every seed of a random start."""
    manifold = Manifold(parameters, _enumerable(full, parameters))
    run = flow(reduced(parameters), times[-1], rtol=1e-10, record=times)
    return transverse(manifold, run)


def _enumerable(full: Any, parameters: Any) -> Any:
    """The full problem, or None where it is too large."""
    try:
        return full(parameters)
    except InvalidRequest:
        return None


@lru_cache(maxsize=8)
def _growth(reduced: Any, parameters: Any, horizon: float) -> TransverseGrowth:
    """The growth of departures by the least curvature across the symmetric states."""
    manifold = Manifold(parameters)
    times = [0.0, *np.geomspace(1e-3, horizon, FEW_RECORDS)]
    run, across = flow(reduced(parameters), horizon, record=times), split(manifold.symmetry)[1]
    hessians = (across.T @ manifold.hessian(state) @ across for state in run.states)
    return TransverseGrowth.of(run.time, np.array([np.linalg.eigvalsh(h)[0] for h in hessians]))


def stability(system: System, parameters: Any, horizon: float) -> Stability:
    """Until when the symmetric states are stable; nothing of sizes with many multisets of types.

    Parameters
    ----------
    system : System
    parameters : Parameters
    horizon : float
    """
    size = f"at D={parameters.D}, C={parameters.C}"
    number = number_of_configurations(parameters.L, parameters.C)
    if number * parameters.D**4 > AFFORDABLE:
        return Stability(horizon, where=f"{size} there are too many multisets of types")
    reduced: Any = system.ReducedPopulation
    growth = _growth(reduced, parameters, horizon)
    found = of_growth(growth, 1 + parameters.D * (parameters.D - 1))
    return replace(found, where=f"transverse growth {size}")


def perturbed(system: System, parameters: Any, seed: int) -> Trajectory:
    """The full population flow from an attention matrix with a spread of omega.

    Parameters
    ----------
    system : System
    parameters : Parameters
    seed : int
    """
    return _perturbed(system, parameters, seed, HORIZON)


@computed_once(16, "FullPopulation")
def _perturbed(make: Any, parameters: Any, seed: int, horizon: float) -> Trajectory:
    full = make(parameters)
    start = full.initial_state
    matrix = full.layout.part(start, "A")  # a view
    off_diagonal = ~np.eye(parameters.D, dtype=bool)
    noise = np.random.default_rng(seed).normal(size=matrix.shape)
    matrix += parameters.omega * noise * off_diagonal
    return flow(full, horizon, initial=start, record=60)


def random_start(system: System, parameters: Any, seed: int) -> dict[str, Any]:
    """What became of a random start.

    Parameters
    ----------
    system : System
    parameters : Parameters
    seed : int

    Returns
    -------
    dict
        ``association``, the share of rows associated at the end; ``largest_spread``, of the entries
        of one orbit along the run, over omega; ``risk``, ``error`` and ``bayes_error`` at the end.
    """
    run = perturbed(system, parameters, seed)
    spread, omega = max(run["gamma_spread"].max(), run["rho_spread"].max()), parameters.omega
    return {
        "omega": omega,
        "seed": seed,
        "association": float(run["patch_association"][-1]),
        "largest_spread": float(spread / omega) if omega else 0.0,
        **{name: float(run[name][-1]) for name in ("risk", "error", "bayes_error")},
    }


def _table(system: System, parameters: Any, result: Transverse, seeds: range) -> dict[str, Any]:
    t0 = result.run.events["T0"]
    plateau = result.at(t0.time if t0 else HORIZON)
    worst = result.multiplets(plateau)[0]
    possible = _enumerable(system.FullPopulation, parameters) is not None
    omegas = [parameters.omega, *(omega for omega in LARGER if omega > parameters.omega)]
    return {
        "parameters": asdict(parameters),
        "peak": result.peak,
        "omega_times_peak": parameters.omega * result.peak,
        "symmetric_association": float(result.run["patch_association"][-1]),
        "plateau_time": float(result.time[plateau]),
        "negative": int(result.negative[plateau]),
        "directions": int(result.eigenvalues.shape[1]),
        "worst": worst.value,
        "worst_multiplicity": worst.multiplicity,
        "row_competition": worst.shares["rows"],
        "attracting_from": result.attracting_from if np.isfinite(result.attracting_from) else None,
        "orthogonal_v_peak": result.decoupled_peak("v"),
        "runs": [
            random_start(system, replace(parameters, omega=omega), seed)
            for omega in omegas
            for seed in (seeds if possible else ())
        ],
    }


def _verdict(tables: list[dict[str, Any]]) -> bool | None:
    """False where association is lost, True where it stays and omega * Phi_max is small."""
    stays = True
    for table in tables:
        omega = table["parameters"]["omega"]
        shares = [run["association"] for run in table["runs"] if run["omega"] == omega]
        if any(share < table["symmetric_association"] for share in shares):
            return False
        small = table["omega_times_peak"] < SAFE
        stays = stays and small and bool(shares) and all(share == 1.0 for share in shares)
    return True if stays else None


def _reason(table: dict[str, Any]) -> str:
    """The numbers that matter at the least favourable size."""
    omega, least = table["parameters"]["omega"], dict[float, float]()
    for run in table["runs"]:
        least[run["omega"]] = min(least.get(run["omega"], 1.0), run["association"])
    ends = ", ".join(f"{share:.2f} at omega={key:g}" for key, share in least.items())
    growth = (
        f"deviations grow up to {table['peak']:.0f}-fold ({table['negative']} of "
        f"{table['directions']} directions repel at T0), so omega={omega:g} "
        f"becomes {table['omega_times_peak']:.2g}"
    )
    if not ends:
        return f"{growth}; the full flow is too large to enumerate"
    return f"{growth}; rows associated at time {HORIZON:g}: {ends}"


def transverse_figure(system: System, request: FigureRequest) -> Drawing:
    """Transverse stability along the reduced flow. Options: ``time``.

    Parameters
    ----------
    system : System
    request : FigureRequest
    """
    options = request.options({"time": HORIZON})
    law = request.make_parameters(system, D=8, C=2, q=0.5)
    result = spectrum(system, law, options["time"])
    names = ("time", "eigenvalues", "amplification", "peak", "attracting_from")
    caption = (
        f"Curvature of the population risk across the symmetric manifold along the reduced flow "
        f"({stated(law, 'D', 'C', 'q')}): negative is repelling. A "
        f"deviation grows up to {result.peak:.4g}-fold, against 1/omega = "
        f"{1 / max(law.omega, 1e-300):.4g}."
    )
    data = {name: getattr(result, name) for name in names}
    axes = state(transverse_picture(result, law.omega), system, law, *SHOWN, "omega")
    return Drawing(axes, data, caption)


def omega_figure(system: System, request: FigureRequest) -> Drawing:
    """Association over omega and time. Options: ``omegas``, ``seeds``.

    Parameters
    ----------
    system : System
    request : FigureRequest
    """
    law = request.make_parameters(system, ("omega",), D=8, C=2, q=0.5)
    few, many = np.geomspace(1e-3, 0.1, 7), np.geomspace(1e-3, 0.1, 13)
    options = request.options({"omegas": few, "seeds": 2}, {"omegas": many, "seeds": 5})
    peak, omegas = spectrum(system, law).peak, np.asarray(options["omegas"])
    rows = []
    for omega in omegas:
        start = replace(law, omega=float(omega))
        runs = [perturbed(system, start, seed) for seed in request.seeds(options["seeds"])]
        late = runs[0].time >= 1e-1
        rows.append(np.mean([run["patch_association"][late] for run in runs], axis=0))
    time = runs[0].time[late]
    data = {"omega": omegas, "time": time, "association": np.array(rows), "amplification": peak}
    caption = (
        f"Exact population flow from A_ij ~ N(0, omega^2) ({stated(law, 'D', 'C', 'q')}, mean of "
        f"{options['seeds']} seeds): the share of rows that are "
        f"associated. The dashed line is 1/Phi_max = {1 / peak:.3g}."
    )
    axes = state(_omega_picture(data), system, law, *SHOWN, seeds=options["seeds"])
    return Drawing(axes, data, caption)


def _omega_picture(data: Mapping[str, Any]) -> Axes:
    """Share of associated rows over the spread of a random start and time.

    The line is the spread that the linear theory expects to survive.
    """
    time, safe = data["time"], 1 / data["amplification"]
    with page(6.0, 3.6, rc=style.RC | style.BOXED) as (figure, axes):
        sides = (np.exp(edges(np.log(centres))) for centres in (time, data["omega"]))
        look: dict[str, Any] = {"cmap": "viridis", "vmin": 0, "vmax": 1, "rasterized": True}
        image = axes.pcolormesh(*sides, data["association"], **look)
        axes.set(xscale="log", yscale="log")
        axes.axhline(safe, color=style.VERMILION, lw=1.2, ls="--")
        axes.annotate(
            r"$1/\Phi_{max}$", (time[0], safe), (3, 3), textcoords="offset points",
            color=style.VERMILION, fontsize=9,
        )  # fmt: skip
        axes.set(xlabel=r"time $\tau$", ylabel=r"spread of the random start $\omega$")
        figure.colorbar(image, ax=axes, label="share of associated rows").outline.set_color(
            style.GREY
        )
    return axes


def transverse_picture(result: Transverse, omega: float) -> Any:
    """Transverse eigenvalues over time, coloured by what they move; below, the amplification.

    Parameters
    ----------
    result : Transverse
        Along a run whose events T0 and T1 are marked where they happened.
    omega : float
        Spread of a random start: the amplification 1/omega is marked.

    Returns
    -------
    array of Axes
    """
    positive = result.time > 0
    time, peak = result.time[positive], int(result.amplification.argmax())
    with page(6.4, 6.2, nrows=2, sharex=True, height_ratios=(1.5, 1)) as (_, axes):
        _curvatures(axes[0], result, positive)
        below = axes[1]
        below.plot(time, result.amplification[positive], color=style.VERMILION, label="worst start")
        label = "random start (r.m.s.)"
        below.plot(time, result.typical[positive], color=style.GREY, ls="--", label=label)
        if omega > 0:
            below.axhline(1 / omega, color=style.GREY, lw=0.8, ls=":")
            text = rf"$1/\omega$, $\omega = {omega:g}$"
            side = below.get_yaxis_transform()
            below.text(0.01, 1.06 / omega, text, transform=side, color=style.GREY, va="bottom")
        if peak > 0:
            spot = result.time[peak], result.peak
            below.plot(*spot, "o", color=style.VERMILION, ms=5)
            _note(below, rf"$\Phi_{{max}} = {result.peak:.0f}$", spot, (7, 4))
        style.logarithmic(below)
        below.yaxis.set_major_locator(LogLocator())
        below.set_ylabel(r"amplification $\Phi$")
        below.legend(loc="upper left", bbox_to_anchor=(0, 0.86), fontsize=8)
        style.time_axis(below, result.run)
        for name, label in (("T0", "$T_0$"), ("T1", "$T_1$")):
            event = result.run.events.get(name)
            if not event:
                continue
            for panel in axes:
                panel.axvline(event.time, color=style.GREY, lw=0.8, ls="-.", zorder=0)
            top: Any = {"transform": axes[0].get_xaxis_transform(), "ha": "center"}
            axes[0].text(event.time, 1.01, label, va="bottom", color=style.GREY, **top)
    return axes


def _curvatures(axes: Axes, result: Transverse, visible: NDArray[np.bool_]) -> None:
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
    axes.yaxis.set_major_formatter(FuncFormatter(_power))
    low = min(2.0 * result.eigenvalues[visible].min(), -SMALLEST)
    axes.set_ylim(low, max(2.0 * result.eigenvalues[visible].max(), SMALLEST))
    axes.axhspan(low, 0, color=style.GREY, alpha=0.10, lw=0)
    corner: Any = {"color": style.GREY, "ha": "right", "va": "bottom", "style": "italic"}
    axes.text(0.99, 0.6 * low, "repelling", transform=axes.get_yaxis_transform(), **corner)
    # The most repelling mode is named where it fades, if it is row competition.
    lowest = result.eigenvalues[:, 0]
    k = int(lowest.argmin())
    if result.shares.get("rows", np.zeros_like(result.eigenvalues))[k, 0] >= 0.9:
        fading = k + int((lowest[k:] > lowest[k] / 8).argmax())
        text = rf"row competition, $\times {result.multiplets(k)[0].multiplicity}$"
        _note(axes, text, (result.time[fading], lowest[fading]), (7, -4), va="center", fontsize=8)
    axes.set_ylabel("curvature across the manifold")
    axes.legend(loc="lower left", bbox_to_anchor=(0, 1.05), ncols=2, fontsize=8, handlelength=1.6)


def _note(
    axes: Axes, text: str, spot: tuple[float, float], offset: tuple[float, float], **look: Any
) -> None:
    """A word beside a spot, in the colour of what repels."""
    axes.annotate(text, spot, offset, textcoords="offset points", color=style.VERMILION, **look)


def _power(value: float, _: int | None = None) -> str:
    """A power of ten with its sign, or 0."""
    if value == 0:
        return "0"
    sign = "-" if value < 0 else ""
    return rf"${sign}10^{{{round(np.log10(abs(value)))}}}$"
