"""Schedules of learning rates, and stages in which some arrays are frozen."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynamics.loops.updates import constant
from dynamics.problem import FloatArray, Problem
from dynamics.results.expression import Expression
from dynamics.validation import InvalidRequest, integer, real, refuse

Stages = Sequence[tuple[Any, int]]
"""Stages of a run; each stage has the names of its trained arrays and its number of steps."""
MAX_SCHEDULED = 10**7
"""Maximum number of steps of a run with a schedule, whose learning rates are summed one by one."""


@dataclass(frozen=True)
class Schedule:
    """Factors of the learning rates over a run of `steps` steps."""

    text: str
    steps: int

    def __call__(self, at: NDArray[np.int64]) -> FloatArray:
        """Factors of the learning rates at steps `at` from 0; the last also holds later."""
        kind, *numbers = self.text.split(":")
        time, total = np.minimum(at, self.steps - 1).astype(np.float64), float(self.steps)
        if kind in SHAPES:
            return SHAPES[kind](time, total, *map(float, numbers))
        value = Expression(self.text, "schedule").value({"step": time, "steps": total})
        return np.broadcast_to(np.asarray(value, dtype=np.float64), time.shape).copy()


def _warmup(time: FloatArray, total: float, warm: float) -> FloatArray:
    return np.minimum(1.0, time / warm)


def _cosine(time: FloatArray, total: float, warm: float = 0.0) -> FloatArray:
    fallen = 0.5 * (1.0 + np.cos(np.pi * np.minimum(1.0, (time - warm) / (total - warm))))
    return np.where(time < warm, time / max(warm, 1.0), fallen)


def _staircase(time: FloatArray, total: float, width: float, factor: float) -> FloatArray:
    return np.asarray(factor ** np.floor(time / width))


SHAPES: dict[str, Callable[..., FloatArray]] = {
    "warmup": _warmup,
    "cosine": _cosine,
    "staircase": _staircase,
}
"""Factors of schedules as in optax. ``warmup:N`` rises for N steps, ``cosine`` falls, ``cosine:N``
falls after a warm-up of N steps, and ``staircase:N:f`` is multiplied by f every N steps."""
FORMS = "'constant', 'warmup:N', 'cosine', 'cosine:N', 'staircase:N:f', or a formula in step, steps"


def schedule_of(text: object, steps: int) -> Callable[[NDArray[np.int64]], FloatArray]:
    """Function from steps to factors of the learning rates, checked at all `steps` of a run.

    Raises InvalidRequest if the text cannot be parsed, or a factor is negative, not finite, or 0 at
    every step.
    """
    if text is None or text == "constant":
        return constant
    if not isinstance(text, str):
        refuse("schedule", text, "is not text", FORMS, "cosine")
    if steps > MAX_SCHEDULED:
        problem = f"is for a run of {steps:,} steps"
        refuse("schedule", text, problem, f"a run of at most {MAX_SCHEDULED:,} steps", "constant")
    kind, *numbers = text.split(":")
    made = Schedule(text, steps)
    try:
        if kind in SHAPES:
            [real("schedule", float(number), above=0.0) for number in numbers]
        factors = made(np.arange(steps))
    except (TypeError, ValueError, ZeroDivisionError) as error:
        if isinstance(error, InvalidRequest):
            raise
        refuse("schedule", text, "cannot be read", FORMS, "cosine")
    bad = np.flatnonzero(~(factors >= 0) | ~np.isfinite(factors))
    if bad.size:
        problem = f"is {factors[bad[0]]:g} at step {bad[0]}"
        refuse("schedule", text, problem, "any with finite, nonnegative factors", "cosine")
    if not factors.any():
        refuse("schedule", text, "is 0 at every step", "any with a positive factor", "constant")
    return made


def stages_of(
    stages: Stages | None, problem: Problem, steps: int
) -> tuple[tuple[NDArray[np.bool_], int], ...]:
    """Mask of the trained entries in each stage, and the number of steps of each stage.

    A stage names arrays, parameter groups or parts of the state. Raises InvalidRequest for an
    unknown name, or if the numbers of steps do not sum to `steps`.
    """
    if stages is None:
        return ()
    made = []
    for names, number in stages:
        listed = names.split("+") if isinstance(names, str) else list(names)
        moves = np.logical_or.reduce([problem.entries_of(name) for name in listed])
        made.append((moves, integer("stages", number, at_least=1, at_most=10**12)))
    total = sum(number for _, number in made)
    if total != steps:
        refuse("stages", total, "is the sum of the steps of all stages", f"steps={steps}", steps)
    return tuple(made)


def read_stages(text: str) -> list[tuple[str, float]]:
    """Parse ``"A:2000,v:500"`` to names and steps; raises InvalidRequest for other text."""
    parts = [part.partition(":") for part in text.split(",")]
    try:
        return [(names.strip(), real("stages", float(steps))) for names, _, steps in parts]
    except ValueError:
        refuse("stages", text, "cannot be read", "arrays and their steps", "A:2000,v:500")


def stages_text(stages: Stages) -> str:
    """Format stages as ``"A:2000,v:500"``."""
    listed = ((n if isinstance(n, str) else "+".join(n), steps) for n, steps in stages)
    return ",".join(f"{names}:{steps}" for names, steps in listed)
