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
from dynamics.experiments.measurement import Chart, Measurement, Series, conclude, undecided
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

    Parameters
    ----------
    system : System
    protocol : Protocol
    """
    sizes = MORE_SIZES if protocol.thorough else SIZES
    laws = [protocol.parameters]
    if protocol.parameters is None:
        laws = [system.Parameters(**size) for size in sizes]
    seeds = range(protocol.seed, protocol.seed + (3 if protocol.thorough else 1))
    tables, series = [], []
    for law in laws:
        try:
            result = spectrum(system, law)
        except InvalidRequest as refusal:
            return undecided(QUANTITY, SAFE, str(refusal))
        tables.append(_table(system, law, result, seeds))
        positive = result.time > 0
        label = f"D={law.D}, C={law.C}, q={law.q}"
        series.append(Series(label, result.time[positive], result.amplification[positive]))
    worst = max(tables, key=lambda table: table["omega_times_peak"])
    omega = worst["parameters"]["omega"]
    levels = {"1/omega": 1 / omega} if omega > 0 else {}
    chart = Chart("time", "amplification", series, levels)
    measurement = Measurement(QUANTITY, worst["omega_times_peak"], "<", SAFE, chart)
    evidence = {"parameters": worst["parameters"], "sizes": tables}
    return conclude(measurement, _reason(worst), _verdict(tables), **evidence)


def spectrum(system: System, parameters: Any, horizon: float = HORIZON) -> Transverse:
    """The transverse spectrum along the reduced flow, with the Hessian of the full problem.

    Where that is too large to enumerate, with the Hessian summed over multisets of types.

    Parameters
    ----------
    system : System
    parameters : Parameters
    horizon : float
        Time of the flow.
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
    """The full population flow from an attention matrix with a spread of omega.

    Parameters
    ----------
    system : System
    parameters : Parameters
    seed : int
    """
    full = system.FullPopulation(parameters)
    start = full.initial_state
    matrix = full.layout.part(start, "A")  # a view
    off_diagonal = ~np.eye(parameters.D, dtype=bool)
    noise = np.random.default_rng(seed).normal(size=matrix.shape)
    matrix += parameters.omega * noise * off_diagonal
    return flow(full, HORIZON, initial=start, record=60)


def random_start(system: System, parameters: Any, seed: int) -> dict[str, Any]:
    """What became of a random start.

    Parameters
    ----------
    system : System
    parameters : Parameters
    seed : int

    Returns
    -------
    dict
        ``association``, the share of rows associated at the end; ``largest_spread``, of the entries
        of one orbit along the run, over omega; ``risk``, ``error`` and ``bayes_error`` at the end.
    """
    run = perturbed(system, parameters, seed)
    spread, omega = max(run["gamma_spread"].max(), run["rho_spread"].max()), parameters.omega
    return {
        "omega": omega,
        "seed": seed,
        "association": float(run["patch_association"][-1]),
        "largest_spread": float(spread / omega) if omega else 0.0,
        **{name: float(run[name][-1]) for name in ("risk", "error", "bayes_error")},
    }


def _table(system: System, parameters: Any, result: Transverse, seeds: range) -> dict[str, Any]:
    t0 = result.run.events["T0"]
    plateau = result.at(HORIZON if t0 is None else t0.time)
    worst = result.multiplets(plateau)[0]
    possible = _enumerable(system, parameters) is not None
    omegas = [parameters.omega, *(omega for omega in LARGER if omega > parameters.omega)]
    return {
        "parameters": asdict(parameters),
        "peak": result.peak,
        "omega_times_peak": parameters.omega * result.peak,
        "symmetric_association": float(result.run["patch_association"][-1]),
        "plateau_time": float(result.time[plateau]),
        "negative": int(result.negative[plateau]),
        "directions": int(result.eigenvalues.shape[1]),
        "worst": worst.value,
        "worst_multiplicity": worst.multiplicity,
        "row_competition": worst.shares["rows"],
        "attracting_from": result.attracting_from if np.isfinite(result.attracting_from) else None,
        "orthogonal_v_peak": result.decoupled_peak("v"),
        "runs": [
            random_start(system, replace(parameters, omega=omega), seed)
            for omega in omegas
            for seed in (seeds if possible else ())
        ],
    }


def _verdict(tables: list[dict[str, Any]]) -> bool | None:
    """False where association is lost, True where it stays and omega * Phi_max is small."""
    stays = True
    for table in tables:
        omega = table["parameters"]["omega"]
        shares = [run["association"] for run in table["runs"] if run["omega"] == omega]
        if any(share < table["symmetric_association"] for share in shares):
            return False
        small = table["omega_times_peak"] < SAFE
        stays = stays and small and bool(shares) and all(share == 1.0 for share in shares)
    return True if stays else None


def _reason(table: dict[str, Any]) -> str:
    """The numbers that matter at the least favourable size."""
    omega, least = table["parameters"]["omega"], dict[float, float]()
    for run in table["runs"]:
        least[run["omega"]] = min(least.get(run["omega"], 1.0), run["association"])
    ends = ", ".join(f"{share:.2f} at omega={key:g}" for key, share in least.items())
    growth = (
        f"deviations grow up to {table['peak']:.0f}-fold ({table['negative']} of "
        f"{table['directions']} directions repel at T0), so omega={omega:g} "
        f"becomes {table['omega_times_peak']:.2g}"
    )
    if not ends:
        return f"{growth}; the full flow is too large to enumerate"
    return f"{growth}; rows associated at time {HORIZON:g}: {ends}"
