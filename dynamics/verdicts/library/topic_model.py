r"""Topics from masked words: the blocks of values and of attention, with a figure."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import numpy as np

from dynamics.training.flow import flow
from dynamics.verdicts.figure import Drawing, FigureRequest, page, title
from dynamics.verdicts.findings import Finding, Undecided
from dynamics.verdicts.study import TIME, Measurement, Study, measures

if TYPE_CHECKING:
    from dynamics.system import System

LONG = 2e4


def _run(study: Study) -> Any:
    law = study.law()
    if law.chosen >= law.T:
        raise Undecided("every document has all topics: there is nothing to tell apart", "law")
    return flow(study.system.ReducedPopulation(law), LONG)


@measures("least of V_same - V_other along the run, over the largest", ">=", 0.0)
def blocks_of_values(study: Study) -> Finding:
    """From the first record after the start on."""
    run = _run(study)
    gap = (run["V_same"] - run["V_other"])[1:]
    for name in ("V_same", "V_other", "V_mask"):
        study.curve(name, run.time, run[name])
    study.draw(TIME, "value", y_scale="linear")
    reason = (
        f"V_same = {run['V_same'][-1]:.4g}, V_other = {run['V_other'][-1]:.4g} at time {LONG:g}, "
        f"all trained at once; one law, {len(run.time)} records"
    )
    return study.conclude(float(gap.min() / gap.max()), reason)


@measures("logit of the same topic less that of another at the end", ">", 0.0)
def blocks_of_attention(study: Study) -> Finding:
    """And that values come first: at the start attention has no gradient."""
    run = _run(study)
    gap = run["A_same"] - run["A_other"]
    for name in ("A_same", "A_other", "A_to_mask"):
        study.curve(name, run.time, run[name])
    study.draw(TIME, "logit", y_scale="linear")
    first, later = run.events["T_V"], run.events["T_A"]
    reason = (
        f"attention on a word of the own topic is e^{gap[-1]:.3g} times that on one of another "
        f"topic at time {LONG:g}; values reach 1/(2v) at {first.time:.4g}, logits are 1 apart at "
        f"{later.time:.4g}; one law"
    )
    never = Measurement("least gap of the logits along the run", float(gap.min()), ">=", -1e-12)
    return study.conclude(float(gap[-1]), reason, never)


def blocks(system: System, request: FigureRequest) -> Drawing:
    """The matrices of values and of attention logits after training.

    Option: ``time``.

    Parameters
    ----------
    system : System
    request : FigureRequest
    """
    options = request.options({"time": LONG})
    law = request.make_parameters(system)
    problem = system.ReducedPopulation(law)
    run = flow(problem, float(options["time"]))
    entries = problem.lift(run.final_state)
    n = law.T * law.v
    values, logits = (
        entries[: n * (n + 1)].reshape(n, n + 1),
        entries[n * (n + 1) :].reshape(n + 1, -1),
    )
    names = title(system, law, "T", "v", "chosen", "masked", width=7.2)
    with page(7.2, 3.5, names, ncols=2) as (figure, panels):
        words = (("values $V$", values), ("logits $A$", logits))
        for axes, (word, matrix) in zip(panels, words, strict=True):
            size = float(np.abs(matrix).max())
            image = axes.imshow(matrix, cmap="PuOr_r", vmin=-size, vmax=size)
            for k in range(1, law.T):
                axes.axhline(k * law.v - 0.5, color="k", lw=0.4)
                axes.axvline(k * law.v - 0.5, color="k", lw=0.4)
            axes.axvline(n - 0.5, color="k", lw=1.0)
            axes.set_title(word, fontsize=9)
            axes.set_xticks([*range(n), n], [*range(1, n + 1), "M"], fontsize=7)
            axes.set_yticks(range(len(matrix)), [*range(1, n + 1), "M"][: len(matrix)], fontsize=7)
            figure.colorbar(image, ax=axes, shrink=0.8)
    caption = (
        f"Values (rows: predicted words, columns: shown words) and attention logits (rows: "
        f"queries, columns: keys) at time {run.time[-1]:g} of the gradient flow; words of a topic "
        "stand together, M is MASK."
    )
    return Drawing(panels, {"V": values, "A": logits}, caption)


CHECKS = {"Blocks of values": blocks_of_values, "Blocks of attention": blocks_of_attention}
FIGURES = {"blocks": blocks}
