"""Update rules of a run: checks of names and constants, and warnings about rounding."""

from __future__ import annotations

import hashlib
import json
from collections.abc import Callable, Collection, Iterator, Mapping
from functools import partial
from typing import Any

import numpy as np

from dynamics.default_runs import DefaultRun
from dynamics.loops.updates import Updates
from dynamics.problem import FloatArray, Problem
from dynamics.training.schedules import (
    Stages,
    read_stages,
    schedule_of,
    stages_of,
    stages_text,
)
from dynamics.validation import InvalidRequest, known_word, real, refuse
from theory.closure.regime import Regime
from theory.law import ModelError
from theory.program import run_floats
from theory.update_rules import CONSTANTS, RULES, UpdateRule, own_rule

ROUNDING = 64 * float(np.finfo(np.float64).eps)
"""A gradient component of at most this fraction of the largest gradient component may be rounding.
A change of an entry by at most this fraction of the largest entry may be rounding."""
AMPLIFIED = 1e3
"""A run carries a remark if a step exceeds eta times a rounding-level gradient by this factor."""
BELOW_ONE = np.nextafter(1.0, 0.0)
RANGES: dict[str, Callable[[str, object], Any]] = {
    "momentum": partial(real, at_least=0.0, at_most=BELOW_ONE),
    "b1": partial(real, at_least=0.0, at_most=BELOW_ONE),
    "b2": partial(real, at_least=0.0, at_most=BELOW_ONE),
    "eps": partial(real, at_least=0.0),
    "weight_decay": partial(real, at_least=0.0),
}
"""Function that checks a constant's value, by the name of the constant."""


def rule(name: str | UpdateRule | Callable[..., Any], **constants: Any) -> UpdateRule:
    """Update rule with given constants.

    Parameters
    ----------
    name : str, UpdateRule or callable
        ``gd``, ``momentum`` (``nesterov=True`` for Nesterov momentum), ``sign``, ``adam``,
        ``adamw``, ``normalized``; or a function ``step(gradient, memory, entry, step, eta, xp)`` of
        one entry that returns the entry's change and memory.
    **constants
        Constants of the rule, named as in optax, and ``weight_decay``, a multiple of each entry
        that is added to the gradient (or subtracted from the step by ``adamw``).

    Raises
    ------
    InvalidRequest
        If the rule or a constant is unknown, or a value is invalid.

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
                f"{key}={value!r} is not a constant of the rule {found.name}, which has {known}"
            )
    return found.changed(**constants)


def _checked(name: str, value: object, default: object) -> Any:
    """Check that the `value` of a rule's constant is in the constant's range, and return it."""
    if isinstance(default, bool):
        if value not in (True, False):
            refuse(name, value, "is not a truth value", "True or False", default)
        return bool(value)
    return RANGES.get(name, real)(name, value)


def rule_of(problem: Problem, name: Any) -> UpdateRule:
    """Update rule for an argument of `rule`; ``step`` names the rule of the problem's model."""
    if not isinstance(name, str) or name != "step":
        return rule(name)
    if (own := problem.own_rule()) is None:
        refuse("rule", name, "needs a function step in the model file", f"{', '.join(RULES)}", "gd")
    return own


def requested(given: Mapping[str, Any], default: DefaultRun) -> dict[str, Any]:
    """Rule, schedule and stages of a command or a sweep, as arguments of `dynamics.descend`.

    Entries missing in `given` are taken from the system's default run. Raises InvalidRequest for an
    invalid rule or constant, or if eta is missing for a rule other than the default.
    """
    name = given.get("rule", default.rule)
    constants = {n: given[n] for n in CONSTANTS if n in given}
    constants |= {n: given[f"rule.{n}"] for n in CONSTANTS if f"rule.{n}" in given}
    if "nesterov" in constants:
        word = str(constants["nesterov"]).lower()
        known_word("nesterov", word, ("true", "false", "1", "0"))
        constants["nesterov"] = word in ("true", "1")
    if name == "step" and constants:
        raise InvalidRequest(f"{next(iter(constants))} is not a constant of the rule step")
    chosen = name if name == "step" else rule(name, **constants)
    check_rated(given, default)
    stages = given.get("stages", default.stages)
    found = {
        "rule": chosen,
        "schedule": given.get("schedule", default.schedule),
        "stages": stages if stages is None or np.ndim(stages) else read_stages(str(stages)),
    }
    return {n: v for n, v in found.items() if v is not None}


def check_rated(given: Mapping[str, Any], default: DefaultRun) -> None:
    """Raise InvalidRequest if ``eta`` is missing for a rule other than the default and ``gd``."""
    name = given.get("rule", default.rule)
    if name not in (default.rule, "gd") and "eta" not in given:
        raise InvalidRequest(
            f"rule={name!r} needs an eta: the default {default.eta:g} is that of {default.rule}"
        )


def default_words(default: DefaultRun) -> dict[str, str]:
    """Rule, schedule and stages of a default run as text; empty for plain gradient descent."""
    words = {"rule": "" if default.rule == "gd" else default.rule, "schedule": default.schedule}
    words["stages"] = stages_text(default.stages) if default.stages else None
    return {name: word for name, word in words.items() if word}


def _usual(rule: UpdateRule) -> UpdateRule | None:
    """The rule of `RULES` with the name of `rule`, or None for a user's function."""
    known = RULES.get(rule.name)
    return known if known is not None and known.function is rule.function else None


def in_words(entries: Mapping[str, Any], parameters: Collection[str]) -> dict[str, Any]:
    """Entries of a sweep, with the rule and the stages converted to text.

    Constants of the rule that differ from their defaults become entries of their own. The entry of
    a constant NAME is called ``rule.NAME`` if the model has a parameter NAME. Raises InvalidRequest
    if the rule has no name.
    """
    made = dict(entries)
    chosen, stages = made.get("rule", "gd"), made.get("stages", "")
    if isinstance(chosen, UpdateRule) and (usual := _usual(chosen)) is not None:
        own = {n: value for n, value in chosen.options.items() if value != usual.options[n]}
        made |= {f"rule.{n}" if n in parameters else n: value for n, value in own.items()}
        made["rule"] = chosen.name
    elif not isinstance(chosen, str):
        refuse("rule", chosen, "has no name", "a name, or step of a model file", "adam")
    if not isinstance(stages, str):
        made["stages"] = stages_text(stages)
    return made


def under(problem: Problem, rule: UpdateRule, stages: Stages | None = None) -> Problem:
    """Problem whose scalars are those of the closure under an update rule and stages."""
    if rule.plain and stages is None:
        return problem
    return problem.under(Regime.of(rule, by_array=stages is not None))


def amplified_rounding(problem: Problem, updates: Updates, start: FloatArray) -> Iterator[str]:
    """Yield a remark if a rule takes large steps from rounding-level gradients at the start."""
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
            f"gradients of {small.size} of {slope.size} numbers are as small as rounding at the "
            f"start (at most {abs(gradient):.0e} beside {largest:.0e}), and {used.name} multiplies "
            f"them by {factor:.0e}{why}: rounding decides their direction"
        )


def check_rule(
    problem: Problem, steps: int, rule: Any, schedule: Any = None, stages: Stages | None = None
) -> None:
    """Raise InvalidRequest if `dynamics.descend` would refuse a rule, schedule or stages."""
    schedule_of(schedule, steps)
    stages_of(stages, under(problem, rule_of(problem, rule), stages), steps)


def described(rule: UpdateRule, schedule: str | None, stages: Stages | None) -> dict[str, Any]:
    """Plain values of rule, schedule and stages; empty for plain gradient descent."""
    said: dict[str, Any] = {}
    if not rule.plain:
        options = {name: value for name, value in rule.options.items() if value}
        said["rule"] = {"name": rule.name, **options}
        if _usual(rule) is None:
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
