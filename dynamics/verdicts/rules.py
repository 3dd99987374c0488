"""Rules for verdicts: from the measurement of a check to the printed word.

1. A claim is undecided at parameters outside its hypothesis, whether a check or a user chose the
   parameters (`dynamics.verdicts.claim`).
2. A claimed bound is supported by every measured value that meets it, at any distance from it.
3. A claim whose formula is recalled here, because the available text of the paper lacks it, is
   never contradicted.
4. An ambiguous statement gets a verdict on the interpretation that the claim names, and a second
   verdict on the words as printed.
5. A contradiction at one step size, one seed or one time is undecided until it is repeated at half
   and a quarter of the step size, with three seeds, and at a later time.
6. A growth law is tested by its exponent, within a tenth; constant factors are not compared.
7. A verdict is undecided if it changes when the start changes by a relative 1e-15
   (`dynamics.verdicts.rounding`).
8. A verdict on a reduced population names the time up to which training, started at a distance of
   1e-10 from the classes, stays on them (`dynamics.verdicts.stability`).

An undecided verdict names what is missing: "not decidable at this size", "to this time", "under
this law" (`dynamics.verdicts.findings.MISSING`).

The function `applied` implements rules 2 to 5 for every finding; checks call `repeats` for rule 5
and `growth` for rule 6.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace
from math import nan
from typing import TYPE_CHECKING

import numpy as np
from numpy.typing import ArrayLike

from dynamics.results.power_law import PowerLaw, power_law

if TYPE_CHECKING:
    from dynamics.verdicts.findings import Finding
    from theory.claims import Claim

REPEATED = {
    "step size": "half and a quarter of the step size",
    "seed": "three seeds",
    "time": "a later time",
}
SHARE = 0.1
"""Maximum relative difference of a measured and a claimed exponent at which the claim holds."""
NEAR_ZERO = 0.05
"""Maximum absolute value of a measured exponent at which a claimed exponent 0 holds."""
SEEDS = 3
"""Number of seeds that a contradiction needs."""
ERRORS = 4.0
"""Minimum distance from 0, in standard errors, at which a value contradicts a claimed sign."""
LATER = 2.0
"""Factor of a run's final time when a contradiction is repeated at a later time."""


def applied(claim: Claim, finding: Finding) -> Finding:
    """The finding of a check after rules 2 to 5 of this module."""
    if finding.holds is False and claim.one_sided and _better(finding):
        reason = f"{finding.reason}; better than the bound, so not contradicted"
        finding = replace(finding, holds=True, reason=reason)
    if finding.holds is False and claim.recalled:
        reason = f"{finding.reason}; a formula recalled here is never contradicted"
        finding = replace(finding, holds=None, reason=reason, missing=("formula",))
    if finding.single and finding.measured == finding.measured:
        reason = f"{finding.reason}; measured at one {' and one '.join(finding.single)} only"
        if finding.holds is False:
            needed = ", ".join(REPEATED[name] for name in finding.single)
            reason += f", a contradiction needs {needed}"
            finding = replace(finding, holds=None, missing=finding.single)
        finding = replace(finding, reason=reason)
    if finding.literal is not None:
        literal = applied(replace(claim, reading="", one_sided=False), finding.literal)
        finding = replace(finding, literal=literal)
    elif claim.reading and finding.measured == finding.measured:
        nothing = "the literal words are not measured"
        literal = replace(
            finding, holds=None, in_part=False, measured=nan, bound=nan, reason=nothing
        )
        finding = replace(finding, literal=replace(literal, missing=("measurement",)))
    if claim.reading:
        finding = replace(finding, reason=f"read as: {claim.reading}; {finding.reason}")
    return finding


def _better(finding: Finding) -> bool:
    """Whether the measured value meets its bound."""
    if finding.relation.startswith("<"):
        return finding.measured <= finding.bound
    return finding.relation.startswith(">") and finding.measured >= finding.bound


@dataclass(frozen=True)
class Repeat:
    """Settings of a run that repeats a contradiction.

    `eta_factor`: factor of the learning rate (the number of steps grows so that the time is the
    same); `seed`: number added to the seed; `time_factor`: factor of the final time.
    """

    eta_factor: float = 1.0
    seed: int = 0
    time_factor: float = 1.0

    def __str__(self) -> str:
        changes = {
            f"eta times {self.eta_factor:g}": self.eta_factor != 1.0,
            f"seed + {self.seed}": self.seed,
            f"time times {self.time_factor:g}": self.time_factor != 1.0,
        }
        return ", ".join(words for words, made in changes.items() if made) or "as measured"


def repeats(*single: str) -> Iterator[Repeat]:
    """Yield the settings of the runs that must confirm a contradiction.

    `*single`: settings tried at one value only, names in `REPEATED`.

    Examples
    --------
    >>> [str(repeat) for repeat in repeats("step size", "time")]
    ['eta times 0.5', 'eta times 0.25', 'time times 2']
    """
    if "step size" in single:
        yield from (Repeat(eta_factor=0.5), Repeat(eta_factor=0.25))
    if "seed" in single:
        yield from (Repeat(seed=seed) for seed in range(1, SEEDS))
    if "time" in single:
        yield Repeat(time_factor=LATER)


@dataclass(frozen=True)
class Growth:
    """Comparison of a measured power law with a claimed exponent.

    `fit`: power law over all sizes; `local`: exponents between neighbouring sizes; `holds`: the
    decision of `growth`.
    """

    fit: PowerLaw
    local: tuple[float, ...]
    holds: bool | None

    def __str__(self) -> str:
        low, high = self.fit.intervals[0]
        local = ", ".join(f"{value:.2f}" for value in self.local)
        return f"exponent {self.fit.exponent:.3g} (95 %: {low:.2f} to {high:.2f}; local {local})"


def growth(
    sizes: ArrayLike,
    values: ArrayLike,
    claimed: float,
    errors: ArrayLike | None = None,
    upper: bool = False,
) -> Growth:
    """Compare the growth of values along sizes with a claimed exponent.

    `sizes`, `values`, shape (n,): positive; `claimed`: exponent of ``values`` in ``sizes``;
    `errors`, shape (n,): standard errors of log ``values``; `upper`: whether the claim is an upper
    bound on the exponent. The tolerance is a tenth of the claimed exponent, or 0.05 if this
    exponent is 0. The decision is True if the fitted exponent is within the tolerance and its 95 %
    interval is at most four tolerances wide. The decision is False if the interval lies outside the
    tolerance and the local exponents do not approach the claimed one. Otherwise it is None.

    Examples
    --------
    >>> sizes = [8, 16, 32, 64]
    >>> [growth(sizes, [n**e for n in sizes], 0.25).holds for e in (0.25, 0.22, -1.0)]
    [True, False, False]
    >>> growth(sizes, [n**2 + 40 * n for n in sizes], 2.0).holds is None
    True
    """
    fit = power_law(sizes, values, errors)
    x, y = (np.log(np.asarray(array, dtype=np.float64)) for array in (sizes, values))
    usable = np.isfinite(x) & np.isfinite(y)
    x, y = x[usable], y[usable]
    local = tuple(float(slope) for slope in np.diff(y) / np.diff(x))
    margin = SHARE * abs(claimed) or NEAR_ZERO
    low, high = fit.intervals[0]
    if not np.isfinite([low, high]).all():
        return Growth(fit, local, None)
    if upper and high <= claimed + margin:
        return Growth(fit, local, True)
    if abs(fit.exponent - claimed) <= margin and high - low <= 4 * margin:
        return Growth(fit, local, True)
    away = low > claimed + margin or (not upper and high < claimed - margin)
    return Growth(fit, local, False if away and not _approaches(local, claimed) else None)


def _approaches(local: Sequence[float], claimed: float) -> bool:
    """Whether the distance of local exponents from `claimed` falls by a tenth at large sizes."""
    distance = np.abs(np.asarray(local) - claimed)
    half = len(distance) // 2
    if half == 0:
        return False
    early, late = float(distance[:half].mean()), float(distance[-half:].mean())
    return late < early * (1 - SHARE)
