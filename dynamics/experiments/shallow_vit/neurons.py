r"""Lemmas 2, 3 and 4: lucky neurons, and what grows along them.

By Definition 2 lucky neurons are those within the angle sigma of p_1; there are none in ten
dimensions (Lemma 3). What the other lemmas say of them is measured on the neurons that have their
part: a > 0 and open to query 1 of the positive sample (W), a < 0 and open to query 2 of the
negative one (U).
"""

from __future__ import annotations

from dataclasses import asdict, replace
from math import pi
from typing import Any

import numpy as np

from dynamics.experiments.measurement import (
    TIME,
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
    SAMPLES,
    Case,
    at_both_margins,
    column,
    over_steps,
    proofs_margin,
    trained,
)
from dynamics.experiments.verify import Finding, Protocol
from dynamics.problem import FloatArray
from dynamics.registry import System
from dynamics.training.gradient_descent import descend
from theory.systems.shallow_vit.attention_limits import cap_share, claimed_share, least_epsilon

ALONG = 0.9
"""Least cosine of the growth of a value with the mean lucky neuron."""
FALLS = 0.01
"""Share of its range by which a length that grows may fall at a step."""
SAME = 1.5
"""Factor within which the growth in two doublings of time is the same."""
TURNED = 0.7
"""Cosine below which a direction has turned."""
LINEAR = {"none": (0.01, 1600), "attention": (0.01, 1600), "values": (0.002, 75_000)}
"""Learning rate and steps with the linear loss, by what is frozen: before steps become too long."""
RECORDS = 200


def _shared_weights(law: Any) -> None:
    if law.output_weights != "shared":
        raise Undecided("neurons have a sign for every position", parameters=asdict(law))


def _lucky_cases(system: System, protocol: Protocol, sides: tuple[int, ...] = (0, 1)) -> list[Case]:
    """Runs at both margins; undecided where W (0) or U (1) is empty at the start."""
    cases = at_both_margins(system, protocol)
    for case in cases:
        sizes = [int(neurons.sum()) for neurons in case.lucky(0)]
        if any(sizes[side] == 0 for side in sides):
            reason = f"no lucky neurons: |W| = {sizes[0]}, |U| = {sizes[1]} of {case.parameters.m}"
            raise Undecided(reason, parameters=asdict(case.parameters))
    return cases


@measures(
    "growth of lucky neurons along another pattern, over that along p_1", "<", 1.0, _shared_weights
)
def growth_of_neurons(system: System, protocol: Protocol, measured: Any) -> Finding:
    """Lemma 2, claim 1: lucky neurons along p_1 and along the others, and other neurons.

    Parameters
    ----------
    system : System
    protocol : Protocol
    measured : callable
        As of `dynamics.experiments.measurement.measures`.
    """
    cases, series = _lucky_cases(system, protocol, (0,)), []
    rows: list[dict[str, Any]] = []
    for case in cases:
        frame, end = case.problem.instance.start.p, case.last
        first, last = case.parts(0)[0], case.parts(end)[0]
        lucky, rest = case.lucky(0)[0], ~np.any([*case.lucky(0), *case.lucky(end)], axis=0)
        grown = np.array([
            ((case.parts(record)[0] - first) @ frame)[lucky].mean(axis=0)
            for record in range(end + 1)
        ])  # fmt: skip
        along, others = float(grown[-1, 0]), np.abs(grown[-1, 1:])
        lengths = [np.linalg.norm(part, axis=1) for part in (first, last)]
        rows.append({
            "case": case.name, "lucky": int(lucky.sum()), "along_p1": along,
            "ratio": float(others.max()) / abs(along) if along else float("inf"),
            "largest_on_another": float((last @ frame)[lucky, 1:].max()),
            "others_length": float(lengths[1][rest].mean() / lengths[0][rest].mean()),
            "lucky_length": float(lengths[1][lucky].mean() / lengths[0][lucky].mean()),
        })  # fmt: skip
        next_ = grown[:, 1 + int(np.argmax(others))]
        series += [case.series("$p_1$", grown[:, 0]), case.series("next", next_)]
    holds = all(
        row["along_p1"] > 0 and row["ratio"] < 1 and row["others_length"] < row["lucky_length"]
        for row in rows
    )
    reason = (
        f"lucky neurons grow by {listed(column(rows, 'along_p1'))} along p_1 and by at most "
        f"{listed(column(rows, 'ratio'), 2)} of that along another pattern; other neurons "
        f"keep their length ({listed(column(rows, 'others_length'))} of it); literally "
        f"W_O p <= xi = {cases[0].parameters.xi:g} does not hold: up to "
        f"{listed(column(rows, 'largest_on_another'), 2)}"
    )
    y_label = "mean growth of lucky neurons\nalong a pattern"
    chart = over_steps(y_label, series)
    return conclude(measured(max(column(rows, "ratio")), chart), reason, holds, table=rows)


@measures("growth of |q_1|^2 in the last doubling of time, over that in the one before", "==", 1.0)
def growth_of_keys(system: System, protocol: Protocol, measured: Any) -> Finding:
    """Lemma 2, claim 2: |q_1|^2 over time, its law and its direction.

    Parameters
    ----------
    system : System
    protocol : Protocol
    measured : callable
        As of `dynamics.experiments.measurement.measures`.
    """
    series: list[Series] = []
    rows: list[dict[str, Any]] = []
    for name, time, squares, cosine in _keys(system, protocol):
        quarter, half = np.searchsorted(time, time[-1] * np.array([0.25, 0.5]))
        before, after = squares[half] - squares[quarter], squares[-1] - squares[half]
        ratio = float(after / before) if before > 0 else float("nan")
        falls = float(np.maximum(-np.diff(squares), 0).max(initial=0.0) / np.ptp(squares))
        rows.append({"case": name, "ratio": ratio, "cosine": cosine, "largest_fall": falls})
        series.append(Series(name, time[1:], squares[1:]))
    decisive = rows[:-1] if len(rows) > 1 else rows
    holds = all(
        1 / SAME <= r["ratio"] <= SAME and r["cosine"] >= TURNED and r["largest_fall"] <= FALLS
        for r in decisive
    )
    far = max(decisive, key=lambda r: abs(np.log(r["ratio"])) if r["ratio"] > 0 else np.inf)
    reason = "; ".join(
        f"{r['case']}: growth times {r['ratio']:.3g} (1 is log t), direction of q_1 at the cosine "
        f"{r['cosine']:.3g}" for r in rows
    )  # fmt: skip
    if protocol.parameters is None:
        reason += (
            "; the hinge ends training before decades of time, and the last case is not the paper's"
        )
    chart = Chart(TIME, r"$\|q_1\|^2$", series)
    return conclude(measured(far["ratio"], chart), reason, holds, table=rows)


def _keys(system: System, protocol: Protocol) -> list[tuple[str, FloatArray, FloatArray, float]]:
    """Name, time, |q_1|^2, and the cosine of q_1 with its start, of every run."""
    law, results = protocol.parameters, []
    if law is not None and law.loss == "linear":
        laws = [law]
    else:
        for case in at_both_margins(system, protocol):
            stop = slice(0, case.last + 1)
            cosine = _cosine(case.parts(0)[2], case.parts(case.last)[2])
            squares = case.run["q1_norm2"][stop]
            results.append((f"hinge, {case.name}", case.run.time[stop], squares, cosine))
        laws = []
    if law is None:
        laws = [system.Parameters(loss="linear"), system.Parameters(loss="linear", frozen="values")]
    for each in laws:
        eta, steps = LINEAR[each.frozen]
        at = np.unique(np.rint(np.geomspace(1, steps, RECORDS)).astype(np.int64))
        run = descend(system.ReducedPopulation(each, seed=protocol.seed), eta, steps, at)
        name = "linear" + (", W_V frozen" if each.frozen == "values" else "")
        results.append((name, run.time, run["q1_norm2"], _cosine(run["K"][0], run["K"][-1])))
    return results


def _cosine(first: FloatArray, last: FloatArray) -> float:
    """Of the first columns."""
    one, two = first[:, 0], last[:, 0]
    return float(one @ two / (np.linalg.norm(one) * np.linalg.norm(two)))


@measures("change of another value, over that of V_1 or V_2, the lesser", "<", 1.0, _shared_weights)
def growth_of_values(system: System, protocol: Protocol, measured: Any) -> Finding:
    """Lemma 2, claim 3: values of the discriminative patterns, and the others'.

    Parameters
    ----------
    system : System
    protocol : Protocol
    measured : callable
        As of `dynamics.experiments.measurement.measures`.
    """
    rows, series, holds = [], [], True
    for case in _lucky_cases(system, protocol):
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
        rows.append({
            "case": case.name, "length": lengths[-1].tolist(), "start": lengths[0].tolist(),
            "ratio": ratio, "cosines": cosines,
        })  # fmt: skip
        series.append(case.series("$V_1$", lengths[:, 0]))
        series.append(case.series("others", lengths[:, 2:].max(axis=1)))
    reason = (
        f"|V_1| grows to {listed(length[0] for length in column(rows, 'length'))}, those of other "
        f"patterns to at most {listed(max(length[2:]) for length in column(rows, 'length'))}; "
        f"growth at the cosine {listed(map(min, column(rows, 'cosines')))} with the mean lucky "
        "neuron"
    )
    chart = Chart("step", "length of a value", series, x_scale="linear")
    return conclude(measured(max(column(rows, "ratio")), chart), reason, holds, table=rows)


def lemma_3(system: System, protocol: Protocol) -> Finding:
    """Neurons within the angle sigma of p_1 and p_2 at the start.

    Parameters
    ----------
    system : System
    protocol : Protocol
    """
    law = protocol.parameters or system.Parameters()
    epsilon = least_epsilon(law.M, law.m, SAMPLES)
    promised = law.m * claimed_share(law.M, law.sigma, epsilon)
    quantity = "fewer of |W(0)|, |U(0)| by Definition 2"
    if promised <= 0:
        reason = f"epsilon_m is {epsilon:.3g} at least, with N = {SAMPLES}: nothing is promised"
        return undecided(quantity, promised, reason, parameters=asdict(law))
    start = system.ReducedPopulation(law, seed=protocol.seed).instance.start
    lengths = np.linalg.norm(start.W_O, axis=1)
    if not lengths.all():
        reason = "neurons of length zero have no direction"
        return undecided(quantity, promised, reason, parameters=asdict(law))
    cosines = start.W_O @ start.p[:, :2] / lengths[:, None]
    angles = np.arccos(np.clip(cosines, -1, 1))
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
    caps = [cap_share(law.d, x) for x in sigmas]
    series = [
        Series("measured", np.sort(angles[:, 0]), np.arange(1, law.m + 1) / law.m),
        Series(f"sphere in {law.d} dimensions", sigmas, caps),
        Series("promised for that sigma", sigmas, promises),
    ]
    y_label = "share of neurons within the angle of $p_1$"
    chart = Chart("angle, in radians", y_label, series, {}, "linear", "linear")
    measurement = Measurement(quantity, float(counts.min()), ">=", promised, chart)
    return conclude(measurement, reason, parameters=asdict(law))


@measures(
    "most neurons of W(0) and U(0) that are not lucky at a later step", "<=", 0.0, _shared_weights
)
def lemma_4(system: System, protocol: Protocol, measured: Any) -> Finding:
    """Neurons that are lucky at the start and not at a later step.

    Parameters
    ----------
    system : System
    protocol : Protocol
    measured : callable
        As of `dynamics.experiments.measurement.measures`.
    """
    cases, rows, series = _lucky_cases(system, protocol), [], []
    if protocol.thorough and protocol.parameters is None:
        law = proofs_margin(replace(cases[0].parameters, data="fixed_disc"))
        cases += [trained(system, law, protocol.seed + k) for k in (1, 2, 3)]
    for case in cases:
        sets = np.array([case.lucky(record) for record in range(case.last + 1)])
        sizes = sets.sum(axis=2)
        rows.append({
            "case": case.name, "lost": int((sets[0] & ~sets).sum(axis=2).max()),
            "start": sizes[0].tolist(), "end": sizes[-1].tolist(),
        })  # fmt: skip
        series.append(case.series(r"$|\mathcal{W}|$", sizes[:, 0]))
    reason = "by their gates (Definition 2 has none): " + "; ".join(
        f"|W|, |U| from {listed(r['start'], 4)} to {listed(r['end'], 4)}, {r['lost']} lost "
        f"({r['case']})" for r in rows
    )  # fmt: skip
    chart = over_steps("lucky neurons", series)
    return conclude(measured(float(max(column(rows, "lost"))), chart), reason, table=rows)
