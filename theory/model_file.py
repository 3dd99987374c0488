"""A model from a Python file; no module stays imported afterwards."""

from __future__ import annotations

import hashlib
import importlib.util
import os
import sys
import sysconfig
import types
from collections.abc import Iterable
from pathlib import Path

from theory.documentation import Documentation
from theory.law import ModelError, error_text, line_of
from theory.model import LEADING, SETTINGS, TABLES, Model

HERE = Path(__file__).resolve().parents[1]
LIBRARIES = [Path(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib")]
INSTALLED = {*LIBRARIES, *(HERE / name for name in ("theory", "dynamics", "attdyn.py"))}
"""Folders whose modules are no source of a model: the standard library, packages, this one."""
PACKAGES = tuple(
    f"{folder}{os.sep}"
    for folder in (*map(sysconfig.get_path, ("purelib", "platlib", "stdlib")), *map(str, INSTALLED))
)
"""Beginnings of most of their paths."""


def read_model(path: str | Path) -> Model:
    r"""The model of a Python file.

    Parameters
    ----------
    path : str or path-like
        A file with ``start`` and one of the three forms of the expectation, as functions of these
        names.

    Returns
    -------
    Model

    Raises
    ------
    ModelError
        If the file cannot be read or run, or holds no model.

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
        raise ModelError(f"{str(path)[:60]!r} is no path of a file")
    file = Path(os.path.expanduser(path)).absolute()
    try:
        text = importlib.util.decode_source(file.read_bytes())
    except (OSError, UnicodeDecodeError, SyntaxError) as error:
        reason = getattr(error, "strerror", None) or "not text"
        raise ModelError(f"{str(path)!r} cannot be read ({reason.lower()})") from None
    module = types.ModuleType(f"attdyn_model_{file.stem}")
    module.__file__ = str(file)
    sys.path.insert(0, str(file.parent))
    # Dataclasses and the like look their module up by name.
    sys.modules[module.__name__] = module
    # Helpers are run again: one may have changed since it was imported.
    hidden = _own_modules(sys.modules.keys() - {module.__name__, "__main__"})
    for name in hidden:
        del sys.modules[name]
    before, writes = set(sys.modules), sys.dont_write_bytecode
    sys.dont_write_bytecode = True
    imported: dict[str, types.ModuleType] = {}
    try:
        exec(compile(text, str(file), "exec"), module.__dict__)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # SystemExit too
        raise ModelError(
            f"{file.name} cannot be run: {error_text(error)}{line_of(error, file)}"
        ) from error
    finally:
        sys.dont_write_bytecode = writes
        sys.path.remove(str(file.parent))
        # Another model may have helpers of the same names, or newer ones.
        imported = _own_modules(set(sys.modules) - before)
        for name in imported:
            del sys.modules[name]
        sys.modules.update(hidden)
    content = vars(module)
    names_of_parts = [*LEADING, *TABLES, *SETTINGS]
    arguments = {name: content[name] for name in names_of_parts if content.get(name) is not None}
    if "start" not in arguments:
        raise ModelError(f"{file.name} holds no model: it has no function start(...)")
    files = [str(each.__file__) for each in imported.values()]
    arguments["imported"] = {name: _digest(name) for name in sorted(files)}
    documentation = module.__doc__ or ""
    arguments |= {"documentation": documentation, "source": str(content.get("SOURCE", ""))}
    title = Documentation(documentation).title or file.stem
    try:
        return Model(**arguments, name=file.stem, title=title, path=file)
    except ModelError as error:
        raise ModelError(f"{file.name}: {error}") from None


def imports_are_unchanged(model: Model) -> bool:
    """Whether the sources that the file of a model imported are what they were."""
    return all(_digest(name) == digest for name, digest in model.imported.items())


def _digest(file: str) -> str:
    try:
        return hashlib.sha256(Path(file).read_bytes()).hexdigest()
    except OSError:
        return "missing"


def _own_modules(names: Iterable[str]) -> dict[str, types.ModuleType]:
    """Modules with a source outside of installed packages, but for those being imported now."""
    found = {}
    for name in names:
        module = sys.modules[name]
        file, spec = getattr(module, "__file__", None), getattr(module, "__spec__", None)
        if not (isinstance(file, str) and file.endswith(".py")) or file.startswith(PACKAGES):
            continue
        path = Path(file).resolve()
        packages = {"site-packages", "dist-packages"} & {*path.parts}
        importing = getattr(spec, "_initializing", False)
        if not (packages or INSTALLED & {path, *path.parents} or importing):
            found[name] = module
    return found
