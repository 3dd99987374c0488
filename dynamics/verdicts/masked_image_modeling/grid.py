r"""Laws, the training run that claims share, hypotheses of claims, and what rounding may do.

Time is counted in units of :math:`K P / C_s`, in which all phases last about equally long at every
size: alpha_m starts at about :math:`\gamma (1 - \gamma) (C_s - 1) / (P K)`. With a constant
latent z scores z Phi move :math:`z^4` times as fast: every time is divided by :math:`E[z^4]`.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from math import isnan
from typing import Any

import numpy as np

from dynamics.problem import FloatArray
from dynamics.training.descent import descend
from dynamics.verdicts.cases import Case
from dynamics.verdicts.claim import Row
from dynamics.verdicts.claim import claim as any_claim
from dynamics.verdicts.findings import Finding, Undecided
from dynamics.verdicts.rules import Repeat
from theory.papers.masked_image_modeling.model import latent_moment
from theory.papers.masked_image_modeling.required_sizes import Condition, least_patches

SHOWN = ("P", "K", "C_global", "C_local", "gamma", "z", "Delta")
"""Parameters that verdicts name."""
POSITIVE = {"P": 4096, "C_global": 2048, "C_local": 16}
NEGATIVE = {"P": 4096, "C_global": 128, "C_local": 64}
SLIGHT = {"P": 4096, "C_global": 832, "C_local": 64}
"""A gap of 0.117, positive and small."""
SMALL = {"P": 12, "C_global": 8, "C_local": 2, "masked": 3}
ABOVE, BELOW = (0.9, 0.3), (0.6, 0.4)
"""kappa_c and kappa_s of two families along P, Delta near 0.5 and -0.2."""
SIZES = (512, 1024, 2048, 4096, 8192)
MORE_SIZES = (724, 1448, 2896, 5792)
"""With --thorough; row types of more than 8192 patches take minutes."""
FINE = 0.01
"""Learning rate in units of time, at which the switch is right to a percent."""
LARGEST = 2.0
"""Largest learning rate over K: rapid growth takes a time of order K however large P is."""
LONG = 20.0
"""Horizon in units of time."""
LEAST_TIME = 500.0
"""Horizon at small sizes, over K: the loss above the floor falls to K/(4 t) at all sizes."""
RECORDS = 800
DENSE = 5.0
"""Largest time between records over K: rapid growth takes a time of about 30 K."""
ORDER_ONE = 0.1
"""Size of Delta from which on it is of order one."""
APART = 4.0
"""Largest latent over the least up to which one step size and one horizon do for both."""
SMALL_SHARE = 0.1
"""Share of the leading correlation up to which another one is small, close to 0."""
MANY = 1 + 1 / SMALL_SHARE
"""Patches of an area from which on a mate of a patch makes a small share."""
ROUNDING = 1e-12
SPREADS = (0.0, 0.5, 1.0, 2.0, 4.0)
"""Standard deviations of the entries of a random Q."""
UNITS = r"time in units of $K P / C_s$"

ONCE = Repeat()
claim = partial(any_claim, shown=SHOWN)


def sizes_along(P: int, exponents: Sequence[float] = ABOVE) -> dict[str, int]:
    """Sizes of one cluster at P that are nearest to P^kappa_c and P^kappa_s, by name."""
    core, local = exponents
    size = max(2, round(P**local))
    left = P - round(P**core)
    return {"P": P, "C_global": P - (left - left % size), "C_local": size}


def family(exponents: Sequence[float] = ABOVE) -> dict[str, Any]:
    """Laws along P at fixed exponents, for a claim."""
    laws, more = ([sizes_along(P, exponents) for P in sizes] for sizes in (SIZES, MORE_SIZES))
    return {"laws": laws, "thorough": more}


def unit(law: Any) -> float:
    """K P / C_s over E[z^4], the unit of time; of the global area where no other is."""
    return float(law.K * law.P / (law.C_local or law.C_global)) / speed(law)


def speed(law: Any) -> float:
    """E[z^4], how much faster z Phi moves than with z = 1: loss z^2 f(z Phi), gradient z^3 f'."""
    return float(latent_moment(law.z, law.odds, 4))


@lru_cache(maxsize=48)
def trained(make: Any, law: Any, horizon: float = LONG, repeat: Repeat = ONCE) -> tuple[Any, Any]:
    """The reduced problem and its descent in fine steps; cached, because claims share runs.

    `make`: ``ReducedPopulation`` of the system; `horizon`: in units of time; `repeat`: factors of
    the step size and of the horizon.
    """
    fast = law.K / speed(law)
    eta = min(FINE * unit(law), LARGEST * fast) * repeat.eta_factor
    end = max(horizon * unit(law), LEAST_TIME * fast) * repeat.time_factor
    steps = int(np.ceil(end / eta))
    count = min(steps, max(RECORDS, int(np.ceil(steps * eta / (DENSE * fast)))))
    spaced = np.linspace(0, steps, count + 1), np.geomspace(1, steps, 200)
    record = np.unique(np.concatenate(spaced).round().astype(np.int64))
    problem = make(law)
    return problem, descend(problem, eta, steps, record=record)


def descended(case: Case) -> tuple[Any, Any]:
    """The run of a claim; undecided for latents that have no step size in common."""
    law = case.parameters
    if law.U > APART * law.L:
        raise Undecided(
            f"steps and horizon are one for all latents, here from {law.L:g} to {law.U:g}: "
            f"scores move as their fourth power, {(law.U / law.L) ** 4:.0e} times apart", "time",
        )  # fmt: skip
    make: Any = case.system.ReducedPopulation
    return trained(make, law, LONG, replace(case.repeat, seed=0))


def moment(case: Case, event: str) -> dict[str, float]:
    """Time, states and observables at an event; undecided where the run has none."""
    run, found = case.run, case.run.events[event]
    if not found:
        raise Undecided(f"no {event} up to time {run.time[-1]:.4g}", "time")
    values = dict(zip(run.layout.names, map(float, found.state), strict=True))
    return {"time": found.time, **values, **case.problem.observables(found.state)}


def switch(case: Case) -> dict[str, float]:
    """The switch of the dominant effects, E2; undecided without a Phase I that ends."""
    rho = case.run["rho"]
    if not rho[0] > 1:
        raise Undecided(f"rho starts at {rho[0]:.3g}, so there is no Phase I")
    return moment(case, "E2")


def since(case: Case, event: str) -> slice:
    """Records from an event on; none where the run has no such event."""
    first, count = case.run.events[event].time, len(case.run.time)
    return slice(count if isnan(first) else int(np.searchsorted(case.run.time, first)), count)


def two_phases(run: Any) -> bool:
    """Whether training starts in Phase I (E0) and leaves it once, for good."""
    return run.events["E0"].time == 0.0 and crossings(run) == 1


def crossings(run: Any) -> int:
    """How often rho passes 1."""
    rho = run["rho"]
    return int(np.count_nonzero(np.diff(np.sign(rho[np.isfinite(rho)] - 1))))


def in_time(case: Case, values: FloatArray) -> Row:
    """The curve of values over time, from the first record after the start on, by the gap.

    `values`, shape (records,).
    """
    label = rf"$\Delta = {case.parameters.Delta:.3g}$, $P = {case.parameters.P}$"
    return {"curves": {label: (case.run.time[1:], values[1:])}}


def in_units(case: Case, values: FloatArray) -> Row:
    """Values in units of K P / C_s, by P.

    `values`, shape (records,).
    """
    law = case.parameters
    return {"curves": {f"$P = {law.P}$": (case.run.time[1:] / unit(law), values[1:])}}


def visible_from(law: Any, condition: Condition) -> Row:
    """Columns of a statement on large P: from where it is visible; undecided below."""
    exponents = (law.kappa_c, law.kappa_s)
    needed = least_patches(condition, exponents, law.gamma, law.P)
    row: Row = {"needed": f"needs {near(needed)}" if needed > law.P else "large enough"}
    return row | ({"holds": None, "missing": "size"} if needed > law.P else {})


def near(size: float) -> str:
    """A number of patches in words: its order of magnitude."""
    return f"P near {size:.0e}".replace("e+0", "e").replace("e+", "e")


def at_largest(rows: list[Row], finding: Finding) -> Finding:
    """Conclude by the largest P: the sizes before show where it comes from."""
    last = rows[-1]
    missing = (last.get("missing", "size"),)
    return replace(finding, holds=last["holds"], measured=float(last["value"]), missing=missing)


def requires(
    sign: int = 0, large: bool = False, local: bool = True, many: bool = False
) -> Callable[[Any], None]:
    """A screen for parameters that do not meet a claim's hypothesis.

    `sign`: sign that Delta must have, 0 for any; `large`: Delta must be of order one, of either
    sign; `local`: whether the claim is about a local patch, which needs a mate, or about a global
    one; `many`: its area, of P^kappa patches, must be so large that one mate in it can be
    negligible.
    """

    def require(law: Any) -> None:
        size, power = (law.C_local, law.kappa_s) if local else (law.C_global, law.kappa_c)
        if not (law.area_ids > 0).any():
            raise Undecided("there is no local area, and no information gap", "law")
        if isnan(law.Delta_eff) if local else (law.area_ids == 0).sum(axis=1).max() < 2:
            kind = "local" if local else "global"
            raise Undecided(f"no {kind} patch has a mate from which to draw its content", "law")
        if (sign and sign * law.Delta <= 0) or (large and abs(law.Delta) < ORDER_ONE):
            kind = {1: "positive ", 0: "", -1: "negative "}[sign]
            raise Undecided(
                f"the claim is about a {kind}information gap of order one, here Delta="
                f"{law.Delta:.3g}", "law",
            )  # fmt: skip
        if many and size < MANY:
            raise Undecided(
                f"the claim is about areas of P^kappa patches, P large: of {size - 1} mates none "
                f"can be negligible; at kappa={power:.3g} areas of {MANY:g} need "
                f"{near(MANY ** (1 / power))}"
            )

    return require


POSITIVE_GAP = requires(sign=1, large=True)
LARGE_GAP = requires(large=True)
ALONG_P: dict[str, Any] = family() | {
    "run": descended, "require": POSITIVE_GAP, "varies": ("step size",)
}  # fmt: skip
"""Claims on a positive gap along P."""


def known_error(law: Any, entry: float = SPREADS[-1]) -> float:
    """Share of a term that rounding may make: of scores up to U times the largest entry of Q.

    `entry`: that entry.
    """
    return float(16 * np.finfo(np.float64).eps * max(1.0, law.U * entry))


def rounding_of_rates(law: Any, entry: float) -> float:
    """How far rounding may bring a rate of Phi from what it is, at entries of Q up to a size.

    `entry`: that size.
    """
    return known_error(law, entry) * float(law.gamma * law.U**3 / law.K)


def scale_of(law: Any, largest: float, power: int) -> float:
    """Scale of a difference: the largest value, but at least the rounding of its terms.

    Where attention is saturated, terms of size z^power cancel: two values may be equal in all of
    their digits but the last of the terms. Those are within `ROUNDING` of this scale.

    `largest`: of the values; `power`: of the latent, in a term: 2 of a loss or a rate of Ups, 3 of
    a rate of Phi.
    """
    return max(float(largest), known_error(law) / ROUNDING * law.gamma * law.U**power)
