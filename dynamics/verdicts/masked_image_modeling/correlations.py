"""Which correlations grow: what the information gap decides, and statements about all of training.

Equation (4.1), Theorems F.3 and F.4 on the gap Delta; Section 5.1 on monotone correlations. What is
said of correlations with positions is in `positions`.
"""

from __future__ import annotations

from math import log
from typing import Any

import numpy as np

from dynamics.problem import IntArray
from dynamics.system import System
from dynamics.verdicts import rules
from dynamics.verdicts.findings import Finding, Undecided
from dynamics.verdicts.masked_image_modeling import runs
from dynamics.verdicts.masked_image_modeling.rounding_of_terms import rounding_of_rates
from dynamics.verdicts.study import TIME, Measurement, Study, either, measures
from theory.papers.masked_image_modeling.required_sizes import first_phase, ratio_at_start

SAME = 1e-9
"""Relative distance up to which two computations of rho(0) are the same."""
FAR = (1e10, 1e12, 1e14, 1e16)
"""Numbers of patches at which the exact rho(0) is a power of P."""
BELOW = (0.6, 0.4)
"""kappa_c and kappa_s of a family with Delta = -0.2."""
CROSSING = {"family": "two_cluster_grid", "b11": 8, "b10": 8, "C_local": 4, "T": 1}
POSITIVE_GAP = runs.requires(sign=1, large=True)
ONE_RUN = ("step size", "time")
RATIO = r"$|\alpha_0| / \alpha_m$"
EQUAL = {"equal rates": 1.0}


@measures(
    "largest distance of the exponent of rho(0) in P from Delta, over Delta", "<=", rules.SHARE
)
def _along_sizes(study: Study) -> Finding:
    """A family with a positive gap and one with a negative one.

    The exponent is that of the exact rho(0) at numbers of patches that no run reaches; the gradient
    has the same rho(0) at those that it does.
    """
    sizes, wrong, off, undecided = runs.MORE_SIZES if study.thorough else runs.SIZES, 0, 0.0, False
    for exponents in (runs.EXPONENTS, BELOW):
        laws = study.laws(*[runs.sizes_along(P, exponents) for P in sizes])
        ratios = [_first_ratio(study.system, law) for law in laws]
        exact = [law.P**law.Delta_eff for law in laws]
        off = max(off, *np.abs(np.divide(ratios, exact) - 1).tolist())
        wrong += sum((rho > 1) != (law.Delta > 0) for law, rho in zip(laws, ratios, strict=True))
        gap = (1 - exponents[1]) - 2 * (1 - exponents[0])
        beyond = [ratio_at_start(P, exponents, laws[0].gamma) for P in FAR]
        growth = rules.growth(FAR, beyond, gap)
        undecided |= growth.holds is None
        study.row({}, Delta=gap, P=list(sizes), rho0=ratios, exponent=growth.fit.exponent)
        study.curve(rf"$\Delta = {gap:.2g}$", [*sizes, *FAR], [*ratios, *beyond])
    distance = max(abs(row["exponent"] / row["Delta"] - 1) for row in study.rows)
    powers = study.words("P^{exponent:.4f} where Delta={Delta:.2g}", "; ")
    side = f"wrong side of 1 at {wrong} sizes" if wrong else "side of 1 that Delta says"
    reason = (
        f"the exact rho(0) grows as {powers}, at P=1e10 to 1e16; that of the gradient is equal to "
        f"it up to {off:.1e} at P={', '.join(map(str, sizes))}, and on the {side}"
    )
    study.draw("patches $P$", f"{RATIO} at the start", EQUAL)
    return study.conclude(
        distance,
        reason,
        Measurement(
            "relative distance of the gradient's rho(0) from the exact one", off, "<=", SAME
        ),
        Measurement("sizes at which rho(0) is on the wrong side of 1", wrong, "<=", 0),
        may_still_come=undecided and off <= SAME and not wrong,
        missing="size",
    )


@measures(
    "ln rho(0) / ln P at this size over Delta, which must not be negative",
    ">", 0.0, runs.requires(large=True),
)  # fmt: skip
def _one_size(study: Study) -> Finding:
    law = study.parameters
    gap = log(_first_ratio(study.system, law)) / log(law.P)
    reason = f"ln rho(0) / ln P is {gap:.3f}, Delta={law.Delta:.3f}"
    return study.conclude(gap / law.Delta, reason, parameters=runs.sizes_of(law))


equation_4_1 = either(_along_sizes, _one_size)
"""rho(0) along P at fixed exponents, or its sign alone at the user's parameters."""


def _first_ratio(system: System, parameters: Any) -> float:
    """|alpha_0| / alpha_m at the start, from the gradient."""
    problem = system.ReducedPopulation(parameters)
    values = problem.order_parameters(problem.initial_state)
    return float(values[problem.order_names.index("rho")])


def _gap_of_order_one(law: Any) -> None:
    """Screen as for a positive gap of order one; where it is smaller, with the P that it needs."""
    try:
        POSITIVE_GAP(law)
    except Undecided as refusal:
        if not law.Delta > 0 or np.isnan(law.Delta_eff):
            raise
        ratio = law.P**law.Delta_eff
        words = f"{refusal}; rho(0) is {ratio:.3g} at P={law.P}"
        if ratio <= 1:
            words += f" and exceeds 1 from {runs.near(runs.needed(law, first_phase))} on"
        raise Undecided(words, **refusal.evidence) from refusal  # P, not the law, is missing


@measures(
    "least ratio |alpha_0| / alpha_m at the start where Delta is positive",
    ">", 1.0, _gap_of_order_one, single=("step size",), again=True,
)  # fmt: skip
def theorem_f_3_local(study: Study) -> Finding:
    """One crossing of rho through 1, and a Phase I in which the rest stays small."""
    reasons, shares = [], []
    for case in runs.cases_of(study, runs.POSITIVE, runs.SLIGHT[0]):
        rho, at, switch = case.run["rho"], case.at("E2"), case.time("E2")
        names = ("Phi_m", *case.others(local=True))
        rest, phi = max(abs(at[name]) for name in names), at["Phi_0"]
        study.row(
            case.sizes, rho0=float(rho[0]), crossings=case.crossings, Phi_0=phi, rest=rest,
            switch=None if np.isnan(switch) else switch, two_phases=case.two_phases,
        )  # fmt: skip
        study.curve(case.gap, *case.in_time(rho))
        shares.append(rest / abs(phi) if phi else float("nan"))
        reasons.append(f"Delta={case.parameters.Delta:.3f}: {_words_of_phases(study.rows[-1])}")
    study.draw(TIME, RATIO, EQUAL)
    crossings = max(study.column("crossings"), key=lambda count: abs(count - 1))
    rest_name = "largest other correlation at the switch over |Phi_0|"
    worst, least = float(np.max(shares)), min(study.column("rho0"))
    study.literal = Finding(
        True if worst <= runs.SMALL_SHARE else None, rest_name, worst, runs.SMALL_SHARE,
        "what does not change much stays small beside Phi_0; the share falls as 1/(Delta ln P)",
        relation="<=",
    )  # fmt: skip
    early = [row for row in study.rows if row["rho0"] <= 1 and row["Delta_eff"] <= 0]
    if early:
        reasons.append("P is not large: rho(0), which goes as P^Delta, has not come to 1 yet")
    at_one_size = least > 1 and crossings == 1 and study.parameters is not None
    reason = "; ".join(reasons) + _at_one_size(study, at_one_size and not worst < 1.0)
    return study.conclude(
        least,
        reason,
        Measurement("crossings of |alpha_0| / alpha_m through 1", crossings, "==", 1),
        Measurement(rest_name, worst, "<", 1.0),
        may_still_come=len(early) == len(study.rows) or at_one_size,
        missing="size",
    )


def _words_of_phases(row: dict[str, Any]) -> str:
    if row["rho0"] <= 1 and not row["crossings"]:
        return f"no Phase I, rho starts at {row['rho0']:.3g} and never exceeds 1"
    if row["two_phases"]:
        return (
            f"two phases, rho from {row['rho0']:.3g} through 1 at time {row['switch']:.4g}, where "
            f"Phi_0={row['Phi_0']:.3g} and the largest other correlation, Phi_m counted, "
            f"is {row['rest']:.2g}"
        )
    return f"rho from {row['rho0']:.3g} crosses 1 {row['crossings']} times"


@measures(
    "largest rate of another correlation of a global patch over that of its own feature",
    "<", 1.0, runs.requires(large=True, local=False, many=True), single=ONE_RUN, again=True,
)  # fmt: skip
def theorem_f_3_global(study: Study) -> Finding:
    """Rates of a global patch against that of its own feature, throughout."""
    for case in runs.cases_of(study, runs.POSITIVE, runs.NEGATIVE):
        own, others, run = case.leading(local=False), case.others(local=False), case.run
        ratios = np.abs([run[f"d_{name}"] for name in others]).max(axis=0) / run[f"d_{own}"]
        end = abs(float(max(abs(run[name][-1]) for name in others) / run[own][-1]))
        most = float(np.abs(ratios).max())
        study.row(case.sizes, rates=most, end=end, falls=_falls(case, own))
        study.curve(case.gap, *case.in_time(ratios))
    most, end = max(study.column("rates")), max(study.column("end"))
    reason = (
        f"another correlation of a global patch moves at {most:.2g} of the rate of its own feature "
        f"at most, and ends at {end:.2g} of it"
    )
    study.draw(TIME, "other rates over own", {"as fast as the own": 1.0})
    end_name = (
        "largest other correlation of a global patch at the end over that with its own feature"
    )
    falls_name = "records at which that with its own feature does not rise"
    falls = sum(study.column("falls"))
    exceeds = most >= 1.0 or end > runs.SMALL_SHARE
    vanishes, words = _vanishing(study, most, local=False)
    return study.conclude(
        most,
        reason + words * exceeds,
        Measurement(end_name, end, "<=", runs.SMALL_SHARE),
        Measurement(falls_name, falls, "<=", 0),
        may_still_come=not falls and vanishes,
        missing="size",
    )


@measures(
    "largest ratio |alpha_0| / alpha_m of the run",
    "<", 1.0, runs.requires(sign=-1, large=True, many=True), single=ONE_RUN, again=True,
)  # fmt: skip
def theorem_f_4(study: Study) -> Finding:
    """With a negative gap: rho below 1 throughout, and nothing else grows."""
    cases = runs.cases_of(study, runs.NEGATIVE)
    if study.parameters is None:
        cases += runs.family(study, BELOW)
    for case in cases:
        rho, names = case.run["rho"], (*case.others(local=True), "Phi_0")
        rest = float(max(abs(case.run[name]).max() for name in names) / case.run["Phi_m"][-1])
        study.row(case.sizes, largest=float(rho.max()), rest=rest, falls=_falls(case, "Phi_m"))
        study.curve(f"{case.gap}, {case.size}", *case.in_time(rho))
    most, rest = max(study.column("largest")), max(study.column("rest"))
    reason = (
        f"rho is {most:.3g} at most (Delta {study.listed('Delta')}); other correlations of "
        f"a local patch reach {rest:.2g} of its own one at the end"
    )
    study.draw(TIME, RATIO, EQUAL)
    name = "largest other correlation of a local patch over its own one at the end"
    falls = sum(study.column("falls"))
    started = max(study.column("Delta_eff")) < 0
    vanishes, words = _vanishing(study, rest, local=True)
    return study.conclude(
        most,
        reason + words * (rest > runs.SMALL_SHARE),
        Measurement(name, rest, "<=", runs.SMALL_SHARE),
        Measurement("records at which Phi_m does not rise", falls, "<=", 0),
        may_still_come=not falls and vanishes and (most < 1 or not started),
        missing="size",
    )


def _vanishing(study: Study, share: float, local: bool) -> tuple[bool, str]:
    """Whether a share at the size of a request is one that vanishes along P, and that in words.

    Parameters
    ----------
    study : Study
    share : float
        Of another correlation in the one with the own feature, or of their rates.
    local : bool
        Whether of a local patch.
    """
    law = study.parameters
    if law is None:
        return False, ""
    counted = counted_share(law, local)
    if share <= runs.SAME_ORDER * counted:
        return True, _at_one_size(study, True)
    return False, (
        f"; such a share vanishes along P as the sizes of areas make it, to {counted:.2g} at "
        f"P={law.P}, and {share:.2g} is more than {runs.SAME_ORDER:g} times that"
    )


def counted_share(law: Any, local: bool) -> float:
    r"""Share of another correlation in the one with the own feature, as sizes of areas make it.

    By Lemmas 5.1 and 5.2 to leading order, with attention :math:`A` and :math:`a` to the own and
    to another area: rates of Phi are as :math:`a / (1 - A)`, which is c / (P - C) where attention
    is uniform outside of the own area, and at first as :math:`a^2 / A`, c^2 / (C P); a rate of Ups
    is 1/z of that of Phi for each of C - 1 mates, as often as there are clusters that have the two
    in one area, for Ups is one for all. C is the own area, c the largest other one. With fixed
    exponents of P every one of them vanishes.

    Parameters
    ----------
    law : Parameters
    local : bool
        Whether of a local patch.
    """
    shares = []
    kinds, numbers = np.unique(law.area_ids, axis=1, return_counts=True)
    for areas, of_kinds in zip(law.area_ids, kinds, strict=True):
        sizes = np.bincount(areas)
        for m in range(1, sizes.size) if local else range(1):
            own, other = sizes[m], np.delete(sizes, m).max(initial=0)
            if own < 2 or own == law.P:
                continue
            shares += [
                other / (law.P - own), other**2 / (own * law.P),
                _most_together(kinds[:, of_kinds == m], numbers[of_kinds == m])
                / ((own - 1) * min(1.0, law.L)),
            ]  # fmt: skip
    return float(max(shares, default=0.0))


def _most_together(kinds: IntArray, numbers: IntArray) -> int:
    """In how many clusters two patches share their area, at most.

    Parameters
    ----------
    kinds : int array, shape (clusters, kinds)
        Areas of patches, of each kind once.
    numbers : int array, shape (kinds,)
        How many there are of each.
    """
    together = np.array([(kinds == kind[:, None]).sum(axis=0) for kind in kinds.T])
    np.fill_diagonal(together, len(kinds) * (numbers > 1))
    return int(together.max())


def _at_one_size(study: Study, exceeds: bool) -> str:
    """What a share of order one at the size of a request is, in words; empty where there is none.

    Parameters
    ----------
    study : Study
    exceeds : bool
        Whether a share that vanishes along P is above its bound.
    """
    if study.parameters is None or not exceeds:
        return ""
    return f"; such a share vanishes along P, and is a constant at P={study.parameters.P} alone"


def _falls(case: runs.Case, name: str) -> int:
    """Records at which a correlation is no larger than at the one before."""
    return int(np.count_nonzero(np.diff(case.run[name]) <= 0))


@measures(
    "least rate of Phi_m, or of -Phi_0, of a local patch over the largest of the run",
    ">=", 0.0, runs.requires(), single=("step size",), again=True,
)  # fmt: skip
def monotone(study: Study) -> Finding:
    """Signs of the rates of Phi_m and Phi_0 at every record, where rounding leaves them one."""
    wrong = []
    for case in runs.cases_of(study, runs.POSITIVE, runs.NEGATIVE, runs.SMALL, CROSSING):
        run, law = case.run, case.parameters
        rounding = rounding_of_rates(law, float(np.abs(run.states).max()))
        where, least, against = f"P={law.P}, Delta={law.Delta:.2f}", {}, 0
        for name, sign, rate in (("Phi_m", 1, run["alpha_m"]), ("Phi_0", -1, run["alpha_0"])):
            rates, most = sign * rate, float(np.abs(rate).max())
            if most <= rounding:
                reason = f"the rate of {name} is {most:.1e} at most at {where}, within its rounding"
                raise Undecided(reason, "precision", parameters=case.sizes)
            lowest = float(rates.min())
            least[name] = 0.0 if abs(lowest) <= rounding else lowest / most
            back = -sign * np.diff(run[name])
            spacing = np.spacing(np.abs(run[name][1:]))
            against += int(np.count_nonzero(back > rounding * np.diff(run.time) + spacing))
        study.row(case.sizes, **least, against=against, records=int(run.time.size))
        wrong += [f"{name} moves against it at {where}" for name in least if least[name] < 0]
        for name in least:
            label = f"P={law.P}, $\\Delta = {law.Delta:.2f}$, $\\{name}$"
            study.curve(label, *case.in_time(run[name]))
    value = min(study.column("Phi_m") + study.column("Phi_0"))
    against = sum(study.column("against"))
    study.draw(TIME, "correlation", {"0": 0.0}, y_scale="linear")
    reason = "; ".join(wrong) or f"a correlation turns at {against} records"
    if value >= 0 and not against:
        count = len(study.rows)
        resting = "" if value > 0 else ", or one rests to rounding,"
        records = sum(study.column("records"))
        reason = (
            f"Phi_m rises and Phi_0 falls{resting} at each of {records} records of "
            f"{count} run{'s' * (count > 1)}"
        )
    also = "records at which Phi_m falls or Phi_0 rises"
    return study.conclude(value, reason, Measurement(also, against, "<=", 0))
