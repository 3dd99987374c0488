"""Single-location regression with Gaussian tokens, drawn at random: recovery; a figure."""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from dynamics.system import System
from dynamics.training.flow import flow
from dynamics.verdicts.cases import Case
from dynamics.verdicts.claim import TIME, Also, Picture, claim
from dynamics.verdicts.figure import Drawing, FigureRequest, title
from dynamics.verdicts.findings import Finding
from dynamics.verdicts.library.lines import over_time
from dynamics.verdicts.wording import counted

LONG = 1e4
SAMPLES = 2000
FOUND = 0.9
"""Minimum mean attention on the informative token at which the token counts as recovered."""


def _drawn(case: Case) -> tuple[Any, Any]:
    """Flow of the reduced problem on drawn samples; seeds differ by the sampling error."""
    make: Any = case.system.ReducedPopulation
    problem = make(case.parameters, samples=SAMPLES, seed=case.seed)
    return problem, flow(problem, LONG)


def _mean(rows: list[dict[str, Any]], finding: Finding) -> Finding:
    """Add means of attention and overlaps over seeds, with standard errors, to the reason."""
    parts = []
    for name, word in (("value", "attention"), ("nu", "nu"), ("kappa", "kappa")):
        ends = [row[name] for row in rows]
        error = np.std(ends, ddof=1) / np.sqrt(len(ends))
        parts.append(f"{word} {np.mean(ends):.4f} +- {error:.4f}")
    reason = f"{finding.reason}; at time {LONG:g}, {SAMPLES} draws a seed: {', '.join(parts)}"
    return replace(finding, reason=reason)


@claim(
    "Recovery", "mean attention on the token at the end, least of the seeds", ">=", FOUND,
    seeds=(3, 8), run=_drawn, also=(Also("nu", ">=", 0.9, "least nu"),), conclude=_mean,
    picture=Picture(TIME, "attention on the token", scales=("log", "linear")),
)  # fmt: skip
def recovers(case: Case) -> dict[str, Any]:
    """Final attention on the informative token, for the draws of one seed."""
    run = case.run
    return {
        "value": run["found"][-1], "nu": run["nu"][-1], "kappa": run["kappa"][-1], "open": "time",
        "curves": {f"seed {case.seed}": (run.time, run["found"])},
    }  # fmt: skip


def overlaps(system: System, request: FigureRequest) -> Drawing:
    """Overlaps and attention on the informative token by seed; options ``seeds``, ``time``."""
    options, law = request.options({"seeds": 3, "time": LONG}), request.make_parameters(system)
    labels = {
        r"$\kappa$, key on $k^*$": "kappa", r"$\nu$, value on $v^*$": "nu",
        "attention on the token": "found",
    }  # fmt: skip
    curves: dict[str, Any] = {}
    end = float(options["time"])
    for number, seed in enumerate(request.seeds(int(options["seeds"]))):
        run = flow(system.ReducedPopulation(law, samples=SAMPLES, seed=seed), end)
        curves |= {label + "'" * number: (run.time, run[name]) for label, name in labels.items()}
    caption = (
        f"Overlaps along the gradient flow, {counted(options['seeds'], 'seed')} of {SAMPLES} draws "
        "of the law each."
    )
    words, axes = title(system, law, "d", "L", "gamma", width=6.4), {"ylabel": "overlap, attention"}
    return over_time(words, curves, caption, xlim=(0.1, end), **axes)


FIGURES = {"overlaps": overlaps}
