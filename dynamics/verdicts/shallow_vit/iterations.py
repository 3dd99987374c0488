r"""How many iterations: Theorem 1, Remark 3 and Figure 2.

Steps to zero training loss on the law of two samples, over alpha_* and in several families of
:math:`\alpha_\#`.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import asdict, replace
from math import pi
from typing import Any, NamedTuple

import numpy as np

from dynamics.plotting.labels import logarithmic
from dynamics.plotting.style import BLUE, GREEN, GREY, PURPLE, VERMILION
from dynamics.problem import FloatArray
from dynamics.process_settings import cores
from dynamics.results.expression import Expression
from dynamics.results.power_law import exponent
from dynamics.system import System
from dynamics.validation import refuse
from dynamics.verdicts.figure import Drawing, FigureRequest, page, stated, title
from dynamics.verdicts.findings import Check, Finding, Undecided
from dynamics.verdicts.rules import ERRORS, SHARE, Growth, growth
from dynamics.verdicts.shallow_vit import runs
from dynamics.verdicts.shallow_vit.hypothesis import all_trained
from dynamics.verdicts.shallow_vit.hypothesis import theorem_1 as hypothesis
from dynamics.verdicts.study import LINEAR, Study, computed_once, measures
from dynamics.verdicts.wording import listed

ETA, STEPS = 0.05, 20_000
SEEDS, MORE_SEEDS = 3, 60
CLEARLY = 2.0
"""Standard errors from which on growth is significant; to contradict it takes `ERRORS`."""
RATES = (0.025, 0.05, 0.1)
SIGMAS = (0.0, 0.1, 0.2, 0.3)
STARTS = {"sigma": (0.0, 0.1, 0.2), "delta": (0.0, 0.2, 0.4)}
"""Errors of the start of Remark 3, one at a time."""
STRAIGHT = 0.99
"""R^2 from which points are on a line."""
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
    return runs.possible(
        law, ((alpha, confusion(family, alpha)) for alpha in FAMILIES[family].alphas)
    )


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
    return tuple(_steps(system, law, seed, eta) for seed in seeds)


@computed_once(512)
def _steps(make: Any, law: Any, seed: int, eta: float) -> float:
    run = runs.descend_in_parts(make(law, seed=seed), eta, (1000, 5000, STEPS))
    step = run.events["t_zero"].step
    return float("nan") if step is None else float(step)


def _steps_of(
    study: Study, laws: Sequence[Any], eta: float = ETA, few: int | None = None
) -> FloatArray:
    """Steps of every law and seed, `SEEDS` by default; undecided where zero loss is not reached."""
    few = SEEDS if few is None else few
    seeds, eta = study.seeds(few, 3 * few), study.rate(eta)
    steps = np.array([steps_to_zero(study.system, law, seeds, eta) for law in laws])
    if not np.isfinite(steps).all():
        reason = f"zero training loss is not reached in {STEPS} steps"
        raise Undecided(reason, "time", parameters=asdict(study.law(L=100)))
    return steps


def _figure_2_check(*families: str, proportional: bool = False) -> Check:
    """A check that steps are linear in 1/alpha_*, or proportional to it, in families of alpha_#.

    Rule 6: points of another power may lie on a line, so a proportion is also held against 1.
    """

    @measures(
        "least R^2 of a line through steps against 1/alpha_*, over the families", ">=", STRAIGHT,
        all_trained, ("step size",), again=True,
    )  # fmt: skip
    def check(study: Study) -> Finding:
        law, without = study.law(L=100), []
        for family in families:
            laws = laws_of(law, family)
            if len(laws) < runs.FEWEST:
                without.append(family)
                continue
            steps, variables = _steps_of(study, laws).mean(axis=1), (runs.alphas, runs.gaps)
            by_alpha, by_gap = (runs.line(1 / x(laws), steps) for x in variables)
            study.row(
                {"family": family, "alpha_star": runs.alphas(laws).tolist()}, steps=steps.tolist(),
                r2_alpha=by_alpha.r2, r2_gap=by_gap.r2, slope=by_gap.slope, level=by_gap.level,
                exponent=-exponent(runs.gaps(laws), steps),
            )  # fmt: skip
            study.curve(FAMILIES[family].label, 1 / runs.alphas(laws), steps)
        if not study.rows:
            few = f"fewer than {runs.FEWEST} points in every family"
            raise Undecided(f"samples of L={law.L} tokens have {few}", parameters=asdict(law))
        reason = "; ".join(
            f"alpha_# = {FAMILIES[r['family']].confusion}: R^2 {r['r2_alpha']:.3f} over 1/alpha_*, "
            f"{r['r2_gap']:.4f} over x = 1/(alpha_* - alpha_#), T = {r['slope']:.1f} x "
            f"{r['level']:+.1f}, log slope {r['exponent']:.2f}" for r in study.rows
        )  # fmt: skip
        reason += f"; too few points with L={law.L}: {', '.join(without)}" if without else ""
        least = float(np.min(study.column("r2_alpha")))
        study.draw(r"$1/\alpha_*$", STEPS_LABEL)
        far = max(abs(slope - 1.0) for slope in study.column("exponent"))
        if proportional and study.met(least) and not far <= SHARE:
            reason += f"; a line, from which a power is {far:.2g} off 1: not yet a proportion"
            return study.conclude(least, reason, holds=None, parameters=asdict(law))
        return study.conclude(least, reason, parameters=asdict(law))

    return check


in_proportion = _figure_2_check("proportion", "none", proportional=True)
not_in_proportion = _figure_2_check("rest", "constant")


@measures("exponent of the steps in 1/alpha_*, and in 1/eta", "==", 1.0, hypothesis)
def theorem_1(study: Study) -> Finding:
    """Exponents of the steps in 1/alpha_* and in 1/eta; beside them, their growth with sigma."""
    law = study.law(L=100)
    laws = laws_of(law, "proportion")
    if len(laws) < runs.FEWEST:
        reason = f"samples of L={law.L} tokens have fewer than {runs.FEWEST} points of alpha_*"
        raise Undecided(reason, parameters=asdict(law))
    along = _steps_of(study, laws).mean(axis=1)
    rates = np.array([_steps_of(study, [law], eta).mean() for eta in RATES])
    # alpha_* of the tokens that there are.
    shares = [each.alpha_star if each.data == "iid" else each.n_star / each.L for each in laws]
    by_alpha, by_eta = _law_of(shares, along), _law_of(RATES, rates)
    study.literal = _with_sigma(study, law)
    both = by_alpha.holds, by_eta.holds
    holds = False if False in both else (None if None in both else True)
    far = max(by_alpha, by_eta, key=lambda fit: abs(fit.fit.exponent - 1)).fit.exponent
    reason = (
        f"in 1/alpha_* with alpha_# in proportion {by_alpha}; in 1/eta {by_eta}: T is 1/(eta "
        f"alpha_*) times {listed(study.literal.evidence['constants'])}, least and most over sigma"
    )
    study.curve("in proportion", 1 / np.asarray(shares), along)
    study.draw(r"$1/\alpha_*$", STEPS_LABEL)
    table = {"alpha": along.tolist(), "eta": rates.tolist(), **study.literal.evidence}
    return study.conclude(far, reason, holds=holds, parameters=asdict(law), table=table)


def _law_of(variable: Sequence[float], steps: FloatArray) -> Growth:
    """Growth of steps with the inverse of a variable, against the exponent 1."""
    order = np.argsort(variable)[::-1]
    return growth(1 / np.asarray(variable)[order], steps[order], 1.0)


def _with_sigma(study: Study, law: Any) -> Finding:
    """The literal factor 1/(1 - epsilon - sigma M / pi) of T, at epsilon = 0."""
    laws = []
    for sigma in SIGMAS:
        laws.append(replace(law, sigma=sigma))
        hypothesis(laws[-1])
    steps = _steps_of(study, laws).mean(axis=1)
    factor = np.array([1 / (1 - sigma * law.M / pi) for sigma in SIGMAS])
    fit = growth(factor, steps, 1.0)
    constants = steps * study.rate(ETA) * law.alpha_star
    reason = (
        f"steps {listed(steps)} at sigma = {listed(SIGMAS)}, {fit}; the factor grows to "
        f"{factor[-1]:.3g}, which a Theta hides"
    )
    evidence = {
        "sigma": steps.tolist(),
        "constants": [constants.min().item(), constants.max().item()],
    }
    return Finding(
        fit.holds or None, "exponent of the steps in 1/(1 - sigma M / pi)", fit.fit.exponent, 1.0,
        reason, evidence, relation="==",
    )  # fmt: skip


@measures(
    "growth of ln T with sigma or delta, the lesser, over its standard error", ">", CLEARLY,
    hypothesis, ("step size",), again=True,
)  # fmt: skip
def remark_3(study: Study) -> Finding:
    """Steps over the error of the initial values, and of the initial keys and queries."""
    law, least, words = study.law(L=100), [], []
    verbs = {True: "grows", False: "falls", None: "no growth beyond the error"}
    for name, values in STARTS.items():
        laws = [replace(law, **{name: value}) for value in values]
        for each in laws:
            hypothesis(each)
        steps = _steps_of(study, laws, ETA, MORE_SEEDS)
        # Of each seed: all its starts have the same random numbers.
        slopes = np.polyfit(values, np.log(steps), 1)[0]
        slope, error = slopes.mean(), slopes.std(ddof=1) / np.sqrt(slopes.size)
        least.append(float(slope / error))
        grows = None if abs(least[-1]) <= CLEARLY else least[-1] > 0
        words.append(
            f"with {name} T {verbs[grows]} (d ln T / d {name} = {slope:.2g} +- {error:.1g}, steps "
            f"{listed(steps.mean(axis=1), 4)} at {listed(values)})"
        )
        study.row({"error": name, "values": list(values), "steps": steps.tolist()})
        study.curve(name, values, steps.mean(axis=1) / steps[0].mean())
    study.draw(r"$\sigma$ or $\delta$", "steps, over those at 0", None, *LINEAR)
    worst = min(least)
    holds = True if worst > CLEARLY else False if worst < -ERRORS else None
    return study.conclude(worst, "; ".join(words), holds=holds, parameters=asdict(law))


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
    options = request.options(default, {"seeds": 20}, workers=0)
    law = request.make_parameters(system, ("alpha_star", "alpha_confusion"), L=100)
    eta, many = options["eta"], options["seeds"]
    data: dict[str, dict[str, FloatArray]] = {}
    with runs.folder("2", request, options) as where:
        for name in options["families"]:
            if name not in FAMILIES:
                refuse("families", name, "is unknown", ", ".join(FAMILIES), "rest")
            laws, family = laws_of(law, name), FAMILIES[name]
            if len(laws) < runs.FEWEST:
                continue
            axes = {
                "alpha_star": runs.alphas(laws).tolist(), "alpha_confusion": family.confusion,
                "eta": eta, "steps": options["steps"], "seed": list(request.seeds(many)),
            }  # fmt: skip
            done = runs.stored_sweep(system, law, axes, where / f"{name}.zarr", options["workers"])
            steps = runs.values(done, "time_t_zero", ("alpha_star", "seed")) / eta
            data[name] = {"alpha_star": runs.alphas(laws), "gap": runs.gaps(laws), "steps": steps}
    if not data:
        refuse("L", law.L, "leaves fewer than three points in every family", "larger", 100)
    words = []
    for name, results in data.items():
        gap, mean = results["gap"], results["steps"].mean(axis=1)
        by_alpha, by_gap = runs.line(1 / results["alpha_star"], mean), runs.line(1 / gap, mean)
        words.append(
            f"{name}: R^2 {by_alpha.r2:.4f} over 1/alpha_*, {by_gap.r2:.4f} over x = 1/(alpha_* - "
            f"alpha_#), T = {by_gap.slope:.1f} x {by_gap.level:+.1f} (eta T = "
            f"{by_gap.slope * eta:.2f} x), log slope {-exponent(gap, mean):.2f}"
        )
    without = [name for name in options["families"] if name not in data]
    if without:
        words.append(f"too few points with L={law.L}: {', '.join(without)}")
    names = ("L", "M", "m", "sigma", "delta", "margin")
    held = f"the law itself ({law.data}), {title(system, law, *names, eta=eta)}, no noise; " + (
        f"mean of {many} starts, bars from least to greatest" if many > 1 else "one start"
    )
    caption = (
        f"Steps to zero training loss against 1/alpha_* and 1/(alpha_* - alpha_#) "
        f"({stated(law, 'L', 'm', eta=eta)}, {many} start(s)). {'; '.join(words)}."
    )
    return Drawing(_picture(data, held), data, caption)


def _picture(data: Mapping[str, Mapping[str, FloatArray]], held: str) -> Any:
    """Steps against 1/alpha_* and 1/(alpha_* - alpha_#), with one line through the latter."""
    with page(8.4, 4.0, held, ncols=2, sharey=True) as (figure, axes):
        for (name, family), (colour, marker) in zip(data.items(), LOOKS, strict=False):
            label, steps = FAMILIES[name].label, family["steps"]
            mean = steps.mean(axis=1)
            finite = np.isfinite(mean)
            bars = np.stack([mean - steps.min(axis=1), steps.max(axis=1) - mean])[:, finite]
            for panel, x in zip(axes, (1 / family["alpha_star"], 1 / family["gap"]), strict=True):
                panel.errorbar(
                    x[finite], mean[finite], yerr=bars, color=colour, marker=marker, ls="", ms=5.5,
                    mfc="white", capsize=2, elinewidth=1.0, label=label,
                )  # fmt: skip
                if not finite.all():
                    top = np.full((~finite).sum(), np.nanmax(steps) if finite.any() else 1.0)
                    panel.plot(x[~finite], top, "x", color=colour, label=f"{label}: not reached")
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
        x = np.concatenate([1 / family["gap"] for family in data.values()])
        y = np.concatenate([family["steps"].mean(axis=1) for family in data.values()])
        factor, ends = float(np.exp(np.nanmean(np.log(y / x)))), np.array([x.min(), x.max()])
        label = rf"${factor:.3g} / (\alpha_* - \alpha_\#)$"
        handles += axes[1].plot(ends, factor * ends, "--", color=GREY, lw=1.1, zorder=0)
        labels = [*labels, label]
        figure.legend(handles, labels, loc="outside lower center", ncols=5, fontsize=8)
    return axes
