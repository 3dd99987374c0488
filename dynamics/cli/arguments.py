"""Parsing of a command line to a `CommandRequest`: flags, values, TOML files.

Every error is an `InvalidRequest` of one line.
"""

from __future__ import annotations

import argparse
import dataclasses
import json
import tomllib
from collections.abc import Callable, Collection, Mapping, Sequence
from contextlib import nullcontext
from dataclasses import dataclass, field
from fractions import Fraction
from pathlib import Path
from typing import TYPE_CHECKING, Any, NoReturn

from dynamics.cli.files import only_results
from dynamics.validation import InvalidRequest, brief, path_of, unknown
from theory.model import SHARED

if TYPE_CHECKING:
    from dynamics.default_runs import DefaultRun


PATHS = ("DIR", "FILE", "STORE")
"""Placeholders of paths in the help text; a path on the command line may begin with ``~``."""


@dataclass(frozen=True)
class CommandRequest:
    """A parsed command line: a command, its flags, and the system or path that it works on."""

    command: str
    flags: Mapping[str, Any]
    """Name -> value of each flag given on the command line or in a TOML file, without defaults."""
    system: Any = None
    """System that the command works on, or None for a command on a store or a file."""
    path: str = ""
    """Path of the store or file that the command works on; empty for a command on a system."""
    entries: dict[str, Any] = field(init=False)
    """Name -> value of each flag that is a parameter of the system."""

    def __post_init__(self) -> None:
        fields = () if self.system is None else dataclasses.fields(self.system.Parameters)
        entries = {f.name: self.flags[f.name] for f in fields if f.name in self.flags}
        object.__setattr__(self, "entries", entries)
        if self.system is not None and self.system.model is not None:
            others = {n: v for n, v in self.flags.items() if n not in SHARED & entries.keys()}
            object.__setattr__(self, "flags", others)


class Parser(argparse.ArgumentParser):
    """Parser of the flags of a command; raises `InvalidRequest`, and accepts no abbreviations.

    The function `execute` runs a `CommandRequest` and returns an exit code. A flag that is not
    given has no entry in the request. The `options` are passed to `argparse.ArgumentParser`.
    """

    def __init__(
        self, command: str, system: Any, execute: Callable[[CommandRequest], int], **options: Any
    ) -> None:
        super().__init__(allow_abbrev=False, argument_default=argparse.SUPPRESS, **options)
        self.command, self.system, self.execute = command, system, execute
        self._titled: dict[str, Any] = {"": self}

    def run(self, words: Sequence[str], path: str = "") -> int:
        """Parse flags and values, and execute the command on the store or file `path`."""
        flags = self.read(words)
        if path.startswith("-"):
            subject = self.prog.split()[-1].lower()
            raise InvalidRequest(f"{self.command} needs a {subject}: {self.prog} [--flags]")
        if flags.get("config"):
            names = [name for name in self.names if name != "config"]
            flags = read_toml(path_of("config", flags["config"]), names, self.switches) | flags
        for action in self._actions:
            if action.metavar in PATHS and action.dest in flags:
                flags[action.dest] = _expanded(action.dest, flags[action.dest])
        path = _expanded(self.prog.split()[-1].lower(), path)
        request = CommandRequest(self.command, flags, self.system, path)
        with only_results() if flags.get("json") else nullcontext():
            return self.execute(request)

    def error(self, message: str) -> NoReturn:
        """Raise InvalidRequest instead of printing the usage and exiting."""
        raise InvalidRequest(message)

    @property
    def names(self) -> list[str]:
        """Names of all flags of the parser."""
        return sorted(action.dest for action in self._actions if action.dest != "help")

    @property
    def switches(self) -> set[str]:
        """Names of the flags without a value."""
        return {action.dest for action in self._actions if action.nargs == 0}

    def add_flags(
        self, meanings: Mapping[str, str], kind: Any = str, metavar: str = "X", group: str = ""
    ) -> None:
        """Add flags with a value, from a mapping of each name to its help text.

        The function `kind` (str, `value` or `values`) converts a value from text. In the help
        text, `metavar` is the placeholder of the value, and `group` the heading of the flags.
        """
        for name, meaning in meanings.items():
            # If a parameter of the model has the same name, the flag sets the parameter.
            if f"--{name}" not in self._option_string_actions:
                look = {"type": kind, "metavar": metavar, "help": meaning}
                self.group(group).add_argument(f"--{name}", **look)

    def add_switches(self, meanings: Mapping[str, str], group: str = "") -> None:
        """Add flags without a value (name -> help text), under a heading of the help text."""
        for name, meaning in meanings.items():
            self.group(group).add_argument(f"--{name}", action="store_true", help=meaning)

    def group(self, title: str, description: str | None = None) -> Any:
        """Group of flags with a title, made on first use; the title ``""`` is the parser itself."""
        if title not in self._titled:
            self._titled[title] = self.add_argument_group(title, description)
        return self._titled[title]

    def read(self, words: Sequence[str]) -> dict[str, Any]:
        """Parse words to a mapping from flag to value; raise InvalidRequest for unknown words."""
        entries, extra = self.parse_known_args(_with_negative_values(words))
        for word in extra:
            if word.startswith("--"):
                raise unknown("flag", word.split("=")[0], [f"--{name}" for name in self.names])
            raise InvalidRequest(f"word {brief(word)!r} is not expected; flags look like --D 16")
        return vars(entries)


def _expanded(name: str, entry: Any) -> Any:
    """Expand ``~`` in a path or a list of paths; other values are unchanged."""
    if isinstance(entry, list):
        return [_expanded(name, each) for each in entry]
    return str(path_of(name, entry)) if str(entry).startswith("~") else entry


def _with_negative_values(words: Sequence[str]) -> list[str]:
    """Join ``--nu -1e-3`` to ``--nu=-1e-3``; argparse mistakes some negative values for flags."""
    joined: list[str] = []
    for word in words:
        number = word[1:2] in [*".0123456789"] or not isinstance(value(word), str)
        flag = joined and joined[-1].startswith("--") and "=" not in joined[-1]
        if word.startswith("-") and number and flag:
            joined[-1] += f"={word}"
        else:
            joined.append(word)
    return joined


def value(text: str) -> Any:
    """Convert a word to a number (``16``, ``1e-3``, ``16/196``, ``nan``) if possible."""
    for kind in (int, float):
        try:
            return kind(text)
        except ValueError:
            continue
    try:
        return float(Fraction(text))
    except (ValueError, ArithmeticError):
        return text


def values(text: str) -> Any:
    """Convert a word by `value`; a word with commas, such as ``0.02,0.01``, becomes a list."""
    parts = text.split(",")
    return value(text) if len(parts) == 1 else [value(part) for part in parts]


def read_toml(path: Path, names: Sequence[str], switches: Collection[str]) -> dict[str, Any]:
    """Read a flat TOML file to a mapping from name to value.

    Only `names` are permitted as keys. Keys in `switches` are Boolean; false keys are dropped.
    Raises InvalidRequest if the file cannot be read, is not flat TOML, or has an unknown key.
    """
    try:
        content = tomllib.loads(path.read_text(encoding="utf-8"))
    except OSError as error:
        reason = (error.strerror or str(error)).lower()
        raise InvalidRequest(
            f"config={str(path)!r} cannot be read ({reason}); config can be a readable TOML file"
        ) from None
    except (tomllib.TOMLDecodeError, UnicodeDecodeError) as error:
        raise InvalidRequest(f"config={str(path)!r} is not TOML: {error}") from None
    for key, entry in content.items():
        if key not in names:
            raise unknown(f"key of {path}", key, names)
        if isinstance(entry, dict):
            raise InvalidRequest(f"{key} in {path} is a table; parameters are flat: {key} = value")
        if key in switches and not isinstance(entry, bool):
            raise InvalidRequest(f"{key} in {path} can be true or false")
    return {key: entry for key, entry in content.items() if key not in switches or entry}


def toml_text(values: Mapping[str, Any]) -> str:
    """Text of a flat TOML file for `read_toml`; scalars and lists are written as in JSON."""
    return "\n".join(f"{k} = {json.dumps(v)}" for k, v in values.items() if v is not None)


def default_text(usual: DefaultRun, empirical: DefaultRun) -> str:
    """Sentences on the default parameters of a command, without and with ``--full empirical``."""
    names = {"eta": empirical.eta, "steps": empirical.steps, "samples": empirical.samples}
    text = f"Defaults with --full empirical: {flag_text({**names, **empirical.parameters})}"
    if usual.parameters:
        said = "".join(f"; {remark}" for remark in usual.remarks.values())
        text = f"The showcase is {flag_text(usual.parameters)}{said}. {text}"
    return f"{text}."


def flag_text(entries: Mapping[str, Any]) -> str:
    """Text of the flags that set the given values on the command line.

    Examples
    --------
    >>> flag_text({"m": 120, "margin": 11.0})
    '--m 120 --margin 11.0'
    """
    return " ".join(f"--{name} {entry}" for name, entry in entries.items())
