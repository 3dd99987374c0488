"""Models read from Python files; the helper modules of a file do not stay in `sys.modules`."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import sys
import types
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

from theory.documentation import Documentation
from theory.law import ModelError, error_text, line_of
from theory.model import LEADING, SETTINGS, TABLES, Model

PACKAGES = tuple(
    f"{Path(__file__).resolve().parents[1] / name}{os.sep}" for name in ("theory", "dynamics")
)
"""Directories of installed packages, whose modules do not belong to a model's source."""


def read_model(path: str | Path) -> Model:
    r"""Read the model of a Python file.

    Parameters
    ----------
    path : str or path-like
        File with ``start`` and the functions of one of the three forms of the expectation.

    Raises
    ------
    ModelError
        If the file cannot be read or run, or defines no model.

    Examples
    --------
    >>> from pathlib import Path
    >>> from tempfile import TemporaryDirectory
    >>> from theory import read_model
    >>> with TemporaryDirectory() as folder:
    ...     file = Path(folder) / "plain.py"
    ...     start = "def start(w0=0.1): return {'w': w0}"
    ...     risk = "def risk(theta, xp): return theta['w'] ** 2"
    ...     _ = file.write_text(f"{start}\n{risk}")
    ...     model = read_model(file)
    >>> model.name, model.constants
    ('plain', {'w0': 0.1})
    """
    if not isinstance(path, (str, os.PathLike)) or "\0" in str(path):
        raise ModelError(f"{str(path)[:60]!r} is not a path of a file")
    file = Path(os.path.expanduser(path)).absolute()
    try:
        text = importlib.util.decode_source(file.read_bytes())
    except (OSError, UnicodeDecodeError, SyntaxError) as error:
        reason = getattr(error, "strerror", None) or "not text"
        raise ModelError(f"{str(path)!r} cannot be read ({reason.lower()})") from None
    module = types.ModuleType(f"attdyn_model_{file.stem}")
    module.__file__ = str(file)
    try:
        with _imports_from(file.parent) as imported:
            sys.modules[module.__name__] = module  # dataclasses look up their module by name
            exec(compile(text, str(file), "exec"), module.__dict__)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # SystemExit is not an Exception
        raise ModelError(
            f"{file.name} cannot be run: {error_text(error)}{line_of(error, file)}"
        ) from error
    content = vars(module)
    names_of_parts = [*LEADING, *TABLES, *SETTINGS]
    arguments = {name: content[name] for name in names_of_parts if content.get(name) is not None}
    if "start" not in arguments:
        raise ModelError(f"{file.name} defines no model: it has no function start(...)")
    arguments["imported"] = {name: _digest(name) for name in sorted(imported - {str(file)})}
    documentation = module.__doc__ or ""
    arguments |= {"documentation": documentation, "source": str(content.get("SOURCE", ""))}
    title = Documentation(documentation).title or file.stem
    try:
        return Model(**arguments, name=file.stem, title=title, path=file)
    except ModelError as error:
        raise ModelError(f"{file.name}: {error}") from None


@contextmanager
def _imports_from(folder: Path) -> Iterator[set[str]]:
    """Import helper modules from a folder, remove them from `sys.modules`, yield their files."""
    files, hidden, writes = set[str](), _modules_in(folder), sys.dont_write_bytecode
    for name in hidden:
        del sys.modules[name]
    sys.path.insert(0, str(folder))
    sys.dont_write_bytecode = True
    try:
        yield files
    finally:
        sys.dont_write_bytecode = writes
        sys.path.remove(str(folder))
        for name, module in _modules_in(folder).items():
            files |= {str(module.__file__)} if getattr(module, "__file__", None) else set()
            del sys.modules[name]
        sys.modules.update(hidden)


def _modules_in(folder: Path) -> dict[str, types.ModuleType]:
    """Modules with their file or package inside a folder, except installed packages."""
    found = {}
    for name, module in list(sys.modules.items()):
        paths = getattr(module, "__file__", None), *getattr(module, "__path__", ())
        place = str(paths[0] or paths[-1])
        inside = place.startswith(f"{folder}{os.sep}") and "site-packages" not in place
        if inside and not place.startswith(PACKAGES) and name != "__main__":
            found[name] = module
    return found


def imports_are_unchanged(model: Model) -> bool:
    """Whether all files imported by a model's file are unchanged."""
    return all(_digest(name) == digest for name, digest in model.imported.items())


def _digest(file: str) -> str:
    try:
        return hashlib.sha256(Path(file).read_bytes()).hexdigest()
    except OSError:
        return "missing"
