"""``attdyn describe``: a system or a model file, its symbols, events and claims."""

from __future__ import annotations

from dataclasses import replace

from dynamics.cli.arguments import CommandRequest, Parser
from dynamics.cli.files import print_result
from dynamics.cli.rules import add_rule_flags, rule_asked_for
from dynamics.validation import InvalidRequest


def add_flags(parser: Parser) -> None:
    """Add the flags except the parameters of the system."""
    parser.add_switches({
        "latex": "LaTeX instead of plain text",
        "standalone": "a whole LaTeX document, not its body alone",
    })  # fmt: skip
    add_rule_flags(parser, parser.system.default_runs["run"])


def execute(request: CommandRequest) -> int:
    """Print the description of a system at the given parameters, and return the exit code."""
    from dynamics.verdicts.stability import along_default_run

    flags, system = request.flags, request.system
    latex = flags.get("latex") or flags.get("standalone")
    if latex and flags.get("json"):
        raise InvalidRequest("latex and json exclude each other")
    parameters = system.Parameters(**request.entries) if request.entries else None
    description = system.describe(parameters, *rule_asked_for(request))
    if system.in_library:
        found = along_default_run(system, parameters or system.Parameters())
        description = replace(description, stability="" if found is None else str(found))
    if flags.get("json"):
        print_result(flags, description.document(), "")
    elif latex:
        print(description.as_latex(bool(flags.get("standalone"))))
    else:
        print(description)
    return 0
