"""Cases of a claim (one parameter set and one seed each), and training runs shared by claims."""

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
    """One parameter set of a claim's grid with one seed, its problem and its training run.

    `repeat`: changes to the run when a contradiction is repeated; `problem`, `run`: the pair that
    the claim's function ``run`` returns, None if the claim has no such function; `label`:
    parameters and seed that differ between cases, for legends.
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
        """Runs whose stability is to be measured: the case's run if its problem is reduced."""
        reduced = getattr(self.problem, "view", "") == "reduced population"
        if not reduced or not isinstance(self.run, Trajectory):
            return ()
        return (Trained.of(self.parameters, self.run),)

    def rate(self, eta: float) -> float:
        """Learning rate `eta`; smaller if a contradiction is repeated at smaller step sizes."""
        return eta * self.repeat.eta_factor

    def steps(self, count: int) -> int:
        """Number of steps: `count`, or more if a repetition has a smaller rate or a later end."""
        return round(count * self.repeat.time_factor / self.repeat.eta_factor)

    def time(self, time: float) -> float:
        """Horizon of a flow; later if a contradiction is repeated at a later time."""
        return time * self.repeat.time_factor


def flow_to(time: float | Callable[[Any], float], rtol: float = 1e-8) -> Run:
    """Cached gradient flow of the reduced population; its final time may depend on parameters."""

    def run(case: Case) -> tuple[Any, Any]:
        end = time(case.parameters) if callable(time) else time
        return reduced_flow(case.system.ReducedPopulation, case.parameters, case.time(end), rtol)

    return run


def reduced_flow(
    make: Any, parameters: Any, time: float, rtol: float = 1e-8
) -> tuple[Any, Trajectory]:
    """A reduced problem and its gradient flow up to `time`, cached because claims share runs."""
    return _reduced_flow(make, parameters, time, rtol)


@lru_cache(maxsize=64)
def _reduced_flow(make: Any, parameters: Any, time: float, rtol: float) -> tuple[Any, Trajectory]:
    problem = make(parameters)
    return problem, flow(problem, time, rtol)


def descent(eta: float, steps: int, problem: str = "ReducedPopulation", **options: Any) -> Run:
    """Gradient descent on a problem of the system; runs are cached and shared by claims.

    `problem`: ``"ReducedPopulation"``, ``"FullPopulation"`` or ``"FullEmpirical"`` (samples drawn
    with the seed of the case); `**options`: arguments of the problem, and ``record`` of `descend`.
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
    """Values of the parameters named in `shown`, or of all parameters if `shown` is empty."""
    if parameters is None:
        return {}
    names = shown or [entry.name for entry in fields(parameters)]
    values = asdict(parameters)
    return {name: values.get(name, getattr(parameters, name, None)) for name in names}
