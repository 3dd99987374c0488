r"""Lemmas 2, 3 and 4: lucky neurons, and what grows along them.

By Definition 2 lucky neurons are those within the angle sigma of p_1; there are none in ten
dimensions (Lemma 3). What the other lemmas say of them is read as said of the neurons that have
their part: a > 0 and open to query 1 of the positive sample (W), a < 0 and open to query 2 of the
negative one (U). What is measured of the literal words stands beside it.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from math import log, log10, nan, pi
from typing import Any

import numpy as np

from dynamics.problem import FloatArray
from dynamics.training.descent import descend
from dynamics.verdicts.findings import Finding, Undecided
from dynamics.verdicts.rounding import without_rounding
from dynamics.verdicts.shallow_vit import runs
from dynamics.verdicts.shallow_vit.hypothesis import (
    enough_neurons,
    lucky_neurons,
    other_training,
    sizes_of_theorem_1,
)
from dynamics.verdicts.study import LINEAR, TIME, Measurement, Study, measures
from dynamics.verdicts.wording import listed
from theory.papers.shallow_vit.attention_limits import cap_share, claimed_share, least_epsilon

ALONG = 0.9
"""Least cosine of the growth of a value with the mean lucky neuron."""
FALLS = 0.01
"""Share of its range by which a length that grows may fall at a step."""
WHOLE = 0.9
"""Part of training in which it must not fall: at the end some samples have no loss any more."""
SAME = 1.5
"""Factor within which the growth in two doublings of time is the same."""
TURNED = 0.7
"""Cosine below which a direction has turned."""
LINEAR_LOSS = {"none": (0.01, 1600), "attention": (0.01, 1600), "values": (0.002, 75_000)}
"""Learning rate and steps with the linear loss, by what is frozen: before steps become too long."""
RECORDS = 200
DECADES = 2.0
"""Of time, through which growth with log t has to last."""
LINEAR_NEURONS = 300
ONCE = ("step size", "seed")


def _lucky_cases(study: Study, sides: tuple[int, ...] = (0, 1)) -> list[runs.Case]:
    """Runs at both margins; undecided where W (0) or U (1) is empty at the start."""
    cases = runs.at_both_margins(study)
    for case in cases:
        sizes = [int(neurons.sum()) for neurons in case.lucky(0)]
        if any(sizes[side] == 0 for side in sides):
            reason = f"no lucky neurons: |W| = {sizes[0]}, |U| = {sizes[1]} of {case.parameters.m}"
            raise Undecided(reason, parameters=asdict(case.parameters))
    return cases


def _angles(problem: Any) -> FloatArray:
    """Angles of neurons with p_1 and p_2 at the start, shape (m, 2); NaN at length zero."""
    start = problem.start
    with np.errstate(divide="ignore", invalid="ignore"):
        cosines = (start.W_O @ start.p[:, :2]) / np.linalg.norm(start.W_O, axis=1)[:, None]
    return np.asarray(np.arccos(np.clip(cosines, -1, 1)))


def _by_definition(case: runs.Case) -> Finding:
    """What the literal words say: of the neurons that Definition 2 calls lucky at the start."""
    many = int((_angles(case.problem) <= case.parameters.sigma).any(axis=1).sum())
    reason = "none at the start, so that nothing is said" if many == 0 else "not followed here"
    return Finding(None, "neurons that are lucky by Definition 2", many, 1.0, reason, relation=">=")


@without_rounding
@measures(
    "growth of lucky neurons along another pattern, over that along p_1", "<", 1.0, lucky_neurons,
    ONCE, again=True,
)  # fmt: skip
def growth_of_neurons(study: Study) -> Finding:
    """Lemma 2, claim 1: lucky neurons along p_1 and along the others, and other neurons."""
    for case in _lucky_cases(study, (0,)):
        frame, end = case.problem.start.p, case.last
        first, last = case.parts(0)[0], case.parts(end)[0]
        lucky, rest = case.lucky(0)[0], ~np.any([*case.lucky(0), *case.lucky(end)], axis=0)
        moved = (case.parts(record)[0] - first for record in range(end + 1))
        grown = np.array([(step @ frame)[lucky].mean(axis=0) for step in moved])
        along, others = float(grown[-1, 0]), np.abs(grown[-1, 1:])
        lengths = [np.linalg.norm(part, axis=1) for part in (first, last)]
        study.row(
            {"case": case.name, "lucky": int(lucky.sum()), "along_p1": along},
            ratio=float(others.max()) / along if along > 0 else float("inf"),
            largest_on_another=[float((p @ frame)[lucky, 1:].max()) for p in (first, last)],
            others_length=float(lengths[1][rest].mean() / lengths[0][rest].mean()),
            lucky_length=float(lengths[1][lucky].mean() / lengths[0][lucky].mean()),
        )
        case.add(study, "$p_1$", grown[:, 0])
        case.add(study, "next", grown[:, 1 + int(np.argmax(others))])
    lead = max(row["others_length"] / row["lucky_length"] for row in study.rows)
    reason = (
        f"lucky neurons grow by {study.listed('along_p1')} along p_1 and by at most "
        f"{study.listed('ratio', 2)} of that along another pattern; other neurons "
        f"keep their length ({study.listed('others_length')} of it)"
    )
    start, ends = (max(row["largest_on_another"][k] for row in study.rows) for k in (0, 1))
    study.literal = Finding(
        bool(max(start, ends) <= case.parameters.xi),
        "largest W_O p of a lucky neuron, p another pattern, at the start", start,
        case.parameters.xi, f"Gaussian entries of spread xi exceed xi; at the end {ends:.2g}",
        relation="<=", single=("seed",),
    )  # fmt: skip
    study.draw("step", "mean growth of lucky neurons\nalong a pattern", None, *LINEAR)
    length = Measurement("length of other neurons over that of lucky ones", lead, "<", 1.0)
    return study.conclude(max(study.column("ratio")), reason, length)


@without_rounding
@measures(
    "growth of |q_1|^2 in the last doubling of time, over that in the one before", "==", 1.0,
    sizes_of_theorem_1, ONCE, again=True,
)  # fmt: skip
def growth_of_keys(study: Study) -> Finding:
    """Lemma 2, claim 2: |q_1|^2 over time, its law and its direction.

    The hinge ends training: where the keys grow through less than `DECADES` of time by then, only a
    length that falls or a direction that turns decides. A law of the user that trains otherwise
    than (2) is measured, and decides nothing.
    """
    for name, time, squares, cosine in _keys(study):
        if np.ptp(squares) == 0:
            raise Undecided("q_1 does not move", "law", parameters=asdict(study.law()))
        quarter, half = np.searchsorted(time, time[-1] * np.array([0.25, 0.5]))
        before, after = squares[half] - squares[quarter], squares[-1] - squares[half]
        ratio = float(after / before) if before > 0 else 0.0
        early = squares[time <= WHOLE * time[-1]]
        falls = float(np.maximum(-np.diff(early), 0).max(initial=0.0) / np.ptp(squares))
        study.row({"case": name, "ratio": ratio, "cosine": cosine}, largest_fall=falls,
                  decades=_decades(time, squares), end=float(time[-1]))  # fmt: skip
        study.curve(name, time[1:], squares[1:])
    rows = [row for row in study.rows if row["case"].startswith("hinge")] or study.rows
    template = (
        "{case}: growth times {ratio:.3g} (1 is log t) in {decades:.2g} decades of time, direction "
        "of q_1 at the cosine {cosine:.3g}"
    )
    reason = study.words(template, "; ")
    study.draw(TIME, r"$\|q_1\|^2$")
    far = max(rows, key=lambda r: abs(np.log(r["ratio"])) if r["ratio"] > 0 else np.inf)
    grows = all(r["cosine"] >= TURNED and r["largest_fall"] <= FALLS for r in rows)
    if grows and any(r["decades"] < DECADES for r in rows):
        reason = (
            f"training ends before log t shows, which takes {DECADES:g} decades of growth; {reason}"
        )
        reason += _later(study)
        return study.conclude(far["ratio"], reason, holds=None, missing="time")
    if study.parameters is not None and (other := other_training(study.parameters)):
        reason = f"outside of the hypothesis: {other}; {reason}"
        return study.conclude(far["ratio"], reason, holds=None, missing="law")
    log_t = all(1 / SAME <= r["ratio"] <= SAME for r in rows)
    return study.conclude(far["ratio"], reason, holds=grows and log_t)


def _decades(time: FloatArray, squares: FloatArray) -> float:
    """Decades of time from a tenth of the growth of |q_1|^2 to its end."""
    reached = squares - squares[0] >= 0.1 * (squares[-1] - squares[0])
    first = time[int(np.argmax(reached))]
    return log10(time[-1] / first) if first > 0 else 0.0


def _later(study: Study) -> str:
    """The margin with which training would last long enough, estimated from both margins."""
    if study.parameters is not None:
        return ""
    low, high = study.rows[:2]
    slowness = log(high["end"] / low["end"]) / log(runs.both_margins(study)[1].margin)
    if slowness <= 0:
        return ""
    missing = DECADES - max(low["decades"], high["decades"])
    margin = runs.both_margins(study)[1].margin * 10 ** (missing / slowness)
    return (
        f"; training lasts as margin^{slowness:.2g}: needs a margin near {margin:.0e}, and the "
        "linear loss, which has none, is not the paper's"
    )


def _keys(study: Study) -> list[tuple[str, FloatArray, FloatArray, float]]:
    """Name, time, |q_1|^2, and the cosine of q_1 with its start, of every run."""
    law, results = study.parameters, []
    if law is None or law.loss != "linear":
        for case in runs.at_both_margins(study):
            stop = slice(0, case.last + 1)
            cosine = _cosine(case.parts(0)[2], case.parts(case.last)[2])
            squares = case.run["q1_norm2"][stop]
            results.append((f"hinge, {case.name}", case.run.time[stop], squares, cosine))
    small = {"loss": "linear", "m": LINEAR_NEURONS}
    for each in study.laws(small, small | {"frozen": "values"}):
        if each.loss == "linear":
            eta, steps = LINEAR_LOSS[each.frozen]
            eta, steps = study.rate(eta), study.horizon(steps)
            at = np.unique(np.rint(np.geomspace(1, steps, RECORDS)).astype(np.int64))
            problem = study.system.ReducedPopulation(each, seed=study.seed)
            run = descend(problem, eta, steps, record=at)
            name = "linear" + (", W_V frozen" if each.frozen == "values" else "")
            results.append((name, run.time, run["q1_norm2"], _cosine(run["K"][0], run["K"][-1])))
    return results


def _cosine(first: FloatArray, last: FloatArray) -> float:
    """Of the first columns."""
    one, two = first[:, 0], last[:, 0]
    return float(one @ two / (np.linalg.norm(one) * np.linalg.norm(two)))


@without_rounding
@measures(
    "change of another value, over that of V_1 or V_2, the lesser", "<", 1.0, lucky_neurons, ONCE,
    again=True,
)  # fmt: skip
def growth_of_values(study: Study) -> Finding:
    """Lemma 2, claim 3: values of the discriminative patterns, and the others'."""
    holds = True
    for case in _lucky_cases(study):
        end = case.last
        values = [case.parts(record)[1] for record in range(end + 1)]
        moved, hidden = values[-1] - values[0], case.parts(end)[0]
        change = np.linalg.norm(moved, axis=0)
        lengths = np.array([np.linalg.norm(value, axis=0) for value in values])
        lucky = [hidden[neurons].mean(axis=0) for neurons in case.lucky(0)]
        with np.errstate(divide="ignore", invalid="ignore"):
            cosines = [
                float(moved[:, j] @ lucky[j] / (change[j] * np.linalg.norm(lucky[j])))
                for j in (0, 1)
            ]
            ratio = float(change[2:].max() / change[:2].min())
        grows = bool((lengths[-1, :2] > lengths[0, :2]).all())
        holds &= grows and ratio < 1 and min(cosines) >= ALONG
        sizes = {"length": lengths[-1].tolist(), "start": lengths[0].tolist()}
        study.literal = _by_definition(case)
        study.row({"case": case.name, **sizes}, ratio=ratio, cosines=cosines)
        case.add(study, "$V_1$", lengths[:, 0])
        case.add(study, "others", lengths[:, 2:].max(axis=1))
    ends = study.column("length")
    reason = (
        f"|V_1| grows to {listed(length[0] for length in ends)}, those of other patterns to at "
        f"most {listed(max(length[2:]) for length in ends)}; growth at the cosine "
        f"{listed(map(min, study.column('cosines')))} with the mean lucky neuron"
    )
    study.draw("step", "length of a value", None, "linear")
    return study.conclude(max(study.column("ratio")), reason, holds=holds)


@measures(
    "fewer of |W(0)|, |U(0)| by Definition 2", ">=", nan, enough_neurons, ("seed",), again=True
)
def lemma_3(study: Study) -> Finding:
    """Neurons within the angle sigma of p_1 and p_2 at the start."""
    law = study.law()
    epsilon = least_epsilon(law.M, law.m, runs.SAMPLES)
    study.bound = law.m * claimed_share(law.M, law.sigma, epsilon)
    angles = _angles(study.system.ReducedPopulation(law, seed=study.seed))
    if np.isnan(angles).any():
        raise Undecided("neurons of length zero have no direction", "law", parameters=asdict(law))
    counts = (angles <= law.sigma).sum(axis=0)
    expected = law.m * cap_share(law.d, law.sigma)
    reason = (
        f"{counts[0]} and {counts[1]} of {law.m} neurons, {expected:.2g} expected in {law.d} "
        f"dimensions; the nearest is at the angle {angles.min():.3g}, sigma is {law.sigma:g}; the "
        f"promise, {law.m}/{law.M} (1 - epsilon_m - sigma M / pi) with epsilon_m = {epsilon:.3g}, "
        f"counts angles in a plane"
    )
    sigmas = np.linspace(0.02, min(pi / 2, pi / law.M), 40)
    promises = [max(0.0, claimed_share(law.M, x, epsilon)) for x in sigmas]
    study.curve("measured", np.sort(angles[:, 0]), np.arange(1, law.m + 1) / law.m)
    study.curve(f"sphere in {law.d} dimensions", sigmas, [cap_share(law.d, x) for x in sigmas])
    study.curve("promised for that sigma", sigmas, promises)
    y_label = "share of neurons within the angle of $p_1$"
    study.draw("angle, in radians", y_label, None, *LINEAR)
    return study.conclude(float(counts.min()), reason, parameters=asdict(law))


@without_rounding
@measures(
    "most neurons of W(0) and U(0) that are not lucky at a later step", "<=", 0.0, lucky_neurons,
    ONCE, again=True,
)  # fmt: skip
def lemma_4(study: Study) -> Finding:
    """Neurons that are lucky at the start and not at a later step."""
    cases = _lucky_cases(study)
    if study.thorough and study.parameters is None:
        law = runs.proofs_margin(replace(cases[0].parameters, data="fixed_disc"))
        cases += [runs.run_of(study, law, k) for k in (1, 2, 3)]
    for case in cases:
        sets = np.array([case.lucky(record) for record in range(case.last + 1)])
        sizes, lost = sets.sum(axis=2), int((sets[0] & ~sets).sum(axis=2).max())
        ends = {"start": sizes[0].tolist(), "end": sizes[-1].tolist()}
        study.row({"case": case.name, "lost": lost, **ends})
        case.add(study, r"$|\mathcal{W}|$", sizes[:, 0])
    reason = "; ".join(
        f"|W|, |U| from {listed(r['start'], 4)} to {listed(r['end'], 4)}, {r['lost']} lost "
        f"({r['case']})" for r in study.rows
    )  # fmt: skip
    study.literal = _by_definition(cases[0])
    study.draw("step", "lucky neurons", None, *LINEAR)
    return study.conclude(float(max(study.column("lost"))), reason)
