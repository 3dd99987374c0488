"""Cases of a claim: a law of its grid with a seed, and the training runs that claims share."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import asdict, dataclass, field, fields
from functools import lru_cache
from typing import Any

from dynamics.results.trajectory import Trajectory
from dynamics.system import System
from dynamics.training.descent import descend
from dynamics.training.flow import flow
from dynamics.verdicts.rules import Repeat
from dynamics.verdicts.stability import Trained

Run = Callable[["Case"], tuple[Any, Any]]


@dataclass(frozen=True)
class Case:
    """One law of the grid with one seed: its problem and its training run.

    `repeat`: how this run differs from the first, where it is made again; `problem`, `run`: as the
    ``run`` of the claim returns them; None without one; `label`: Parameters and seed by which the
    case differs from the others, for legends.
    """

    system: System
    parameters: Any
    seed: int = 0
    thorough: bool = False
    repeat: Repeat = field(default_factory=Repeat)
    problem: Any = None
    run: Any = None
    label: str = ""

    @property
    def trained(self) -> tuple[Trained, ...]:
        """The run, where it is of the reduced population: its stability goes with the verdict."""
        reduced = getattr(self.problem, "view", "") == "reduced population"
        if not reduced or not isinstance(self.run, Trajectory):
            return ()
        return (Trained.of(self.parameters, self.run),)

    def rate(self, eta: float) -> float:
        """The learning rate, or the part of it at which the run is repeated."""
        return eta * self.repeat.eta_factor

    def steps(self, count: int) -> int:
        """The number of steps, or as many as the time of a repeated run takes."""
        return round(count * self.repeat.time_factor / self.repeat.eta_factor)

    def time(self, time: float) -> float:
        """The horizon of a flow, or the later one of a repeated run."""
        return time * self.repeat.time_factor


def flow_to(time: float | Callable[[Any], float], rtol: float = 1e-8) -> Run:
    """The gradient flow of the reduced population to a time, or one of the parameters; shared."""

    def run(case: Case) -> tuple[Any, Any]:
        end = time(case.parameters) if callable(time) else time
        return reduced_flow(case.system.ReducedPopulation, case.parameters, case.time(end), rtol)

    return run


def reduced_flow(
    make: Any, parameters: Any, time: float, rtol: float = 1e-8
) -> tuple[Any, Trajectory]:
    """A reduced problem and its gradient flow to a time; cached, because claims share runs."""
    return _reduced_flow(make, parameters, time, rtol)


@lru_cache(maxsize=64)
def _reduced_flow(make: Any, parameters: Any, time: float, rtol: float) -> tuple[Any, Trajectory]:
    problem = make(parameters)
    return problem, flow(problem, time, rtol)


def descent(eta: float, steps: int, problem: str = "ReducedPopulation", **options: Any) -> Run:
    """Gradient descent on a problem of the system, shared by claims.

    `problem`: ``"ReducedPopulation"``, ``"FullPopulation"`` or ``"FullEmpirical"``, whose seed is
    that of the case; `**options`: of the problem; ``record`` is that of the descent.
    """
    record = options.pop("record", None)

    def run(case: Case) -> tuple[Any, Any]:
        given = {"seed": case.seed, **options} if problem == "FullEmpirical" else options
        make = getattr(case.system, problem)
        key = tuple(sorted(given.items()))
        return _descended(make, case.parameters, case.rate(eta), case.steps(steps), record, key)

    return run


@lru_cache(maxsize=16)
def _descended(
    make: Any, parameters: Any, eta: float, steps: int, record: Any, options: Any
) -> tuple[Any, Trajectory]:
    problem = make(parameters, **dict(options))
    return problem, descend(problem, eta, steps, **({} if record is None else {"record": record}))


def named_values(parameters: Any, shown: Sequence[str]) -> dict[str, Any]:
    """Parameters that a verdict names, all where none is listed, as plain values."""
    if parameters is None:
        return {}
    names = shown or [entry.name for entry in fields(parameters)]
    values = asdict(parameters)
    return {name: values.get(name, getattr(parameters, name, None)) for name in names}
