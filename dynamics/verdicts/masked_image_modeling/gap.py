"""Claims on the information gap Delta, whose sign decides which correlation moves first.

The claims are equation (4.1), Theorems F.3 and F.4 (also for global patches), the signs of rates
(Section 5.1) and Theorem 4.1. In Theorem 4.1 the loss approaches its floor as 1/t, and attention
converges with the loss. The time to a fixed loss grows with P for both signs of Delta.
"""

from __future__ import annotations

from math import isnan, log
from typing import Any

import numpy as np

from dynamics.problem import FloatArray
from dynamics.results.power_law import exponent
from dynamics.verdicts import rules
from dynamics.verdicts.cases import Case
from dynamics.verdicts.claim import TIME, Also, Experiment, Growth, Literal, Picture, Row
from dynamics.verdicts.findings import Undecided
from dynamics.verdicts.masked_image_modeling import grid
from theory.papers.masked_image_modeling.notation import EPSILON
from theory.papers.masked_image_modeling.required_sizes import ratio_at_start

SAME = 1e-9
"""Maximum relative difference at which two computations of rho(0) count as equal."""
FAR = (1e10, 1e12, 1e14, 1e16)
"""Numbers of patches P from which the exponent in P of the exact rho(0) is computed."""
CROSSING = {"family": "two_cluster_grid", "b11": 8, "b10": 8, "C_local": 4, "T": 1}
RATIO = r"$|\alpha_0| / \alpha_m$"
EQUAL = {"equal rates": 1.0}
BELOW = grid.family(grid.BELOW)
FALLS = Also("falls", "<=", 0, "records at which the correlation with the own feature falls")
REST = "largest other correlation at the switch over |Phi_0|"
AS_ONE_OVER_T = -0.9
"""Maximum exponent in time at which a loss counts as falling as 1/t."""
STEEPER = 0.02
"""Minimum decrease, over half a decade of time, at which an exponent counts as still changing."""
RISING = 0.01
"""Minimum relative growth in the second half of a run at which attention counts as rising."""
ALONG = 0.9
"""Minimum exponent of one quantity in another at which the first falls as fast as the second."""
FALLEN = 0.02
"""Maximum ratio of a loss to its start value at which its last decade is fitted."""
LATE: dict[str, Any] = {
    "laws": (grid.POSITIVE, grid.NEGATIVE), "run": grid.descended, "require": grid.LARGE_GAP,
    "varies": ("step size", "time"),
}  # fmt: skip


@grid.claim(
    "Equation (4.1)", "largest distance of the exponent of rho(0) in P from Delta, over Delta",
    "<=", rules.SHARE, laws=[*grid.ALONG_P["laws"], *BELOW["laws"]], require=grid.LARGE_GAP,
    also=(
        Also("off", "<=", SAME, "relative distance of the gradient's rho(0) from the exact one"),
        Also("wrong", "<=", 0, "sizes at which rho(0) is on the wrong side of 1"),
    ),
    words="rho(0)={rho0:.4g}, exactly as P^{exponent:.4f} at P=1e10 to 1e16",
    picture=Picture("patches $P$", f"{RATIO} at the start", EQUAL),
)  # fmt: skip
def equation_4_1(case: Case) -> Row:
    """Exponent in P of the exact ratio rho(0), and difference of rho(0) from P^Delta."""
    law, rho = case.parameters, float(case.system.ReducedPopulation(case.parameters).rho0)
    kappas = min((grid.ABOVE, grid.BELOW), key=lambda pair: abs(pair[0] - law.kappa_c))
    if grid.sizes_along(law.P, kappas)["C_global"] != law.C_global:
        kappas = (law.kappa_c, law.kappa_s)
    gap = (1 - kappas[1]) - 2 * (1 - kappas[0])
    far = [float(ratio_at_start(P, kappas, law.gamma)) for P in FAR]
    power, off = rules.growth(FAR, far, gap).fit.exponent, abs(rho / law.P**law.Delta_eff - 1)
    row = {"value": abs(power / gap - 1), "exponent": power, "rho0": rho, "off": off}
    row |= {"wrong": int((rho > 1) != (law.Delta > 0))}
    row |= {"curves": {rf"$\Delta = {gap:.3g}$, $P = {law.P}$": ([law.P, *FAR], [rho, *far])}}
    return row | ({"open": "size"} if off <= SAME else {})  # rho(0) > 1 may need a larger P


@grid.claim(
    "Section 5.1, monotone",
    "least rate of Phi_m, or of -Phi_0, of a local patch over the largest of the run", ">=", 0.0,
    laws=(grid.POSITIVE, grid.NEGATIVE, grid.SMALL, CROSSING), run=grid.descended,
    require=grid.requires(), varies=("step size",),
    also=(Also("against", "<=", 0, "records at which Phi_m falls or Phi_0 rises"),),
    words="Phi_m falls or Phi_0 rises at {against} of {records} records",
    picture=Picture(TIME, "correlation", {"0": 0.0}, ("log", "linear")),
)  # fmt: skip
def monotone(case: Case) -> Row:
    """Signs of the rates of Phi_m and Phi_0 at every record, apart from rounding."""
    run, law, least, against, curves = case.run, case.parameters, [], 0, {}
    rounding = grid.rounding_of_rates(law, float(np.abs(run.states).max()))
    for name, sign, rate in (("Phi_m", 1, run["alpha_m"]), ("Phi_0", -1, run["alpha_0"])):
        lowest, most = float((sign * rate).min()), float(np.abs(rate).max())
        if most <= rounding:
            words = f"the rate of {name} is at most {most:.1e}, within its rounding"
            raise Undecided(words, "precision")
        least.append(0.0 if abs(lowest) <= rounding else lowest / most)
        back, spacing = -sign * np.diff(run[name]), np.spacing(np.abs(run[name][1:]))
        against += int(np.count_nonzero(back > rounding * np.diff(run.time) + spacing))
        label = rf"$\{name}$, $P={law.P}$, $\Delta={law.Delta:.2f}$"
        curves[label] = (run.time[1:], run[name][1:])
    return {"value": min(least), "against": against, "records": run.time.size, "curves": curves}


@grid.claim(
    "Theorem F.3, local areas",
    "least ratio |alpha_0| / alpha_m at the start where Delta is positive", ">", 1.0,
    laws=(grid.POSITIVE, grid.SLIGHT), run=grid.descended, require=grid.POSITIVE_GAP,
    varies=("step size",),
    also=(Also("crossings", "==", 1, "crossings of |alpha_0| / alpha_m through 1"),
          Also("share", "<", 1.0, REST)),
    literal=Literal("share", "<=", grid.SMALL_SHARE, REST, "it falls as 1/(Delta ln P)", "size"),
    words="rho starts at {value:.3g} and passes 1 {crossings} times, first at {switch:.4g}, with "
    "Phi_0 at {Phi_0:.3g} and the largest other correlation, Phi_m counted, at {rest:.2g}",
    picture=Picture(TIME, RATIO, EQUAL),
)  # fmt: skip
def theorem_f_3_local(case: Case) -> Row:
    """Crossings of rho through 1, and correlations other than Phi_0 at the switch from Phase I."""
    rho, turns = case.run["rho"], grid.crossings(case.run)
    row: Row = {"value": float(rho[0]), "crossings": turns, "share": np.nan}
    if turns != 1:
        row["text"] = f"rho starts at {rho[0]:.3g} and passes 1 {turns} times"
        return row | ({"open": "size"} if rho[0] <= 1 and case.parameters.Delta_eff <= 0 else {})
    at, (_, own, others) = grid.moment(case, "E2"), case.problem.rows.roles(local=True)
    rest, phi = max(abs(at[name]) for name in (own, *others)), at["Phi_0"]
    row |= {"switch": at["time"], "Phi_0": phi, "rest": rest, "share": rest / abs(phi)}
    row |= grid.in_time(case, rho)
    return row | ({"open": "size"} if rho[0] > 1 else {})  # the share falls in P, as 1/(Delta ln P)


def _one_phase(case: Case, local: bool, rates: Any, others: Any) -> Row:
    """Row of a claim that a patch's correlation with its own feature dominates."""
    run, (_, own, _) = case.run, case.problem.rows.roles(local)
    most, rest = float(np.abs(rates).max()), float(np.abs(others).max() / np.abs(run[own][-1]))
    falls = int(np.count_nonzero(np.diff(run[own]) <= 0))
    row: Row = {"value": most, "rest": rest, "falls": falls} | grid.in_time(case, rates)
    return row | ({"open": "size"} if max(most, rest) < 1 and not falls else {})


@grid.claim(
    "Theorem F.3, global areas",
    "largest rate of another correlation of a global patch over that of its own feature", "<", 1.0,
    laws=(grid.POSITIVE, grid.NEGATIVE), run=grid.descended, varies=("step size", "time"),
    require=grid.requires(large=True, local=False, many=True),
    also=(Also("rest", "<=", grid.SMALL_SHARE, "largest other correlation of a global patch at the "
               "end over its own"), FALLS),
    words="others move at {value:.2g} of the rate of its own at most, and end at {rest:.2g} of it",
    picture=Picture(TIME, "other rates over own", {"as fast as the own": 1.0}),
)  # fmt: skip
def theorem_f_3_global(case: Case) -> Row:
    """Rates of a global patch's other correlations over the rate of that with its own feature."""
    run, (_, own, others) = case.run, case.problem.rows.roles(local=False)
    rates = np.abs([run[f"d_{name}"] for name in others]).max(axis=0) / run[f"d_{own}"]
    return _one_phase(case, False, rates, [run[name][-1] for name in others])


@grid.claim(
    "Theorem F.4", "largest ratio |alpha_0| / alpha_m of the run", "<", 1.0,
    laws=[grid.NEGATIVE, *BELOW["laws"]], thorough=BELOW["thorough"], run=grid.descended,
    require=grid.requires(sign=-1, large=True, many=True), varies=("step size", "time"),
    also=(Also("rest", "<=", grid.SMALL_SHARE, "largest other correlation of a local patch over "
               "its own one at the end"), FALLS),
    words="rho is {value:.3g} at most; other correlations reach {rest:.2g} of the own one",
    picture=Picture(TIME, RATIO, EQUAL),
)  # fmt: skip
def theorem_f_4(case: Case) -> Row:
    """Ratio |alpha_0| / alpha_m along the run, and other correlations, for a negative Delta."""
    run, (_, _, others) = case.run, case.problem.rows.roles(local=True)
    return _one_phase(case, True, run["rho"], [run[name] for name in (*others, "Phi_0")])


def _loss_and_attention(case: Case, local: bool) -> tuple[FloatArray, FloatArray]:
    """Loss of a patch above its floor, and attention of the patch to its own area."""
    names = ("gap", "A_m") if local else ("gap_g", "A_g")
    return case.run[names[0]], case.run[names[1]]


def _with_mates(case: Case) -> dict[str, bool]:
    """Label -> True for local, False for global patches; only patches with a mate in their area."""
    gap, kinds = case.parameters.Delta, {"local": True, "global": False}
    return {
        rf"{name}, $\Delta = {gap:.2f}$": local for name, local in kinds.items()
        if np.isfinite(_loss_and_attention(case, local)[1]).all()
    }  # fmt: skip


def _late(case: Case, local: bool) -> tuple[FloatArray, FloatArray]:
    """Time since event E4 (half of the attention on the own area), and loss above its floor."""
    start = case.run.events["E4" if local else "E4_global"].time
    later = case.run.time > start
    return case.run.time[later] - start, _loss_and_attention(case, local)[0][later]


def _last_exponent(time: FloatArray, values: FloatArray) -> float:
    """Exponent of `values` in time over the last half decade; NaN for fewer than three values."""
    last = (time >= time[-1:] / np.sqrt(10.0)) & (values > 0)
    return exponent(time[last], values[last]) if last.sum() >= 3 else float("nan")


def late_slope(case: Case, local: bool) -> float:
    """Exponent of the loss above its floor in the time since event E4; NaN without the event."""
    return _last_exponent(*_late(case, local))


def steepens(case: Case, local: bool) -> bool:
    """Whether the loss above its floor falls with a steeper exponent than half a decade before.

    Without event E4, the result is whether the attention to the own area still rises.
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
    """Late exponent in time of the loss above its floor, for a local and a global patch."""
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
    """Exponent of (1 - A)^2 in the last decade of the loss; A is the attention to the own area."""
    rows, law, found, curves = case.problem.rows, case.parameters, [], {}
    for label, local in _with_mates(case).items():
        gap, own = _loss_and_attention(case, local)
        last = (gap <= 10 * gap[-1]) & (gap > 0) & (own < 1)
        curves[label] = (gap / gap[0], (1 - own) ** 2)
        if gap[-1] > FALLEN * gap[0] or last.sum() < 3:
            words = f"L_p - L*_p ends at {gap[-1] / gap[0]:.2g} of its start, with {own[-1]:.3g}"
            raise Undecided(f"{words} of the attention on the own area", "time")
        # A is the mean of the attention a over masks that leave a mate unmasked, so (1 - A)^2 is at
        # most the mean of (1 - a)^2 (Jensen).
        chance = law.gamma * rows.mates[rows.names.index(rows.roles(local)[0])]
        visible = chance * law.L**2 * (1 - own[-1]) ** 2 / (2 * gap[-1])
        found.append((2 * exponent(gap[last], 1 - own[last]), visible, own[-1]))
    least = map(float, np.min(found, axis=0))
    return dict(zip(("value", "visible", "own"), least, strict=True)) | {"curves": curves}


def _time_to_loss(source: str, sign: int, kappas: tuple[float, float]) -> Experiment:
    """Claim that the time to a loss 1e-3 above its floor, over ln P, grows as P^(1 - kappa_s)."""

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
    """Claim that (1 - A_m)^2 is at most 2/gamma times the loss above its floor, at E5 and any P."""

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
