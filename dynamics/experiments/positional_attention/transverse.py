r"""Section 4.2: whether a random start falls onto the three scalars or leaves them.

Two measurements of the exact population dynamics. The linear one: the amplification
:math:`\Phi_{max}` of deviations from the symmetric manifold
(`dynamics.analysis.transverse_stability`). The other is
not linear: the full population flow from :math:`A_{ij} \sim N(0, \omega^2)`, at the omega of the
parameters and at larger ones, with the share of rows that stay associated. N is infinite here, so
what is seen is the random start alone.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from typing import Any

import numpy as np

from dynamics.analysis.transverse_stability import Transverse, transverse
from dynamics.experiments.verify import Finding, Protocol
from dynamics.registry import System
from dynamics.results.trajectory import Trajectory
from dynamics.systems.positional_attention.full.manifold import Manifold
from dynamics.training.flow import flow
from dynamics.validation import InvalidRequest

SIZES = ({"D": 8, "C": 2, "q": 0.5},)
MORE_SIZES = (*SIZES, {"D": 9, "C": 3, "q": 0.6})
LARGER = (1e-2, 5e-2)
"""Spreads at which the hypothesis is stretched."""
HORIZON = 1e5
RECORDS = 240
QUANTITY = "omega times the largest amplification of a deviation from the three scalars"
SAFE = 1.0
"""omega * Phi_max up to which deviations stay below the scale on which A acts on the softmax."""


def check(system: System, protocol: Protocol) -> Finding:
    """Amplification of deviations, and the full flow from random starts.

    Holds where, at every size, omega * Phi_max is below 1 and the flow from the random start ends
    associated; fails where a start at that omega loses association that the symmetric one has.
    Undecided at sizes that the full problem cannot enumerate, where only the linear part is
    measured, as far as that goes.
    """
    if protocol.parameters is None:
        chosen = [
            system.Parameters(**size) for size in (MORE_SIZES if protocol.thorough else SIZES)
        ]
    else:
        chosen = [protocol.parameters]
    seeds = range(protocol.seed, protocol.seed + (3 if protocol.thorough else 1))
    tables, curves = [], []
    for parameters in chosen:
        try:
            found = spectrum(system, parameters)
        except InvalidRequest as refusal:
            return Finding(None, QUANTITY, float("nan"), SAFE, str(refusal))
        tables.append(_table(system, parameters, found, seeds))
        positive = found.time > 0
        curves.append(
            {
                "label": f"D={parameters.D}, C={parameters.C}, q={parameters.q}",
                "x": found.time[positive].tolist(),
                "y": found.amplification[positive].tolist(),
            }
        )
    worst = max(tables, key=lambda table: table["omega_times_peak"])
    omega = worst["parameters"]["omega"]
    return Finding(
        holds=_verdict(tables),
        quantity=QUANTITY,
        measured=worst["omega_times_peak"],
        bound=SAFE,
        reason=_reason(worst),
        evidence={
            "parameters": worst["parameters"],
            "sizes": tables,
            "plot": {
                "x_label": "time",
                "y_label": "amplification",
                "x_scale": "log",
                "y_scale": "log",
                "curves": curves,
                "lines": [{"label": "1/omega", "y": 1 / omega}] if omega > 0 else [],
            },
        },
    )


def spectrum(system: System, parameters: Any, horizon: float = HORIZON) -> Transverse:
    """The transverse spectrum along the reduced flow, with the Hessian of the full problem.

    Where that is too large to enumerate, with the Hessian summed over multisets of types.
    """
    full = _enumerable(system, parameters)
    manifold = Manifold(parameters, full)
    times = np.concatenate([[0.0], np.geomspace(1e-3, horizon, RECORDS)])
    run = flow(system.ReducedPopulation(parameters), horizon, rtol=1e-10, record=times)
    return transverse(manifold, run)


def _enumerable(system: System, parameters: Any) -> Any:
    """The full problem, or None where it is too large."""
    try:
        return system.FullPopulation(parameters)
    except InvalidRequest:
        return None


def perturbed(system: System, parameters: Any, seed: int) -> Trajectory:
    """The full population flow from an attention matrix with a spread of omega."""
    full = system.FullPopulation(parameters)
    start = full.initial_state
    matrix = full.layout.part(start, "A")  # a view
    off_diagonal = ~np.eye(parameters.D, dtype=bool)
    noise = np.random.default_rng(seed).normal(size=matrix.shape)
    matrix += parameters.omega * noise * off_diagonal
    return flow(full, HORIZON, initial=start, record=60)


def random_start(system: System, parameters: Any, seed: int) -> dict[str, Any]:
    """What became of a random start.

    Returns
    -------
    dict
        ``association``, the share of rows associated at the end; ``largest_spread``, of the entries
        of one orbit along the run, over omega; ``risk``, ``error`` and ``bayes_error`` at the end.
    """
    run = perturbed(system, parameters, seed)
    spread = np.maximum(run["gamma_spread"], run["rho_spread"]).max()
    ends = {name: float(run[name][-1]) for name in ("risk", "error", "bayes_error")}
    return {
        "omega": parameters.omega,
        "seed": seed,
        "association": float(run["patch_association"][-1]),
        "largest_spread": float(spread / parameters.omega) if parameters.omega else 0.0,
        **ends,
    }


def _table(system: System, parameters: Any, found: Transverse, seeds: range) -> dict[str, Any]:
    t0 = found.run.events["T0"]
    plateau = found.at(HORIZON if t0 is None else t0.time)
    worst = found.multiplets(plateau)[0]
    possible = _enumerable(system, parameters) is not None
    omegas = [parameters.omega, *(omega for omega in LARGER if omega > parameters.omega)]
    return {
        "parameters": asdict(parameters),
        "peak": found.peak,
        "omega_times_peak": parameters.omega * found.peak,
        "symmetric_association": float(found.run["patch_association"][-1]),
        "plateau_time": float(found.time[plateau]),
        "negative": int(found.negative[plateau]),
        "directions": int(found.eigenvalues.shape[1]),
        "worst": worst.value,
        "worst_multiplicity": worst.multiplicity,
        "row_competition": worst.shares["rows"],
        "attracting_from": found.attracting_from if np.isfinite(found.attracting_from) else None,
        "orthogonal_v_peak": found.decoupled_peak("v"),
        "runs": [
            random_start(system, replace(parameters, omega=omega), seed)
            for omega in omegas
            for seed in (seeds if possible else ())
        ],
    }


def _at_hypothesis(table: dict[str, Any]) -> list[dict[str, Any]]:
    return [run for run in table["runs"] if run["omega"] == table["parameters"]["omega"]]


def _verdict(tables: list[dict[str, Any]]) -> bool | None:
    """False where association is lost, True where it stays and omega * Phi_max is small."""
    lost = any(
        run["association"] < table["symmetric_association"]
        for table in tables
        for run in _at_hypothesis(table)
    )
    if lost:
        return False
    kept = all(
        table["omega_times_peak"] < SAFE
        and table["runs"]
        and all(run["association"] == 1.0 for run in _at_hypothesis(table))
        for table in tables
    )
    return True if kept else None


def _reason(table: dict[str, Any]) -> str:
    """The numbers that matter at the least favourable size."""
    runs = table["runs"]
    least = {run["omega"]: 1.0 for run in runs}
    for run in runs:
        least[run["omega"]] = min(least[run["omega"]], run["association"])
    if not runs:
        return f"{_grown(table)}; the full flow is too large to enumerate"
    ends = ", ".join(f"{share:.2f} at omega={key:g}" for key, share in least.items())
    return f"{_grown(table)}; rows associated at time {HORIZON:g}: {ends}"


def _grown(table: dict[str, Any]) -> str:
    return (
        f"deviations grow up to {table['peak']:.0f}-fold ({table['negative']} of "
        f"{table['directions']} directions repel at T0), so omega={table['parameters']['omega']:g} "
        f"becomes {table['omega_times_peak']:.2g}"
    )
