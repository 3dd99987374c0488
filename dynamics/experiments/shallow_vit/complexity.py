r"""How many samples: Theorem 1, Figures 1a and 1b, Proposition 1, Remarks 1 and 3.

N50 over alpha_* in two families: the other tokens a fixed half, so that :math:`\alpha_\# = 1/2 -
\alpha_*` (Figure 1a), and :math:`\alpha_\#` a fifth of :math:`\alpha_*`, as the theorem asks.
"""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from typing import TYPE_CHECKING, Any

import numpy as np

from dynamics.experiments.criteria import listed
from dynamics.experiments.curves import curve, line
from dynamics.experiments.shallow_vit.iterations import FEWEST
from dynamics.experiments.shallow_vit.runs import plot, possible, sizes_of, undecided
from dynamics.experiments.shallow_vit.success import NEURONS, TRIALS, Rows, climb
from dynamics.experiments.verify import Finding, Protocol
from dynamics.results.power_law import PowerLaw, power_law

if TYPE_CHECKING:
    from dynamics.problem import FloatArray
    from dynamics.registry import System

USUAL = {"m": NEURONS, "L": 100, "data": "fixed_disc"}
GAPS = (0.06, 0.1, 0.14, 0.18, 0.24, 0.3)
"""Half of alpha_* - alpha_# over alpha_* + alpha_#, in the family of Figure 1a."""
SHARES = (0.05, 0.1, 0.15, 0.2, 0.3)
"""alpha_* where alpha_# is in proportion."""
PROPORTION = 0.2
SIGMAS = (0.0, 0.2, 0.4, 0.6, 0.8)
FIGURE_1B = {"m": NEURONS, "L": 50, "alpha_star": 0.3, "alpha_confusion": 0.2, "data": "fixed_disc"}
TWICE = 2.0
"""Standard errors within which an exponent is the claimed one."""
SAMPLES = "samples $N_{50}$"
ALPHA = r"$1/\alpha_*$"


def figure_laws(system: System, protocol: Protocol) -> list[Any]:
    """Laws with a fixed share of non-discriminative tokens: a half, or the user's."""
    law = protocol.parameters or system.Parameters(**USUAL)
    both = 0.5 if protocol.parameters is None else law.alpha_star + law.alpha_confusion
    shares = [round(both * (0.5 + gap), 6) for gap in GAPS]
    return possible(law, ((a, round(both - a, 6)) for a in shares))


def theorem_laws(system: System, protocol: Protocol, **changed: Any) -> list[Any]:
    """Laws with alpha_# in proportion to alpha_*: a fifth of it, or the user's."""
    given = protocol.parameters
    law = given or system.Parameters(**USUAL)
    ratio = PROPORTION if given is None else law.alpha_confusion / law.alpha_star
    kept = replace(law, **changed)
    return possible(kept, ((a, round(a * ratio, 9)) for a in SHARES))


def _climb(system: System, laws: Sequence[Any], protocol: Protocol) -> Rows:
    return climb(system, laws, protocol.seed, (3 if protocol.thorough else 1) * TRIALS)


def alphas(laws: Sequence[Any]) -> FloatArray:
    """alpha_* of laws."""
    return np.array([law.alpha_star for law in laws])


def gaps(laws: Sequence[Any]) -> FloatArray:
    """alpha_* - alpha_#, of the tokens that there are."""
    return np.array([(law.n_star - law.n_confusion) / law.L for law in laws])


def growth(rows: Rows, variable: FloatArray) -> PowerLaw:
    """PowerLaw law of N50 in a variable."""
    return power_law(variable, rows.values, rows.errors)


def _table(laws: Sequence[Any], rows: Rows) -> list[dict[str, Any]]:
    return [
        {
            "alpha_star": law.alpha_star, "alpha_confusion": law.alpha_confusion,
            "sigma": law.sigma, "N50": found.value, "low": found.low, "high": found.high,
            "shares": found.shares.tolist(), "N": found.levels.tolist(), "steps": float(steps),
        }
        for law, found, steps in zip(laws, rows.thresholds, rows.medians, strict=True)
    ]  # fmt: skip


def _evidence(
    laws: Sequence[Any],
    tables: dict[str, Rows],
    x: str,
    at: FloatArray,
    claimed: Mapping[str, float],
) -> Any:
    """Tables, and N50 with the claimed power of every table through its middle."""
    curves = []
    for name, rows in tables.items():
        known = np.isfinite(rows.values)
        curves.append(curve(name, at[known], rows.values[known]))
        if name in claimed and known.any():
            power_law = at[known] ** claimed[name]
            level = np.exp(np.mean(np.log(rows.values[known] / power_law)))
            label = f"claimed: power {claimed[name]:g}"
            curves.append(curve(label, at[known], level * power_law))
    return {
        "parameters": sizes_of(laws[0]),
        "table": {name: _table(laws, rows) for name, rows in tables.items()},
        "plot": plot(x, SAMPLES, curves, None, ("log", "log")),
    }  # fmt: skip


def _told(rows: Rows) -> str:
    return ", ".join(map(str, rows.thresholds))


def _short(laws: Sequence[Any], quantity: str, bound: float) -> Finding | None:
    """Nothing is decided where samples are so short that few alpha_* have a majority."""
    if len(laws) >= FEWEST:
        return None
    reason = f"fewer than {FEWEST} of the alpha_* have whole numbers of tokens and a majority"
    return undecided(quantity, bound, reason, laws[0] if laws else None)


def _too_few(
    rows: Rows, quantity: str, bound: float, laws: Sequence[Any], least: int = FEWEST
) -> Finding | None:
    """Nothing is decided where N50 is a number in too few rows."""
    if np.isfinite(rows.values).sum() >= least:
        return None
    reason = f"N50 lies inside N = {rows.counts[0]} to {rows.counts[-1]} in too few rows: "
    return undecided(quantity, bound, reason + _told(rows), laws[0])


def generalization(system: System, protocol: Protocol) -> Finding:
    """Whether enough samples make every trial succeed."""
    quantity = "least share of successful trials at the most samples of a row"
    law = protocol.parameters
    laws = theorem_laws(system, protocol) if law is None else [law]
    rows = _climb(system, laws, protocol)
    last = [shares[~np.isnan(shares)] for shares in rows.share]
    least = float(min(share[-1] for share in last))
    most = [int(rows.counts[len(share) - 1]) for share in last]
    reason = (
        f"{least:.0%} of {rows.loss.shape[2]} trials reach a test loss below 1e-3 with N = "
        f"{listed(most)} (alpha_* = {listed(alphas(laws))}); N50 = {_told(rows)}"
    )
    curves = [
        curve(rf"$\alpha_* = {law.alpha_star:g}$", rows.counts[: len(share)], share)
        for law, share in zip(laws, last, strict=True)
    ]
    drawn = plot("samples $N$", "share of successful trials", curves, None, ("log", "linear"))
    evidence = {"parameters": sizes_of(laws[0]), "table": _table(laws, rows), "plot": drawn}
    return Finding(bool(least >= 0.99), quantity, least, 0.99, reason, evidence)


def samples(system: System, protocol: Protocol) -> Finding:
    """The exponent of N50 in 1/alpha_*, at alpha_# in proportion."""
    return _exponent(system, protocol, 2.0)


def proposition_1(system: System, protocol: Protocol) -> Finding:
    """The same with attention frozen."""
    return _exponent(system, protocol, 4.0, "attention")


def _exponent(system: System, protocol: Protocol, claimed: float, frozen: str = "none") -> Finding:
    quantity = "exponent of N50 in 1/alpha_*" + (", attention frozen" if frozen != "none" else "")
    laws = theorem_laws(system, protocol, frozen=frozen)
    refused = _short(laws, quantity, claimed)
    if refused is not None:
        return refused
    rows = _climb(system, laws, protocol)
    refused = _too_few(rows, quantity, claimed, laws)
    if refused is not None:
        return refused
    fit = growth(rows, 1 / alphas(laws))
    reason = f"N50 = {_told(rows)} at alpha_* = {listed(alphas(laws))}: exponent {fit}"
    if fit.exponent < claimed:
        reason += "; fewer samples than stated do not contradict the bound, only its power"
    if frozen != "none":
        trained = _climb(system, theorem_laws(system, protocol, frozen="none"), protocol)
        reason += f"; steps over those with attention {listed(rows.medians / trained.medians, 2)}"
    holds = bool(abs(fit.exponent - claimed) <= TWICE * fit.error)
    name = "attention frozen" if frozen != "none" else "trained"
    evidence = _evidence(laws, {name: rows}, ALPHA, 1 / alphas(laws), {name: claimed})
    return Finding(holds, quantity, fit.exponent, claimed, reason, evidence)


def remark_1(system: System, protocol: Protocol) -> Finding:
    """N50 without over N50 with trained attention, along alpha_*."""
    quantity = "exponent in 1/alpha_* of N50 without over N50 with trained attention"
    laws = theorem_laws(system, protocol, frozen="none")
    refused = _short(laws, quantity, 2.0)
    if refused is not None:
        return refused
    trained = _climb(system, laws, protocol)
    frozen = _climb(system, theorem_laws(system, protocol, frozen="attention"), protocol)
    ratio, errors = frozen.values / trained.values, np.hypot(trained.errors, frozen.errors)
    known = np.isfinite(ratio)
    if known.sum() < 3:
        reason = f"N50 is a number in too few rows: {_told(trained)}; frozen {_told(frozen)}"
        return undecided(quantity, 2.0, reason, laws[0])
    fit = power_law(1 / alphas(laws), ratio, errors)
    above = bool((np.log(ratio[known]) > -TWICE * errors[known]).all() and fit.prefactor > 0)
    mean = float(np.exp(np.average(np.log(ratio[known]), weights=errors[known] ** -2)))
    holds = bool(above and mean > 1 and abs(fit.exponent - 2) <= TWICE * fit.error)
    reason = (
        f"frozen attention needs {listed(ratio[known], 2)} times as many samples at alpha_* = "
        f"{listed(alphas(laws)[known])}: exponent {fit}"
    )
    tables = {"trained": trained, "attention frozen": frozen}
    claimed = {"trained": 2.0, "attention frozen": 4.0}
    evidence = _evidence(laws, tables, ALPHA, 1 / alphas(laws), claimed)
    return Finding(holds, quantity, fit.exponent, 2.0, reason, evidence)


def figure_1a(system: System, protocol: Protocol) -> Finding:
    """N50 against alpha_*^-2 and against (alpha_* - alpha_#)^-2."""
    quantity = "exponent of N50 in 1/alpha_*, the other tokens a fixed share"
    laws = figure_laws(system, protocol)
    refused = _short(laws, quantity, 2.0)
    if refused is not None:
        return refused
    rows = _climb(system, laws, protocol)
    refused = _too_few(rows, quantity, 2.0, laws)
    if refused is not None:
        return refused
    known, found = np.isfinite(rows.values), rows.values
    fits = {name: growth(rows, 1 / at) for name, at in (("alpha", alphas(laws)),
                                                        ("gap", gaps(laws)))}  # fmt: skip
    straight = [line((1 / at[known]) ** 2, found[known]).r2 for at in (alphas(laws), gaps(laws))]
    holds = bool(
        abs(fits["alpha"].exponent - 2) <= TWICE * fits["alpha"].error
        and not straight[1] > straight[0]
    )
    reason = (
        f"N50 = {_told(rows)} at alpha_* = {listed(alphas(laws))}: exponent {fits['alpha']} in "
        f"1/alpha_*, {fits['gap']} in 1/(alpha_* - alpha_#); R^2 of a line {straight[0]:.2f} over "
        f"alpha_*^-2 and {straight[1]:.3f} over (alpha_* - alpha_#)^-2"
    )
    evidence = _evidence(laws, {"trained": rows}, ALPHA, 1 / alphas(laws), {"trained": 2.0})
    return Finding(holds, quantity, fits["alpha"].exponent, 2.0, reason, evidence)


def remark_3(system: System, protocol: Protocol) -> Finding:
    """N50 and steps over the error sigma of the initial values."""
    quantity = "exponent of N50 in 1/(1 - sigma)"
    law = protocol.parameters or system.Parameters(**FIGURE_1B)
    laws = [replace(law, sigma=sigma) for sigma in SIGMAS]
    rows = _climb(system, laws, protocol)
    refused = _too_few(rows, quantity, 2.0, laws)
    if refused is not None:
        return refused
    at = 1 / (1 - np.array(SIGMAS))
    fit = growth(rows, at)
    holds = bool(fit.exponent > TWICE * fit.error)
    reason = (
        f"N50 = {_told(rows)} at sigma = {listed(SIGMAS)}: exponent {fit}, claimed is 2; steps "
        f"{listed(rows.medians)}"
    )
    evidence = _evidence(laws, {"trained": rows}, r"$1/(1 - \sigma)$", at, {"trained": 2.0})
    return Finding(holds, quantity, fit.exponent, 2.0, reason, evidence)
