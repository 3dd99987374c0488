r"""Laws and training runs that claims share, hypotheses of claims, and bounds on rounding.

The rate alpha_m of the own correlation starts at about :math:`\gamma (1 - \gamma) (C_s - 1) / (P
K)`. In units of :math:`K P / C_s` the phases therefore last about equally long at every size. If
the latent is a constant z, scores z Phi move :math:`z^4` times as fast as with z = 1. The unit of
time is therefore divided by the mean :math:`E[z^4]` over the law's latents z.
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
"""Names of the parameters that verdicts print."""
POSITIVE = {"P": 4096, "C_global": 2048, "C_local": 16}
NEGATIVE = {"P": 4096, "C_global": 128, "C_local": 64}
SLIGHT = {"P": 4096, "C_global": 832, "C_local": 64}
"""Sizes with a small positive gap, Delta = 0.117."""
SMALL = {"P": 12, "C_global": 8, "C_local": 2, "masked": 3}
ABOVE, BELOW = (0.9, 0.3), (0.6, 0.4)
"""Exponents (kappa_c, kappa_s) of two families of laws, with Delta near 0.5 and near -0.2."""
SIZES = (512, 1024, 2048, 4096, 8192)
MORE_SIZES = (724, 1448, 2896, 5792)
"""Numbers of patches that --thorough adds; above 8192 patches a run takes minutes."""
FINE = 0.01
"""Learning rate over `unit(law)`, at which the time of the switch is accurate to a percent."""
LARGEST = 2.0
"""Maximum learning rate divided by K; rapid growth takes a time of order K at any P."""
LONG = 20.0
"""Final time of a run, as a multiple of `unit(law)`."""
LEAST_TIME = 500.0
"""Minimum final time divided by K; by then the loss above its floor is K/(4 t) at all sizes."""
RECORDS = 800
DENSE = 5.0
"""Maximum time between records, divided by K; rapid growth takes a time of about 30 K."""
ORDER_ONE = 0.1
"""Minimum |Delta| that counts as of order one."""
APART = 4.0
"""Maximum ratio of latents; above it, no step size and final time suit all of them."""
SMALL_SHARE = 0.1
"""Maximum ratio to the leading correlation at which another correlation counts as small."""
MANY = 1 + 1 / SMALL_SHARE
"""Minimum number of patches of an area at which one mate has a small share of the attention."""
ROUNDING = 1e-12
SPREADS = (0.0, 0.5, 1.0, 2.0, 4.0)
"""Standard deviations of the entries of a random Q."""
UNITS = r"time in units of $K P / C_s$"

ONCE = Repeat()
claim = partial(any_claim, shown=SHOWN)


def sizes_along(P: int, exponents: Sequence[float] = ABOVE) -> dict[str, int]:
    """Sizes of one cluster nearest to P^kappa_c and P^kappa_s, by the parameters' names."""
    core, local = exponents
    size = max(2, round(P**local))
    left = P - round(P**core)
    return {"P": P, "C_global": P - (left - left % size), "C_local": size}


def family(exponents: Sequence[float] = ABOVE) -> dict[str, Any]:
    """Keywords of `claim` for laws of growing P with fixed exponents (kappa_c, kappa_s)."""
    laws, more = ([sizes_along(P, exponents) for P in sizes] for sizes in (SIZES, MORE_SIZES))
    return {"laws": laws, "thorough": more}


def unit(law: Any) -> float:
    """Unit of time: K P / (C_s E[z^4]) for a latent z. Without local areas, C_s is C_global."""
    return float(law.K * law.P / (law.C_local or law.C_global)) / speed(law)


def speed(law: Any) -> float:
    """Speed E[z^4] of the scores z Phi, divided by their speed at the constant latent z = 1."""
    return float(latent_moment(law.z, law.odds, 4))


@lru_cache(maxsize=48)
def trained(make: Any, law: Any, horizon: float = LONG, repeat: Repeat = ONCE) -> tuple[Any, Any]:
    """Reduced problem, and gradient descent on it in fine steps; cached because claims share runs.

    `make`: ``ReducedPopulation`` of the system; `horizon`: final time over `unit(law)`; `repeat`:
    factors of the step size and the final time.
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
    """Training run of a claim; undecided if latents are too different for one step size."""
    law = case.parameters
    if law.U > APART * law.L:
        raise Undecided(
            f"latents from {law.L:g} to {law.U:g} have speeds that differ by a factor of "
            f"{(law.U / law.L) ** 4:.0e}: one step size and one horizon do not suit all", "time",
        )  # fmt: skip
    make: Any = case.system.ReducedPopulation
    return trained(make, law, LONG, replace(case.repeat, seed=0))


def moment(case: Case, event: str) -> dict[str, float]:
    """Time, state and observables at an event; undecided if the event does not occur."""
    run, found = case.run, case.run.events[event]
    if not found:
        raise Undecided(f"no {event} up to time {run.time[-1]:.4g}", "time")
    values = dict(zip(run.layout.names, map(float, found.state), strict=True))
    return {"time": found.time, **values, **case.problem.observables(found.state)}


def switch(case: Case) -> dict[str, float]:
    """Time, state and observables at the switch E2; undecided without a Phase I or its end."""
    rho = case.run["rho"]
    if not rho[0] > 1:
        raise Undecided(f"rho starts at {rho[0]:.3g}, so there is no Phase I")
    return moment(case, "E2")


def since(case: Case, event: str) -> slice:
    """Slice of the records at and after an event; empty if the event does not occur."""
    first, count = case.run.events[event].time, len(case.run.time)
    return slice(count if isnan(first) else int(np.searchsorted(case.run.time, first)), count)


def two_phases(run: Any) -> bool:
    """Whether training starts in Phase I (E0) and leaves it exactly once."""
    return run.events["E0"].time == 0.0 and crossings(run) == 1


def crossings(run: Any) -> int:
    """Number of crossings of rho through 1."""
    rho = run["rho"]
    return int(np.count_nonzero(np.diff(np.sign(rho[np.isfinite(rho)] - 1))))


def in_time(case: Case, values: FloatArray) -> Row:
    """Row with a curve of values against time, labelled by Delta and P; the start is left out."""
    label = rf"$\Delta = {case.parameters.Delta:.3g}$, $P = {case.parameters.P}$"
    return {"curves": {label: (case.run.time[1:], values[1:])}}


def in_units(case: Case, values: FloatArray) -> Row:
    """Row with a curve of values against time in `unit`, labelled by P; the start is left out."""
    law = case.parameters
    return {"curves": {f"$P = {law.P}$": (case.run.time[1:] / unit(law), values[1:])}}


def visible_from(law: Any, condition: Condition) -> Row:
    """Row for a statement on large P; undecided if P is too small for the statement's condition."""
    exponents = (law.kappa_c, law.kappa_s)
    needed = least_patches(condition, exponents, law.gamma, law.P)
    row: Row = {"needed": f"needs {near(needed)}" if needed > law.P else "large enough"}
    return row | ({"holds": None, "missing": "size"} if needed > law.P else {})


def near(size: float) -> str:
    """Text with the order of magnitude of a number of patches, such as "P near 3e5"."""
    return f"P near {size:.0e}".replace("e+0", "e").replace("e+", "e")


def at_largest(rows: list[Row], finding: Finding) -> Finding:
    """Let the largest P decide a finding; smaller P only show the trend."""
    last = rows[-1]
    missing = (last.get("missing", "size"),)
    return replace(finding, holds=last["holds"], measured=float(last["value"]), missing=missing)


def requires(
    sign: int = 0, large: bool = False, local: bool = True, many: bool = False
) -> Callable[[Any], None]:
    """Function that raises Undecided for parameters outside a claim's hypothesis.

    `sign`: required sign of Delta, 0 for any; `large`: whether |Delta| must be of order one;
    `local`: whether the claim is about a local patch with a mate, otherwise about a global one;
    `many`: whether one mate must have a small share of the attention.
    """

    def require(law: Any) -> None:
        size, power = (law.C_local, law.kappa_s) if local else (law.C_global, law.kappa_c)
        if not (law.area_ids > 0).any():
            raise Undecided("a law without local areas has no information gap", "law")
        if isnan(law.Delta_eff) if local else (law.area_ids == 0).sum(axis=1).max() < 2:
            kind = "local" if local else "global"
            raise Undecided(f"no {kind} patch has a mate to attend to", "law")
        if (sign and sign * law.Delta <= 0) or (large and abs(law.Delta) < ORDER_ONE):
            kind = {1: "positive ", 0: "", -1: "negative "}[sign]
            raise Undecided(
                f"the claim is about a {kind}information gap of order one, here Delta="
                f"{law.Delta:.3g}", "law",
            )  # fmt: skip
        if many and size < MANY:
            raise Undecided(
                f"the claim is about large areas; with {size - 1} mates each has a large share; "
                f"at kappa={power:.3g}, areas of {MANY:g} patches need "
                f"{near(MANY ** (1 / power))}"
            )

    return require


POSITIVE_GAP = requires(sign=1, large=True)
LARGE_GAP = requires(large=True)
ALONG_P: dict[str, Any] = family() | {
    "run": descended, "require": POSITIVE_GAP, "varies": ("step size",)
}  # fmt: skip
"""Keywords of `claim` for laws of growing P, all with an information gap Delta near 0.5."""


def known_error(law: Any, entry: float = SPREADS[-1]) -> float:
    """Maximum relative rounding error of a term of a loss or rate; `entry`: largest entry of Q."""
    return float(16 * np.finfo(np.float64).eps * max(1.0, law.U * entry))


def rounding_of_rates(law: Any, entry: float) -> float:
    """Maximum rounding error of the rate of a correlation Phi; `entry`: largest entry of Q."""
    return known_error(law, entry) * float(law.gamma * law.U**3 / law.K)


def scale_of(law: Any, largest: float, power: int) -> float:
    """Scale for relative differences: two computations agree within `ROUNDING` times this scale.

    In saturated attention terms z^power, with the latent z, cancel; the scale may exceed `largest`.
    `largest`: largest of the compared values; `power`: power of the latent in a term, which is 2
    for a loss or a rate of Ups, 3 for a rate of Phi.
    """
    return max(float(largest), known_error(law) / ROUNDING * law.gamma * law.U**power)
