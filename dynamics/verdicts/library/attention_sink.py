r"""Attention on a sink grows and the sink's value drains, alone and together; a figure.

Late in training the prediction exceeds the bigram probability p by about :math:`p (\bar\xi - E_p
\bar\xi) / e^\alpha`, where :math:`\alpha` is the sink's logit and :math:`\bar\xi` the sum of the
values of all other tokens. With V tokens, the logit therefore grows as :math:`\alpha = \frac12
\ln(2 \mathrm{Var}_p(\bar\xi)\, t/V)`. At constant alpha and with W other tokens in the sequence,
the head's contribution decays at the rate :math:`(e^\alpha/(e^\alpha + W))^2 / V`.
"""

from __future__ import annotations

from dataclasses import replace
from typing import Any

import numpy as np

from dynamics.results.trajectory import Trajectory
from dynamics.system import System
from dynamics.verdicts.cases import Case, reduced_flow
from dynamics.verdicts.claim import TIME, Also, Picture, claim
from dynamics.verdicts.figure import Drawing, FigureRequest, title
from dynamics.verdicts.library.lines import over_time
from dynamics.verdicts.stability import Trained

LONG, RTOL = 1e10, 1e-11
NEAR = 0.01


def copied_variance(law: Any) -> float:
    """Variance, over equally probable next tokens, of the summed values of tokens but the sink."""
    part = law.copied / law.V
    return float((law.W * law.xi / law.copied) ** 2 * part * (1 - part))


def trained(case: Case, what: str, time: float) -> tuple[Any, Trajectory]:
    """Parameters with the option `trained` set to `what`, and their reduced flow to `time`."""
    law = replace(case.parameters, trained=what)
    return law, reduced_flow(case.system.ReducedPopulation, law, case.time(time), RTOL)[1]


@claim(
    "Sink", "distance from 1/2 of the slope of alpha over ln t, in the last factor of ten", "<=",
    NEAR, shown=("V", "copied", "W", "xi"),
    also=(Also("constant", "<=", NEAR, "distance of alpha from its asymptote at the end"),),
    words="slope {slope:.6f} to time {end:.1g}, alpha = {alpha:.6g} there, {asymptote:.6g} by the "
    "asymptote",
    picture=Picture(TIME, r"attention logit $\alpha$ of the sink", scales=("log", "linear")),
)  # fmt: skip
def sink(case: Case) -> dict[str, Any]:
    """Growth of the sink's attention logit alpha while values are constant."""
    law, run = trained(case, "alpha", LONG)
    late = run.time >= run.time[-1] / 10
    slope = np.polyfit(np.log(run.time[late]), run["a"][late], 1)[0]
    asymptote = np.log(2 * copied_variance(law) * run.time[-1] / law.V) / 2
    return {
        "value": abs(slope - 0.5), "slope": slope, "end": run.time[-1], "alpha": run["a"][-1],
        "asymptote": asymptote, "constant": abs(run["a"][-1] - asymptote),
        "curves": {"values at rest": (run.time, run["a"])}, "open": "time",
        "trained": (Trained.of(law, run),),
    }  # fmt: skip


@claim(
    "Drain", "what the head adds at the end, over the start", "<=", 1e-6,
    shown=("V", "copied", "W", "xi"),
    also=(Also("off", "<=", NEAR, "distance of its rate of decay from the derived one, relative"),),
    words="it decays at the rate {rate:.6g}, {derived:.6g} as derived",
    picture=Picture(TIME, "added logit", scales=("linear", "log")),
)  # fmt: skip
def drain(case: Case) -> dict[str, Any]:
    """Decay of the head's contribution while attention logits are held at zero."""
    law = case.parameters
    derived = (1 / (1 + law.W)) ** 2 / law.V
    law, run = trained(case, "beta", 40 / derived)
    left = run["added"]
    part = (left < 1e-2 * left[0]) & (left > 1e-6 * left[0])
    rate = -np.polyfit(run.time[part], np.log(left[part]), 1)[0]
    return {
        "value": abs(left[-1]) / left[0], "rate": rate, "derived": derived,
        "off": abs(rate / derived - 1), "trained": (Trained.of(law, run),),
        "curves": {"attention at rest": (run.time[left > 0], left[left > 0])},
    }  # fmt: skip


@claim(
    "Mutual reinforcement", "time of nine tenths of the drain together, over that alone", "<", 1.0,
    shown=("V", "copied", "W", "xi"),
    words="{together:.4g} together, {alone:.4g} alone; together alpha ends at {alpha:.4g}",
)  # fmt: skip
def reinforce(case: Case) -> dict[str, Any]:
    """Times at which the sink's value has drained, with trained and with constant attention."""
    times, runs = {}, {}
    for name, what in (("alone", "beta"), ("together", "both")):
        law, run = trained(case, what, 40 * case.parameters.V * (1 + case.parameters.W) ** 2)
        times[name], runs[name] = run.events["T_drain"].time, Trained.of(law, run)
        alpha = float(run["a"][-1]) if what == "both" else 0.0
    ratio = times["together"] / times["alone"]
    return {"value": ratio, "alpha": alpha, **times, "trained": tuple(runs.values())}


def growth(system: System, request: FigureRequest) -> Drawing:
    """Sink's attention logit along flows with constant and with trained values; option ``time``."""
    end = float(request.options({"time": 1e8})["time"])
    base = request.make_parameters(system)
    curves = {}
    for word, what in (("values at rest", "alpha"), ("values trained", "both")):
        law = replace(base, trained=what)
        run = reduced_flow(system.ReducedPopulation, law, end, RTOL)[1]
        curves[word] = (run.time[1:], run["a"][1:])
    time = np.geomspace(10.0, end, 50)
    asymptote = np.log(2 * copied_variance(base) * time / base.V) / 2
    curves[r"$\frac{1}{2} \ln(2\,\mathrm{Var}\,t/V)$"] = (time, asymptote)
    caption = (
        "Attention logit of the sink along the gradient flow: half the logarithm of time with "
        "constant values; if the value of the sink is trained too, it drains and the logit stops."
    )
    words = title(system, base, "V", "copied", "W", "xi", width=6.4)
    look = {"xlim": (10.0, end), "ylabel": r"attention logit $\alpha$ of the sink"}
    return over_time(words, curves, caption, **look)


FIGURES = {"growth": growth}
