"""Softmax attention in context: conserved row sums, concentration, order of learning; figures."""

from __future__ import annotations

from typing import Any

import numpy as np

from dynamics.results.event import Event
from dynamics.system import System
from dynamics.training.flow import flow
from dynamics.verdicts.cases import Case, descent, flow_to, reduced_flow
from dynamics.verdicts.claim import TIME, Also, Picture, claim
from dynamics.verdicts.figure import Drawing, FigureRequest, edges, page, title
from dynamics.verdicts.findings import Undecided
from dynamics.verdicts.library.lines import COLOURS, over_time

ROUNDING = 1e-12
ATTENDED = 0.99
"""Minimum attention, divided by its largest possible value, that counts as concentrated."""
LONG = 1e5
DOMINANT = {"p1": 0.8, "N": 12}


def present(share: float, law: Any) -> float:
    """Probability that a feature is in a prompt, an upper bound of the mean attention on it."""
    return float(1 - (1 - share) ** law.N)


def ratio(first: Event, second: Event) -> float:
    """Time of the second event divided by that of the first; NaN if both are at time 0."""
    if first.time == 0.0:
        return float("nan") if second.time == 0.0 else float("inf")
    return second.time / first.time


def _others(law: Any) -> float:
    return float((1 - law.p1) / (law.K - 1))


def balanced(law: Any) -> None:
    """Raise Undecided unless all features are equally probable."""
    if abs(law.p1 - 1 / law.K) > 1e-12:
        raise Undecided(f"the statement assumes balanced features, p1 = 1/K = {1 / law.K:g}", "law")


def dominant(law: Any) -> None:
    """Raise Undecided unless feature 1 is the most probable one."""
    if law.p1 <= _others(law):
        raise Undecided("the statement assumes a dominant feature 1", "law")


@claim(
    "Conserved", "largest change of a row sum of Q, over the largest entry of Q", "<=", ROUNDING,
    laws=(DOMINANT,), run=descent(1.0, 3000, "FullPopulation"),
    words="every entry is trained; found of the scalars by the closure: {laws}",
)  # fmt: skip
def conserved(case: Case) -> dict[str, Any]:
    """Largest change of a row sum of Q during descent on every entry, over the largest entry."""
    run, K = case.run, case.parameters.K
    rows = run.states.reshape(len(run.time), K, K)
    change = np.abs(rows.sum(axis=2) - rows[0].sum(axis=1)).max() / np.abs(rows).max()
    return {"value": change, "laws": "; ".join(case.problem.closure.conserved)}


@claim(
    "Concentration", "attention on the query's own feature, over the largest possible", ">=",
    ATTENDED, run=flow_to(LONG), require=balanced,
    words="at time {end:g}; what is missing falls as time^{slope:.2f} at the end, T_1 is {T_1:.5g}",
    picture=Picture(TIME, "missing attention, relative"),
)  # fmt: skip
def concentrates(case: Case) -> dict[str, Any]:
    """Final attention on the query's own feature, divided by its largest possible value."""
    run, law = case.run, case.parameters
    share = run["attention_1"] / present(law.p1, law)
    slope = np.polyfit(np.log(run.time[-40:]), np.log(1 - share[-40:]), 1)[0]
    return {
        "value": share[-1], "slope": slope, "end": LONG, "T_1": run.events["T_1"].time,
        "open": "time", "curves": {"balanced": (run.time, 1 - share)},
    }  # fmt: skip


@claim(
    "Dominant first", "time T_2 of the rare features over T_1 of the dominant one", ">", 1.0,
    laws=(DOMINANT,), run=flow_to(LONG), require=dominant,
    also=(Also("reached", ">=", 1.0, "T_2 reached"),),
    picture=Picture(TIME, "missing attention, relative"),
)  # fmt: skip
def dominant_first(case: Case) -> dict[str, Any]:
    """Times at which the dominant and the rare features are learned; see the figure `order`."""
    run, law = case.run, case.parameters
    first, second = run.events["T_1"], run.events["T_2"]
    gaps = (run["A1"] - run["B12"], run["A2"] - run["B21"])
    alone = [run.time[np.argmax(gap >= np.log(law.N))] for gap in gaps]
    text = f"T_1 = {first.time:.5g}, T_2 = {second.time:.5g} by the flow"
    if alone[0] > alone[1] > 0:
        text += (
            "; by logits the order differs: one own token gets as much attention as N "
            f"others at about {alone[0]:.3g} for feature 1 and {alone[1]:.3g} for the rare ones"
        )
    shares = ((1, law.p1), (2, _others(law)))
    curves = {
        f"feature {k}": (run.time, 1 - run[f"attention_{k}"] / present(p, law)) for k, p in shares
    }
    reached = float(second.reached)
    return {"value": ratio(first, second), "reached": reached, "open": "time", "text": text,
            "curves": curves}  # fmt: skip


def features(system: System, request: FigureRequest) -> Drawing:
    """Mean attention on the query's own feature, if dominant and if rare; option ``time``."""
    end = float(request.options({"time": 1e4})["time"])
    law = request.make_parameters(system, (), **DOMINANT)
    run = reduced_flow(system.ReducedPopulation, law, end)[1]
    shares = {"dominant": law.p1, "rare": _others(law)}
    curves = {
        f"{word} feature, share {share:.3g}": (run.time, run[f"attention_{k}"])
        for k, (word, share) in enumerate(shares.items(), 1)
    }
    caption = (
        "Mean attention of a query on the tokens of its own feature along the gradient flow; "
        "dotted: chance that there is such a token; dashed: the time at 95 % of it."
    )
    look = {"xlim": (0.3, end), "ylim": (0, 1.03), "ylabel": "attention on the own feature"}
    drawing = over_time(title(system, law, "K", "N", "p1", width=6.4), curves, caption, **look)
    for k, (share, colour) in enumerate(zip(shares.values(), COLOURS, strict=False), 1):
        drawing.axes.axhline(present(share, law), color=colour, ls=":", lw=0.9)
        if event := run.events[f"T_{k}"]:
            drawing.axes.axvline(event.time, color=colour, ls="--", lw=0.9)
    return drawing


def order(system: System, request: FigureRequest) -> Drawing:
    """Ratio T_2 / T_1 of the times of rare features and feature 1, for several laws.

    Options are ``shares`` (of feature 1), ``lengths`` (numbers of tokens) and ``time``.
    """
    quick = {"shares": [0.1, 0.2, 1 / 3, 0.45, 0.6, 0.75, 0.9], "lengths": [4, 6, 8, 12, 16]}
    options = request.options(quick | {"time": LONG})
    base = vars(request.make_parameters(system, ("p1", "N")))
    shares, lengths = np.sort(options["shares"]), np.sort(options["lengths"])
    ratios = np.full((lengths.size, shares.size), np.nan)
    for i, N in enumerate(lengths):
        for j, p1 in enumerate(shares):
            law = system.Parameters(**(base | {"N": int(N), "p1": float(p1)}))
            events = flow(system.ReducedPopulation(law), float(options["time"])).events
            ratios[i, j] = ratio(events["T_1"], events["T_2"])
    with page(5.6, 3.8, title(system, system.Parameters(**base), "K", width=5.6)) as (figure, axes):
        powers = np.log10(np.where(np.isfinite(ratios) & (ratios > 0), ratios, np.nan))
        span = float(np.nanmax(np.abs(powers), initial=0.1))
        rows = np.arange(lengths.size + 1) - 0.5
        image = axes.pcolormesh(edges(shares), rows, powers, cmap="PuOr", vmin=-span, vmax=span)
        for (i, j), value in np.ndenumerate(ratios):
            word = f"{value:.2g}" if value < 100 else f"{value:.0f}"
            if not np.isfinite(powers[i, j]):
                word = "not\nreached" if np.isnan(value) else "one at\nonce"
            colour = "w" if abs(powers[i, j]) > 0.6 * span else "k"
            axes.text(shares[j], i, word, ha="center", va="center", fontsize=7, color=colour)
        axes.set(xlabel="share $p_1$ of feature 1", ylabel="tokens $N$")
        axes.set_yticks(range(lengths.size), [str(n) for n in lengths])
        figure.colorbar(image, label=r"$\log_{10} (T_2 / T_1)$")
    caption = (
        "Time T_2 of the other features over T_1 of feature 1 by the gradient flow: above 1 "
        f"feature 1 is first. Balanced at p1 = {1 / base['K']:.3g}."
    )
    return Drawing(axes, {"shares": shares, "lengths": lengths, "ratio": ratios}, caption)


FIGURES = {"features": features, "order": order}
