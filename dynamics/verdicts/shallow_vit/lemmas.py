"""Lemmas 1 to 4 and equation (70): lucky neurons, their growth, and inequalities.

By Definition 2, lucky neurons are within the angle sigma of p_1; in ten dimensions none exist
(Lemma 3). The other lemmas are therefore tested on neurons selected by gates. The set W has output
weights a > 0 and gates open to query 1 of the positive sample; the set U has a < 0 and gates open
to query 2 of the negative sample. Definition 2 is tested too, in four dimensions with many neurons.
"""

from __future__ import annotations

from dataclasses import asdict, replace
from math import inf, log10, pi
from typing import Any

import numpy as np

from dynamics.problem import FloatArray
from dynamics.results.trajectory import Trajectory
from dynamics.training.descent import descend
from dynamics.verdicts.cases import Case
from dynamics.verdicts.claim import TIME, Also, Growth, Literal, Picture, Row
from dynamics.verdicts.findings import Finding, Undecided
from dynamics.verdicts.rules import SEEDS, repeats
from dynamics.verdicts.shallow_vit import runs
from dynamics.verdicts.shallow_vit.runs import LINEAR, MARGINS, ONCE, claim, to_rest
from dynamics.verdicts.wording import listed
from theory.papers.shallow_vit.attention_limits import cap_share, claimed_share, least_epsilon
from theory.papers.shallow_vit.conditions import derived_batch, least_batch, least_share, pole
from theory.papers.shallow_vit.subgaussian import hoeffding_constant, norm_of_rare_signs

ALONG = 0.9
"""Minimum cosine of a value's growth and the mean lucky neuron at which the claim holds."""
FALLS, WHOLE = 0.01, 0.9
"""Maximum fall of |q_1|^2 per step over its range (first), tested share of the run (second)."""
SAME, TURNED = 1.5, 0.7
"""Ratio up to which growths of |q_1|^2 are equal (first), minimum cosine of q_1 to its start."""
LINEAR_LOSS = {"none": (0.01, 1600), "attention": (0.01, 1600), "values": (0.002, 75_000)}
"""Frozen weights -> learning rate and steps of stable training with the linear loss."""
RECORDS, DECADES = 200, 2.0
"""Records of a run with linear loss (first), least decades of growth to test log t (second)."""
WIDE: dict[str, Any] = {"M": 3, "d": 4, "m": 10_000}
"""Sizes at which lucky neurons exist by Definition 2."""
CHANCES, NUMBERS = (1.0, 0.3, 0.1, 0.03, 0.01, 0.001), (1, 2, 4, 16, 64, 256)
"""Lemma 1: probabilities of a nonzero variable (first), and numbers of variables (second)."""
SMALLEST = 1e-250
"""Tail probabilities up to this value are left out of the constant in Lemma 1."""
DISTANCES, SHARE = (0.1, 0.01, 0.001, 0.0001), 0.2
"""Relative distances of alpha_* above its limit (first), and the limit if (70) and (8) set none."""


def lucky_neurons(law: Any) -> None:
    """Raise Undecided if a law does not meet the hypothesis of the lemmas on lucky neurons."""
    if law.output_weights != "shared":
        raise Undecided(
            "output weights have a sign per position, not per neuron", "law", parameters=asdict(law)
        )
    runs.theorem_1(law)


LUCKY: dict[str, Any] = {"run": to_rest(), "require": lucky_neurons, "varies": ONCE}


def _lucky_at_start(case: Case, sides: slice = slice(2)) -> Any:
    """Neurons of the sets W and U at the start, as masks; undecided if a requested set is empty."""
    both = runs.lucky(case, 0)
    if not both[sides].any(axis=1).all():
        W, U = both.sum(axis=1)
        raise Undecided(f"no lucky neurons: |W| = {W}, |U| = {U} of {case.parameters.m}")
    return both


def _angles(hidden: FloatArray, frame: FloatArray) -> FloatArray:
    """Angles of neurons with p_1 and p_2, shape (m, 2); NaN for neurons of length zero."""
    with np.errstate(divide="ignore", invalid="ignore"):
        cosines = (hidden @ frame[:, :2]) / np.linalg.norm(hidden, axis=1)[:, None]
    return np.asarray(np.arccos(np.clip(cosines, -1, 1)))


def _by_definition(law: Any, hidden: FloatArray, start: Any) -> Any:
    """Membership of neurons in the sets W and U of Definition 2, shape (2, m)."""
    return np.asarray((_angles(hidden, start.p) <= law.sigma).T)


def starts(case: Case) -> list[tuple[Any, Any]]:
    """Initial state and sets W and U of Definition 2, for each of `SEEDS` seeds."""
    make, law = case.system.ReducedPopulation, case.parameters
    every = [make(law, seed=case.seed + k).start for k in range(SEEDS)]
    return [(start, _by_definition(law, start.W_O, start)) for start in every]


def lost_by_definition(case: Case) -> Row:
    """Numbers of neurons in W or U (Definition 2) at the start, and of those that leave later.

    The row is that of the step size and seed with the fewest lost neurons; the row is empty if no
    neuron is lucky at the start of a run.
    """
    row: Row = {}
    for repeat in (case.repeat, *repeats(*ONCE)):
        again = replace(case, seed=case.seed + repeat.seed, repeat=repeat)
        problem, run = to_rest()(again)
        ends = run["W_O"][[0, -1]]
        first, last = (_by_definition(case.parameters, W, problem.start) for W in ends)
        if not first.any():  # no neuron is lucky by Definition 2
            return {}
        lost = int((first & ~last).sum())
        if not row or lost < row["lost"]:
            row = {"defined": int(first.sum()), "lost": lost}
    return row


@claim(
    "Lemma 2, claim 1", "growth of lucky neurons along another pattern, over that along p_1", "<",
    1.0, laws=MARGINS, **LUCKY, near_limit=True, also=(
        Also("lead", "<", 1.0, "length of other neurons over that of lucky ones"),),
    words="{lucky} lucky neurons grow by {along:.3g} along p_1 and by {value:.2g} of that along "
    "another pattern; other neurons keep {kept:.3g} of their length", literal=Literal(
        "unlucky", "<=", 1.0, "largest W_O p of an unlucky neuron, p another pattern, over xi",
        "{neurons} neurons are unlucky by Definition 2, and Gaussian entries exceed xi, with each "
        "of three seeds"),
    picture=Picture("step", "mean growth of lucky neurons\nalong a pattern", scales=LINEAR),
)  # fmt: skip
def growth_of_neurons(case: Case) -> Row:
    """Growth of lucky neurons along p_1 and along other patterns, and length of unlucky neurons."""
    hidden = case.run["W_O"]
    lucky = _lucky_at_start(case, slice(1))[0]
    rest = ~np.any([*runs.lucky(case, 0), *runs.lucky(case, -1)], axis=0)
    mean = hidden[:, lucky].mean(axis=1)
    grown = (mean - mean[0]) @ case.problem.start.p
    along, others = float(grown[-1, 0]), np.abs(grown[-1, 1:])
    lengths = np.linalg.norm(hidden[[0, -1]], axis=2)
    kept, grew = (lengths[1, one].mean() / lengths[0, one].mean() for one in (rest, lucky))
    unlucky = [(start, ~both.any(axis=0)) for start, both in starts(case)]
    largest = min((one.W_O @ one.p)[neurons, 2:].max(initial=0.0) for one, neurons in unlucky)
    steps, name = np.arange(len(grown)), f"{case.label} " * bool(case.label)
    return {
        "value": others.max() / along if along > 0 else inf, "along": along, "kept": kept,
        "lucky": int(lucky.sum()), "lead": kept / grew,
        "neurons": int(min(neurons.sum() for _, neurons in unlucky)),
        "unlucky": largest / case.parameters.xi if case.parameters.xi else inf,
        "curves": {f"{name}$p_1$": (steps, grown[:, 0]),
                   f"{name}next": (steps, grown[:, 1 + int(np.argmax(others))])},
    }  # fmt: skip


def keys_run(case: Case) -> tuple[Any, Trajectory]:
    """Gradient descent until training stops; with the linear loss, while steps are stable."""
    law = case.parameters
    if law.loss == "hinge":
        return to_rest()(case)
    eta, steps = LINEAR_LOSS[law.frozen]
    eta, steps = case.rate(eta), case.steps(steps)
    at = np.unique(np.rint(np.geomspace(1, steps, RECORDS)).astype(np.int64))
    problem = case.system.ReducedPopulation(law, seed=case.seed)
    return problem, descend(problem, eta, steps, record=at)


def _of_the_hinge(rows: list[Row], finding: Finding) -> Finding:
    """Let only the runs with the paper's hinge loss decide, if there are any."""
    rows = [row for row in rows if "ratio" in row]
    hinge = [row for row in rows if row["loss"] == "hinge"] or rows
    if not hinge:
        return finding
    far = max(hinge, key=lambda row: abs(np.log(row["ratio"])) if row["ratio"] > 0 else inf)
    states = [row["holds"] for row in hinge]
    holds = False if False in states else None if None in states else True
    missing = tuple(dict.fromkeys(row["missing"] for row in hinge if row["holds"] is None))
    return replace(finding, measured=far["ratio"], holds=holds, missing=missing or ("time",))


@claim(
    "Lemma 2, claim 2", "growth of |q_1|^2 in the last doubling of time, over that in the one "
    "before", "==", 1.0, laws=(*MARGINS, {"loss": "linear", "m": 300},
                               {"loss": "linear", "m": 300, "frozen": "values"}),
    run=keys_run, require=runs.sizes_of_theorem_1, varies=ONCE, near_limit=True,
    conclude=_of_the_hinge, shown=(*runs.SHOWN, "loss", "frozen"),
    words="growth times {value:.3g} (1 is log t) in "
    "{decades:.2g} decades of time, direction of q_1 at the cosine {cosine:.3g}",
    picture=Picture(TIME, r"$\|q_1\|^2$"),
)  # fmt: skip
def growth_of_keys(case: Case) -> Row:
    """Growth of the squared length of the query q_1 in time, and direction of q_1."""
    time, squares, keys = case.run.time, case.run["q1_norm2"], case.run["K"][:, :, 0]
    if np.ptp(squares) == 0:
        raise Undecided("q_1 does not move", "law")
    cosine = float(keys[0] @ keys[-1] / np.prod(np.linalg.norm(keys[[0, -1]], axis=1)))
    quarter, half = np.searchsorted(time, time[-1] * np.array([0.25, 0.5]))
    before, after = squares[half] - squares[quarter], squares[-1] - squares[half]
    ratio = float(after / before) if before > 0 else 0.0
    early = squares[time <= WHOLE * time[-1]]
    falls = float(np.maximum(-np.diff(early), 0).max(initial=0.0) / np.ptp(squares))
    first = time[int(np.argmax(squares - squares[0] >= 0.1 * (squares[-1] - squares[0])))]
    decades = log10(time[-1] / first) if first > 0 else 0.0
    holds: bool | None = bool(1 / SAME <= ratio <= SAME)
    missing = "time"
    if cosine < TURNED or falls > FALLS:
        holds = False
    elif decades < DECADES:
        holds = None
    elif runs.other_training(case.parameters):
        holds, missing = None, "law"
    return {"value": ratio, "ratio": ratio, "cosine": cosine, "falls": falls, "decades": decades,
            "loss": case.parameters.loss, "missing": missing, "holds": holds,
            "curves": {case.label or "q_1": (time[1:], squares[1:])}}  # fmt: skip


@claim(
    "Lemma 2, claim 3", "change of another value, over that of V_1 or V_2, the lesser", "<", 1.0,
    laws=MARGINS, **LUCKY, near_limit=True, also=(
        Also("least_cosine", ">=", ALONG, "least cosine of the growth with the mean lucky neuron"),
        Also("grows", ">", 0.0, "least growth of |V_1| and |V_2|")),
    words="|V_1| grows to {length:.3g}, those of other patterns to at most {others:.3g}; growth at "
    "the cosine {least_cosine:.3g} with the mean lucky neuron", literal=Literal(
        "by_definition", ">=", 1.0,
        "neurons that are lucky by Definition 2 at the start, the most of three seeds",
        "with no neuron within sigma of p_1 or p_2 the values grow along unlucky ones"),
    picture=Picture("step", "length of a value", scales=("log", "linear")),
)  # fmt: skip
def growth_of_values(case: Case) -> Row:
    """Growth of the value vectors of discriminative patterns and of other patterns."""
    values, hidden = case.run["V"], case.run["W_O"][-1]
    moved, lengths = values[-1] - values[0], np.linalg.norm(values, axis=1)
    change = np.linalg.norm(moved, axis=0)
    lucky = [hidden[neurons].mean(axis=0) for neurons in _lucky_at_start(case)]
    with np.errstate(divide="ignore", invalid="ignore"):
        cosines = [moved[:, j] @ lucky[j] / (change[j] * np.linalg.norm(lucky[j])) for j in (0, 1)]
        ratio = float(change[2:].max() / change[:2].min())
    name, steps = f"{case.label} " * bool(case.label), np.arange(len(values))
    others = lengths[:, 2:].max(axis=1)
    return {
        "value": ratio, "least_cosine": min(cosines), "length": lengths[-1, 0],
        "others": others[-1], "grows": (lengths[-1, :2] - lengths[0, :2]).min(),
        "by_definition": int(max(both.sum() for _, both in starts(case))),
        "curves": {f"{name}$V_1$": (steps, lengths[:, 0]), f"{name}others": (steps, others)},
    }  # fmt: skip


@claim(
    "Lemma 3", "fewer of |W(0)|, |U(0)| by Definition 2", ">=", require=runs.enough_neurons,
    varies=("seed",), words="{value:.0f} of {m_neurons} neurons, {expected:.2g} expected in {d} "
    "dimensions; the nearest at the angle {nearest:.3g}, epsilon_m = {epsilon:.3g}",
    picture=Picture("angle, in radians", "share of neurons within the angle of $p_1$",
                    scales=LINEAR),
)  # fmt: skip
def lemma_3(case: Case) -> Row:
    """Numbers of neurons within the angle sigma of p_1, and of p_2, at the start."""
    law = case.parameters
    epsilon = least_epsilon(law.M, law.m, runs.SAMPLES)
    start = case.system.ReducedPopulation(law, seed=case.seed).start
    found = _angles(start.W_O, start.p)
    if np.isnan(found).any():
        raise Undecided("neurons of length zero have no direction", "law")
    sigmas = np.linspace(0.02, min(pi / 2, pi / law.M), 40)
    promised = [max(0.0, claimed_share(law.M, x, epsilon)) for x in sigmas]
    return {
        "value": (found <= law.sigma).sum(axis=0).min(), "nearest": found.min(),
        "bound": law.m * claimed_share(law.M, law.sigma, epsilon), "epsilon": epsilon,
        "expected": law.m * cap_share(law.d, law.sigma), "m_neurons": law.m,
        "curves": {"measured": (np.sort(found[:, 0]), np.arange(1, law.m + 1) / law.m),
                   f"sphere in {law.d} dimensions": (sigmas, [cap_share(law.d, x) for x in sigmas]),
                   "promised for that sigma": (sigmas, promised)},
    }  # fmt: skip


@claim(
    "Lemma 4", "most neurons of W(0) and U(0) that are not lucky at a later step", "<=", 0.0,
    laws=(*MARGINS, WIDE), **LUCKY,
    words="|W|, |U| from {start} to {end}, {value} lost", literal=Literal(
        "lost", "<=", 0.0, "neurons of W(0) and U(0) by Definition 2 that are lost",
        "at least {lost} at M={M}, d={d}, m={m}, where there are {defined}, at three step sizes "
        "and with three seeds"),
    picture=Picture("step", r"$|\mathcal{W}|$", scales=LINEAR),
)  # fmt: skip
def lemma_4(case: Case) -> Row:
    """Maximum number of neurons that are lucky at the start but not at a later step."""
    _lucky_at_start(case)
    sets = np.array([runs.lucky(case, record) for record in range(len(case.run.time))])
    sizes, lost = sets.sum(axis=2), int((sets[0] & ~sets).sum(axis=2).max())
    row: Row = {"value": lost, "start": listed(sizes[0], 4), "end": listed(sizes[-1], 4),
                "curves": {case.label or "W": (np.arange(len(sets)), sizes[:, 0])}}  # fmt: skip
    return row | lost_by_definition(case)


def tail_of_signs(chance: float, number: int) -> FloatArray:
    """Tail P(sum >= t) at t = 0, ..., n for n = `number` independent variables -1, 0 or 1.

    A variable is nonzero with probability `chance`; both signs are equally likely.
    """
    one, law = np.array([chance / 2, 1 - chance, chance / 2]), np.ones(1)
    for _ in range(number):
        law = np.convolve(law, one)
    return np.asarray(np.cumsum(law[::-1])[::-1][number:])


def largest_constant(tail: FloatArray, norm: float, number: int) -> float:
    """Largest c for which e exp(-c t^2 / (K^2 n)) bounds the tail P(sum >= t) at t = 1, ..., n.

    `tail`, shape (n + 1,): the tail from t = 0 on; `norm`: constant K; `number`: n.
    """
    t = np.flatnonzero(tail > SMALLEST)[1:]
    return float(((1 - np.log(tail[t])) * norm**2 * number / t**2).min())


@claim(
    "Lemma 1", "largest c that exact tails allow, the least over laws and numbers of variables",
    ">=", shown=("output",), words="sums of {numbers} variables, +-1 with the chances {chances} "
    "and else 0", picture=Picture("number of variables", "largest $c$", scales=("log", "linear")),
)  # fmt: skip
def lemma_1(case: Case) -> Row:
    """Largest constant c that exact tails of sums allow; the bound is the proved constant."""
    del case
    curves = {}
    for chance in CHANCES:
        norm = norm_of_rare_signs(chance)
        constants = [largest_constant(tail_of_signs(chance, n), norm, n) for n in NUMBERS]
        curves[f"+-1 with the chance {chance:g}, else 0"] = (NUMBERS, constants)
    return {"value": min(min(each) for _, each in curves.values()), "curves": curves,
            "bound": hoeffding_constant(), "numbers": listed(NUMBERS),
            "chances": listed(CHANCES)}  # fmt: skip


def _edge(law: Any) -> float:
    """Lower limit of alpha_*, the larger of those in (70) and (8), or `SHARE` if neither exists."""
    return max(pole(law.sigma), least_share(law.alpha_confusion, law.sigma, law.delta)) or SHARE


def above_the_pole(law: Any) -> list[Any]:
    """Laws whose alpha_* approaches, from above, the lower limit that (70) or (8) sets."""
    law = replace(law, noise=0.0)
    edge = _edge(law)
    if edge * (1 + DISTANCES[0]) > 1:
        raise Undecided(f"the claim assumes alpha_* above {edge:.3g}", "law")
    return [replace(law, alpha_star=edge * (1 + far)) for far in DISTANCES]


@claim(
    "Equation (70)", "exponent of left over right side, as alpha_* nears the pole of the left",
    "==", 0.0, family=above_the_pole, growth=Growth("near", 0.0),
    words="left over right {value:.3g}, left {left:.3g}, right {right:.3g}",
    picture=Picture(r"1 over the distance of $\alpha_*$ from the pole", "batch $B$"),
)  # fmt: skip
def equation_70(case: Case) -> Row:
    """Both sides of equation (70), while alpha_* approaches the limit of Theorem 1's hypothesis."""
    law = case.parameters
    at = law.alpha_star, law.sigma, law.delta
    left, right, edge = derived_batch(*at), least_batch(*at), _edge(law)
    near = edge / (law.alpha_star - edge)
    return {"value": left / right, "left": left, "right": right, "near": near, "holds": True,
            "curves": {"left side": ([near], [left]), "right side": ([near], [right])}}  # fmt: skip
