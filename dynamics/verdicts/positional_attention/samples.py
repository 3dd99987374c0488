"""Theorem 4.2 and Figure 4: gradient descent on samples from a random start.

Association and test error with many samples and with few, at one time; at a small size, which can
be trained for long, whether association stays ("any T").
"""

from __future__ import annotations

from typing import Any

import numpy as np

from dynamics.results.trajectory import Trajectory
from dynamics.system import System
from dynamics.training.stability_limit import limits_along
from dynamics.verdicts.claim import TIME, Also, Case, Picture, descent, reduced_flow
from dynamics.verdicts.findings import Undecided
from dynamics.verdicts.positional_attention.grid import SHOWN, claim
from theory.papers.positional_attention.linear_rules import sign_rule_error

DURATION, RATE = 400.0, 0.02
BELOW_LIMIT = 0.6
"""Learning rate in units of the stability limit of the reduced run, where that is smaller."""
WORK = 8.5e11
"""Multiplications and additions that one run may take: half a minute on two cores."""
SAMPLES, FEW, LEAST = 16_000, 16, 200
"""N, by what it is divided for a run with few, and the fewest that are worth a run."""
SMALL, SMALL_SAMPLES, LONG = 9, 6000, 1600.0
"""D up to which a run is long, its N and its time."""
LEARNED = 0.6
"""Share of the linear rule's error below which a model is better than any without association."""


def stable_rate(system: System, parameters: Any) -> float:
    """The usual learning rate, or a smaller one where the reduced run needs it.

    Parameters
    ----------
    system : System
    parameters : Parameters
    """
    problem, run = reduced_flow(system.ReducedPopulation, parameters, DURATION)
    return min(RATE, float(f"{BELOW_LIMIT * np.nanmin(limits_along(problem, run)):.1g}"))


def train(case: Case, samples: int, time: float = DURATION) -> Trajectory:
    """Gradient descent on N noisy samples from a random start, shared by claims and figures.

    Parameters
    ----------
    case : Case
    samples : int
        N.
    time : float
    """
    eta = stable_rate(case.system, case.parameters)
    steps = round(time / eta)
    record = tuple(np.unique(np.rint(np.geomspace(1, steps, 60)).astype(int)).tolist())
    options = {"samples": samples, "dtype": "float32", "record": record}
    run: Trajectory = descent(eta, steps, "FullEmpirical", **options)(case)[1]
    return run


def affordable(case: Case, time: float) -> int:
    """N that a run can afford.

    Parameters
    ----------
    case : Case
    time : float

    Raises
    ------
    Undecided
        If that is too few.
    """
    law = case.parameters
    most = int(WORK * RATE / time / (law.D * (4 * law.d + 6 * law.D)))
    if most < LEAST:
        raise Undecided(f"fewer than {LEAST} samples can be afforded at D={law.D}, d={law.d}")
    return min(SAMPLES, most)


@claim(
    "Theorem 4.2", "share of associated rows at time T", ">=", 1.0,
    laws=({"D": 16, "C": 4, "q": 0.25}, {"D": SMALL, "C": 3, "q": 0.6}),
    shown=(*SHOWN, "d", "omega"), seeds=(1, 3), varies=("seed", "time"), again=False,
    also=(Also("of_linear", "<", LEARNED, "test error over that of sign(Z)"),),
    words="N={samples:,}: {value:.0%} of the rows associated at time {end:g}, {largest:.0%} at "
    "{when:.3g}, test error {error:.2%} (sign(Z) {linear:.2%}, irreducible {irreducible:.2%})"
    "{few}",
    picture=Picture(TIME, "share of associated rows", {}, ("log", "linear")),
)  # fmt: skip
def theorem_4_2(case: Case) -> dict[str, Any]:
    """Association and test error of a run with many samples, and of one with few."""
    law, long = case.parameters, case.parameters.D <= SMALL
    time = LONG if long else DURATION
    count = SMALL_SAMPLES if long else affordable(case, time)
    run = train(case, count, time)
    shares, error = run["patch_association"], float(run["test_error"][-1])
    top, linear = int(shares.argmax()), float(sign_rule_error(law.D, law.C, law.q).error)
    row = {
        "samples": count, "value": shares[-1], "end": run.time[-1], "largest": shares[top],
        "when": run.time[top], "error": error, "of_linear": error / linear, "linear": linear,
        "irreducible": run["bayes_error"][-1], "cosine": run["cosine"][-1], "few": "",
        "open": "time" if shares[-1] < shares[top] else "size",
        "curves": {f"{case.label}, N={count:,}": (run.time[1:], shares[1:])},
    }  # fmt: skip
    if long:
        return row
    few = train(case, count // FEW, time)
    share, worse = float(few["patch_association"][-1]), float(few["test_error"][-1])
    row["few"] = f"; N={count // FEW:,}: {share:.0%} and {worse:.2%}"
    row["curves"] |= {f"N={count // FEW:,}": (few.time[1:], few["patch_association"][1:])}
    if count == SAMPLES and share >= shares[-1] and worse <= error / 0.9:
        del row["open"]  # more samples do not help
    return row


@claim(
    "Figure 4", "least entry of A inside the sets less the largest between them, end of the run",
    ">", 0.0, laws=({"D": 16, "C": 4, "q": 0.25},), shown=(*SHOWN, "d", "omega"),
    varies=("seed", "time"), again=False,
    also=(
        Also("cosine", ">", 0.9, "cosine of v and w* at the end"),
        Also("falls", "<", 0.5, "test error at the end over that after one step"),
    ),
    words="N={samples:,}, time {end:g}: entries inside the sets from {least:.2g}, between them up "
    "to {most:.2g}; cosine {cosine:.3f}, test error {error:.2%}",
    picture=Picture(TIME, "entry of $A$", {"0": 0.0}, ("log", "linear")),
)  # fmt: skip
def figure_4(case: Case) -> dict[str, Any]:
    """Whether one level separates the entries of A inside the sets from the others."""
    if (count := affordable(case, DURATION)) < SAMPLES:
        raise Undecided(f"no more than {count:,} samples can be afforded at D={case.parameters.D}")
    run = train(case, SAMPLES)
    sets = np.array(run.settings["sets"])
    inside, matrices = sets[:, None] == sets[None, :], run.layout.part(run.states, "A")
    own = matrices[:, inside & ~np.eye(len(sets), dtype=bool)].min(axis=1)
    other, error = matrices[:, ~inside].max(axis=1), run["test_error"]
    return {
        "value": own[-1] - other[-1], "least": own[-1], "most": other[-1], "samples": SAMPLES,
        "end": run.time[-1], "cosine": run["cosine"][-1], "error": error[-1],
        "falls": error[-1] / error[1],
        "curves": {"least inside a set": (run.time[1:], own[1:]),
                   "largest between sets": (run.time[1:], other[1:])},
    }  # fmt: skip
