r"""Theorems 5.1 and 5.2: what transfers with attention learned, and what cannot without.

Theorem 5.1 is about attention after pre-training, here the flow of the reduced population problem
for a time that is a power of D, frozen. Errors are laid on the scale from the irreducible error (0)
to the error of sign(Z), which needs no attention (1).

Theorem 5.2 speaks of every algorithm. An exact bound decides where it holds
(`theory.systems.positional_attention.linear_rules`), one algorithm where it does not: the leading
direction of the patches, and sign(Z).
"""

from __future__ import annotations

from collections.abc import Iterable
from math import ceil, log2
from typing import TYPE_CHECKING, Any

import numpy as np

from dynamics.experiments.curves import exponent as exponent_of
from dynamics.experiments.positional_attention import frozen_attention
from dynamics.experiments.positional_attention.transfer import (
    Tuning,
    downstream,
    fine_tune,
    medians,
)
from dynamics.experiments.positional_attention.unknown_partition import (
    ERROR,
    leading_needed,
    linear_ladder,
    one_sample,
    scratch_rows,
)
from dynamics.experiments.verify import Finding, Protocol
from dynamics.training.flow import flow
from theory.systems.positional_attention.linear_rules import least_samples, sign_rule_error
from theory.systems.positional_attention.model import bayes_error

if TYPE_CHECKING:
    from dynamics.registry import System

PRE_TRAINING = 100.0
"""Time of pre-training over D^2."""
SHARE = 0.25
"""Of the way from the irreducible error to that of sign(Z): what a transfer must stay below."""
GAP = 5e-3
"""Between these two errors; where it is less, attention is hardly needed."""
LARGEST = 1 << 16
"""D d beyond which fine-tuning takes too long."""
LARGEST_LEADING = 1 << 20
"""D d beyond which the leading direction is not computed."""
LARGEST_BOUND = 1 << 13
"""D beyond which the exact bound takes too long."""
GROWTH = 0.5
"""Exponent in D that stands for a power of D."""

SIZES = (16, 32, 64)
"""D along which Theorem 5.1 is measured, at C = 4 and q(D - C) = 8."""
SAMPLES = (1, 2, 4, 8, 16)
LINEAR_SIZES = (32, 64, 128, 256)
"""D along which uniform attention is measured, at C = 4 and q(D - C) = 4."""
BOUND_SIZES = (64, 128, 256, 512, 1024)
GROWING = ((64, 4), (256, 8), (1024, 16))
"""(D, C) along which sign(Z) errs less and less at q(D - C) = 2C, C a power of log D."""


def theorem_5_1(system: System, protocol: Protocol) -> Finding:
    """Error after fine-tuning on log2 D samples under the attention that pre-training learned.

    True where it stays near the irreducible error at every size. False where it does not although
    half of the attention is inside the own sets, or because the pre-trained A prefers other sets;
    None where pre-training has only begun, or where even the true sets do not transfer.
    """
    chosen = protocol.parameters
    if chosen is not None and chosen.D * chosen.d > LARGEST:
        reason = f"fine-tuning many seeds at D={chosen.D}, d={chosen.d} takes too long"
        return _undecided("share of the way to the error of sign(Z)", SHARE, reason, chosen)
    sizes = (*SIZES, 128) if protocol.thorough else SIZES
    laws = [chosen] if chosen else [system.Parameters(D=D, C=4, q=8 / (D - 4)) for D in sizes]
    seeds = 24 if protocol.thorough else 12
    rows = [transfer_row(system, law, seeds, protocol.seed) for law in laws]
    verdicts = [_transfers(row) for row in rows]
    holds = False if False in verdicts else None if None in verdicts else True
    decisive = [row for row, verdict in zip(rows, verdicts, strict=True) if verdict is holds]
    worst = max(decisive, key=lambda row: row["share"])
    last = rows[-1]
    errors = _listed(f"{row['error']:.3g} at D={row['D']}" for row in rows)
    reason = (
        f"with A of the population flow at time {PRE_TRAINING:g} D^2, frozen, log2 D downstream "
        f"samples leave a median error of {errors} (sign(Z): {last['linear_error']:.3f}); "
        f"{_explained(worst, holds)}. "
    )
    begun = [row for row in rows if row["share_early"] > SHARE and _early(row)["association"]]
    if holds and begun:
        early = _early(begun[-1])
        reason += (
            "It is attention mass that transfers, not Top_C: at a hundredth of that time, "
            f"D={begun[-1]['D']}, gamma > rho already, but G/D = {early['inside']:.2f} and the "
            f"error is {early['errors'][-1]:.3g}. "
        )
    reason += f"Medians over {seeds} seeds: with one or two samples a run sometimes learns -w*"
    evidence: dict[str, Any] = {"table": rows, "plot": _transfer_plot(last)}
    if chosen is not None:
        evidence["parameters"] = _size(chosen)
    elif protocol.thorough:
        evidence["trained_empirically"] = empirical_rows(system, seeds, protocol.seed)
    return Finding(
        holds=holds,
        quantity="largest share of the way from the irreducible error to that of sign(Z)",
        measured=worst["share"],
        bound=SHARE,
        reason=reason,
        evidence=evidence,
    )


def transfer_row(system: System, parameters: Any, seeds: int, seed: int) -> dict[str, Any]:
    """Median errors at one size for attention to the true sets, learned, learned early, uniform.

    Returns
    -------
    dict
        ``error`` and ``share`` are those of learned attention with ceil(log2 D) samples;
        ``attention`` holds for each kind G/D (``inside``), whether gamma > rho
        (``association``), and ``errors`` along ``samples``.
    """
    D, C, q = parameters.D, parameters.C, parameters.q
    few = ceil(log2(D))
    counts = sorted({*SAMPLES, few})
    time = PRE_TRAINING * D**2
    run = flow(system.ReducedPopulation(parameters), time, record=[0.0, time / 100, time])
    early, late = run.states[1], run.final_state
    kinds = {
        "true sets": (frozen_attention.block(parameters), 1.0),
        "learned": (frozen_attention.of_orbits(parameters, late), float(late[1] > late[2])),
        "learned, early": (
            frozen_attention.of_orbits(parameters, early),
            float(early[1] > early[2]),
        ),
        "uniform": (frozen_attention.uniform(parameters), 0.0),
    }
    table: dict[str, dict[str, Any]] = {}
    for kind, (weights, association) in kinds.items():
        task = downstream(parameters, weights, seed)
        table[kind] = {
            "inside": frozen_attention.inside(parameters, weights),
            "association": association,
            "errors": medians(task, counts, seeds),
        }
    linear, least = float(sign_rule_error(D, C, q).error), bayes_error(D // C, C, q)
    at = counts.index(few)
    gap = linear - least
    shares = {k: (v["errors"][at] - least) / gap if gap > 0 else 1.0 for k, v in table.items()}
    return {
        "D": D, "C": C, "q": q, "time": time, "few": few, "samples": counts,
        "outcome": str(run.outcome), "linear_error": linear, "bayes_error": least,
        "error": table["learned"]["errors"][at], "share": shares["learned"],
        "share_true_sets": shares["true sets"], "share_early": shares["learned, early"],
        "attention": table,
    }  # fmt: skip


def _transfers(row: dict[str, Any]) -> bool | None:
    learned = row["attention"]["learned"]
    if row["linear_error"] - row["bayes_error"] < GAP:
        return None
    if row["share"] <= SHARE:
        return True
    if not learned["association"]:
        return False
    return False if row["share_true_sets"] <= SHARE and learned["inside"] >= 0.5 else None


def _early(row: dict[str, Any]) -> dict[str, Any]:
    found: dict[str, Any] = row["attention"]["learned, early"]
    return found


def _explained(row: dict[str, Any], holds: bool | None) -> str:
    learned = row["attention"]["learned"]
    where = f"at D={row['D']}"
    if row["linear_error"] - row["bayes_error"] < GAP:
        return f"{where} sign(Z) is as good as the best rule, so there is nothing to decide"
    if holds:
        return f"at most {max(row['share'], 0.0):.2f} of the way from the irreducible error to it"
    if not learned["association"]:
        return f"{where} pre-training moved attention to other sets, G/D = {learned['inside']:.2f}"
    if row["share_true_sets"] > SHARE:
        return f"{where} even the true sets stay {row['share_true_sets']:.2f} of the way to it"
    return (
        f"{where} that is {row['share']:.2f} of the way to it, with G/D = {learned['inside']:.2f}"
    )


def _transfer_plot(row: dict[str, Any]) -> dict[str, Any]:
    names = {
        "true sets": "true sets",
        "learned": f"learned, time {row['time']:.3g}",
        "learned, early": f"learned, time {row['time'] / 100:.3g}",
        "uniform": "uniform",
    }
    curves = [
        {"label": label, "x": row["samples"], "y": row["attention"][kind]["errors"]}
        for kind, label in names.items()
    ]
    lines = [
        {"label": "error of sign(Z)", "y": row["linear_error"]},
        {"label": "irreducible error", "y": row["bayes_error"]},
    ]
    return {
        "x_label": f"downstream samples (D = {row['D']})", "y_label": "median test error",
        "x_scale": "log", "y_scale": "log", "curves": curves, "lines": lines,
    }  # fmt: skip


def empirical_rows(system: System, seeds: int, seed: int) -> list[dict[str, Any]]:
    """Attention of full empirical runs, D = 16 and q(D - C) = 4: early and late."""
    parameters = system.Parameters(D=16, C=4, q=4 / 12)
    rows = []
    for time in (240.0, 1440.0):
        weights, run = frozen_attention.trained(
            system, parameters, 4000, time, eta=0.04, seed=seed, dtype="float32"
        )
        task = downstream(parameters, weights, seed)
        rows.append({
            "D": 16, "C": 4, "q": parameters.q, "samples": 4000, "time": time,
            "association": float(run["patch_association"][-1]),
            "inside": frozen_attention.inside(parameters, weights),
            "downstream_samples": list(SAMPLES), "errors": medians(task, SAMPLES, seeds),
        })  # fmt: skip
    return rows


def theorem_5_2(system: System, protocol: Protocol) -> Finding:
    """Samples that are needed without the sets.

    By default on the theorem as it is worded, with no condition that relates q(D - C) to C^2. Given
    parameters, along D at their C and q(D - C): by the exact bound where sign(Z) errs more than
    0.05, by the leading direction of the patches where it errs less.
    """
    if protocol.parameters is not None:
        return _without_sets_at(system, protocol)
    seeds = 48 if protocol.thorough else 24
    growing = one_sample(system, GROWING, protocol.seed)
    sizes = (*LINEAR_SIZES, 512) if protocol.thorough else LINEAR_SIZES
    measured = linear_ladder(system, sizes, seeds, protocol.seed)
    bounds = [least_samples(D, 4, 16 / (D - 4), ERROR) for D in BOUND_SIZES]
    last = growing[-1]["error"]
    found = _listed(f"{row['error']:.2g} at D={row['D']}, C={row['C']}" for row in growing)
    needed = _listed("more than 32" if n is None else f"{n:.2g}" for n in measured["uniform"])
    reason = (
        f"{'' if last > ERROR else 'as worded it fails: '}the leading direction of all patches of "
        f"one downstream sample, read by sign(Z), errs with {found} (medians, q(D-C) = 2C). Where "
        "sign(Z) keeps its error, no algorithm without the sets does better: at C=4, "
        f"q(D-C) = 16 an error of {ERROR:g} takes at least {bounds[0]} samples at "
        f"D={BOUND_SIZES[0]} and {bounds[-1]} at D={BOUND_SIZES[-1]}, exactly, like D. "
        f"Gradient descent under uniform attention at q(D-C) = 4 takes {needed} samples at "
        f"D={_listed(sizes)}, D^{measured['exponent']:.2f}, and with the true sets "
        f"{_listed(measured['true sets'])}"
    )
    kinds = ("uniform", "leading direction", "true sets")
    curves = [
        _curve("any algorithm at least, q(D - C) = 16", BOUND_SIZES, bounds),
        *(_curve(f"{kind}, q(D - C) = 4", sizes, measured[kind]) for kind in kinds),
    ]
    evidence: dict[str, Any] = {
        "one_sample": growing,
        "samples_needed": measured,
        "least_samples": {"D": list(BOUND_SIZES), "samples": bounds, "error": ERROR},
        "plot": _needed_plot(curves),
    }
    if protocol.thorough:
        evidence["from_scratch"] = scratch_rows(system, protocol.seed)
    return Finding(
        holds=bool(last > ERROR),
        quantity="median test error without the sets after one downstream sample, D=1024",
        measured=last,
        bound=ERROR,
        reason=reason,
        evidence=evidence,
    )


def _without_sets_at(system: System, protocol: Protocol) -> Finding:
    """The verdict at the C and q(D - C) of given parameters, from their D on."""
    chosen = protocol.parameters
    D, C, q = chosen.D, chosen.C, chosen.q
    linear = float(sign_rule_error(D, C, q).error)
    sizes = [k * D for k in (1, 2, 4, 8)]
    laws = [(size, C, q * (D - C) / (size - C)) for size in sizes]
    where = f"D={D}, C={C}, q={q:g}"
    quantity = f"exponent in D of the samples needed without the sets for an error of {ERROR:g}"
    if sizes[-1] > LARGEST_BOUND:
        reason = f"the exact bound up to D={sizes[-1]} takes too long"
        return _undecided(quantity, GROWTH, reason, chosen)
    evidence: dict[str, Any] = {"parameters": _size(chosen), "linear_error": linear}
    bounds = [least_samples(*law, ERROR) for law in laws]
    if min(bounds) >= 1:
        exponent = exponent_of(sizes, bounds)
        found, kept = "", True
        if D * chosen.d <= LARGEST:
            many = 4096 if protocol.thorough else 1024
            measured = fine_tune(chosen, frozen_attention.uniform(chosen), many, 3, protocol.seed)
            slack = 3 * np.sqrt(linear * (1 - linear) / Tuning().test_samples)
            kept = bool(measured.min() >= linear - slack)
            evidence |= {"uniform": measured.tolist(), "uniform_samples": many}
            found = (
                f"; gradient descent under uniform attention on {many} samples errs with "
                f"{np.median(measured):.3f}"
            )
        holds = False if not kept else True if exponent >= GROWTH else None
        undecided = ": too few to tell how they grow" if holds is None else ""
        reason = (
            f"at {where} sign(Z) errs with {linear:.3f} and is the best rule for unknown sets; for "
            f"an error of {ERROR:g} any algorithm needs at least {_listed(bounds)} samples at "
            f"D={_listed(sizes)} with the same C and q(D-C), D^{exponent:.2f}{undecided}{found}"
        )
        evidence["least_samples"] = {"D": sizes, "samples": bounds, "error": ERROR}
        curves = [_curve("any algorithm at least", sizes, bounds)]
    else:
        moved = [_moved(system, chosen, law) for law in laws[:3]]
        moved = [law for law in moved if law.D * max(law.D, law.d) <= LARGEST_LEADING]
        sizes = [law.D for law in moved]
        needed = [leading_needed(law, protocol.seed) for law in moved]
        known = [count for count in needed if count is not None]
        exponent = exponent_of(sizes, known) if len(known) == len(sizes) > 1 else float("nan")
        holds = False if exponent < GROWTH else None
        reason = (
            f"at {where} sign(Z) itself errs with only {linear:.2g}, so only the feature is to be "
            f"learned: the leading direction of all patches reaches an error of {ERROR:g} with "
            f"{_listed(known)} downstream samples at D={_listed(sizes)}, without the sets (medians)"
        )
        evidence["leading_direction"] = {"D": sizes, "samples": needed, "error": ERROR}
        curves = [_curve("leading direction", sizes, needed)]
    return Finding(
        holds=holds,
        quantity=quantity,
        measured=exponent,
        bound=GROWTH,
        reason=reason,
        evidence=evidence | {"plot": _needed_plot(curves)},
    )


def _moved(system: System, parameters: Any, law: tuple[int, int, float]) -> Any:
    """The parameters at another D and q, with d/D and the length of the noise kept."""
    D, C, q = law
    depth = max(1, round(parameters.d * D / parameters.D))
    sigma = parameters.sigma * (parameters.d / depth) ** 0.5
    return system.Parameters(D=D, C=C, q=q, p=parameters.p, nu=parameters.nu, d=depth, sigma=sigma)


def _curve(label: str, sizes: Iterable[int], counts: Iterable[float | None]) -> dict[str, Any]:
    known = [(D, count) for D, count in zip(sizes, counts, strict=True) if count is not None]
    return {"label": label, "x": [D for D, _ in known], "y": [count for _, count in known]}


def _needed_plot(curves: list[dict[str, Any]]) -> dict[str, Any]:
    return {
        "x_label": "D", "y_label": f"downstream samples for an error of {ERROR:g}",
        "x_scale": "log", "y_scale": "log", "curves": curves, "lines": [],
    }  # fmt: skip


def _undecided(quantity: str, bound: float, reason: str, parameters: Any) -> Finding:
    return Finding(
        holds=None,
        quantity=quantity,
        measured=float("nan"),
        bound=bound,
        reason=reason,
        evidence={"parameters": _size(parameters)},
    )


def _size(parameters: Any) -> dict[str, Any]:
    return {name: getattr(parameters, name) for name in ("D", "C", "q", "p", "nu", "d")}


def _listed(values: Iterable[Any]) -> str:
    return ", ".join(map(str, values))
