"""Late training, Theorem 4.1: the loss goes to its floor as 1/t, and the attention with it.

And how the time to a fixed loss grows along P, where the information gap is positive (Theorem F.3)
and where it is negative (Theorem F.4).
"""

from __future__ import annotations

from math import isnan, log
from typing import Any

import numpy as np

from dynamics.problem import FloatArray
from dynamics.results.power_law import exponent
from dynamics.verdicts.claim import TIME, Case, Experiment, Growth, Picture, Row
from dynamics.verdicts.findings import Undecided
from dynamics.verdicts.masked_image_modeling import grid
from theory.papers.masked_image_modeling.notation import EPSILON

AS_ONE_OVER_T = -0.9
"""Exponent in time from which on a loss falls as 1/t."""
STEEPER = 0.02
"""By how much an exponent in time falls over half a decade where it is not constant yet."""
RISING = 0.01
"""Share of itself by which attention that still rises grew in the second half of a run."""
ALONG = 0.9
"""Exponent from which on one quantity falls as fast as another."""
FALLEN = 0.02
"""Share of its start to which a loss has to fall before its last decade is a law."""
LATE: dict[str, Any] = {
    "laws": (grid.POSITIVE, grid.NEGATIVE), "run": grid.descended, "require": grid.LARGE_GAP,
    "varies": ("step size", "time"),
}  # fmt: skip


def _loss_and_attention(case: Case, local: bool) -> tuple[FloatArray, FloatArray]:
    """The loss of a patch above its floor, and its attention to its own area."""
    names = ("gap", "A_m") if local else ("gap_g", "A_g")
    return case.run[names[0]], case.run[names[1]]


def _with_mates(case: Case) -> dict[str, bool]:
    """Labels of local and global patches that have a mate to attend to: True for local ones."""
    gap, kinds = case.parameters.Delta, {"local": True, "global": False}
    return {
        rf"{name}, $\Delta = {gap:.2f}$": local for name, local in kinds.items()
        if np.isfinite(_loss_and_attention(case, local)[1]).all()
    }  # fmt: skip


def _late(case: Case, local: bool) -> tuple[FloatArray, FloatArray]:
    """Time since half of the attention was on the own area, and the loss above its floor."""
    start = case.run.events["E4" if local else "E4_global"].time
    later = case.run.time > start
    return case.run.time[later] - start, _loss_and_attention(case, local)[0][later]


def _last_exponent(time: FloatArray, values: FloatArray) -> float:
    """Exponent in time of the last half decade of a series; NaN of fewer than three values."""
    last = (time >= time[-1:] / np.sqrt(10.0)) & (values > 0)
    return exponent(time[last], values[last]) if last.sum() >= 3 else float("nan")


def late_slope(case: Case, local: bool) -> float:
    """Exponent of the loss above its floor in the time since E4; NaN without E4.

    Parameters
    ----------
    case : Case
    local : bool
    """
    return _last_exponent(*_late(case, local))


def steepens(case: Case, local: bool) -> bool:
    """Whether the loss above its floor falls faster at the end than half a decade before.

    Before E4, whether the attention to the own area still rises.

    Parameters
    ----------
    case : Case
    local : bool
    """
    time, values = _late(case, local)
    if not time.size:
        own = _loss_and_attention(case, local)[1]
        middle = int(np.searchsorted(case.run.time, case.run.time[-1] / 2))
        return bool(own[-1] > (1 + RISING) * own[middle])
    before = time <= time[-1] / np.sqrt(10.0)
    earlier = _last_exponent(time[before], values[before])
    return bool(_last_exponent(time, values) < earlier - STEEPER)


@grid.claim(
    "Theorem 4.1, loss", "slowest exponent in time of the loss above its floor, after rapid growth",
    "<=", AS_ONE_OVER_T, **LATE,
    words="as time to the power {slopes}, to {ends}, which is {constants} of K/(4 t)",
    picture=Picture(r"time since $A \geq 1/2$", "$L_p - L_p^*$"),
)  # fmt: skip
def loss(case: Case) -> Row:
    """The late law of the loss, of a local and of a global patch."""
    patches, K, curves = _with_mates(case), case.parameters.K, {}
    slopes, ends, constants, pending = [], [], [], []
    for label, local in patches.items():
        curves[label] = time, gap = _late(case, local)
        slopes.append(late_slope(case, local))
        ends.append(_loss_and_attention(case, local)[0][-1])
        constants.append(4 * time[-1] * gap[-1] / K if time.size else float("nan"))
        pending += [] if slopes[-1] <= AS_ONE_OVER_T else [steepens(case, local)]
    found = {"slopes": slopes, "ends": ends, "constants": constants}
    row: Row = {name: ", ".join(f"{one:.4g}" for one in every) for name, every in found.items()}
    row |= {"value": float("nan") if any(map(isnan, slopes)) else max(slopes), "curves": curves}
    return row | ({"open": "time"} if pending and all(pending) else {})


@grid.claim(
    "Theorem 4.1, attention",
    "least exponent of (1 - A)^2 in the loss above its floor, over its last decade", ">=", ALONG,
    **LATE,
    words="(1 - A)^2 falls as L_p - L*_p to the power {value:.3g} at least and makes {visible:.2g} "
    "of it at the end, or more, with {own:.4f} of the attention on the own area",
    picture=Picture("$L_p - L_p^*$ over its start", "$(1 - A)^2$"),
)  # fmt: skip
def attention(case: Case) -> Row:
    """(1 - A)^2 against the loss above its floor, over the last decade of the latter."""
    rows, law, found, curves = case.problem.rows, case.parameters, [], {}
    for label, local in _with_mates(case).items():
        gap, own = _loss_and_attention(case, local)
        last = (gap <= 10 * gap[-1]) & (gap > 0) & (own < 1)
        curves[label] = (gap / gap[0], (1 - own) ** 2)
        if gap[-1] > FALLEN * gap[0] or last.sum() < 3:
            words = f"L_p - L*_p ends at {gap[-1] / gap[0]:.2g} of its start, with {own[-1]:.3g}"
            raise Undecided(f"{words} of the attention on the own area", "time")
        # A is a mean over masks that leave a mate, so that the mean of the square is no smaller.
        chance = law.gamma * rows.mates[rows.names.index(rows.roles(local)[0])]
        visible = chance * law.L**2 * (1 - own[-1]) ** 2 / (2 * gap[-1])
        found.append((2 * exponent(gap[last], 1 - own[last]), visible, own[-1]))
    least = map(float, np.min(found, axis=0))
    return dict(zip(("value", "visible", "own"), least, strict=True)) | {"curves": curves}


def _time_to_loss(source: str, sign: int, kappas: tuple[float, float]) -> Experiment:
    """A claim on the time to L_p - L*_p <= 1e-3 over ln P, against P^(1 - kappa_s)."""

    def measure(case: Case) -> Row:
        law, time = case.parameters, grid.moment(case, "E5")["time"]
        curve = {f"$P = {law.P}$": (case.run.time[1:], case.run["gap"][1:])}
        return {"value": time / log(law.P), "time": time, "curves": curve}

    return grid.claim(
        source, "exponent of P in the time to a loss of 1e-3 above the floor over ln P", "<=",
        **_gap_of(sign, kappas), growth=Growth("P", 1 - kappas[1], upper=True),
        words="time {time:.4g}", picture=Picture(TIME, "$L_p - L_p^*$"),
    )(measure)  # fmt: skip


def _attention_at_loss(source: str, sign: int, kappas: tuple[float, float]) -> Experiment:
    """A claim on (1 - A_m)^2 over epsilon where L_p - L*_p comes to it: 2/gamma, whatever P is."""

    def measure(case: Case) -> Row:
        law, own = case.parameters, grid.moment(case, "E5")["A_m"]
        curve = {f"$P = {law.P}$": (case.run["gap"][1:], (1 - case.run["A_m"][1:]) ** 2)}
        value = (1 - own) ** 2 / (2 * law.gamma * float(EPSILON))
        return {"value": value, "bound": 2 / law.gamma, "own": own, "curves": curve}

    return grid.claim(
        source, "largest (1 - A_m)^2 over the loss above the floor, where that is 1e-3", "<=",
        **_gap_of(sign, kappas), words="A_m={own:.4f}, (1 - A_m)^2 is {value:.3g} times that",
        picture=Picture("$L_p - L_p^*$", "$(1 - A_m)^2$"),
    )(measure)  # fmt: skip


def _gap_of(sign: int, kappas: tuple[float, float]) -> dict[str, Any]:
    screen = grid.requires(sign=sign, large=True)
    return grid.ALONG_P | grid.family(kappas) | {"require": screen}


theorem_f_3_loss = _time_to_loss("Theorem F.3, loss", 1, grid.ABOVE)
theorem_f_4_loss = _time_to_loss("Theorem F.4, loss", -1, grid.BELOW)
theorem_f_3_attention = _attention_at_loss("Theorem F.3, attention", 1, grid.ABOVE)
theorem_f_4_attention = _attention_at_loss("Theorem F.4, attention", -1, grid.BELOW)
