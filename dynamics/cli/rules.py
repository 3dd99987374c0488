"""Flags of update rules: ``--rule``, its constants, ``--schedule``, ``--stages``."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any

from dynamics.cli.arguments import CommandRequest, Parser, value
from dynamics.validation import InvalidRequest, real, refuse
from theory.update_rules import CONSTANTS, RULES

if TYPE_CHECKING:
    from dynamics.default_runs import DefaultRun

MEANINGS = {
    "momentum": "part of the memory that a step keeps, of --rule momentum (default 0.9)",
    "nesterov": "true for Nesterov's momentum",
    "b1": "decay of the mean gradient, of adam and adamw (default 0.9)",
    "b2": "decay of the mean square, of adam and adamw (default 0.999)",
    "eps": "added to what the gradient is divided by (default 1e-8; of normalized 1e-6)",
    "weight_decay": "multiple of each entry added to its gradient (of adamw 1e-4, decoupled)",
}
"""Constant of an update rule -> its help text."""
HOW = {
    "schedule": "factor of eta at each step: warmup:N, cosine, cosine:N, staircase:N:f, or "
    "a formula in step and steps",
    "stages": "arrays that move, and steps: A:2000,v:500 (A+v moves both)",
}
SEVERAL = {"run": "; several with their rates, in one picture: gd:0.1,adam:0.001"}


def add_rule_flags(parser: Parser, default: DefaultRun) -> None:
    """Add the flags of update rules; a constant named like a parameter becomes ``--rule.NAME``."""
    own = ", step (of the file)" if parser.system.model and parser.system.model.step else ""
    more = SEVERAL.get(parser.command, "")
    how = {"rule": f"update rule: {', '.join(RULES)}{own} (default {default.rule}){more}", **HOW}
    if parser.command in ("describe", "derive"):
        del how["schedule"]
    kind = str if parser.command == "sweep" else value
    taken = [name for name in MEANINGS if name in parser.names]
    parser.add_flags(how, group="update rule")
    parser.add_flags(MEANINGS, kind, group="update rule")
    parser.add_flags({f"rule.{n}": MEANINGS[n] for n in taken}, kind, group="update rule")


def rule_asked_for(request: CommandRequest) -> tuple[Any, bool]:
    """Requested rule (``step`` is a model file's own rule), and whether training has stages."""
    from dynamics.training.rules import requested

    default = request.system.default_runs["run"]
    found = requested({"eta": default.eta, **request.flags}, default)
    if found["rule"] == "step" and getattr(request.system.model, "step", None) is None:
        refuse("rule", "step", "needs a model file with this function", ", ".join(RULES), "gd")
    return found["rule"], "stages" in found


def several_rules(flags: Mapping[str, Any], default: DefaultRun) -> dict[str, Any]:
    """Update rules and learning rates from a flag ``rule`` such as ``gd:0.1,adam:0.001``.

    The result has the form of arguments of `dynamics.overlay`. The value of a constant applies to
    every rule that has this constant. Raises InvalidRequest if a rule is invalid or has no learning
    rate, or if a given constant belongs to none of the rules.
    """
    from dynamics.training.rules import requested

    for name in ("resume", "checkpoint"):
        if name in flags:
            raise InvalidRequest(f"{name} needs one rule; rule={flags['rule']!r} has several")
    parts = [part.partition(":") for part in flags["rule"].split(",")]
    if "eta" in flags or not all(rate for _, _, rate in parts):
        raise InvalidRequest(
            f"rule={flags['rule']!r}: each of several rules needs its own learning rate, not "
            "--eta; rule can be like gd:0.1,adam:0.001"
        )
    known = [RULES[name].options if name in RULES else {} for name, _, _ in parts]
    given = {n for n in flags if n.removeprefix("rule.") in CONSTANTS}
    for name in given:
        if not any(name.removeprefix("rule.") in options for options in known):
            raise InvalidRequest(f"{name} is a constant of none of the rules {flags['rule']}")
    chosen = []
    for (name, _, rate), options in zip(parts, known, strict=True):
        own = {
            n: v for n, v in flags.items() if n not in given or n.removeprefix("rule.") in options
        }
        found = requested(own | {"rule": name, "eta": rate}, default)
        chosen.append(found["rule"])
    rates = [real("eta", value(rate), above=0.0) for _, _, rate in parts]
    return found | {"rule": chosen, "eta": rates}
