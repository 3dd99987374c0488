r"""What the checks share: laws, descents that several of them read, words of their findings.

The paper's margin is 1 and its output weights are :math:`\pm 1/\sqrt m`; its proof sums
:math:`\pm 1/m`, which is the margin :math:`\sqrt m` at the same step. Both conventions are run.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, replace
from functools import lru_cache
from math import sqrt
from typing import TYPE_CHECKING, Any

import numpy as np
from numpy.typing import NDArray

from dynamics.experiments.verify import Finding, Protocol
from dynamics.problem import FloatArray
from dynamics.results.trajectory import Event, Trajectory
from dynamics.systems.shallow_vit.full.projection import PARTS, attention
from dynamics.training.gradient_descent import descend

if TYPE_CHECKING:
    from dynamics.registry import System

ETA = 0.1
STEPS = 3000
"""Steps at most; with the hinge a run stands still once its training loss is zero."""
SAMPLES = 200
"""N of Section 4.1."""
TOUCH = 1e-15
"""Relative change of the start that tells what a run makes of rounding."""
PATTERNS = (10, 15, 20)
"""M of Figures 7 and 8."""


def signs(size: int, seed: int = 0) -> FloatArray:
    """Signs of a touch, the same ones always."""
    return np.random.default_rng(seed).choice((-1.0, 1.0), size)


@dataclass(frozen=True)
class Case:
    """A reduced problem with its descent, every step recorded until it stands still.

    Attributes
    ----------
    parameters : Parameters
    problem : ReducedPopulation
    run : Trajectory
    """

    parameters: Any
    problem: Any
    run: Trajectory

    @property
    def last(self) -> int:
        """The record from which the run stands still, or the last one."""
        found = stands(self.problem, self.run)
        return len(self.run.time) - 1 if found is None or found.step is None else found.step

    def touched(self, seed: int) -> Trajectory:
        """The same steps from a start that is changed by `TOUCH` of itself, with random signs.

        Where training is unstable, what a touch changes is what rounding may change.
        """
        state = self.problem.initial_state
        start = state * (1.0 + TOUCH * signs(state.size, seed))
        return descend(self.problem, self.run.settings["eta"], self.last, record=1, initial=start)

    @property
    def shown(self) -> str:
        """The margin in words."""
        return margin_word(self.parameters)

    def parts(self, record: int) -> tuple[FloatArray, ...]:
        """W_O, V, K, Q at a record."""
        return tuple(self.run[name][record] for name in PARTS)

    def attention(self, record: int) -> FloatArray:
        """P of every distinct training vector, shape (S, M, M)."""
        _, _, keys, queries = self.parts(record)
        return attention(keys.T @ queries, self.problem.instance.vectors.counts)

    def gates(self, record: int) -> NDArray[np.bool_]:
        """Whether a neuron is open to query j of the + and of the - sample, shape (m, 2, M)."""
        hidden, values, keys, queries = self.parts(record)
        seen = attention(keys.T @ queries, self.problem.instance.reader.pair)
        return np.stack([hidden @ values @ one for one in seen], axis=1) > 0

    def lucky(self, record: int) -> tuple[NDArray[np.bool_], NDArray[np.bool_]]:
        """W and U by their gates: a > 0 and open to query 1 of +, a < 0 and to query 2 of -."""
        positive, open_ = self.problem.instance.start.a > 0, self.gates(record)
        return positive & open_[:, 0, 0], ~positive & open_[:, 1, 1]


def stands(problem: Any, run: Trajectory) -> Event | None:
    """The event from which nothing moves: zero hinge. The linear loss goes on past its zero."""
    return run.events["t_zero"] if problem.parameters.loss == "hinge" else None


def margin_word(parameters: Any) -> str:
    """The margin as it is written: 1, or the root of m."""
    same = abs(parameters.margin - sqrt(parameters.m)) < 1e-9 * parameters.margin
    return "margin sqrt m" if same else f"margin {parameters.margin:g}"


def proofs_margin(parameters: Any) -> Any:
    """The same law in the convention of the proof: the margin times the root of m."""
    return replace(parameters, margin=sqrt(parameters.m) * parameters.margin)


def trained(
    system: System, parameters: Any, seed: int, eta: float = ETA, steps: int = STEPS
) -> Case:
    """The descent of the reduced problem on `SAMPLES` samples; kept, because checks share runs."""
    make: Any = system.ReducedPopulation
    return _trained(make, parameters, seed, eta, steps)


@lru_cache(maxsize=16)
def _trained(make: Callable[..., Any], parameters: Any, seed: int, eta: float, steps: int) -> Case:
    problem = make(parameters, samples=SAMPLES, seed=seed)
    stop = stands(problem, descend(problem, eta, steps, record=[steps]))
    end = steps if stop is None or stop.step is None else max(1, stop.step)
    return Case(parameters, problem, descend(problem, eta, end, record=1))


def both(system: System, protocol: Protocol, **usual: Any) -> list[Case]:
    """The user's parameters, or the usual ones at both margins."""
    if protocol.parameters is not None:
        return [trained(system, protocol.parameters, protocol.seed)]
    law = system.Parameters(**usual)
    return [trained(system, each, protocol.seed) for each in (law, proofs_margin(law))]


def possible(law: Any, points: Iterable[tuple[float, float]]) -> list[Any]:
    """The law at every (alpha_*, alpha_#) that whole numbers of tokens have.

    Short samples have no strict majority of one token at small alpha_*; of several points that are
    the same tokens the first is kept.
    """
    laws: list[Any] = []
    for alpha, confusion in points:
        try:
            one = replace(law, alpha_star=alpha, alpha_confusion=confusion)
        except ValueError:
            continue
        if law.data != "iid" and _tokens(one) in map(_tokens, laws):
            continue
        laws.append(one)
    return laws


def _tokens(law: Any) -> tuple[int, int]:
    return law.n_star, law.n_confusion


def sizes_of(parameters: Any) -> dict[str, Any]:
    """The parameters that a verdict is about, as plain values."""
    return {name: getattr(parameters, name) for name in parameters.__dataclass_fields__}


def undecided(quantity: str, bound: float, reason: str, parameters: Any = None) -> Finding:
    """A finding that says why nothing can be decided."""
    evidence = {} if parameters is None else {"parameters": sizes_of(parameters)}
    return Finding(None, quantity, float("nan"), bound, reason, evidence)


def plot(
    x: str,
    y: str,
    curves: Sequence[Mapping[str, Any]],
    lines: Mapping[str, float] | None = None,
    scales: tuple[str, str] = ("linear", "linear"),
) -> dict[str, Any]:
    """What `dynamics.plotting.evidence` draws."""
    marks = [{"label": label, "y": value} for label, value in (lines or {}).items()]
    return {
        "x_label": x, "y_label": y, "x_scale": scales[0], "y_scale": scales[1],
        "curves": list(curves), "lines": marks,
    }  # fmt: skip
