"""Flags of update rules: ``--rule``, its constants, ``--schedule``, ``--stages``."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from dynamics.cli.arguments import CommandRequest, Parser, value
from dynamics.validation import InvalidRequest, integer
from theory.update_rules import RULES

if TYPE_CHECKING:
    from dynamics.default_runs import DefaultRun

MEANINGS = {
    "momentum": "of --rule momentum (default 0.9)",
    "nesterov": "true for Nesterov's momentum",
    "b1": "decay of the mean gradient, of adam and adamw (default 0.9)",
    "b2": "decay of the mean square, of adam and adamw (default 0.999)",
    "eps": "added to what the gradient is divided by (default 1e-8; of normalized 1e-6)",
    "weight_decay": "multiple of each entry added to its gradient (of adamw 1e-4, decoupled)",
}
"""Constants of rules and their meaning."""
HOW = ("rule", "schedule", "stages")
NAMES = (*HOW, *MEANINGS, *(f"rule.{name}" for name in MEANINGS))


def add_rule_flags(parser: Parser, default: DefaultRun) -> None:
    """Add the flags; a constant of a model wins, and that of the rule is then ``--rule.NAME``.

    Parameters
    ----------
    parser : Parser
    default : DefaultRun
    """
    own = ", step (of the file)" if default.rule == "step" else ""
    parser.add_flags(
        {
            "rule": f"update rule: {', '.join(RULES)}{own} (default {default.rule})",
            "schedule": "factor of eta at each step: warmup:N, cosine, cosine:N, staircase:N:f, or "
            "a formula in step and steps",
            "stages": "arrays that move, and steps: A:2000,v:500 (A+v moves both)",
        },
        group="update rule",
    )  # fmt: skip
    taken = [name for name in MEANINGS if name in parser.names]
    parser.add_flags(MEANINGS, value, group="update rule")
    parser.add_flags({f"rule.{n}": MEANINGS[n] for n in taken}, value, group="update rule")


def rule_settings(request: CommandRequest, default: DefaultRun) -> dict[str, Any]:
    """The rule, schedule and stages of a request, as `dynamics.descend` takes them.

    Parameters
    ----------
    request : CommandRequest
    default : DefaultRun

    Raises
    ------
    InvalidRequest
        If a rule other than that of the model has no --eta, or a flag has no rule.
    """
    from dynamics.training.rules import rule

    flags, name = request.flags, str(request.flags.get("rule", default.rule))
    constants = {n: flags[n] for n in MEANINGS if n in flags}
    constants |= {n: flags[f"rule.{n}"] for n in MEANINGS if f"rule.{n}" in flags}
    if "nesterov" in constants:
        constants["nesterov"] = _truth(constants["nesterov"])
    chosen: Any = name
    if name != "step":
        chosen = rule(name, **constants)
    elif constants:
        raise InvalidRequest(f"{next(iter(constants))} is of another rule than step")
    if name not in (default.rule, "gd") and "eta" not in flags:
        raise InvalidRequest(
            f"rule={name!r} needs --eta: the default {default.eta:g} is that of {default.rule}"
        )
    found = {
        "rule": chosen,
        "schedule": flags.get("schedule", default.schedule),
        "stages": _stages(flags["stages"]) if "stages" in flags else default.stages,
    }
    return {n: v for n, v in found.items() if v is not None}


def _truth(word: object) -> bool:
    if str(word).lower() not in ("true", "false", "1", "0"):
        raise InvalidRequest(f"nesterov={word!r} can be true or false")
    return str(word).lower() in ("true", "1")


def _stages(text: str) -> list[tuple[str, int]]:
    """``"A:2000,v:500"`` as names and steps."""
    made = []
    for part in str(text).split(","):
        names, _, steps = part.partition(":")
        made.append((names.strip(), integer("stages", value(steps.strip()), at_least=1)))
    return made
