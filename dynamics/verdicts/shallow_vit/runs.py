r"""Training runs and sweeps that checks and figures of the shallow ViT share.

The paper's margin is 1 and its output weights are :math:`\pm 1/\sqrt m`; its proof sums
:math:`\pm 1/m`, which is the margin :math:`\sqrt m` at the same step. Both conventions are run.

A figure that is interrupted leaves its sweeps in the folder of the cache, and the same figure
goes on from there; they are removed when it is complete. With the option ``store`` they stay in a
folder of the user's choice.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import asdict, replace
from math import sqrt
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import ArrayLike, NDArray

from dynamics.cache import cache_directory
from dynamics.phase_diagrams.quantities import Quantity
from dynamics.problem import FloatArray
from dynamics.results.storage import versions
from dynamics.results.trajectory import Trajectory
from dynamics.sweep import Sweep, sweep
from dynamics.system import System
from dynamics.training.descent import descend
from dynamics.validation import path_of
from dynamics.verdicts.figure import FigureRequest
from dynamics.verdicts.study import Case as PlainCase
from dynamics.verdicts.study import Study, computed_once
from theory.papers.shallow_vit.attention import PARTS, attention

ETA = 0.1
STEPS = 3000
"""Steps at most; with the hinge a run stands still once its training loss is zero."""
SAMPLES = 200
"""N of Section 4.1."""
PATTERNS = (10, 15, 20)
"""M of Figures 7 and 8."""
FEWEST = 3
"""Points that a line needs."""


class Interrupted(Exception):
    """A sweep was stopped; the same figure goes on."""


class Case(PlainCase):
    """A reduced problem with its gradient descent, every step recorded until it stands still."""

    @property
    def last(self) -> int:
        """The record from which the run stands still, or the last one."""
        step, end = step_of_rest(self.problem, self.run), len(self.run.time) - 1
        return end if step is None else min(step, end)

    @property
    def name(self) -> str:
        """The margin in words."""
        return margin_word(self.parameters)

    def parts(self, record: int) -> tuple[FloatArray, ...]:
        """W_O, V, K, Q at a record."""
        return tuple(self.run[name][record] for name in PARTS)

    def attention(self, record: int) -> FloatArray:
        """P of every distinct training vector, shape (S, M, M)."""
        _, _, keys, queries = self.parts(record)
        return attention(keys.T @ queries, self.problem.vectors.counts)

    def gates(self, record: int) -> NDArray[np.bool_]:
        """Whether a neuron is open to query j of the + and of the - sample, shape (m, 2, M)."""
        hidden, values, keys, queries = self.parts(record)
        pair = attention(keys.T @ queries, self.problem.reader.pair)
        return np.stack([hidden @ values @ one for one in pair], axis=1) > 0

    def lucky(self, record: int) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """W and U by their gates: a > 0 and open to query 1 of +, a < 0 and to query 2 of -."""
        positive, open_ = self.problem.start.a > 0, self.gates(record)
        return positive & open_[:, 0, 0], ~positive & open_[:, 1, 1]

    def add(self, study: Study, label: str, values: FloatArray) -> None:
        """Add a curve of the steps until the run stands still; the margin is part of its label.

        Parameters
        ----------
        study : Study
        label : str
        values : float array, shape (records,)
        """
        stop = self.last + 1
        study.curve(f"{label}, {self.name}", np.arange(stop), values[:stop])


def step_of_rest(problem: Any, run: Trajectory) -> int | None:
    """The step of zero hinge, from which nothing moves; the linear loss goes on past its zero.

    Parameters
    ----------
    problem : ReducedPopulation or FullEmpirical
    run : Trajectory
    """
    return run.events["t_zero"].step if problem.parameters.loss == "hinge" else None


def descend_in_parts(
    problem: Any, eta: float, horizons: Iterable[int], record: int | None = None
) -> Trajectory:
    """Gradient descent to the first of several horizons by which it stands still, or to the last.

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


def margin_word(parameters: Any) -> str:
    """The margin as it is written: 1, or the root of m."""
    same = abs(parameters.margin - sqrt(parameters.m)) < 1e-9 * parameters.margin
    return "margin sqrt m" if same else f"margin {parameters.margin:g}"


def proofs_margin(parameters: Any) -> Any:
    """The same law in the convention of the proof: the margin times the root of m."""
    return replace(parameters, margin=sqrt(parameters.m) * parameters.margin)


def descend_to_rest(problem: Any, eta: float, steps: int, record: int) -> Trajectory:
    """Gradient descent until it stands still.

    Parameters
    ----------
    problem : ReducedPopulation or FullEmpirical
    eta : float
    steps : int
        At most.
    record : int
        Steps between records.
    """
    step = step_of_rest(problem, descend(problem, eta, steps, record=[steps]))
    return descend(problem, eta, steps if step is None else max(1, step), record=record)


@computed_once(16)
def trained(
    make: Any, parameters: Any, seed: int, eta: float = ETA, steps: int = STEPS, record: int = 1
) -> Case:
    """The descent of the reduced problem on `SAMPLES` samples, computed once for all checks.

    Parameters
    ----------
    make : System
    parameters : Parameters
    seed : int
    eta : float
    steps : int
        At most.
    record : int
        Steps between records.
    """
    problem = make(parameters, samples=SAMPLES, seed=seed)
    return Case(parameters, problem, descend_to_rest(problem, eta, steps, record))


def run_of(study: Study, parameters: Any, seed: int = 0, eta: float = ETA) -> Case:
    """The descent of the reduced problem as the study asks for it, with as many records as ever.

    Parameters
    ----------
    study : Study
    parameters : Parameters
    seed : int
        Added to that of the study.
    eta : float
    """
    every = max(1, round(1 / study.repeat.eta_factor))
    rate, steps = study.rate(eta), study.horizon(STEPS)
    return trained(study.system, parameters, study.seed + seed, rate, steps, every)


def both_margins(study: Study, **default: Any) -> list[Any]:
    """The user's parameters, or the default ones at both margins."""
    law = study.law(**default)
    return [law] if study.parameters is not None else [law, proofs_margin(law)]


def at_both_margins(study: Study) -> list[Case]:
    """Runs of the user's parameters, or of the default ones at both margins."""
    return [run_of(study, law) for law in both_margins(study)]


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


@contextmanager
def folder(name: str, request: FigureRequest, options: Mapping[str, Any]) -> Iterator[Path]:
    """The folder of the sweeps of one figure.

    Parameters
    ----------
    name : str
        Of the figure.
    request : FigureRequest
    options : mapping
        All its options; ``store`` among them, empty for the folder of the cache.
    """
    if options["store"]:
        yield path_of("store", options["store"])
        return
    key = [name, versions(), dict(options), asdict(request)]
    digest = hashlib.sha256(json.dumps(key, sort_keys=True, default=str).encode()).hexdigest()
    path = cache_directory() / "figures" / f"{name}-{digest[:16]}"
    yield path
    shutil.rmtree(path, ignore_errors=True)


def stored_sweep(
    system: System, law: Any, axes: Mapping[str, Any], path: Path, workers: int
) -> Sweep:
    """A sweep in a store.

    Parameters
    ----------
    system : System
    law : Parameters
        What is not an axis.
    axes : mapping
        Name -> values, a formula, or a setting of the sweep.
    path : Path
        Of the store.
    workers : int

    Raises
    ------
    Interrupted
        If it was stopped; what is done stays in the store.
    """
    path.parent.mkdir(parents=True, exist_ok=True)
    result = sweep(system, asdict(law) | dict(axes), path, workers=workers)
    if result.interrupted:
        raise Interrupted("interrupted: the same figure goes on from here")
    return result


def values(result: Sweep, quantity: str, dims: Sequence[str]) -> FloatArray:
    """A quantity of a sweep over some dimensions, those of length 1 that have none among them.

    Parameters
    ----------
    result : Sweep
    quantity : str
    dims : sequence of str
    """
    dataset = result.dataset
    order = [str(dim) for dim in dataset["outcome"].dims]
    array = Quantity.read(quantity, dataset).of(dataset)
    return np.asarray(np.transpose(array, [order.index(dim) for dim in dims]))
