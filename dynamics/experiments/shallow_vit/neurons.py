r"""Lemmas 2, 3 and 4: lucky neurons, and what grows along them.

By Definition 2 lucky neurons are those within the angle sigma of p_1; there are none in ten
dimensions (Lemma 3). What the other lemmas say of them is measured on the neurons that have their
part: a > 0 and open to query 1 of the positive sample (W), a < 0 and open to query 2 of the
negative one (U).
"""

from __future__ import annotations

from dataclasses import replace
from math import pi
from typing import TYPE_CHECKING, Any

import numpy as np

from dynamics.experiments.criteria import listed
from dynamics.experiments.curves import curve
from dynamics.experiments.shallow_vit.runs import (
    SAMPLES,
    Case,
    both,
    plot,
    proofs_margin,
    sizes_of,
    trained,
    undecided,
)
from dynamics.experiments.verify import Finding, Protocol
from dynamics.problem import FloatArray
from dynamics.training.gradient_descent import descend
from theory.systems.shallow_vit.lemmas import cap_share, claimed_share, least_epsilon

if TYPE_CHECKING:
    from dynamics.registry import System

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


def _no_sides(protocol: Protocol, quantity: str, bound: float) -> Finding | None:
    given = protocol.parameters
    if given is None or given.output_weights == "shared":
        return None
    return undecided(quantity, bound, "neurons have a sign for every position", given)


def _no_lucky(
    cases: list[Case], quantity: str, bound: float, sides: tuple[int, ...] = (0, 1)
) -> Finding | None:
    """Undecided where a set that the claim is about is empty at the start."""
    for case in cases:
        sizes = [int(found.sum()) for found in case.lucky(0)]
        if any(sizes[side] == 0 for side in sides):
            reason = f"no lucky neurons: |W| = {sizes[0]}, |U| = {sizes[1]} of {case.parameters.m}"
            return undecided(quantity, bound, reason, case.parameters)
    return None


def _curves(case: Case, series: list[tuple[str, FloatArray]]) -> list[dict[str, Any]]:
    steps = np.arange(case.last + 1)
    return [curve(f"{label}, {case.shown}", steps, values) for label, values in series]


def growth_of_neurons(system: System, protocol: Protocol) -> Finding:
    """Lemma 2, claim 1: lucky neurons along p_1 and along the others, and other neurons."""
    quantity = "growth of lucky neurons along another pattern, over that along p_1"
    refused = _no_sides(protocol, quantity, 1.0)
    refused = refused or _no_lucky(both(system, protocol), quantity, 1.0, (0,))
    if refused is not None:
        return refused
    curves, holds = [], True
    rows: list[dict[str, Any]] = []
    for case in both(system, protocol):
        frame, end = case.problem.instance.start.p, case.last
        first, last = case.parts(0)[0], case.parts(end)[0]
        lucky = case.lucky(0)[0]
        rest = ~np.any([*case.lucky(0), *case.lucky(end)], axis=0)
        grown = ((last - first) @ frame)[lucky]
        lengths = [np.linalg.norm(part, axis=1) for part in (first, last)]
        along = float(grown[:, 0].mean())
        others = float(np.abs(grown[:, 1:].mean(axis=0)).max())
        row: dict[str, Any] = {
            "case": case.shown, "lucky": int(lucky.sum()), "along_p1": along,
            "ratio": others / abs(along) if along else float("inf"),
            "largest_on_another": float((last @ frame)[lucky, 1:].max()),
            "others_length": float(lengths[1][rest].mean() / lengths[0][rest].mean()),
            "lucky_length": float(lengths[1][lucky].mean() / lengths[0][lucky].mean()),
        }  # fmt: skip
        holds &= along > 0 and row["ratio"] < 1 and row["others_length"] < row["lucky_length"]
        rows.append(row)
        seen = [((case.parts(r)[0] - first) @ frame)[lucky].mean(axis=0) for r in range(end + 1)]
        worst = 1 + int(np.argmax(np.abs(seen[-1][1:])))
        curves += _curves(
            case, [(r"$p_1$", np.array(seen)[:, 0]), ("next", np.array(seen)[:, worst])]
        )
    xi = both(system, protocol)[0].parameters.xi
    ratio = max(row["ratio"] for row in rows)
    reason = (
        f"lucky neurons grow by {listed([r['along_p1'] for r in rows])} along p_1 and by at most "
        f"{listed([r['ratio'] for r in rows], 2)} of that along another pattern; other neurons "
        f"keep their length ({listed([r['others_length'] for r in rows])} of it); literally "
        f"W_O p <= xi = {xi:g} does not hold: up to "
        f"{listed([r['largest_on_another'] for r in rows], 2)}"
    )
    drawn = plot("step", "mean growth of lucky neurons\nalong a pattern", curves)
    return Finding(bool(holds), quantity, ratio, 1.0, reason, {"table": rows, "plot": drawn})


def growth_of_keys(system: System, protocol: Protocol) -> Finding:
    """Lemma 2, claim 2: |q_1|^2 over time, its law and its direction."""
    quantity = "growth of |q_1|^2 in the last doubling of time, over that in the one before"
    curves: list[Any] = []
    rows: list[dict[str, Any]] = []
    for label, time, squares, turn in _keys(system, protocol):
        places = np.searchsorted(time, time[-1] * np.array([0.25, 0.5]))
        before, after = squares[places[1]] - squares[places[0]], squares[-1] - squares[places[1]]
        ratio = float(after / before) if before > 0 else float("nan")
        falls = float(np.maximum(-np.diff(squares), 0).max(initial=0.0) / np.ptp(squares))
        rows.append({"case": label, "ratio": ratio, "cosine": turn, "largest_fall": falls})
        curves.append(curve(label, time[1:], squares[1:]))
    decisive = rows[:-1] if len(rows) > 1 else rows
    held = [
        1 / SAME <= r["ratio"] <= SAME and r["cosine"] >= TURNED and r["largest_fall"] <= FALLS
        for r in decisive
    ]
    far = max(decisive, key=lambda r: abs(np.log(r["ratio"])) if r["ratio"] > 0 else np.inf)
    reason = "; ".join(
        f"{r['case']}: growth times {r['ratio']:.3g} (1 is log t), direction of q_1 at the cosine "
        f"{r['cosine']:.3g}" for r in rows
    )  # fmt: skip
    if protocol.parameters is None:
        reason += (
            "; the hinge ends training before decades of time, and the last case is not the paper's"
        )
    drawn = plot(r"time $\tau = \eta \times$ steps", r"$\|q_1\|^2$", curves, None, ("log", "log"))
    return Finding(all(held), quantity, far["ratio"], 1.0, reason, {"table": rows, "plot": drawn})


def _keys(system: System, protocol: Protocol) -> list[tuple[str, FloatArray, FloatArray, float]]:
    """Name, time, |q_1|^2, and the cosine of q_1 with its start, of every run."""
    given = protocol.parameters
    laws = [given] if given is not None and given.loss == "linear" else []
    found = []
    if not laws:
        for case in both(system, protocol):
            stop = slice(0, case.last + 1)
            found.append((
                f"hinge, {case.shown}", case.run.time[stop], case.run["q1_norm2"][stop],
                _cosine(case.parts(0)[2], case.parts(case.last)[2]),
            ))  # fmt: skip
    if given is None:
        laws = [system.Parameters(loss="linear"), system.Parameters(loss="linear", frozen="values")]
    for law in laws:
        eta, steps = LINEAR[law.frozen]
        at = np.unique(np.rint(np.geomspace(1, steps, RECORDS)).astype(np.int64))
        run = descend(system.ReducedPopulation(law, seed=protocol.seed), eta, steps, at)
        name = "linear" + (", W_V frozen" if law.frozen == "values" else "")
        found.append((name, run.time, run["q1_norm2"], _cosine(run["K"][0], run["K"][-1])))
    return found


def _cosine(first: FloatArray, last: FloatArray) -> float:
    """Of the first columns."""
    one, two = first[:, 0], last[:, 0]
    return float(one @ two / (np.linalg.norm(one) * np.linalg.norm(two)))


def growth_of_values(system: System, protocol: Protocol) -> Finding:
    """Lemma 2, claim 3: values of the discriminative patterns, and the others'."""
    quantity = "change of another value, over that of V_1 or V_2, the lesser"
    refused = _no_sides(protocol, quantity, 1.0)
    refused = refused or _no_lucky(both(system, protocol), quantity, 1.0)
    if refused is not None:
        return refused
    curves, holds = [], True
    rows: list[dict[str, Any]] = []
    for case in both(system, protocol):
        end = case.last
        values, hidden = [case.parts(r)[1] for r in (0, end)], case.parts(end)[0]
        moved = values[1] - values[0]
        change, length = np.linalg.norm(moved, axis=0), np.linalg.norm(values, axis=1)
        lucky = [hidden[set_].mean(axis=0) for set_ in case.lucky(0)]
        with np.errstate(divide="ignore", invalid="ignore"):
            cosines = [
                float(moved[:, j] @ lucky[j] / (change[j] * np.linalg.norm(lucky[j])))
                for j in (0, 1)
            ]
            ratio = float(change[2:].max() / change[:2].min())
        grows = bool((length[1, :2] > length[0, :2]).all())
        holds &= grows and ratio < 1 and min(cosines) >= ALONG
        rows.append({
            "case": case.shown, "length": length[1].tolist(), "start": length[0].tolist(),
            "ratio": ratio, "cosines": cosines,
        })  # fmt: skip
        over = np.array([np.linalg.norm(case.parts(r)[1], axis=0) for r in range(end + 1)])
        curves += _curves(case, [("$V_1$", over[:, 0]), ("others", over[:, 2:].max(axis=1))])
    ratio = max(row["ratio"] for row in rows)
    reason = (
        f"|V_1| grows to {listed([row['length'][0] for row in rows])}, those of other patterns to "
        f"at most {listed([max(row['length'][2:]) for row in rows])}; growth at the cosine "
        f"{listed([min(row['cosines']) for row in rows])} with the mean lucky neuron"
    )
    drawn = plot("step", "length of a value", curves, None, ("linear", "log"))
    return Finding(bool(holds), quantity, ratio, 1.0, reason, {"table": rows, "plot": drawn})


def lemma_3(system: System, protocol: Protocol) -> Finding:
    """Neurons within the angle sigma of p_1 and p_2 at the start."""
    law = protocol.parameters or system.Parameters()
    epsilon = least_epsilon(law.M, law.m, SAMPLES)
    promised = law.m * claimed_share(law.M, law.sigma, epsilon)
    quantity = "fewer of |W(0)|, |U(0)| by Definition 2"
    if promised <= 0:
        reason = f"epsilon_m is {epsilon:.3g} at least, with N = {SAMPLES}: nothing is promised"
        return undecided(quantity, promised, reason, law)
    start = system.ReducedPopulation(law, seed=protocol.seed).instance.start
    lengths = np.linalg.norm(start.W_O, axis=1)
    if not lengths.all():
        return undecided(quantity, promised, "neurons of length zero have no direction", law)
    cosines = start.W_O @ start.p[:, :2] / lengths[:, None]
    angles = np.arccos(np.clip(cosines, -1, 1))
    counts = (angles <= law.sigma).sum(axis=0)
    expected = law.m * cap_share(law.d, law.sigma)
    holds = bool(counts.min() >= promised)
    reason = (
        f"{counts[0]} and {counts[1]} of {law.m} neurons, {expected:.2g} expected in {law.d} "
        f"dimensions; the nearest is at the angle {angles.min():.3g}, sigma is {law.sigma:g}; the "
        f"promise, {law.m}/{law.M} (1 - epsilon_m - sigma M / pi) with epsilon_m = {epsilon:.3g}, "
        f"counts angles in a plane"
    )
    sweep = np.linspace(0.02, min(pi / 2, pi / law.M), 40)
    drawn = plot(
        "angle, in radians", "share of neurons within the angle of $p_1$",
        [
            curve("measured", np.sort(angles[:, 0]), np.arange(1, law.m + 1) / law.m),
            curve(f"sphere in {law.d} dimensions", sweep, [cap_share(law.d, x) for x in sweep]),
            curve(
                "promised for that sigma", sweep,
                [max(0.0, claimed_share(law.M, x, epsilon)) for x in sweep],
            ),
        ],
    )  # fmt: skip
    evidence = {"parameters": sizes_of(law), "plot": drawn}
    return Finding(holds, quantity, float(counts.min()), promised, reason, evidence)


def lemma_4(system: System, protocol: Protocol) -> Finding:
    """Neurons that are lucky at the start and not at a later step."""
    quantity = "most neurons of W(0) and U(0) that are not lucky at a later step"
    refused = _no_sides(protocol, quantity, 0.0)
    refused = refused or _no_lucky(both(system, protocol), quantity, 0.0)
    if refused is not None:
        return refused
    curves: list[Any] = []
    rows: list[dict[str, Any]] = []
    cases = both(system, protocol)
    if protocol.thorough and protocol.parameters is None:
        law = replace(cases[0].parameters, data="fixed_disc")
        seeds = range(protocol.seed + 1, protocol.seed + 4)
        cases += [trained(system, proofs_margin(law), seed) for seed in seeds]
    for case in cases:
        first = case.lucky(0)
        sets = [case.lucky(record) for record in range(case.last + 1)]
        lost = max(int((f & ~s).sum()) for found in sets for f, s in zip(first, found, strict=True))
        sizes = np.array([[int(s.sum()) for s in found] for found in sets])
        rows.append({
            "case": case.shown, "lost": lost, "start": sizes[0].tolist(), "end": sizes[-1].tolist(),
        })  # fmt: skip
        curves += _curves(case, [(r"$|\mathcal{W}|$", sizes[:, 0])])
    lost = max(row["lost"] for row in rows)
    reason = (
        "by their gates (Definition 2 has none): "
        + "; ".join(
            f"|W|, |U| from {listed(r['start'], 4)} to {listed(r['end'], 4)}, {r['lost']} lost "
            f"({r['case']})" for r in rows
        )
    )  # fmt: skip
    drawn = plot("step", "lucky neurons", curves)
    return Finding(lost == 0, quantity, float(lost), 0.0, reason, {"table": rows, "plot": drawn})
