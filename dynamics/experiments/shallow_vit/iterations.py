r"""How many iterations: Theorem 1 and Figure 2.

Steps to zero training loss on the law of two samples, over alpha_* and in several families of
:math:`\alpha_\#`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from functools import lru_cache
from math import pi
from typing import TYPE_CHECKING, Any

import numpy as np

from dynamics.experiments.criteria import listed
from dynamics.experiments.curves import curve, line
from dynamics.experiments.shallow_vit.runs import plot, possible, sizes_of, undecided
from dynamics.experiments.verify import Finding, Protocol
from dynamics.results.power_law import exponent
from dynamics.training.gradient_descent import descend

if TYPE_CHECKING:
    from dynamics.registry import System

USUAL = {"L": 100}
ETA, STEPS = 0.05, 20_000
SEEDS = 3
FAMILIES: Mapping[str, tuple[str, tuple[float, ...]]] = {
    "rest": (r"$\alpha_\# = 1/2 - \alpha_*$", (0.27, 0.28, 0.3, 0.32, 0.35, 0.4, 0.45)),
    "constant": (r"$\alpha_\# = 0.05$", (0.1, 0.15, 0.2, 0.3, 0.4, 0.6, 0.8)),
    "proportion": (r"$\alpha_\# = \alpha_* / 5$", (0.05, 0.1, 0.2, 0.4, 0.8)),
    "none": (r"$\alpha_\# = 0$", (0.05, 0.1, 0.2, 0.4, 0.8)),
}
"""What goes with alpha_*: words, and the alpha_* of Figure 2."""
CONFUSION = {
    "rest": "0.5 - alpha_star", "constant": "0.05", "proportion": "alpha_star / 5", "none": "0",
}  # fmt: skip
"""alpha_# in each, as a formula."""
RATES = (0.025, 0.05, 0.1)
SIGMAS = (0.0, 0.1, 0.2)
STRAIGHT = 0.99
"""R^2 from which points are on a line."""
PROPORTIONAL = 0.1
"""How far an exponent of 1 may be off: numbers of tokens are whole."""
FEWEST = 3
"""Points that a line needs."""
GROWS = 0.5
"""Share of the claimed growth with sigma that counts as such growth."""


def confusion(family: str, alpha: float) -> float:
    """alpha_# of a family."""
    from dynamics.results.expression import Expression

    value = Expression(CONFUSION[family], "alpha_confusion").value({"alpha_star": alpha})
    return round(float(value), 9)


def at(law: Any, family: str, alpha: float) -> Any:
    """The law of a family at alpha_*."""
    return replace(law, alpha_star=alpha, alpha_confusion=confusion(family, alpha))


def family_of(law: Any, family: str) -> tuple[list[float], list[Any]]:
    """The alpha_* of a family that whole numbers of tokens have, and the laws."""
    laws = possible(law, ((alpha, confusion(family, alpha)) for alpha in FAMILIES[family][1]))
    return [one.alpha_star for one in laws], laws


def _share(law: Any) -> float:
    """alpha_* of the tokens that there are."""
    return float(law.alpha_star if law.data == "iid" else law.n_star / law.L)


def steps_to_zero(
    system: System, law: Any, seeds: Sequence[int], eta: float = ETA
) -> tuple[float, ...]:
    """Steps to zero training loss, for every seed; NaN where it is not reached."""
    make: Any = system.ReducedPopulation
    return tuple(_steps(make, law, seed, eta) for seed in seeds)


@lru_cache(maxsize=512)
def _steps(make: Callable[..., Any], law: Any, seed: int, eta: float) -> float:
    problem, horizon = make(law, seed=seed), 1000
    while True:
        found = descend(problem, eta, horizon, record=[horizon]).events["t_zero"]
        if found is not None and found.step is not None:
            return float(found.step)
        if horizon >= STEPS:
            return float("nan")
        horizon = min(STEPS, 5 * horizon)


def _means(system: System, laws: Sequence[Any], protocol: Protocol, eta: float = ETA) -> np.ndarray:
    many = SEEDS * (3 if protocol.thorough else 1)
    seeds = range(protocol.seed, protocol.seed + many)
    return np.array([np.mean(steps_to_zero(system, law, seeds, eta)) for law in laws])


def figure_2(system: System, protocol: Protocol) -> Finding:
    """Steps against 1/alpha_* and against 1/(alpha_* - alpha_#), in four families."""
    quantity = "least R^2 of a line through steps against 1/alpha_*, over the families"
    law = protocol.parameters or system.Parameters(**USUAL)
    curves: list[Any] = []
    rows: list[dict[str, Any]] = []
    without = []
    for family, (label, _) in FAMILIES.items():
        alphas, laws = family_of(law, family)
        if len(laws) < FEWEST:
            without.append(family)
            continue
        steps = _means(system, laws, protocol)
        if not np.isfinite(steps).all():
            reason = f"zero training loss is not reached in {STEPS} steps"
            return undecided(quantity, STRAIGHT, reason, law)
        gaps = [(one.n_star - one.n_confusion) / one.L for one in laws]
        by_alpha, by_gap = (line(1 / np.array(at), steps) for at in (alphas, gaps))
        rows.append({
            "family": family, "alpha_star": list(alphas), "steps": steps.tolist(),
            "r2_alpha": by_alpha.r2, "r2_gap": by_gap.r2, "slope": by_gap.slope,
            "level": by_gap.level, "exponent": -exponent(gaps, steps.tolist()),
        })  # fmt: skip
        curves.append(curve(label, 1 / np.array(alphas), steps))
    if not rows:
        reason = f"samples of L={law.L} tokens have fewer than {FEWEST} points in every family"
        return undecided(quantity, STRAIGHT, reason, law)
    least = float(np.min([row["r2_alpha"] for row in rows]))
    reason = "; ".join(
        f"{r['family']}: R^2 {r['r2_alpha']:.3f} over 1/alpha_*, {r['r2_gap']:.4f} over "
        f"x = 1/(alpha_* - alpha_#), T = {r['slope']:.1f} x {r['level']:+.1f}, log slope "
        f"{r['exponent']:.2f}" for r in rows
    )  # fmt: skip
    slopes = [r["slope"] for r in rows if r["family"] != "rest"]
    reason += f"; eta T is about {np.mean(slopes) * ETA:.3g} x" if slopes else ""
    if without:
        reason += f"; too few points with L={law.L}: {', '.join(without)}"
    drawn = plot(r"$1/\alpha_*$", "steps to zero training loss", curves, None, ("log", "log"))
    evidence = {"parameters": sizes_of(law), "table": rows, "plot": drawn}
    return Finding(bool(least >= STRAIGHT), quantity, least, STRAIGHT, reason, evidence)


def theorem_1(system: System, protocol: Protocol) -> Finding:
    """Exponents of the steps in 1/alpha_* and in eta, and their growth with sigma."""
    quantity = "steps at sigma = 0.2 over those at sigma = 0"
    law = protocol.parameters or system.Parameters(**USUAL)
    claimed = 1 / (1 - SIGMAS[-1] * law.M / pi)
    if claimed <= 0:
        return undecided(quantity, 1.0, "sigma M / pi is more than 1 at sigma = 0.2", law)
    laws = family_of(law, "proportion")[1]
    shares = [_share(each) for each in laws]
    if len(laws) < FEWEST:
        reason = f"samples of L={law.L} tokens have fewer than {FEWEST} points of alpha_*"
        return undecided(quantity, claimed, reason, law)
    errors = [replace(law, sigma=sigma) for sigma in SIGMAS]
    along = _means(system, laws, protocol)
    rates = np.array([_means(system, [law], protocol, eta)[0] for eta in RATES])
    sigmas = _means(system, errors, protocol)
    if not np.isfinite([*along, *rates, *sigmas]).all():
        return undecided(
            quantity, claimed, f"zero training loss is not reached in {STEPS} steps", law
        )
    by_alpha, by_eta = -exponent(shares, along.tolist()), -exponent(RATES, rates.tolist())
    ratio = float(sigmas[-1] / sigmas[0])
    exact = abs(by_alpha - 1) <= PROPORTIONAL and abs(by_eta - 1) <= PROPORTIONAL
    holds = bool(exact and ratio - 1 >= GROWS * (claimed - 1))
    reason = (
        f"exponent {by_alpha:.3f} in 1/alpha_* with alpha_# = alpha_*/5, {by_eta:.3f} in 1/eta; "
        f"steps {listed(sigmas)} at sigma = {listed(SIGMAS)}, where 1/(1 - sigma M / pi) grows "
        f"to {claimed:.3g}"
    )
    curves = [
        curve("steps", SIGMAS, sigmas / sigmas[0]),
        curve("claimed", SIGMAS, [1 / (1 - s * law.M / pi) for s in SIGMAS]),
    ]
    drawn = plot(r"$\sigma$", r"steps, over those at $\sigma = 0$", curves)
    table = {"alpha": along.tolist(), "eta": rates.tolist(), "sigma": sigmas.tolist()}
    evidence = {"parameters": sizes_of(law), "table": table, "plot": drawn}
    return Finding(holds, quantity, ratio, claimed, reason, evidence)
