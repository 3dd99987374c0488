"""Rules for verdicts: from the measurement of a check to the printed word.

1. The hypothesis of a claim screens the sizes of a check's own protocol as it screens a user's;
   outside of it nothing is decided (`dynamics.verdicts.claim`).
2. A sufficient condition or a bound is contradicted only by exceeding it; doing better holds.
3. A formula that the text at hand has lost, and that is recalled here, is never contradicted.
4. Where a statement can be read in several ways, the verdict names the reading; what was measured
   of the literal words, under the same rules, or that nothing was, stands beside it.
5. What was measured at one step size, one seed or one time says so, and contradicts nothing before
   it was measured again at half and a quarter of the step size, with three seeds, and later.
6. A growth law is held against its exponent, to a tenth of it: a factor hides nothing there.
7. What follows a change of the start by 1e-15 of itself is chance, and decides nothing
   (`dynamics.verdicts.rounding`).
8. A verdict on a reduced population speaks of the time to which training stays on its classes, from
   starts that are off them by 1e-10 (`dynamics.verdicts.stability`).

What decides nothing names what is missing: "not decidable at this size", "to this time", "under
this law" (`dynamics.verdicts.findings.MISSING`).

Rules 2 to 5 are `applied` to every finding; `repeats` and `growth` are what checks use to meet the
fifth and the sixth.
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
"""Relative distance up to which a measured exponent is the claimed one."""
NEAR_ZERO = 0.05
"""Distance up to which a measured exponent is a claimed 0."""
SEEDS = 3
"""Seeds that a contradiction needs."""
ERRORS = 4.0
"""Standard errors that a contradiction by a sign takes: at two, other seeds do not repeat it."""
LATER = 2.0
"""Factor of the time at which a contradiction is looked at again."""


def applied(claim: Claim, finding: Finding) -> Finding:
    """The finding under rules 2 to 5.

    `finding`: as the check measured it.
    """
    if finding.holds is False and claim.one_sided and _better(finding):
        reason = f"{finding.reason}; better than the bound, which does not contradict it"
        finding = replace(finding, holds=True, reason=reason)
    if finding.holds is False and claim.recalled:
        reason = f"{finding.reason}; the formula is recalled here, and so is not contradicted"
        finding = replace(finding, holds=None, reason=reason, missing=("formula",))
    if finding.single and finding.measured == finding.measured:
        reason = f"{finding.reason}; seen at one {' and one '.join(finding.single)}"
        if finding.holds is False:
            needed = ", ".join(REPEATED[name] for name in finding.single)
            reason += f", and to contradict takes {needed}"
            finding = replace(finding, holds=None, missing=finding.single)
        finding = replace(finding, reason=reason)
    if finding.literal is not None:
        literal = applied(replace(claim, reading="", one_sided=False), finding.literal)
        finding = replace(finding, literal=literal)
    elif claim.reading and finding.measured == finding.measured:
        nothing = "nothing is measured of the literal words"
        literal = replace(
            finding, holds=None, in_part=False, measured=nan, bound=nan, reason=nothing
        )
        finding = replace(finding, literal=replace(literal, missing=("measurement",)))
    if claim.reading:
        finding = replace(finding, reason=f"read as: {claim.reading}; {finding.reason}")
    return finding


def _better(finding: Finding) -> bool:
    """Whether the measured value is on the good side of its bound."""
    if finding.relation.startswith("<"):
        return finding.measured <= finding.bound
    return finding.relation.startswith(">") and finding.measured >= finding.bound


@dataclass(frozen=True)
class Repeat:
    """One of the runs that a contradiction needs.

    `eta_factor`: factor of the step size; the number of steps grows so that the time stays; `seed`:
    to be added to the seed; `time_factor`: factor of the time at the end.
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
    """Yield the runs that a contradiction needs beside the first.

    `*single`: names from `REPEATED`: what was tried only once.

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
    """A growth law held against a claimed exponent.

    `fit`: over all sizes; `local`: exponents from one size to the next; `holds`: as `growth`
    decides.
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
    """Hold the growth of values along sizes against a claimed exponent.

    `sizes`, `values`, shape (n,): positive; `claimed`: exponent of ``values`` in ``sizes``;
    `errors`, shape (n,): standard errors of the logarithms of the values; `upper`: the claim is an
    upper bound: a smaller exponent holds too. Returns Growth: holds: the exponent is within a tenth
    of the claimed one (0.05 where 0 is claimed), and its 95 % interval reaches no further than two
    tenths from itself. Contradicted: the interval leaves out all that is within a tenth, and the
    local exponents do not come nearer to the claimed one along the sizes. Undecided: otherwise.

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
    """Whether exponents from size to size come nearer to the claimed one, by more than rounding."""
    distance = np.abs(np.asarray(local) - claimed)
    half = len(distance) // 2
    if half == 0:
        return False
    early, late = float(distance[:half].mean()), float(distance[-half:].mean())
    return late < early * (1 - SHARE)
