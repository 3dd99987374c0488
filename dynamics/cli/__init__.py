"""The command line: ``attdyn COMMAND SYSTEM [--name value ...]``, or ``python -m dynamics``.

Results go to stdout, messages to stderr. The exit code is 0 after success, 1 if a run failed (its
results so far are written), 2 for an invalid request, and 130 after an interruption (partial
results are kept). The flag ``--resume`` continues an interrupted run of gradient descent.

The module of a command has two functions: ``add_flags(parser)`` adds the command's flags to a
`Parser`, ``execute(request)`` runs the command and returns its exit code.
"""

from __future__ import annotations

import dataclasses
import importlib
import os
import sys
import warnings
from collections.abc import Mapping, Sequence
from contextlib import suppress
from typing import TYPE_CHECKING, Any, NamedTuple

from dynamics.cli.arguments import Parser, value
from dynamics.cli.files import only_results
from dynamics.library import system_names
from dynamics.registry import is_model_file, load_system, title
from dynamics.results.outcome import TrainingWarning
from dynamics.training.progress import termination
from dynamics.validation import InvalidRequest, one_line, unknown

if TYPE_CHECKING:
    from dynamics.system import System


class Command(NamedTuple):
    """Placeholder of a command's argument, module that implements the command, and help text."""

    subject: str
    module: str
    meaning: str


COMMANDS = {
    "systems": Command("", "", "list the systems there are"),
    "describe": Command(
        "SYSTEM", "describe", "the model in a few equations, its symbols, events and claims"
    ),
    "derive": Command("SYSTEM", "derive", "what sympy derives: text, LaTeX, or compiled source"),
    "run": Command(
        "SYSTEM", "train", "train one problem by gradient descent or the flow; its events"
    ),
    "compare": Command("SYSTEM", "train", "train the reduced and the full problem side by side"),
    "sweep": Command("SYSTEM", "sweep", "runs over a grid; the same command goes on with it"),
    "phase": Command("STORE", "phase", "draw a sweep: a phase diagram, slices or a power law"),
    "status": Command("STORE", "sweep", "how far a sweep is, and whether its store is damaged"),
    "diversity": Command("FILE", "diversity", "how much the queries of attention maps differ"),
    "explore": Command(
        "SYSTEM", "explore", "a page with sliders that trains in a browser, in one file"
    ),
    "verify": Command("SYSTEM", "verify", "a measured verdict on each listed claim of the paper"),
    "figure": Command("SYSTEM", "figure", "a figure of the paper, or one that goes with a verdict"),
    "gallery": Command(
        "SYSTEM", "gallery", "a page on a model file: what closes, pictures, verdicts"
    ),
}
PROBLEMS = {
    "reduced": "the few numbers on which training closes, by symmetry",
    "full": "every trained entry, with --full:",
    "population": "the exact expectation over the law of the data",
    "empirical": "N samples and a random start",
}
"""Name of a training problem in the help texts -> its meaning."""
HELP = ("-h", "--help")


def main(arguments: Sequence[str] | None = None) -> int:
    """Run a command and return its exit code; an InvalidRequest prints one line and returns 2.

    The `arguments` are the words after the program's name, by default those of ``sys.argv``.
    """
    words = list(sys.argv[1:] if arguments is None else arguments)
    if getattr(sys.stdout, "errors", "") == "strict" and hasattr(sys.stdout, "reconfigure"):
        sys.stdout.reconfigure(errors="backslashreplace")  # escapes unencodable characters
    try:
        with termination(), warnings.catch_warnings():
            warnings.showwarning = _warn
            warnings.simplefilter("default", TrainingWarning)
            code = _dispatch(words)
            if sys.stdout is not None:  # None if the shell has closed stdout
                sys.stdout.flush()
        return code
    except BrokenPipeError:
        # The reader has closed the pipe (attdyn derive ... | head): discard further output.
        _print_no_more()
        return 0
    except OSError as error:
        # No command has handled this error, for example a full disk behind stdout.
        where = "" if error.filename is None else f" ({str(error.filename)!r})"
        line = one_line(f"{(error.strerror or str(error)).lower()}{where}")
        print(f"attdyn: {line}", file=sys.stderr)
        _print_no_more()
        return 1
    except InvalidRequest as error:
        print(f"attdyn: {error}", file=sys.stderr)
        return 2
    except MemoryError as error:
        why = f" ({one_line(str(error), 200)})" if str(error) else ""
        print(f"attdyn: there is too little memory{why}; smaller sizes take less", file=sys.stderr)
        return 1
    except KeyboardInterrupt:
        print("attdyn: interrupted", file=sys.stderr)
        return 130


def _warn(message: Warning | str, *_: Any, **__: Any) -> None:
    """Print a warning as one line, without the place in the source code."""
    own = isinstance(message, TrainingWarning)
    text = str(message) if own else f"warning: {one_line(str(message), 270)}"
    print(f"attdyn: {text}", file=sys.stderr)


def _print_no_more() -> None:
    """Discard unflushed stdout, because stdout can no longer be written."""
    with suppress(OSError):
        os.dup2(os.open(os.devnull, os.O_WRONLY), sys.stdout.fileno())


def _dispatch(words: list[str]) -> int:
    """Find the command, parse its flags, run it, and return the exit code."""
    if not words or words[0] in HELP:
        print("usage: attdyn COMMAND [SYSTEM] [--name value ...]\n")
        print("Exact, low-dimensional training dynamics of attention models.\n\ncommands:")
        for word, about in COMMANDS.items():
            print(f"  {word:<10}{about.subject:<7} {about.meaning}")
        print("\nproblems:")
        for word, meaning in PROBLEMS.items():
            print(f"  {word:<17} {meaning}")
        print(f"\n{_systems_text()}\nflags:   attdyn COMMAND SYSTEM --help")
        print("begin:   attdyn compare positional_attention")
        return 0 if words else 2
    name = words.pop(0)
    if name == "--version":
        from importlib import metadata

        print(f"attdyn {metadata.version('attdyn')}")
        return 0
    if name not in COMMANDS:
        raise unknown("command", name, list(COMMANDS))
    command = COMMANDS[name]
    if name == "systems":
        return _systems(words)
    if command.subject != "SYSTEM":
        parser = parser_of(name)
        if not words:
            print(parser.format_help())
            return 2
        flag = words[0].startswith("-")
        return parser.run(words if flag else words[1:], path=words[0])
    if not words or words[0] in HELP:
        print(f"usage: attdyn {name} SYSTEM [--name value ...]\n\n{command.meaning}")
        print(f"\n{_systems_text()}")
        return 0 if words else 2
    subject, *flags = words
    if subject not in system_names() and not is_model_file(subject):
        raise unknown("system", subject, system_names())
    with only_results():
        system = load_system(subject)
    return parser_of(name, system).run(flags)


def parser_of(command: str, system: System | None = None) -> Parser:
    """Parser of a command; the parameters of the system, if any, become flags."""
    subject, module, meaning = COMMANDS[command]
    about = subject if system is None else system.name
    text = f"{meaning[0].upper()}{meaning[1:]}."
    text = text if system is None else f"{system.title}: {meaning}."
    implementation = importlib.import_module(f"dynamics.cli.{module}")
    parser = Parser(
        command, system, implementation.execute, prog=f"attdyn {command} {about}", description=text
    )
    if system is not None:
        # A sweep also accepts grids and formulas; the module `dynamics.sweep.axes` parses them.
        kind: Any = str if command == "sweep" else value
        run = system.default_runs.get("compare" if command == "explore" else command)
        showcase = run.parameters if run else {}
        fields = dataclasses.fields(system.Parameters)
        meanings = {f.name: _meaning(f, system, showcase) for f in fields}
        parser.add_flags(meanings, kind, group="parameters")
        parser.add_flags({"config": "flat TOML file of these names"}, metavar="FILE")
    implementation.add_flags(parser)
    if command != "derive" or (system is not None and system.model is not None):
        parser.add_switches({"json": "one JSON document on stdout"})
    return parser


def _meaning(parameter: dataclasses.Field[Any], system: System, showcase: Mapping[str, Any]) -> str:
    """Help text of a parameter: its meaning, and its default value."""
    row, default = system.notation.get(parameter.name), parameter.default
    default = showcase.get(parameter.name, default)
    if isinstance(default, tuple):
        default = ",".join(map(str, default)) or None
    text = f"{row.meaning if row else ''}{'' if default is None else f' (default {default})'}"
    return text.replace("%", "%%")


def _systems_text() -> str:
    return f"systems: {', '.join(system_names())}, or a model file (my.py)"


def _systems(words: list[str]) -> int:
    if words in (["-h"], ["--help"]):
        print(f"usage: attdyn systems\n\n{COMMANDS['systems'].meaning}")
        return 0
    if words:
        raise InvalidRequest(f"word {words[0]!r} is not expected; attdyn systems takes no words")
    names = system_names()
    for name in names:
        print(f"{name:<{max(map(len, names))}}  {title(name)}")
    return 0
