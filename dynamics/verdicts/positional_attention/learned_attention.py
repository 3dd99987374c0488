"""Theorem 5.1: attention that pre-training learned transfers to a new feature.

Pre-training is the flow of the reduced population problem for a time that is a power of D, frozen.
Errors are laid on the scale from the irreducible error (0) to the error of sign(Z), which needs no
attention (1). They are medians over seeds; the share of the seeds that learn the opposite feature
is reported beside them, from more seeds.
"""

from __future__ import annotations

from math import ceil, log2
from typing import Any

from dynamics.system import System
from dynamics.training.flow import flow
from dynamics.verdicts.findings import Finding, Undecided
from dynamics.verdicts.positional_attention import transfer
from dynamics.verdicts.study import Study, measures
from dynamics.verdicts.wording import counted, in_percent
from theory.papers.positional_attention.data_law import SetLaw, bayes_error
from theory.papers.positional_attention.linear_rules import sign_rule_error

PRE_TRAINING = 100.0
"""Time of pre-training over D^2."""
SHARE = 0.25
"""Of the way from the irreducible error to that of sign(Z): what a transfer must stay below."""
GAP = 5e-3
"""Between these two errors; where it is less, attention is hardly needed."""
LARGEST = 1 << 16
"""D d beyond which fine-tuning takes too long."""
SIZES = (16, 32, 64)
"""D along which the theorem is measured, at C = 4 and q(D - C) = 8."""
SAMPLES = (1, 2, 4, 8, 16)
MANY = 200
"""Seeds for the share of those whose error stays above 1/2."""


def _trainable(law: Any) -> None:
    if law.D * law.d > LARGEST:
        reason = f"fine-tuning many seeds at D={law.D}, d={law.d} takes too long"
        raise Undecided(reason, parameters=downstream_sizes(law))


@measures(
    "largest share of the way from the irreducible error to that of sign(Z)",
    "<=", SHARE, _trainable,
)  # fmt: skip
def theorem_5_1(study: Study) -> Finding:
    """Error after fine-tuning on log2 D samples under the attention that pre-training learned.

    True where it stays near the irreducible error at every size. False where it does not although
    half of the attention is inside the own sets, or because the pre-trained A prefers other sets;
    None where pre-training has only begun, or where even the true sets do not transfer.
    """
    sizes = (*SIZES, 128) if study.thorough else SIZES
    laws = study.laws(*({"D": D, "C": 4, "q": 8 / (D - 4)} for D in sizes))
    seeds = 24 if study.thorough else 12
    study.rows = rows = [transfer_row(study.system, law, seeds, study.seed) for law in laws]
    verdicts = [_transfers(row) for row in rows]
    holds = False if False in verdicts else None if None in verdicts else True
    decisive = [row for row, verdict in zip(rows, verdicts, strict=True) if verdict is holds]
    worst = max(decisive, key=lambda row: row["share"])
    last = rows[-1]
    errors = ", ".join(f"{row['error']:.3g} at D={row['D']}" for row in rows)
    reason = (
        f"with A of the population flow at time {PRE_TRAINING:g} D^2, frozen, log2 D downstream "
        f"samples leave a median error of {errors} (sign(Z): {last['linear_error']:.3f}); "
        f"{_explanation(worst, holds)}. {_lost(rows)}. "
    )
    begun = [row for row in rows if row["share_early"] > SHARE and _early(row)["association"]]
    if holds and begun:
        early = _early(begun[-1])
        reason += (
            "It is attention mass that transfers, not Top_C: at a hundredth of that time, "
            f"D={begun[-1]['D']}, gamma > rho already, but G/D = {early['inside']:.2f} and the "
            f"error is {early['errors'][-1]:.3g}. "
        )
    reason += (
        f"Medians over {counted(seeds, 'seed')}; v by gradient descent, its rate halved "
        "where a loss rises"
    )
    evidence: dict[str, Any] = {}
    if study.parameters is not None:
        evidence["parameters"] = downstream_sizes(study.parameters)
    elif study.thorough:
        evidence["trained_empirically"] = empirical_rows(study.system, seeds, study.seed)
    time = last["time"]
    labels = {"learned": time, "learned, early": time / 100}
    for kind, entry in last["attention"].items():
        label = f"learned, time {labels[kind]:.3g}" if kind in labels else kind
        study.curve(label, last["samples"], entry["errors"])
    levels = {"error of sign(Z)": last["linear_error"], "irreducible error": last["bayes_error"]}
    study.draw(f"downstream samples (D = {last['D']})", "median test error", levels)
    return study.conclude(worst["share"], reason, holds=holds, **evidence)


def transfer_row(system: System, parameters: Any, seeds: int, seed: int) -> dict[str, Any]:
    """Median errors at one size for attention to the true sets, learned, learned early, uniform.

    Parameters
    ----------
    system : System
    parameters : Parameters
    seeds : int
        How many.
    seed : int
        Of everything random.

    Returns
    -------
    dict
        ``error`` and ``share`` are those of learned attention with ceil(log2 D) samples; ``lost``
        are the seeds of ``lost_of`` whose error stays above 1/2 under it, with one sample and with
        ceil(log2 D); ``attention`` holds for each kind G/D (``inside``), whether gamma > rho
        (``association``), and ``errors`` along ``samples``.
    """
    D, C, q = parameters.D, parameters.C, parameters.q
    few = ceil(log2(D))
    counts = sorted({*SAMPLES, few})
    time = PRE_TRAINING * D**2
    run = flow(system.ReducedPopulation(parameters), time, record=[0.0, time / 100, time])
    early, late = run.states[1], run.final_state
    kinds = {
        "true sets": (transfer.block_attention(parameters), 1.0),
        "learned": (transfer.orbit_attention(parameters, late), float(late[1] > late[2])),
        "learned, early": (transfer.orbit_attention(parameters, early), float(early[1] > early[2])),
        "uniform": (transfer.uniform_attention(parameters), 0.0),
    }
    tasks = {kind: transfer.Downstream(parameters, S, seed) for kind, (S, _) in kinds.items()}
    table: dict[str, dict[str, Any]] = {}
    for kind, (weights, association) in kinds.items():
        table[kind] = {
            "inside": transfer.own_set_share(parameters, weights),
            "association": association,
            "errors": tasks[kind].medians(counts, seeds),
        }
    linear, least = float(sign_rule_error(D, C, q).error), bayes_error(SetLaw(C, q), D // C)
    at, gap = counts.index(few), linear - least
    shares = {k: (v["errors"][at] - least) / gap if gap > 0 else 1.0 for k, v in table.items()}
    return {
        "D": D, "C": C, "q": q, "time": time, "few": few, "samples": counts,
        "outcome": str(run.outcome), "linear_error": linear, "bayes_error": least,
        "error": table["learned"]["errors"][at], "share": shares["learned"],
        "share_true_sets": shares["true sets"], "share_early": shares["learned, early"],
        "lost": [tasks["learned"].lost(count, MANY) for count in (1, few)], "lost_of": MANY,
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


def _lost(rows: list[dict[str, Any]]) -> str:
    """How many seeds learn the opposite feature, under learned attention."""
    one, few = (
        ", ".join(f"{in_percent(row['lost'][k], row['lost_of'])} at D={row['D']}" for row in rows)
        for k in (0, 1)
    )
    return (
        f"Not every run: of {rows[0]['lost_of']} seeds, those that learn -w* and err on more than "
        f"half are {one} with one sample, {few} with log2 D"
    )


def _early(row: dict[str, Any]) -> dict[str, Any]:
    early: dict[str, Any] = row["attention"]["learned, early"]
    return early


def _explanation(row: dict[str, Any], holds: bool | None) -> str:
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


def empirical_rows(system: System, seeds: int, seed: int) -> list[dict[str, Any]]:
    """Transfer of attention of full empirical runs, D = 16 and q(D - C) = 4: early and late.

    Parameters
    ----------
    system : System
    seeds, seed : int
        As in `transfer_row`.
    """
    parameters = system.Parameters(D=16, C=4, q=4 / 12)
    rows = []
    for time in (240.0, 1440.0):
        weights, run = transfer.trained_attention(
            system, parameters, 4000, time, eta=0.04, seed=seed, dtype="float32"
        )
        rows.append({
            "D": 16, "C": 4, "q": parameters.q, "samples": 4000, "time": time,
            "association": float(run["patch_association"][-1]),
            "inside": transfer.own_set_share(parameters, weights),
            "downstream_samples": list(SAMPLES),
            "errors": transfer.Downstream(parameters, weights, seed).medians(SAMPLES, seeds),
        })  # fmt: skip
    return rows


def downstream_sizes(parameters: Any) -> dict[str, Any]:
    """The parameters that a verdict on transfer is about, as plain values."""
    return {name: getattr(parameters, name) for name in ("D", "C", "q", "p", "nu", "d")}
