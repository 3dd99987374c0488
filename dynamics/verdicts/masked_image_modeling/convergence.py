"""Phase II: Phi_m grows rapidly, Phi_0 is frozen, and the loss goes to its floor as 1/t.

Section 5.3 and Theorem F.3 (what grows and what is frozen after the switch), and Theorem 4.1 (the
late laws of the loss and of the attention to the own area).
"""

from __future__ import annotations

from collections.abc import Sequence
from math import inf, isnan, log

import numpy as np
import sympy

from dynamics.problem import FloatArray
from dynamics.results.power_law import exponent
from dynamics.verdicts import rules
from dynamics.verdicts.findings import Finding, Undecided
from dynamics.verdicts.masked_image_modeling import runs
from dynamics.verdicts.study import LINEAR, Measurement, Study, measures
from dynamics.verdicts.wording import listed
from theory.papers.masked_image_modeling.information_gap import late_loss
from theory.papers.masked_image_modeling.notation import NOTATION
from theory.papers.masked_image_modeling.required_sizes import change_after_switch

Patch = tuple[runs.Case, bool]
"""A case, and whether its local or its global patches are meant."""
POSITIVE_GAP = runs.requires(sign=1, large=True)
LARGE_GAP = runs.requires(large=True)
ONE_RUN = ("step size", "time")
AS_ONE_OVER_T = -0.9
"""Exponent in time from which on a loss falls as 1/t."""
SLOWEST = "slowest exponent in time of the loss above its floor, after rapid growth"
STEEPER = 0.02
"""By how much an exponent in time falls over half a decade where it is not constant yet."""
RISING = 0.01
"""Share of itself by which attention that still rises grew in the second half of a run."""
ALONG = 0.9
"""Exponent from which on one quantity falls as fast as another."""
FALLEN = 0.02
"""Share of its start to which a loss has to fall before its last decade is a law."""
BOOST = 2.0
"""Factor from which on a rate has grown, not only wavered."""
LEADING_GROWTH = 8 / 81
"""alpha_m grows to A_m (1 - A_m)^2 = 4/27 from 3/2 (1 - gamma) / P^(1 - kappa_s) at the switch."""
MIDDLE = 0.3
"""Distance from 1/2 of attention that is neither near 0 nor near 1."""
NO_SWITCH = "there is no switch from which to grow"
UNCHANGED = 0.1
"""Relative change up to which a correlation is nearly unchanged."""


@measures(SLOWEST, "<=", AS_ONE_OVER_T, LARGE_GAP, single=ONE_RUN, again=True)
def loss(study: Study) -> Finding:
    """The late law of the loss, and how the time to a fixed loss grows with P."""
    patches = _with_mates(runs.cases_of(study, runs.POSITIVE, runs.NEGATIVE))
    for case, local in patches:
        study.row(
            case.sizes, row=_name(local), slope=late_slope(case, local),
            visible=_visible(case, local), left=float(_loss_and_attention(case, local)[0][-1]),
        )  # fmt: skip
        study.curve(_label(case, local), *_late(case, local))
    slowest, growth = float(np.max(study.column("slope"))), None
    left = study.words("{left:.2g} ({row})")
    reason = f"L_p - L*_p ends at {left}, {words_of_decay(patches)}"
    also = []
    if study.parameters is None:
        ladder = [(c.parameters.P, c.time("E5")) for c in runs.family(study)]
        sizes, times = zip(*ladder, strict=True)
        claimed = 1 - runs.EXPONENTS[1]
        growth = rules.growth(sizes, np.divide(times, np.log(sizes)), claimed, upper=True)
        reason += (
            f"; the time to 1e-3 over ln P grows along P={', '.join(map(str, sizes))} with "
            f"{growth}, P^(1 - kappa_s) being P^{claimed:.2g}"
        )
        name = "exponent of P in the time to 1e-3 over ln P"
        most = claimed * (1 + rules.SHARE)
        also = [Measurement(name, growth.fit.exponent, "<=", most)]
    grows = growth is not None and growth.holds is False
    undecided_yet = not grows and (
        still_steepening(patches) or (growth is not None and growth.holds is None)
    )
    if slowest > AS_ONE_OVER_T:
        slow = max(study.rows, key=lambda row: float(row["slope"]))
        reason += (
            "; what falls too slowly still falls faster and faster"
            if undecided_yet
            else f"; of the slowest (1 - A)^2, of masks that leave a mate, makes "
            f"{slow['visible']:.2g} at least, other areas and masks that leave none make the rest"
        )
    late = next((time for time, _ in (_late(*patch) for patch in patches) if time.size), None)
    if late is not None:
        law = sympy.lambdify(NOTATION.symbols("K time"), late_loss())
        study.curve(r"$K / (4 \tau)$", late, law(patches[0][0].parameters.K, late))
    study.draw(r"time since $A \geq 1/2$", "$L_p - L_p^*$")
    return study.conclude(
        slowest, reason, *also, may_still_come=undecided_yet,
        missing="time" if still_steepening(patches) else "size",
        exponent_of_time=None if growth is None else growth.fit.exponent,
    )  # fmt: skip


@measures(
    "least exponent of (1 - A)^2 in the loss above its floor, over its last decade",
    ">=", ALONG, LARGE_GAP, single=ONE_RUN, again=True,
)  # fmt: skip
def attention(study: Study) -> Finding:
    """(1 - A)^2 against the loss above its floor, over the last decade of the latter."""
    for case, local in _with_mates(runs.cases_of(study, runs.POSITIVE, runs.NEGATIVE)):
        gap, own = _loss_and_attention(case, local)
        study.row(
            case.sizes, row=_name(local), own=float(own[-1]), left=float(gap[-1] / gap[0]),
            exponent=_along(gap, 1 - own), visible=_visible(case, local),
        )  # fmt: skip
        study.curve(_label(case, local), gap / gap[0], (1 - own) ** 2)
    study.draw("$L_p - L_p^*$ over its start", "$(1 - A)^2$")
    rows = study.rows
    decayed = [row for row in rows if row["left"] <= FALLEN and not isnan(row["exponent"])]
    least = min((row["exponent"] for row in decayed), default=float("nan"))
    if len(decayed) < len(rows) and not least < ALONG:
        slow = max(rows, key=lambda row: float(row["left"]))
        reason = (
            f"L_p - L*_p of a {slow['row']} patch ends at {slow['left']:.2g} of its start, with "
            f"{slow['own']:.3g} of the attention on the own area: no decade to take an exponent of"
        )
        return study.conclude(least, reason, holds=None, missing="time")
    powers, shares = ([row[name] for row in decayed] for name in ("exponent", "visible"))
    reason = (
        f"(1 - A)^2 falls as L_p - L*_p to the power {listed(powers)} and "
        f"makes {listed(shares, 2)} of it at the end, or more; the own area "
        f"ends with {min(study.column('own')):.4f} of the attention or more"
    )
    return study.conclude(least, reason)


@measures(
    "least growth of alpha_m from the switch to its peak",
    ">=", BOOST, POSITIVE_GAP, single=("step size",), again=True,
)  # fmt: skip
def rapid_growth(study: Study) -> Finding:
    """Growth of the rate of Phi_m from the switch to its peak."""
    first, cases = inf, runs.family(study)
    for case in cases:
        rate, switch = case.run["alpha_m"], case.after("E2").start
        peak = switch + int(rate[switch:].argmax()) if switch < rate.size else 0
        grown = float(rate[peak] / rate[switch]) if switch < rate.size else float("nan")
        falls = int(np.count_nonzero(np.diff(rate[switch : peak + 1]) <= 0))
        study.row(case.sizes, growth=grown, falls=falls, A_m=float(case.run["A_m"][peak]))
        study.curve(case.size, *case.in_units(rate / rate[0]))
        first = min(first, float(case.run["rho"][0]))
    least, falls = float(np.min(study.column("growth"))), sum(study.column("falls"))
    if np.isnan(least):
        missing = "time" if first > 1 else "size"
        raise Undecided(NO_SWITCH, missing, table=study.rows)
    falling = f"with a fall at {falls} records" if falls else "without a fall"
    reason = (
        f"alpha_m grows {study.listed('growth')}-fold from the switch to its peak (P="
        f"{runs.patches_of(study)}), {falling}, where A_m is {study.listed('A_m')}"
    )
    study.draw(runs.UNITS, r"$\alpha_m$ over its first value")
    also = "records from the switch to the peak at which alpha_m falls"
    growths, law = study.column("growth"), cases[-1].parameters
    early = least < BOOST and not falls and (len(cases) == 1 or growths[-1] > growths[0])
    if early:
        needed = (BOOST * (1 - law.gamma) / LEADING_GROWTH) ** (1 / (1 - law.kappa_s))
        if len(cases) > 1:
            reason += "; it grows along P"
        if needed > law.P:
            reason += f"; to leading order P^(1 - kappa_s), {BOOST:g}-fold at {runs.near(needed)}"
        elif len(cases) == 1:
            reason += f"; it rises, and less than {BOOST:g}-fold at one size decides nothing"
    turns = Measurement(also, falls, "<=", 0)
    return study.conclude(least, reason, turns, may_still_come=early, missing="size")


@measures(
    "largest distance from 1/2 of the attention to the own area where alpha_m peaks",
    "<=", MIDDLE, POSITIVE_GAP, single=ONE_RUN, again=True,
)  # fmt: skip
def end_of_growth(study: Study) -> Finding:
    """Where alpha_m peaks, and whether the loss goes to its floor."""
    patches = [(case, True) for case in runs.family(study)]
    for case, _ in patches:
        run, peak = case.run, int(case.run["alpha_m"].argmax())
        depth = float(run["Phi_m"][peak] / log(case.parameters.P))
        left = float(run["gap"][-1] / run["gap"][0])
        study.row(
            case.sizes, A_m=float(run["A_m"][peak]), Phi_m_over_log=depth, left=left,
            slope=late_slope(case, True),
        )  # fmt: skip
        study.curve(case.size, run["A_m"][1:], run["alpha_m"][1:])
    peaks = study.column("A_m")
    off = max(abs(peak - 0.5) for peak in peaks)
    slowest, undecided_yet = float(np.max(study.column("slope"))), still_steepening(patches)
    reason = (
        f"alpha_m peaks at A_m = {study.listed('A_m')} and Phi_m / ln P = "
        f"{study.listed('Phi_m_over_log')} (P={runs.patches_of(study)}); the loss above its "
        f"floor ends at {study.listed('left', 2)} of its start, {words_of_decay(patches)}"
    )
    if undecided_yet and slowest > AS_ONE_OVER_T:
        reason += ", and still faster and faster"
    study.draw("attention to the own area $A_m$", r"$\alpha_m$", None, *LINEAR)
    also = [Measurement(SLOWEST, slowest, "<=", AS_ONE_OVER_T)]
    constant: bool | None = True
    if len(peaks) > 1:
        growth = rules.growth(study.column("P"), peaks, 0.0)
        constant = growth.holds
        reason += f"; A_m there, of order one, goes along P with {growth}"
        name = "size of the exponent in P of A_m where alpha_m peaks"
        also.append(Measurement(name, abs(growth.fit.exponent), "<=", rules.NEAR_ZERO))
    alone = len(peaks) == 1
    late = undecided_yet and (alone or off <= MIDDLE)
    # One size excuses a constant of order one, and the law of a loss that has come near its floor.
    converges = slowest <= AS_ONE_OVER_T or max(study.column("left")) <= FALLEN
    undecided = late or (alone and converges) or (off <= MIDDLE and constant is None)
    missing = "time" if late else "size"
    return study.conclude(off, reason, *also, may_still_come=undecided, missing=missing)


@measures(
    "change of Phi_0 after the switch over its value there, at the largest P",
    "<=", UNCHANGED, POSITIVE_GAP, single=ONE_RUN, again=True,
)  # fmt: skip
def frozen(study: Study) -> Finding:
    """How much Phi_0 moves after the switch."""
    cases = runs.family(study)
    for case in cases:
        if not case.time("E2") > 0:
            law = case.parameters
            raise Undecided(
                "the claim is about what follows a switch, and there is none at "
                f"P={law.P}, C_g={law.C_global}, C_s={law.C_local}",
                table=[each.sizes for each in cases],
            )
    for case in cases:
        phi, at, after = case.run["Phi_0"], case.at("E2"), case.after("E2")
        start, moved = at["Phi_0"], abs(phi[-1] - at["Phi_0"])
        share = float(moved / abs(case.run["Phi_m"][-1] - at["Phi_m"]))
        study.row(
            case.sizes, Phi_0_at_switch=start, Phi_0_at_end=float(phi[-1]),
            change=float(moved / abs(start)), share=share,
        )  # fmt: skip
        if after.start < after.stop:
            study.curve(case.size, case.run.time[after] / case.unit, phi[after] / start)
    reason = (
        f"Phi_0 goes on from {study.listed('Phi_0_at_switch')} at the switch to "
        f"{study.listed('Phi_0_at_end')} (P={runs.patches_of(study)}), a change of "
        f"{study.listed('change', 2)} of itself and {study.listed('share', 2)} of "
        "the growth of Phi_m"
    )
    law = cases[-1].parameters
    needed = runs.needed(law, lambda *start: change_after_switch(*start) <= UNCHANGED)
    if needed > law.P:
        reason += f"; a change below {UNCHANGED:g} of itself needs {runs.near(needed)}"
    level = {"nearly unchanged": 1 + UNCHANGED}
    study.draw(runs.UNITS, r"$\Phi_0$ over its value at the switch", level, y_scale="linear")
    return study.conclude(
        study.rows[-1]["change"], reason, holds=None if needed > law.P else "as measured"
    )


def _name(local: bool) -> str:
    return "local" if local else "global"


def _label(case: runs.Case, local: bool) -> str:
    return f"{_name(local)}, $\\Delta = {case.parameters.Delta:.2f}$"


def _along(gap: FloatArray, missing: FloatArray) -> float:
    """Exponent of missing^2 in the gap, over the last decade of the gap."""
    last = (gap <= 10 * gap[-1]) & (gap > 0) & (missing > 0)
    return 2 * exponent(gap[last], missing[last]) if last.sum() >= 3 else float("nan")


def _visible(case: runs.Case, local: bool) -> float:
    """Share of the loss above its floor that (1 - A)^2 makes at the end, at least.

    A is a mean over masks that leave a mate, so that the mean of the square is no smaller.
    """
    gap, own = _loss_and_attention(case, local)
    law, rows = case.parameters, case.problem.rows
    chance = law.gamma * rows.mates[rows.names.index(case.row(local))]
    return float(chance * law.L**2 * (1 - own[-1]) ** 2 / (2 * gap[-1]))


def _with_mates(cases: Sequence[runs.Case]) -> list[Patch]:
    """Local and global patches of cases, where they have a mate to attend to."""
    every = [(case, local) for case in cases for local in (True, False)]
    return [patch for patch in every if np.isfinite(_loss_and_attention(*patch)[1]).all()]


def _loss_and_attention(case: runs.Case, local: bool) -> tuple[FloatArray, FloatArray]:
    """The loss of a patch above its floor, and its attention to its own area."""
    loss_name, attention_name = ("gap", "A_m") if local else ("gap_g", "A_g")
    return case.run[loss_name], case.run[attention_name]


def _late(case: runs.Case, local: bool) -> tuple[FloatArray, FloatArray]:
    """Time since half of the attention was on the own area, and the loss above its floor."""
    start = case.time("E4" if local else "E4_global")
    later = case.run.time > start
    return case.run.time[later] - start, _loss_and_attention(case, local)[0][later]


def _last_exponent(time: FloatArray, values: FloatArray) -> float:
    """Exponent in time of the last half decade of a series; NaN of fewer than three values."""
    if not time.size:
        return float("nan")
    last = (time >= time[-1] / np.sqrt(10.0)) & (values > 0)
    return exponent(time[last], values[last]) if last.sum() >= 3 else float("nan")


def late_slope(case: runs.Case, local: bool) -> float:
    """Exponent of the loss above its floor in the time since E4; NaN where there is no E4.

    Parameters
    ----------
    case : Case
    local : bool
        Whether of a local or of a global patch.
    """
    return _last_exponent(*_late(case, local))


def _steepens(case: runs.Case, local: bool) -> bool:
    """Whether the loss above its floor falls faster at the end than half a decade before.

    Before E4, whether the attention to the own area still rises.
    """
    time, values = _late(case, local)
    if not time.size:
        own = _loss_and_attention(case, local)[1]
        middle = int(np.searchsorted(case.run.time, case.run.time[-1] / 2))
        return bool(own[-1] > (1 + RISING) * own[middle])
    before = time <= time[-1] / np.sqrt(10.0)
    earlier = _last_exponent(time[before], values[before])
    return bool(_last_exponent(time, values) < earlier - STEEPER)


def still_steepening(patches: Sequence[Patch]) -> bool:
    """Whether every loss that does not fall as 1/t yet may still come to do so."""
    return all(late_slope(*patch) <= AS_ONE_OVER_T or _steepens(*patch) for patch in patches)


def words_of_decay(patches: Sequence[Patch]) -> str:
    """How losses fall, in words."""
    slopes = [late_slope(*patch) for patch in patches]
    finite = [slope for slope in slopes if not isnan(slope)]
    words = [f"falling as time to the power {listed(finite)}"] if finite else []
    for (case, local), slope in zip(patches, slopes, strict=True):
        if isnan(slope):
            own = _loss_and_attention(case, local)[1][-1]
            rises = "still rising" if _steepens(case, local) else "which rises no more"
            words.append(
                f"a {_name(local)} patch ends with {own:.3g} of its attention on its own area, "
                f"{rises}"
            )
    return "; ".join(words)
