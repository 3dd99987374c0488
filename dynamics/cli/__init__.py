"""The command line: ``attdyn COMMAND SYSTEM [--name value ...]``, or ``python -m dynamics``.

Results go to stdout, messages to stderr. Exit codes: 0 done, 1 the run failed (what it had is
written), 2 the request is wrong, 130 interrupted with partial results kept. An interrupted run of
gradient descent goes on with ``--resume``.
"""

from __future__ import annotations

import dataclasses
import importlib
import os
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING, Any

import pydantic

from dynamics.cli import arguments
from dynamics.cli.command_request import COMMANDS, MODULES, OF_STORES, Asked
from dynamics.registry import is_model_file, load_system, system_names, title
from dynamics.training.progress import termination
from dynamics.validation import InvalidRequest, first_problem

if TYPE_CHECKING:
    from dynamics.registry import System

SWITCHES = (
    "json", "prove", "print_config", "resume", "thorough", "paired", "strict", "repair", "refine",
)  # fmt: skip
"""Flags without a value, which a file gives as true or false."""
USAGE = "attdyn COMMAND [SYSTEM] [--name value ...]"


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command; every wrong request ends here, as one line and exit code 2.

    Parameters
    ----------
    arguments : sequence of str, optional
        Words after the program's name.

    Returns
    -------
    int
        Exit code.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    try:
        with termination():
            code = _dispatch(words)
            sys.stdout.flush()
        return code
    except BrokenPipeError:
        # The reader has gone (attdyn derive ... | head): the rest goes nowhere, quietly.
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())
        return 0
    except pydantic.ValidationError as error:
        print(f"attdyn: {first_problem(error)}", file=sys.stderr)
        return 2
    except InvalidRequest as error:
        print(f"attdyn: {error}", file=sys.stderr)
        return 2
    except KeyboardInterrupt:
        print("attdyn: interrupted", file=sys.stderr)
        return 130


def _dispatch(words: list[str]) -> int:
    if not words or words[0] in ("-h", "--help"):
        print(f"usage: {USAGE}\n\n{_program()}\n\ncommands:")
        for name, meaning in COMMANDS.items():
            print(f"  {name:<10}{meaning}")
        print(
            f"\nsystems: {', '.join(system_names())}, or a model file (my.py); "
            "attdyn COMMAND SYSTEM --help lists the flags"
        )
        return 0 if words else 2
    command = words.pop(0)
    if command == "--version":
        from importlib import metadata

        print(f"attdyn {metadata.version('attdyn')}")
        return 0
    if command not in COMMANDS:
        arguments.unknown("command", command, list(COMMANDS))
    if command == "systems":
        return _systems(words)
    if command in OF_STORES:
        return _of_store(command, words)
    if not words or words[0] in ("-h", "--help"):
        print(f"usage: attdyn {command} SYSTEM [--name value ...]\n\n{COMMANDS[command]}")
        print(f"\nsystems: {', '.join(system_names())}, or a model file (my.py)")
        return 0 if words else 2
    name = words.pop(0)
    if name not in system_names() and not is_model_file(name):
        arguments.unknown("system", name, system_names())
    system = load_system(name)
    parser = _parser(command, system)
    chosen = _read(parser, words)
    options = _names(parser)
    if chosen.get("config"):
        written = arguments.read_toml(chosen["config"], sorted(options - {"config"}))
        for switch in SWITCHES:
            if not isinstance(written.get(switch, False), bool):
                raise InvalidRequest(f"{switch} in {chosen['config']} can be true or false")
        chosen = {name: entry for name, entry in written.items() if entry is not False} | chosen
    module = importlib.import_module(f"dynamics.cli.{MODULES[command]}")
    return int(module.execute(Asked(command, system, chosen)))


def _of_store(command: str, words: list[str]) -> int:
    """A command about a store or a file: ``attdyn status STORE [--flags]``."""
    kind = OF_STORES[command]
    module = importlib.import_module(f"dynamics.cli.{MODULES[command]}")
    parser = arguments.Parser(
        prog=f"attdyn {command} {kind.upper()}",
        description=f"{COMMANDS[command]}.",
        argument_default=arguments.SUPPRESS,
    )
    module.flags(parser)
    if not words:
        print(parser.format_help())
        return 2
    if words[0].startswith("-"):
        _read(parser, words)
        raise InvalidRequest(f"{command} needs a {kind}: attdyn {command} {kind.upper()} [--flags]")
    return int(module.execute(words[0], _read(parser, words[1:])))


def _names(parser: arguments.Parser) -> set[str]:
    """The flags of a parser."""
    return {action.dest for action in parser._actions if action.dest != "help"}


def _read(parser: arguments.Parser, words: list[str]) -> dict[str, Any]:
    """The flags that are given; a word that is none is refused."""
    given, extra = parser.parse_known_args(arguments.joined(words))
    for word in extra:
        if word.startswith("--"):
            known = [f"--{name}" for name in sorted(_names(parser))]
            arguments.unknown("flag", word.split("=")[0], known)
        raise InvalidRequest(f"word {word!r} is not expected; flags look like --D 16")
    return vars(given)


def _program() -> str:
    return "Exact, low-dimensional training dynamics of attention models."


def _parser(command: str, system: System) -> arguments.Parser:
    parser = arguments.Parser(
        prog=f"attdyn {command} {system.name}",
        description=f"{system.title}: {COMMANDS[command]}.",
        argument_default=arguments.SUPPRESS,
    )
    # A sweep takes grids and formulas too, and reads them itself.
    kind: Any = str if command == "sweep" else arguments.value
    law = parser.add_argument_group("parameters")
    for parameter in dataclasses.fields(system.Parameters):
        row = system.notation.get(parameter.name)
        usual = parameter.default
        usual = ",".join(map(str, usual)) or None if isinstance(usual, tuple) else usual
        default = "" if usual is None else f" (default {usual})"
        text = f"{row.meaning if row else ''}{default}".replace("%", "%%")
        law.add_argument(f"--{parameter.name}", type=kind, metavar="X", help=text)
    parser.add_argument("--config", metavar="FILE", help="flat TOML file of these names")
    importlib.import_module(f"dynamics.cli.{MODULES[command]}").flags(parser, command, system)
    return parser


def _systems(words: list[str]) -> int:
    if words in (["-h"], ["--help"]):
        print(f"usage: attdyn systems\n\n{COMMANDS['systems']}")
        return 0
    if words:
        raise InvalidRequest(f"word {words[0]!r} is not expected; attdyn systems takes no words")
    for name in system_names():
        print(f"{name:<24}{title(name)}")
    return 0
