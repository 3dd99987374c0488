"""Requests for update rules: names and constants that are checked, schedules, stages."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import Any

import numpy as np
from numpy.typing import NDArray

from dynamics.default_runs import DefaultRun
from dynamics.loops.updates import Updates, constant
from dynamics.problem import FloatArray, Problem
from dynamics.results.expression import Expression
from dynamics.validation import InvalidRequest, integer, known_word, real, refuse
from theory.closure.regime import Regime
from theory.law import ModelError
from theory.program import run_floats
from theory.update_rules import CONSTANTS, RULES, UpdateRule, own_rule

Stages = Sequence[tuple[Any, int]]
"""Names of what moves, and steps."""
MAX_SCHEDULED = 10**7
"""Steps of a run with a schedule, whose rates are summed one by one."""
ROUNDING = 64 * float(np.finfo(np.float64).eps)
"""Gradient of an entry, over the largest, that may be rounding alone."""
AMPLIFIED = 1e3
"""Size of a step, over eta and such a gradient, that is told."""
BELOW_ONE = np.nextafter(1.0, 0.0)
RANGES: dict[str, Callable[[str, object], Any]] = {
    "momentum": partial(real, at_least=0.0, at_most=BELOW_ONE),
    "b1": partial(real, at_least=0.0, at_most=BELOW_ONE),
    "b2": partial(real, at_least=0.0, at_most=BELOW_ONE),
    "eps": partial(real, at_least=0.0),
    "weight_decay": partial(real, at_least=0.0),
}
"""Checks of the constants of rules."""


def rule(name: str | UpdateRule | Callable[..., Any], **constants: Any) -> UpdateRule:
    """An update rule at some constants.

    Parameters
    ----------
    name : str, UpdateRule or callable
        ``gd``, ``momentum`` (with ``nesterov=True`` Nesterov's), ``sign``, ``adam``, ``adamw``,
        ``normalized``; or a function ``step(gradient, memory, entry, step, eta, xp)`` of one
        entry, which returns its change and its memory.
    **constants
        Other values of the constants of the rule, which have the names and defaults of optax, and
        ``weight_decay``: a multiple of each entry that is added to its gradient (of ``adamw`` it
        is subtracted from the step instead).

    Returns
    -------
    UpdateRule

    Raises
    ------
    InvalidRequest
        If there is no such rule or constant, or a value is not valid.

    Examples
    --------
    >>> import dynamics
    >>> dynamics.rule("adam", b1=0.5).options
    {'weight_decay': 0.0, 'b1': 0.5, 'b2': 0.999, 'eps': 1e-08}
    """
    if isinstance(name, UpdateRule):
        found = name
    elif callable(name):
        try:
            found = own_rule(name)
        except ModelError as error:
            raise InvalidRequest(str(error)) from error
    else:
        found = RULES[known_word("rule", name, tuple(RULES))]
    for key, value in constants.items():
        if key in found.options:
            constants[key] = _checked(key, value, found.options[key])
        else:
            known = ", ".join(found.options)
            raise InvalidRequest(
                f"{key}={value!r} is no constant of the rule {found.name}, which has {known}"
            )
    return found.changed(**constants)


def _checked(name: str, value: object, default: object) -> Any:
    """A constant of a rule within its range."""
    if isinstance(default, bool):
        if value not in (True, False):
            refuse(name, value, "is no truth value", "True or False", default)
        return bool(value)
    return RANGES.get(name, real)(name, value)


@dataclass(frozen=True)
class Schedule:
    """Factors of the learning rates over a run.

    Attributes
    ----------
    text : str
    steps : int
        Of the run.
    """

    text: str
    steps: int

    def __call__(self, at: NDArray[np.int64]) -> FloatArray:
        """The factor at steps counted from 0, that of the last step after it, shape (steps,)."""
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
"""Schedules by name: ``warmup:N``, ``cosine`` or ``cosine:N`` after N steps of warm-up,
``staircase:N:f``, the factor f every N steps; as optax has them."""
FORMS = "'constant', 'warmup:N', 'cosine', 'cosine:N', 'staircase:N:f', or a formula in step, steps"


def schedule_of(text: object, steps: int) -> Callable[[NDArray[np.int64]], FloatArray]:
    """The factors of a schedule, checked at every step.

    Parameters
    ----------
    text : str or None
    steps : int
        Of the run.

    Raises
    ------
    InvalidRequest
        If it cannot be read, or a factor is negative, not finite, or 0 at every step.
    """
    if text is None or text == "constant":
        return constant
    if not isinstance(text, str):
        refuse("schedule", text, "is no text", FORMS, "cosine")
    if steps > MAX_SCHEDULED:
        problem = f"is of a run of {steps:,} steps"
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
        refuse("schedule", text, problem, "factors from 0", "cosine")
    if not factors.any():
        refuse("schedule", text, "is 0 at every step", "a factor above 0", "constant")
    return made


def stages_of(
    stages: Stages | None, problem: Problem, steps: int
) -> tuple[tuple[NDArray[np.bool_], int], ...]:
    """Entries that move in each stage, and its steps.

    Parameters
    ----------
    stages : sequence of (str or sequence of str, int), or None
        Names of arrays, groups or parts of the state, and numbers of steps, which sum to ``steps``.
    problem : Problem
    steps : int

    Raises
    ------
    InvalidRequest
        If a name is not known, or the steps have another sum.
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
        refuse("stages", total, "is the sum of their steps", f"steps={steps}", steps)
    return tuple(made)


def rule_of(problem: Problem, name: Any) -> UpdateRule:
    """An update rule, ``step`` that of the model of a problem.

    Parameters
    ----------
    problem : Problem
    name : str, UpdateRule or callable
        As for `rule`.
    """
    if not isinstance(name, str) or name != "step":
        return rule(name)
    if (own := problem.own_rule()) is None:
        refuse("rule", name, "is no function of the model", f"{', '.join(RULES)}", "gd")
    return own


def requested(given: Mapping[str, Any], default: DefaultRun) -> dict[str, Any]:
    """The rule, schedule and stages of a command or a sweep, as `dynamics.descend` takes them.

    Parameters
    ----------
    given : mapping
        Name -> value, of `theory.update_rules.OPTIONS` and others.
    default : DefaultRun
        Of the system.

    Raises
    ------
    InvalidRequest
        If a rule or a constant is not valid, or a rule other than the default has no rate.
    """
    name = given.get("rule", default.rule)
    constants = {n: given[n] for n in CONSTANTS if n in given}
    constants |= {n: given[f"rule.{n}"] for n in CONSTANTS if f"rule.{n}" in given}
    if "nesterov" in constants:
        word = str(constants["nesterov"]).lower()
        known_word("nesterov", word, ("true", "false", "1", "0"))
        constants["nesterov"] = word in ("true", "1")
    if name == "step" and constants:
        raise InvalidRequest(f"{next(iter(constants))} is of another rule than step")
    chosen = name if name == "step" else rule(name, **constants)
    check_rated(given, default)
    stages = given.get("stages", default.stages)
    found = {
        "rule": chosen,
        "schedule": given.get("schedule", default.schedule),
        "stages": stages if stages is None or np.ndim(stages) else _stages(str(stages)),
    }
    return {n: v for n, v in found.items() if v is not None}


def check_rated(given: Mapping[str, Any], default: DefaultRun) -> None:
    """Refuse a rule that is not the default without an ``eta``.

    Parameters
    ----------
    given : mapping
        Settings of a request.
    default : DefaultRun
    """
    name = given.get("rule", default.rule)
    if name not in (default.rule, "gd") and "eta" not in given:
        raise InvalidRequest(
            f"rule={name!r} needs an eta: the default {default.eta:g} is that of {default.rule}"
        )


def default_words(default: DefaultRun) -> dict[str, str]:
    """Rule, schedule and stages of the runs of a model file as words; none of gradient descent."""
    words = {"rule": "" if default.rule == "gd" else default.rule, "schedule": default.schedule}
    words["stages"] = stages_text(default.stages) if default.stages else None
    return {name: word for name, word in words.items() if word}


def in_words(entries: Mapping[str, Any], parameters: Collection[str]) -> dict[str, Any]:
    """The entries of a sweep with rule and stages as words.

    Parameters
    ----------
    entries : mapping
        A rule at constants of its own is its name, and these.
    parameters : collection of str
        Constants of the model.

    Raises
    ------
    InvalidRequest
        If the rule is a function, which has no name.
    """
    made = dict(entries)
    chosen, stages = made.get("rule", "gd"), made.get("stages", "")
    usual = RULES.get(getattr(chosen, "name", ""))
    if usual is not None and chosen.function is usual.function:
        own = {n: value for n, value in chosen.options.items() if value != usual.options[n]}
        made |= {f"rule.{n}" if n in parameters else n: value for n, value in own.items()}
        made["rule"] = chosen.name
    elif not isinstance(chosen, str):
        refuse("rule", chosen, "has no name", "a name, or step of a model file", "adam")
    if not isinstance(stages, str):
        made["stages"] = stages_text(stages)
    return made


def _stages(text: str) -> list[tuple[str, float]]:
    """``"A:2000,v:500"`` as names and steps."""
    parts = [part.partition(":") for part in text.split(",")]
    try:
        return [(names.strip(), real("stages", float(steps))) for names, _, steps in parts]
    except ValueError:
        refuse("stages", text, "cannot be read", "arrays and their steps", "A:2000,v:500")


def stages_text(stages: Stages) -> str:
    """Stages as ``"A:2000,v:500"``."""
    listed = ((n if isinstance(n, str) else "+".join(n), steps) for n, steps in stages)
    return ",".join(f"{names}:{steps}" for names, steps in listed)


def under(
    problem: Problem, rule: UpdateRule, stages: Stages | None = None, schedule: Any = None
) -> Problem:
    """The problem on what training by a rule closes on.

    Parameters
    ----------
    problem : Problem
    rule : UpdateRule
    stages, schedule
        As of a run.
    """
    if rule.plain and stages is None:
        return problem
    return problem.under(Regime.of(rule, by_array=stages is not None))


def amplified_rounding(problem: Problem, updates: Updates, start: FloatArray) -> Iterator[str]:
    """A remark where a rule makes large steps of gradients that are rounding at the start.

    Parameters
    ----------
    problem : Problem
    updates : Updates
        The rule at the rates of a run.
    start : float array, shape (n,)
    """
    used, moves, rates = updates.rule, updates.moves, updates.eta
    if used.spaces or moves is None:
        return
    slope = problem.gradient(start) + used.weight_decay * start
    slope = np.where(moves & (rates > 0), slope, 0.0)
    largest = float(np.abs(slope).max(initial=0.0))
    small = np.flatnonzero((slope != 0) & (np.abs(slope) <= ROUNDING * largest))
    if not small.size:
        return
    entry = small[np.argmax(np.abs(slope[small]))]
    gradient, program = slope[entry], used.program
    changes = []
    for given in (gradient, 0.0):
        inputs = [given, start[entry], 1.0, rates[entry], float(np.sqrt((slope**2).sum()))]
        inputs += [0.0] * used.memory + list(used.numbers.values())
        changes.append(run_floats(program, np.array(inputs))[program.outputs["change"][0]])
    factor = abs((changes[0] - changes[1]) / (rates[entry] * gradient))
    if factor > AMPLIFIED:
        eps = used.numbers.get("eps")
        why = f" (eps={eps:g})" if eps else ""
        yield (
            f"gradients of {small.size} of {slope.size} numbers are of the size of rounding at the "
            f"start (at most {abs(gradient):.0e} beside {largest:.0e}), and {used.name} multiplies "
            f"them by {factor:.0e}{why}: where they go is decided by rounding"
        )


def check_rule(
    problem: Problem, steps: int, rule: Any, schedule: Any = None, stages: Stages | None = None
) -> None:
    """Refuse what `dynamics.descend` would refuse of a rule, its schedule and its stages.

    Parameters
    ----------
    problem : Problem
    steps : int
    rule, schedule, stages
        As of `dynamics.descend`.
    """
    schedule_of(schedule, steps)
    stages_of(stages, under(problem, rule_of(problem, rule), stages), steps)


def described(rule: UpdateRule, schedule: str | None, stages: Stages | None) -> dict[str, Any]:
    """The settings of a run that is not plain gradient descent, as plain values.

    Parameters
    ----------
    rule : UpdateRule
    schedule : str or None
    stages : sequence or None
    """
    said: dict[str, Any] = {}
    if not rule.plain:
        options = {name: value for name, value in rule.options.items() if value}
        said["rule"] = {"name": rule.name, **options}
        if rule.name not in RULES:
            program = json.dumps(rule.program.document()).encode()
            said["rule"]["formula"] = hashlib.sha256(program).hexdigest()[:12]
    if schedule not in (None, "constant"):
        said["schedule"] = schedule
    if stages is not None:
        said["stages"] = [
            [names if isinstance(names, str) else "+".join(names), int(steps)]
            for names, steps in stages
        ]
    return said
