r"""Laws and training runs that claims of the shallow ViT share.

The paper's margin is 1 and its output weights are :math:`\pm 1/\sqrt m`; its proof sums
:math:`\pm 1/m`, which is the margin :math:`\sqrt m` at the same step. Equation (1) prints a vector
:math:`a_{(l)}` of output weights for each position l, the proof gives a neuron one sign: by default
there is one weight per neuron; ``output_weights="per_position"`` is one per neuron and position.
Claims on patterns are of tokens without noise.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from dataclasses import replace
from functools import lru_cache, partial
from math import sqrt
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynamics.problem import FloatArray
from dynamics.results.trajectory import Trajectory
from dynamics.training.descent import descend
from dynamics.verdicts.claim import Case, Run
from dynamics.verdicts.claim import claim as any_claim
from dynamics.verdicts.rules import ERRORS
from dynamics.verdicts.wording import listed
from theory.papers.shallow_vit.attention import PARTS, attention

ETA, STEPS = 0.1, 3000
"""Learning rate, and steps at most; with the hinge a run stands still at zero training loss."""
SAMPLES, POSITIONED = 200, 40
"""N of Section 4.1; with output weights per position every sample is a count vector of its own."""
FEWEST = 3
"""Points that a line needs."""
ONCE = ("step size", "seed")
CLEARLY = 2.0
"""Standard errors from which on growth is significant; to contradict it takes `ERRORS`."""
LINEAR = ("linear", "linear")
SHOWN = (
    "alpha_star", "alpha_confusion", "L", "M", "d", "m", "sigma", "delta", "noise", "data",
    "margin", "output",
)  # fmt: skip
"""Parameters that every verdict names."""
ROOT = {"margin": sqrt(1000)}
MARGINS: tuple[dict[str, Any], ...] = ({}, ROOT)
"""Margin 1, and that of the proof at m = 1000."""


def without_noise(law: Any) -> list[Any]:
    """The law as training on patterns takes it."""
    return [replace(law, noise=0.0)]


claim_on_tokens = partial(any_claim, shown=SHOWN)
claim = partial(claim_on_tokens, family=without_noise)


def step_of_rest(problem: Any, run: Trajectory) -> int | None:
    """The step of zero hinge, from which nothing moves; the linear loss goes on past its zero.

    Parameters
    ----------
    problem : Problem
    run : Trajectory
    """
    return run.events["t_zero"].step if problem.parameters.loss == "hinge" else None


def descend_in_parts(
    problem: Any, eta: float, horizons: Iterable[int], record: int | None = None
) -> Trajectory:
    """Descend to the first of several horizons by which training stands still, or to the last.

    Parameters
    ----------
    problem : ReducedPopulation or FullEmpirical
    eta : float
    horizons : iterable of int
        Steps, ascending.
    record : int, optional
        Steps between records; by default the end is recorded alone.
    """
    for steps in horizons:
        run = descend(problem, eta, steps, record=record or [steps])
        if step_of_rest(problem, run) is not None:
            break
    return run


def to_rest(eta: float = ETA) -> Run:
    """Descent on patterns until training stands still, every step recorded; shared by claims."""

    def run(case: Case) -> tuple[Any, Trajectory]:
        every = max(1, round(1 / case.repeat.eta_factor))
        at = case.rate(eta), case.steps(STEPS), every
        make: Any = case.system.ReducedPopulation
        return _rested(make, case.parameters, case.seed, *at)

    return run


@lru_cache(maxsize=16)
def _rested(
    make: Any, law: Any, seed: int, eta: float, steps: int, every: int
) -> tuple[Any, Trajectory]:
    samples = SAMPLES if law.output_weights == "shared" else POSITIONED
    problem = make(law, samples=samples, seed=seed)
    step = step_of_rest(problem, descend_in_parts(problem, eta, (steps // 3, steps)))
    return problem, descend(problem, eta, steps if step is None else max(1, step), record=every)


def parts_of(case: Case, record: int) -> tuple[FloatArray, ...]:
    """W_O, V, K, Q at a record.

    Parameters
    ----------
    case : Case
    record : int
    """
    return tuple(case.run[name][record] for name in PARTS)


def attention_of(case: Case, record: int) -> FloatArray:
    """P of every distinct training vector at a record, shape (S, M, M).

    Parameters
    ----------
    case : Case
    record : int
    """
    _, _, keys, queries = parts_of(case, record)
    return attention(keys.T @ queries, case.problem.vectors.counts)


def lucky(case: Case, record: int) -> NDArray[np.bool_]:
    """W and U by their gates, shape (2, m): a > 0 and open to query 1 of +, a < 0 and 2 of -.

    Parameters
    ----------
    case : Case
    record : int
    """
    hidden, values, keys, queries = parts_of(case, record)
    pair = attention(keys.T @ queries, case.problem.reader.pair)
    inputs = [hidden @ values @ one[:, j] for j, one in enumerate(pair)]
    positive = case.problem.start.a > 0
    return np.array([positive & (inputs[0] > 0), ~positive & (inputs[1] > 0)])


def possible(law: Any, points: Iterable[tuple[float, float]]) -> list[Any]:
    """The law at every (alpha_*, alpha_#) that whole numbers of tokens have.

    Short samples have no strict majority of one token at small alpha_*; of several points that are
    the same tokens the first counts.

    Parameters
    ----------
    law : Parameters
    points : iterable of (float, float)
    """
    laws: dict[Any, Any] = {}
    for alpha, confusion in points:
        try:
            one = replace(law, alpha_star=alpha, alpha_confusion=confusion)
        except ValueError:
            continue
        iid = law.data == "iid"
        laws.setdefault((alpha, confusion) if iid else (one.n_star, one.n_confusion), one)
    return list(laws.values())


def alphas(laws: Sequence[Any]) -> FloatArray:
    """alpha_* of laws."""
    return np.array([law.alpha_star for law in laws])


def gaps(laws: Sequence[Any]) -> FloatArray:
    """alpha_* - alpha_#, of the tokens that there are."""
    return np.array([(law.n_star - law.n_confusion) / law.L for law in laws])


class Line(NamedTuple):
    """A straight line through points: ``y = slope x + level``, and its share of the variance."""

    slope: float
    level: float
    r2: float


def line(x: ArrayLike, y: ArrayLike) -> Line:
    """The straight line through points by least squares.

    Parameters
    ----------
    x, y : float array, shape (n,)

    Returns
    -------
    Line
        All NaN with fewer than three points, or where all x or all y are equal.
    """
    from scipy.stats import linregress

    if np.size(x) < FEWEST or np.ptp(x) == 0 or np.ptp(y) == 0:
        return Line(np.nan, np.nan, np.nan)
    fit = linregress(x, y)
    return Line(float(fit.slope), float(fit.intercept), float(fit.rvalue) ** 2)


def growth_row(name: str, x: Sequence[float], values: ArrayLike) -> dict[str, Any]:
    """The row of a claim that values grow along x: their slope over its standard error.

    Parameters
    ----------
    name : str
        Of x.
    x : sequence of float, length n
    values : float array, shape (n, seeds)
        Of each seed: values along x share its random numbers.
    """
    every = np.asarray(values, dtype=np.float64)
    slopes, means = np.polyfit(x, every, 1)[0], every.mean(axis=1)
    slope, error = float(slopes.mean()), float(slopes.std(ddof=1) / sqrt(slopes.size))
    errors = slope / error if error else float(np.copysign(np.inf, slope)) if slope else 0.0
    holds = True if errors > CLEARLY else False if errors < -ERRORS else None
    words = f"{listed(means, 4)} at {name} = {listed(x)}: slope {slope:.2g} +- {error:.1g}"
    return {"value": errors, "holds": holds, "missing": "size", "told": words,
            "curves": {name: (x, means)}}  # fmt: skip
