r"""How many iterations: Theorem 1 and Figure 2.

Steps to zero training loss on the law of two samples, over alpha_* and in several families of
:math:`\alpha_\#`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, replace
from functools import lru_cache
from math import pi
from typing import Any, NamedTuple

import matplotlib as mpl
import numpy as np

from dynamics.experiments.curves import line
from dynamics.experiments.figure import Drawing, FigureRequest
from dynamics.experiments.measurement import (
    Chart,
    Measurement,
    Series,
    Undecided,
    conclude,
    listed,
    measures,
    undecided,
)
from dynamics.experiments.shallow_vit.runs import (
    FEWEST,
    alphas,
    column,
    folder,
    gaps,
    possible,
    stored_sweep,
    values,
)
from dynamics.experiments.verify import Finding, Protocol
from dynamics.plotting.labels import logarithmic
from dynamics.plotting.style import BLUE, GREEN, GREY, PURPLE, RC, VERMILION, new_figure
from dynamics.problem import FloatArray
from dynamics.registry import System
from dynamics.results.expression import Expression
from dynamics.results.power_law import exponent
from dynamics.sweep.worker_pool import cores
from dynamics.training.gradient_descent import descend
from dynamics.validation import integer, refuse

ETA, STEPS = 0.05, 20_000
SEEDS = 3
RATES = (0.025, 0.05, 0.1)
SIGMAS = (0.0, 0.1, 0.2)
STRAIGHT = 0.99
"""R^2 from which points are on a line."""
PROPORTIONAL = 0.1
"""How far an exponent of 1 may be off: numbers of tokens are whole."""
GROWS = 0.5
"""Share of the claimed growth with sigma that counts as such growth."""
LOOKS = ((VERMILION, "o"), (BLUE, "s"), (GREEN, "^"), (PURPLE, "D"))
STEPS_LABEL = "steps to zero training loss"


class Family(NamedTuple):
    """What goes with alpha_*: words, alpha_# as a formula, and the alpha_* of Figure 2."""

    label: str
    confusion: str
    alphas: tuple[float, ...]


FAMILIES = {
    "rest": Family(
        r"$\alpha_\# = 1/2 - \alpha_*$", "0.5 - alpha_star",
        (0.27, 0.28, 0.3, 0.32, 0.35, 0.4, 0.45),
    ),
    "constant": Family(r"$\alpha_\# = 0.05$", "0.05", (0.1, 0.15, 0.2, 0.3, 0.4, 0.6, 0.8)),
    "proportion": Family(
        r"$\alpha_\# = \alpha_* / 5$", "alpha_star / 5", (0.05, 0.1, 0.2, 0.4, 0.8)
    ),
    "none": Family(r"$\alpha_\# = 0$", "0", (0.05, 0.1, 0.2, 0.4, 0.8)),
}  # fmt: skip


def confusion(family: str, alpha: float) -> float:
    """alpha_# of a family.

    Parameters
    ----------
    family : str
    alpha : float
        alpha_*.
    """
    formula = Expression(FAMILIES[family].confusion, "alpha_confusion")
    return round(float(formula.value({"alpha_star": alpha})), 9)


def law_at(law: Any, family: str, alpha: float) -> Any:
    """The law of a family at alpha_*.

    Parameters
    ----------
    law : Parameters
    family : str
    alpha : float
    """
    return replace(law, alpha_star=alpha, alpha_confusion=confusion(family, alpha))


def laws_of(law: Any, family: str) -> list[Any]:
    """The laws of a family at those of its alpha_* that whole numbers of tokens have.

    Parameters
    ----------
    law : Parameters
    family : str
    """
    return possible(law, ((alpha, confusion(family, alpha)) for alpha in FAMILIES[family].alphas))


def steps_to_zero(
    system: System, law: Any, seeds: Sequence[int], eta: float = ETA
) -> tuple[float, ...]:
    """Steps to zero training loss, for every seed; NaN where it is not reached.

    Parameters
    ----------
    system : System
    law : Parameters
    seeds : sequence of int
    eta : float
    """
    make: Any = system.ReducedPopulation
    return tuple(_steps(make, law, seed, eta) for seed in seeds)


@lru_cache(maxsize=512)
def _steps(make: Callable[..., Any], law: Any, seed: int, eta: float) -> float:
    problem = make(law, seed=seed)
    for horizon in (1000, 5000, STEPS):
        event = descend(problem, eta, horizon, record=[horizon]).events["t_zero"]
        if event is not None and event.step is not None:
            return float(event.step)
    return float("nan")


def _means(system: System, laws: Sequence[Any], protocol: Protocol, eta: float = ETA) -> FloatArray:
    """Mean steps of every law; undecided where zero training loss is not reached."""
    seeds = range(protocol.seed, protocol.seed + SEEDS * (3 if protocol.thorough else 1))
    means = np.array([np.mean(steps_to_zero(system, law, seeds, eta)) for law in laws])
    if not np.isfinite(means).all():
        law = protocol.parameters or system.Parameters(L=100)
        reason = f"zero training loss is not reached in {STEPS} steps"
        raise Undecided(reason, parameters=asdict(law))
    return means


@measures("least R^2 of a line through steps against 1/alpha_*, over the families", ">=", STRAIGHT)
def figure_2_check(system: System, protocol: Protocol, measured: Any) -> Finding:
    """Steps against 1/alpha_* and against 1/(alpha_* - alpha_#), in four families.

    Parameters
    ----------
    system : System
    protocol : Protocol
    measured : callable
        As of `dynamics.experiments.measurement.measures`.
    """
    law = protocol.parameters or system.Parameters(L=100)
    rows, series, without = [], [], []
    for family, (label, _, _) in FAMILIES.items():
        laws = laws_of(law, family)
        if len(laws) < FEWEST:
            without.append(family)
            continue
        steps = _means(system, laws, protocol)
        by_alpha, by_gap = (line(1 / x, steps) for x in (alphas(laws), gaps(laws)))
        rows.append({
            "family": family, "alpha_star": alphas(laws).tolist(), "steps": steps.tolist(),
            "r2_alpha": by_alpha.r2, "r2_gap": by_gap.r2, "slope": by_gap.slope,
            "level": by_gap.level, "exponent": -exponent(gaps(laws), steps),
        })  # fmt: skip
        series.append(Series(label, 1 / alphas(laws), steps))
    if not rows:
        reason = f"samples of L={law.L} tokens have fewer than {FEWEST} points in every family"
        raise Undecided(reason, parameters=asdict(law))
    reason = "; ".join(
        f"{r['family']}: R^2 {r['r2_alpha']:.3f} over 1/alpha_*, {r['r2_gap']:.4f} over "
        f"x = 1/(alpha_* - alpha_#), T = {r['slope']:.1f} x {r['level']:+.1f}, log slope "
        f"{r['exponent']:.2f}" for r in rows
    )  # fmt: skip
    slopes = [r["slope"] for r in rows if r["family"] != "rest"]
    reason += f"; eta T is about {np.mean(slopes) * ETA:.3g} x" if slopes else ""
    reason += f"; too few points with L={law.L}: {', '.join(without)}" if without else ""
    least = float(np.min(column(rows, "r2_alpha")))
    measurement = measured(least, Chart(r"$1/\alpha_*$", STEPS_LABEL, series))
    return conclude(measurement, reason, measurement.met, parameters=asdict(law), table=rows)


def theorem_1(system: System, protocol: Protocol) -> Finding:
    """Exponents of the steps in 1/alpha_* and in eta, and their growth with sigma.

    Parameters
    ----------
    system : System
    protocol : Protocol
    """
    quantity = "steps at sigma = 0.2 over those at sigma = 0"
    law = protocol.parameters or system.Parameters(L=100)
    claimed = [1 / (1 - sigma * law.M / pi) for sigma in SIGMAS]
    if claimed[-1] <= 0:
        reason = "sigma M / pi is more than 1 at sigma = 0.2"
        return undecided(quantity, 1.0, reason, parameters=asdict(law))
    laws = laws_of(law, "proportion")
    if len(laws) < FEWEST:
        reason = f"samples of L={law.L} tokens have fewer than {FEWEST} points of alpha_*"
        return undecided(quantity, claimed[-1], reason, parameters=asdict(law))
    try:
        along = _means(system, laws, protocol)
        rates = np.array([_means(system, [law], protocol, eta)[0] for eta in RATES])
        sigmas = _means(system, [replace(law, sigma=sigma) for sigma in SIGMAS], protocol)
    except Undecided as refusal:
        return undecided(quantity, claimed[-1], str(refusal), **refusal.evidence)
    # alpha_* of the tokens that there are.
    shares = [each.alpha_star if each.data == "iid" else each.n_star / each.L for each in laws]
    by_alpha, by_eta = -exponent(shares, along), -exponent(RATES, rates)
    ratio = float(sigmas[-1] / sigmas[0])
    exact = abs(by_alpha - 1) <= PROPORTIONAL and abs(by_eta - 1) <= PROPORTIONAL
    reason = (
        f"exponent {by_alpha:.3f} in 1/alpha_* with alpha_# = alpha_*/5, {by_eta:.3f} in 1/eta; "
        f"steps {listed(sigmas)} at sigma = {listed(SIGMAS)}, where 1/(1 - sigma M / pi) grows "
        f"to {claimed[-1]:.3g}"
    )
    chart = Chart(
        r"$\sigma$", r"steps, over those at $\sigma = 0$",
        [Series("steps", SIGMAS, sigmas / sigmas[0]), Series("claimed", SIGMAS, claimed)],
        x_scale="linear", y_scale="linear",
    )  # fmt: skip
    return conclude(
        Measurement(quantity, ratio, ">=", claimed[-1], chart), reason,
        bool(exact and ratio - 1 >= GROWS * (claimed[-1] - 1)), parameters=asdict(law),
        table={"alpha": along.tolist(), "eta": rates.tolist(), "sigma": sigmas.tolist()},
    )  # fmt: skip


@dataclass(frozen=True, eq=False)
class FamilySteps:
    """Steps of one family over alpha_*.

    Attributes
    ----------
    label : str
    alphas, gaps : float array, shape (rows,)
        alpha_*, and alpha_* - alpha_#.
    steps : float array, shape (rows, seeds)
        NaN where zero training loss was not reached.
    """

    label: str
    alphas: FloatArray
    gaps: FloatArray
    steps: FloatArray

    @property
    def mean(self) -> FloatArray:
        """Over the seeds, shape (rows,)."""
        return np.asarray(self.steps.mean(axis=1))


def figure_2(system: System, request: FigureRequest) -> Drawing:
    """Steps to zero training loss over alpha_*.

    Options: ``families`` (``rest``, ``constant``, ``proportion``, ``none``), ``eta``, ``steps``,
    ``seeds``, ``workers``, ``store``.

    Parameters
    ----------
    system : System
    request : FigureRequest
    """
    default = {
        "families": tuple(FAMILIES), "eta": 0.05, "steps": 6000, "seeds": 3, "workers": cores(),
        "store": "",
    }  # fmt: skip
    options = request.options(default, {"seeds": 20})
    law = request.make_parameters(system, ("alpha_star", "alpha_confusion"), L=100)
    eta, many = float(options["eta"]), integer("seeds", options["seeds"], at_least=1)
    workers = integer("workers", options["workers"], at_least=0)
    results: dict[str, FamilySteps] = {}
    with folder("2", request, options) as where:
        for name in options["families"]:
            if name not in FAMILIES:
                refuse("families", name, "is unknown", ", ".join(FAMILIES), "rest")
            laws, family = laws_of(law, name), FAMILIES[name]
            if len(laws) < FEWEST:
                continue
            axes = {
                "alpha_star": alphas(laws).tolist(), "alpha_confusion": family.confusion,
                "eta": eta, "steps": options["steps"],
                "seed": list(range(request.seed, request.seed + many)),
            }  # fmt: skip
            done = stored_sweep(system, law, axes, where / f"{name}.zarr", workers)
            steps = values(done, "time_t_zero", ("alpha_star", "seed")) / eta
            results[name] = FamilySteps(family.label, alphas(laws), gaps(laws), steps)
    if not results:
        refuse("L", law.L, "leaves fewer than three points in every family", "larger", 100)
    words = []
    for name, one in results.items():
        by_alpha, by_gap = line(1 / one.alphas, one.mean), line(1 / one.gaps, one.mean)
        words.append(
            f"{name}: R^2 {by_alpha.r2:.4f} over 1/alpha_*, {by_gap.r2:.4f} over x = 1/(alpha_* - "
            f"alpha_#), T = {by_gap.slope:.1f} x {by_gap.level:+.1f} (eta T = "
            f"{by_gap.slope * eta:.2f} x), log slope {-exponent(one.gaps, one.mean):.2f}"
        )
    without = [name for name in options["families"] if name not in results]
    if without:
        words.append(f"too few points with L={law.L}: {', '.join(without)}")
    held = (
        f"the law itself ({law.data}), $L = {law.L}$, $M = {law.M}$, $m = {law.m}$, "
        rf"$\sigma = {law.sigma:g}$, $\delta = {law.delta:g}$, margin {law.margin:g}, "
        rf"$\eta = {eta:g}$, no noise; "
        + (f"mean of {many} starts, bars from least to greatest" if many > 1 else "one start")
    )
    caption = (
        f"Steps to zero training loss against 1/alpha_* and 1/(alpha_* - alpha_#) (L={law.L}, "
        f"m={law.m}, eta={eta:g}, {many} start(s)). {'; '.join(words)}."
    )
    data = {
        name: {"alpha_star": one.alphas, "gap": one.gaps, "steps": one.steps}
        for name, one in results.items()
    }
    return Drawing(_picture(list(results.values()), held), data, caption)


def _picture(families: Sequence[FamilySteps], held: str) -> Any:
    """Steps against 1/alpha_* and 1/(alpha_* - alpha_#), with one line through the latter."""
    with mpl.rc_context(RC):
        figure, axes = new_figure(8.4, 4.0, ncols=2, sharey=True)
        for family, (colour, marker) in zip(families, LOOKS, strict=False):
            mean, steps, finite = family.mean, family.steps, np.isfinite(family.mean)
            bars = np.stack([mean - steps.min(axis=1), steps.max(axis=1) - mean])[:, finite]
            for panel, x in zip(axes, (1 / family.alphas, 1 / family.gaps), strict=True):
                panel.errorbar(
                    x[finite], mean[finite], yerr=bars, color=colour, marker=marker, ls="", ms=5.5,
                    mfc="white", capsize=2, elinewidth=1.0, label=family.label,
                )  # fmt: skip
                if not finite.all():
                    top = np.full((~finite).sum(), np.nanmax(steps) if finite.any() else 1.0)
                    label = f"{family.label}: not reached"
                    panel.plot(x[~finite], top, "x", color=colour, label=label)
        axes[0].set_xlabel(r"$1/\alpha_*$")
        axes[1].set_xlabel(r"$1/(\alpha_* - \alpha_\#)$")
        axes[0].set_ylabel(STEPS_LABEL)
        axes[0].set_title("the paper's variable", fontsize=9, loc="left")
        axes[1].set_title("what orders the data", fontsize=9, loc="left")
        for panel in axes:
            panel.set(xscale="log", yscale="log")
            logarithmic(panel.xaxis, panel.get_xlim()[1] / panel.get_xlim()[0])
        handles, labels = axes[0].get_legend_handles_labels()
        # In proportion to 1/(alpha_* - alpha_#), through all points by their logarithms.
        x = np.concatenate([1 / family.gaps for family in families])
        y = np.concatenate([family.mean for family in families])
        factor, ends = float(np.exp(np.nanmean(np.log(y / x)))), np.array([x.min(), x.max()])
        label = rf"${factor:.3g} / (\alpha_* - \alpha_\#)$"
        handles += axes[1].plot(ends, factor * ends, "--", color=GREY, lw=1.1, zorder=0)
        labels = [*labels, label]
        figure.legend(handles, labels, loc="outside lower center", ncols=5, fontsize=8)
        figure.suptitle(held, fontsize=8, x=0.01, ha="left")
    return axes
