"""Theorem 4.1, Events I to III and the statements of Section 4.1, along the reduced flow."""

from __future__ import annotations

from typing import Any

import numpy as np

from dynamics.papers.positional_attention.reduced import derived_observables
from dynamics.problem import FloatArray
from dynamics.results.event import Event
from dynamics.verdicts.cases import Case, flow_to
from dynamics.verdicts.claim import TIME, Also, Literal, Picture
from dynamics.verdicts.findings import Undecided
from dynamics.verdicts.positional_attention.grid import GRID, REGIME, THOROUGH, along, claim, law
from theory.events import RISE
from theory.papers.positional_attention.linear_rules import sign_rule_error

LONG = 1e6
DRAWS, AT_ONCE = 400_000, 4_000_000
NEAR = 0.1
"""Maximum excess over the irreducible error, as a share of the excess of sign(Z), if learned."""
STILL = 0.05
"""Maximum relative change of own attention G up to T0 at which G counts as unchanged."""
CLEAR = 10.0
"""Minimum difference of the errors of sign(Z) and the best rule, in standard errors."""
LINEAR_LEFT = 0.5
"""Minimum excess over the irreducible error, as a share of that of sign(Z), if not generalised."""
LARGEST_ALPHA, ALPHAS = 1e2, 400
"""Largest a in v = a w*, and number of values of a on the logarithmic grid from 1e-3 alpha0."""
HIGH = 2.0
"""Minimum loss of the predictor (2), divided by the final loss of a run, that counts as high."""
HORIZONS = (1e3, 1e4, 1e5, 1e6)
NEVER = {
    "T0": "no T0: attention never takes over the growth of the signal",
    "T1": "no T1: attention inside the own set stays below one half",
}
ACROSS = {"laws": GRID, "thorough": THOROUGH, "in_part": True, "run": flow_to(LONG)}
LATE = (
    *REGIME, law(64, 14.0, beta=0.3), law(64, 14.0, beta=5.0),
    *({"D": 12, "C": 3, "q": 0.4, "beta": beta} for beta in (1.0, 3.0, 5.0)),
)  # fmt: skip
"""Laws of Event III: alpha falls after T1 at beta = 1, and rises at larger beta."""


def sampled_error(law: Any, state: FloatArray, seed: int) -> tuple[float, float]:
    """Error of (alpha, gamma, rho) by draws, and its standard error; a tie is half an error."""
    found = derived_observables(state[None], np.zeros((1, 3)), law)
    own, mate, other = (float(found[name][0]) for name in ("Lambda", "Gamma", "Xi"))
    types, size, (plus, minus, none) = law.set_law.types, law.D, law.set_law.types.T
    sums, of_all = (plus - minus)[:, None], np.arange(-size, size + 1)

    def act(value: float) -> FloatArray:
        inner = (own - mate) * value + (mate - other) * sums + other * of_all
        inner = size * state[0] * inner
        return np.asarray(inner**law.p + law.nu * inner)

    # `added`: part of F due to a set, by its type and Z; `gross`: absolute terms of it, summed.
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


def event_of(case: Case, name: str) -> Event:
    """Event T0 or T1 of a run; undecided if the event does not occur."""
    event = case.run.events[name]
    if not event:
        raise Undecided(NEVER[name], "time")
    return event


def errors_at(case: Case, state: FloatArray) -> dict[str, float]:
    """Errors of a state (alpha, gamma, rho), of sign(Z) and of the best rule.

    The value ``left`` is the error's excess over the best rule's, divided by that of sign(Z).
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
    """Association and error at the end of the run; undecided if the error is still falling."""
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
    """Changes of alpha, of G and of the error from the start to T0."""
    run, event = case.run, event_of(case, "T0")
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
    """Rates of alpha, gamma and rho at the records between two times, shape (records, 3)."""
    inside = (case.run.time >= first) & (case.run.time <= last)
    return -np.array([case.problem.gradient(state) for state in case.run.states[inside]])


@claim(
    "Event I, updates", "rate of v over that of any entry of A at the start", ">", 1.0,
    **ACROSS, words="{value:.3g}, and at least {least:.2g} up to T0 = {T0:.3g}",
)  # fmt: skip
def event_1_updates(case: Case) -> dict[str, Any]:
    """Ratio of the rate of v to the largest rate of an entry of A, up to T0."""
    event = event_of(case, "T0")
    rates = np.abs(_rates(case, 0.0, event.time))
    ratios = rates[:, 0] / rates[:, 1:].max(axis=1)
    return {"value": ratios[0], "least": ratios.min(), "T0": event.time}


@claim(
    "Event II, increments", "least rate of gamma over that of |rho|, from T0 to T1", ">", 1.0,
    **ACROSS, words="{value:.3g} to {most:.3g} times, T1 = {T1:.3g}",
)  # fmt: skip
def event_2_increments(case: Case) -> dict[str, Any]:
    """Ratio of the rates of gamma and |rho| from event T0 to event T1."""
    last, first = event_of(case, "T1"), case.run.events["T0"]
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
    """Ratio of the largest gamma to the largest |rho|, for runs of growing length."""
    run, ratios, passed = case.run, [], {}
    begin = run.events["T0"].time if run.events["T0"] else np.inf
    for horizon in HORIZONS:
        inside = run.time <= horizon
        gamma, largest = run["gamma"][inside], float(np.abs(run["rho"][inside]).max())
        ratios.append(float(gamma.max() / largest) if largest else np.inf)
        later = gamma[run.time[inside] >= begin]
        above = later > largest
        rising = np.diff(later[: 1 + np.append(above, True).argmax()]) > 0
        passed[horizon] = later.size > 1 and bool(above.any() and rising.all())
    lost = not passed[HORIZONS[-1]]  # also if shorter runs pass, as |rho| grows later
    every = np.maximum.accumulate(np.abs(run["rho"]))[1:]
    return {
        "value": max(ratios), "holds": (None if lost else True) if any(passed.values()) else False,
        "missing": "time", "curves": {case.label: (run.time[1:], run["gamma"][1:] / every)},
        "horizons": ", ".join(f"{h:g} {'yes' if ok else 'no'}" for h, ok in passed.items()),
    }  # fmt: skip


AFTER = {"laws": LATE, "in_part": True, "run": flow_to(LONG), "picture": Picture(TIME, r"$\alpha$")}
LITERAL = "T1 where gamma exceeds the largest |rho| of the run"


def _after(case: Case, which: int) -> dict[str, Any]:
    """Row with the measurement `which`, for T1 as interpreted here and for T1 as worded.

    Measurement 0 is final alpha divided by alpha at T1, 1 is final alpha divided by its maximum
    since T1, and 2 is the share of records at which alpha rises. Rises are differences of records,
    because on the slow manifold the gradient has the sign of the integration error.
    """
    alpha, found = case.run["alpha"], []
    for event in (event_of(case, "T1"), case.run.events["T1_paper"]):
        later = np.append(event.state[0], alpha[case.run.time > event.time])
        rising = (np.diff(later) > 1e-6 * later[1:]).mean() if event else np.nan
        found.append((later[-1] / later[0], later[-1] / later.max(), rising))
    read, written = found
    row = {"value": read[which], "of_largest": read[1], "T1": case.run.events["T1"].time}
    row |= along(case, alpha)
    return row | ({"literal": written[which]} if case.run.events["T1_paper"] else {})


@claim(
    "Event III", "least alpha at the end over alpha at T1", ">", 1 + RISE, **AFTER,
    also=(Also("of_largest", ">=", 1.0, "alpha at the end over its largest from T1 on"),),
    literal=Literal("literal", ">", 1 + RISE, f"least alpha at the end over alpha at {LITERAL}",
                    "{literal:.3g} (D={D}, beta={beta:g})"),
    words="alpha at the end is {value:.3g} of that at T1 = {T1:.3g}, {of_largest:.3g} of its "
    "largest since",
)  # fmt: skip
def event_3(case: Case) -> dict[str, Any]:
    """Final alpha, divided by alpha at T1 and by the maximum of alpha since T1."""
    return _after(case, 0)


@claim(
    "Lemma D.11", "least share of the records after T1 at which alpha rises", ">=", 1.0, **AFTER,
    literal=Literal("literal", ">=", 1.0, f"least share of the records after {LITERAL}",
                    "{literal:.0%} (D={D}, beta={beta:g})"),
    words="alpha rises at {value:.0%} of the records after T1 = {T1:.3g}",
)  # fmt: skip
def lemma_d_11(case: Case) -> dict[str, Any]:
    """Share of the records after T1 at which alpha rises."""
    return _after(case, 2)


@claim(
    "Section 4.1, any time", "least min(beta, gamma) - rho at times above 0", ">", 0.0, **ACROSS,
    literal=Literal(
        "start", ">", 0.0, "least min(beta, gamma) - rho, time 0 included",
        "at time 0 all entries off the diagonal are 0: the C largest are not determined",
    ),
    words="at its least {value:.1e}, time {time:.3g}",
    picture=Picture(TIME, r"$\min(\beta, \gamma) - \rho$", {"0": 0.0}, ("log", "symlog")),
)  # fmt: skip
def any_time(case: Case) -> dict[str, Any]:
    """Minimum over time of min(beta, gamma) - rho, which is positive if patches associate."""
    beta, run = case.parameters.beta, case.run
    gap = np.minimum(beta, run["gamma"]) - run["rho"]
    at = 1 + int(gap[1:].argmin())
    return {"value": gap[at], "time": run.time[at], "start": gap.min(), **along(case, gap)}


@claim(
    "Section 4.1, gamma and rho", "least gamma - rho", ">=", 0.0, **ACROSS,
    words="at its least {value:.2e}, time {time:.3g}",
    picture=Picture(TIME, r"$\gamma - \rho$", {"0": 0.0}, ("log", "symlog")),
)  # fmt: skip
def gamma_above_rho(case: Case) -> dict[str, Any]:
    """Minimum of gamma - rho over all records; at the start it is 0."""
    gap = case.run["gamma"] - case.run["rho"]
    return {"value": gap.min(), "time": case.run.time[int(gap.argmin())], **along(case, gap)}


@claim(
    "Lemma D.2", "least rate of alpha up to T0", ">", 0.0, laws=REGIME, run=flow_to(LONG),
    words="alpha rises from {start:.2g} to {threshold:.2g}, T0={T0:.2g}",
    picture=Picture(TIME, r"rate of $\alpha$", {"0": 0.0}, ("log", "symlog")),
)  # fmt: skip
def lemma_d_2(case: Case) -> dict[str, Any]:
    """Minimum rate of alpha up to T0; the lemma's threshold is taken as alpha at T0."""
    run, event = case.run, event_of(case, "T0")
    rates = _rates(case, 0.0, event.time)[:, 0]
    at_end = -case.problem.gradient(event.state)[0]
    return {
        "value": min(rates.min(), at_end), "T0": event.time, "start": run.states[0][0],
        "threshold": event.state[0], **along(case, rates, run.time <= event.time),
    }  # fmt: skip


@claim(
    "Equation (2)", "least loss of (2) over a, over the loss at the end of the run", ">", HIGH,
    laws=REGIME, run=flow_to(LONG),
    words="{loss:.3g} at a={best_a:.2g} against {end:.2g}; the sign of (2) is that of Z, whose "
    "error is {linear:.3g} against {irreducible:.2g}",
    literal=Literal("large", ">", HIGH, "loss of (2) at a large a, over the loss at the end",
                    "a = {largest_a:.3g}, where every error costs its margin"),
    picture=Picture("$a$", "population loss with the attention of the start"),
)  # fmt: skip
def equation_2(case: Case) -> dict[str, Any]:
    """Minimum over a of the population loss at v = a w* with the attention of the start."""
    law, problem = case.parameters, case.problem
    grid = np.geomspace(1e-3 * case.run.states[0][0], LARGEST_ALPHA, ALPHAS)
    losses = np.array([problem.observables(np.array([a, 0.0, 0.0]))["risk"] for a in grid.tolist()])
    finite = np.isfinite(losses)  # the risk is inf where its grid is too small
    grid, losses, end = grid[finite], losses[finite], float(case.run["risk"][-1])
    least = losses.min()
    row = {
        "value": least / end, "open": "size", "loss": least, "best_a": grid[losses.argmin()],
        "linear": float(sign_rule_error(law.D, law.C, law.q).error), "end": end,
        "irreducible": float(case.run["bayes_error"][-1]), "largest_a": grid[-1],
        "large": losses[-1] / end, "curves": {case.label: (grid, losses)},
    }  # fmt: skip
    return row | ({} if least > end else {"holds": False})
