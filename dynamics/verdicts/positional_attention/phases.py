"""Theorem 4.1, and Events I, II, III with Lemma D.11, along the flow of the reduced problem."""

from __future__ import annotations

from typing import Any

import numpy as np

from dynamics.papers.positional_attention.reduced import derived_observables
from dynamics.problem import FloatArray
from dynamics.verdicts.claim import TIME, Also, Case, Literal, Picture, flow_to
from dynamics.verdicts.findings import Undecided
from dynamics.verdicts.positional_attention.grid import GRID, REGIME, THOROUGH, along, claim, law
from theory.events import RISE
from theory.papers.positional_attention.linear_rules import sign_rule_error

LONG = 1e6
DRAWS, AT_ONCE = 400_000, 4_000_000
NEAR = 0.1
"""Share of the gap between the linear rule's error and the irreducible one that may be left."""
STILL = 0.05
"""Relative change of G up to T0 below which attention stays where it started."""
CLEAR = 10.0
"""Standard errors by which sign(Z) has to err more than the best rule for errors to tell them."""
LINEAR_LEFT = 0.5
"""Share of that gap from which on a model has not generalised; beta makes it other than sign(Z)."""
HORIZONS = (1e3, 1e4, 1e5, 1e6)
ACROSS = {"laws": GRID, "thorough": THOROUGH, "in_part": True, "run": flow_to(LONG)}
LATE = (
    *REGIME, law(64, 14.0, beta=0.3), law(64, 14.0, beta=5.0),
    *({"D": 12, "C": 3, "q": 0.4, "beta": beta} for beta in (1.0, 3.0, 5.0)),
)  # fmt: skip
"""Laws of Event III: alpha falls after T1 at beta = 1, and rises at larger beta."""


def sampled_error(law: Any, state: FloatArray, seed: int) -> tuple[float, float]:
    """Population error of a symmetric state from draws of the law, ties half; its standard error.

    Parameters
    ----------
    law : Parameters
    state : float array, shape (3,)
        (alpha, gamma, rho).
    seed : int
    """
    found = derived_observables(state[None], np.zeros((1, 3)), law)
    own, mate, other = (float(found[name][0]) for name in ("Lambda", "Gamma", "Xi"))
    types, size, (plus, minus, none) = law.set_law.types, law.D, law.set_law.types.T
    sums, of_all = (plus - minus)[:, None], np.arange(-size, size + 1)

    def act(value: float) -> FloatArray:
        inner = (own - mate) * value + (mate - other) * sums + other * of_all
        inner = size * state[0] * inner
        return np.asarray(inner**law.p + law.nu * inner)

    # What a set of each type adds to F, by the sum Z of all; and without signs.
    parts = [n[:, None] * act(x) for n, x in ((plus, 1.0), (minus, -1.0), (none, 0.0))]
    added, gross = sum(parts), sum(map(np.abs, parts))
    signal, generator = int(np.flatnonzero(plus == law.C)[0]), np.random.default_rng(seed)
    wrong, left = 0.0, DRAWS
    while left:
        count = min(left, AT_ONCE // law.L)
        sets = generator.choice(len(types), (count, law.L - 1), p=law.set_law.probabilities)
        sets = np.concatenate([np.full((count, 1), signal), sets], axis=1)
        at = sets, size + sums[sets, 0].sum(axis=1, keepdims=True)
        margin, tie = added[at].sum(axis=1), 1e-13 * gross[at].sum(axis=1)
        wrong += float((margin < -tie).sum() + (np.abs(margin) <= tie).sum() / 2)
        left -= count
    error = wrong / DRAWS
    return error, float(np.sqrt(max(error, 1 / DRAWS) / DRAWS))


def errors_at(case: Case, state: FloatArray) -> dict[str, float]:
    """Errors of a state, of sign(Z) and of the best rule; the share of their gap that is left.

    Parameters
    ----------
    case : Case
    state : float array, shape (3,)
    """
    law = case.parameters
    error, margin = sampled_error(law, state, case.seed)
    linear = float(sign_rule_error(law.D, law.C, law.q).error)
    least = float(case.run["bayes_error"][-1])
    left = (error - least) / (linear - least) if linear - least > CLEAR * margin else np.nan
    return {"error": error, "linear": linear, "irreducible": least, "left": left}


@claim(
    "Theorem 4.1", "share of the gap from the linear rule's error to the irreducible one that is "
    "left", "<=", NEAR, **ACROSS, varies=("time",),
    words="min(beta, gamma) - rho = {gap:.3g}, error {error:.2g} (irreducible {irreducible:.2g}, "
    "sign(Z) {linear:.2g})",
    picture=Picture(TIME, "population risk"),
)  # fmt: skip
def theorem_4_1(case: Case) -> dict[str, Any]:
    """Association and error at the end; an error that still falls decides nothing yet."""
    _, gamma, rho = end = case.run.final_state
    gap = min(case.parameters.beta, gamma) - rho
    row = {"gap": gap, **errors_at(case, end), **along(case, case.run["risk"])}
    row["value"] = row["left"]
    return row | ({"open": "time"} if gap > 0 else {"holds": False})


@claim(
    "Event I", "relative change of the attention inside the own set, G, up to T0", "<=", STILL,
    **ACROSS,
    also=(
        Also("least_step", ">", 0.0, "least step of alpha from record to record up to T0"),
        Also("left", ">=", LINEAR_LEFT, "share of the gap from the irreducible error to that of "
             "sign(Z) left at T0"),
    ),
    words="G has changed by {value:.2%} at T0 = {T0:.3g}, alpha from {start:.3g} to {alpha:.3g}; "
    "error there {error:.3g} (sign(Z) {linear:.3g}, irreducible {irreducible:.2g})",
    picture=Picture(TIME, r"$\alpha$"),
)  # fmt: skip
def event_1(case: Case) -> dict[str, Any]:
    """Movement of the scalars before T0."""
    run, event = case.run, case.run.events["T0"]
    if not event:
        raise Undecided("attention never takes over the growth of the signal: no T0", "time")
    ends = np.stack([run.states[0], event.state])
    own = derived_observables(ends, np.zeros((2, 3)), case.parameters)["G"]
    alphas = np.append(run["alpha"][run.time <= event.time], event.state[0])
    row = {
        "value": abs(own[1] / own[0] - 1), "T0": event.time, "start": alphas[0],
        "alpha": alphas[-1], "least_step": np.diff(alphas).min(initial=np.inf),
        **errors_at(case, event.state), **along(case, run["alpha"]),
    }  # fmt: skip
    return row | ({"open": "size"} if np.isnan(row["left"]) else {})


def _rates(case: Case, first: float, last: float) -> FloatArray:
    """Rates of alpha, gamma and rho at the records from one time to another, shape (records, 3)."""
    inside = (case.run.time >= first) & (case.run.time <= last)
    return -np.array([case.problem.gradient(state) for state in case.run.states[inside]])


@claim(
    "Event I, updates", "rate of v over that of any entry of A at the start", ">", 1.0,
    **ACROSS, words="{value:.3g}, and at least {least:.2g} up to T0 = {T0:.3g}",
)  # fmt: skip
def event_1_updates(case: Case) -> dict[str, Any]:
    """Whether v moves faster than every entry of A in the first phase."""
    event = case.run.events["T0"]
    if not event:
        raise Undecided("attention never takes over the growth of the signal: no T0", "time")
    rates = np.abs(_rates(case, 0.0, event.time))
    ratios = rates[:, 0] / rates[:, 1:].max(axis=1)
    return {"value": ratios[0], "least": ratios.min(), "T0": event.time}


@claim(
    "Event II, increments", "least rate of gamma over that of |rho|, from T0 to T1", ">", 1.0,
    **ACROSS, words="{value:.3g} to {most:.3g} times, T1 = {T1:.3g}",
)  # fmt: skip
def event_2_increments(case: Case) -> dict[str, Any]:
    """Whether gamma moves faster than rho in the second phase; T1: half of the attention inside."""
    first, last = (case.run.events[name] for name in ("T0", "T1"))
    if not (first and last):
        raise Undecided("half of the attention never falls inside the own set: no T1", "time")
    _, gamma, rho = _rates(case, first.time, last.time).T
    ratios = gamma / np.abs(rho)
    return {"value": ratios.min(), "most": ratios.max(), "T1": last.time}


@claim(
    "Event II", "largest gamma over largest |rho| of a run, at its best horizon", ">", 1.0,
    laws=REGIME, run=flow_to(LONG),
    words="gamma reaches {value:.2g} times the largest |rho| of the run; horizons: {horizons}",
    picture=Picture(TIME, r"$\gamma / \max_{s \leq t} |\rho|$", {"needed": 1.0},
                    ("log", "linear")),
)  # fmt: skip
def event_2(case: Case) -> dict[str, Any]:
    """Whether gamma passes the largest |rho| of the run, for runs of growing length."""
    run, ratios, passed = case.run, [], {}
    begin = run.events["T0"].time if run.events["T0"] else np.inf
    for horizon in HORIZONS:
        inside = run.time <= horizon
        gamma, largest = run["gamma"][inside], float(np.abs(run["rho"][inside]).max())
        ratios.append(float(gamma.max() / largest) if largest else np.inf)
        later = gamma[run.time[inside] >= begin]
        first = int((later > largest).argmax())
        rising = bool((np.diff(later[: first + 1]) > 0).all())
        passed[horizon] = later.size > 1 and bool((later > largest).any()) and rising
    lost = not passed[HORIZONS[-1]]  # where |rho| has gone on growing it depends on T
    every = np.maximum.accumulate(np.abs(run["rho"]))[1:]
    return {
        "value": max(ratios), "holds": (None if lost else True) if any(passed.values()) else False,
        "missing": "time", "curves": {case.label: (run.time[1:], run["gamma"][1:] / every)},
        "horizons": ", ".join(f"{h:g} {'yes' if ok else 'no'}" for h, ok in passed.items()),
    }  # fmt: skip


AFTER = {
    "laws": LATE, "in_part": True, "run": flow_to(LONG),
    "picture": Picture(TIME, r"$\alpha$"),
}  # fmt: skip
LITERAL = "T1 where gamma exceeds the largest |rho| of the run"


def after(case: Case, name: str) -> tuple[float, float, float]:
    """Alpha at the end over that at an event, and over its largest since; share of rising records.

    From record to record: on the slow manifold the gradient at an integrated state, whose error
    the fast direction magnifies, has the sign of that error.

    Parameters
    ----------
    case : Case
    name : str
        ``"T1"`` or ``"T1_paper"``.
    """
    event, alpha = case.run.events[name], case.run["alpha"]
    if not event:
        return (np.nan,) * 3
    later = np.append(event.state[0], alpha[case.run.time > event.time])
    rising = (np.diff(later) > 1e-6 * later[1:]).mean()
    return float(later[-1] / later[0]), float(later[-1] / later.max()), float(rising)


def _of_both(case: Case, which: int) -> dict[str, Any]:
    """A row on T1 as it is read, and as it is written."""
    read, written = (after(case, name) for name in ("T1", "T1_paper"))
    if np.isnan(read[0]):
        raise Undecided("half of the attention never falls inside the own set: no T1", "time")
    row = {"value": read[which], "T1": case.run.events["T1"].time, "of_largest": read[1]}
    row |= along(case, case.run["alpha"])
    return row | ({} if np.isnan(written[0]) else {"literal": written[which]})


@claim(
    "Event III", "least alpha at the end over alpha at T1", ">", 1 + RISE, **AFTER,
    also=(Also("of_largest", ">=", 1.0, "alpha at the end over its largest from T1 on"),),
    literal=Literal("literal", ">", 1 + RISE, f"least alpha at the end over alpha at {LITERAL}",
                    "{literal:.3g} (D={D}, beta={beta:g})"),
    words="alpha at the end is {value:.3g} of that at T1 = {T1:.3g}, {of_largest:.3g} of its "
    "largest since",
)  # fmt: skip
def event_3(case: Case) -> dict[str, Any]:
    """Whether alpha rises from T1 on to the end."""
    return _of_both(case, 0)


@claim(
    "Lemma D.11", "least share of the records after T1 at which alpha rises", ">=", 1.0, **AFTER,
    literal=Literal("literal", ">=", 1.0, f"least share of the records after {LITERAL}",
                    "{literal:.0%} (D={D}, beta={beta:g})"),
    words="alpha rises at {value:.0%} of the records after T1 = {T1:.3g}",
)  # fmt: skip
def lemma_d_11(case: Case) -> dict[str, Any]:
    """Whether alpha rises at all times after T1."""
    return _of_both(case, 2)
