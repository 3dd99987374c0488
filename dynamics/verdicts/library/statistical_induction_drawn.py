"""Statistical induction heads on long drawn sequences: phases, with standard errors; a figure."""

from __future__ import annotations

from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from dynamics.training.flow import flow
from dynamics.verdicts.cases import Case
from dynamics.verdicts.claim import TIME, Picture, claim
from dynamics.verdicts.figure import Drawing, FigureRequest, page, title
from dynamics.verdicts.findings import Finding
from dynamics.verdicts.library import statistical_induction as minimal
from dynamics.verdicts.library.lines import COLOURS
from dynamics.verdicts.wording import counted

if TYPE_CHECKING:
    from dynamics.system import System

LONG = 1000.0
DRAWS = 6000
"""Number of drawn sequences times context length; a seed has `DRAWS` // L sequences."""


def _drawn(case: Case) -> tuple[Any, Any]:
    """Flow on the draws of a seed; longer sequences have fewer draws."""
    make: Any = case.system.ReducedPopulation
    problem = make(case.parameters, samples=DRAWS // case.parameters.L, seed=case.seed)
    return problem, flow(problem, LONG, rtol=1e-6)


def _mean(rows: list[dict[str, Any]], finding: Finding) -> Finding:
    """Add the bigram solution's mean time, with standard error, to a finding, for each length."""
    parts = []
    for L in dict.fromkeys(row["L"] for row in rows):
        times = [row["bigram"] for row in rows if row["L"] == L]
        error = np.std(times, ddof=1) / np.sqrt(len(times))
        parts.append(f"{np.mean(times):.0f} +- {error:.0f} at L = {L}, {DRAWS // L} draws a seed")
    return replace(finding, reason=f"{finding.reason}; bigram solution at {'; '.join(parts)}")


@claim(
    "Phases", "time of the bigram solution over that of the unigram level", ">=", minimal.LATER,
    laws=({"L": 30},), thorough=({"L": 100},), seeds=(3, 3), shown=("L",), run=_drawn,
    also=(minimal.REST,), conclude=_mean,
    words="unigram level {level:.4f} at {unigram:.3g}, bigram solution at {bigram:.4g}, risk "
    "{end:.4f} at the end",
    picture=Picture(TIME, "risk", scales=("log", "linear")),
)  # fmt: skip
def three_phases(case: Case) -> dict[str, Any]:
    """Times of the phases for the draws of one seed, without a measurement of stability."""
    curve = (case.run.time[1:], case.run["risk"][1:])
    label = f"L = {case.parameters.L}, seed {case.seed}"
    return minimal.phases(case) | {"trained": (), "curves": {label: curve}}


def lengths(system: System, request: FigureRequest) -> Drawing:
    """Risk and attention to the previous symbol; options ``lengths``, ``seeds``, ``time``."""
    quick = {"lengths": [8, 16, 30], "seeds": 2, "time": LONG}
    options = request.options(quick, {"lengths": [8, 30, 100]})
    law = request.make_parameters(system, ("L",))
    data: dict[str, Any] = {}
    with page(8.6, 3.5, title(system, law, "w0", width=8.6), ncols=2) as (_, (left, right)):
        for L, colour in zip(options["lengths"], COLOURS, strict=False):
            for seed in request.seeds(int(options["seeds"])):
                own = replace(law, L=int(L))
                problem = system.ReducedPopulation(own, samples=DRAWS // own.L, seed=seed)
                run = flow(problem, float(options["time"]), rtol=1e-6)
                label = f"L = {L}" if seed == request.seed else ""
                minimal.draw_run((left, right), run, label, colour)
                data |= {f"L = {L}, seed {seed}, {n}": run[n] for n in ("risk", "previous")}
                data[f"L = {L}, seed {seed}, time"] = run.time
        left.set(ylabel="risk", xlim=(1e-3, None))
        right.set(ylabel="attention to the previous symbol", xlim=(1.0, None))
        left.legend(fontsize=8, loc="lower left")
    caption = (
        f"Risk and attention of the last place to the one before it along the gradient flow, on "
        f"{counted(options['seeds'], 'seed')} of {DRAWS} / L draws each."
    )
    return Drawing(np.array([left, right]), data, caption)


FIGURES = {"lengths": lengths}
