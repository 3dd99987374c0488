"""A model from a Python file; no module stays imported afterwards."""

from __future__ import annotations

import ast
import builtins
import hashlib
import importlib.util
import os
import sys
import sysconfig
import types
from collections.abc import Mapping, Set
from contextlib import suppress
from importlib.machinery import PathFinder
from pathlib import Path
from typing import Any

from theory.documentation import Documentation
from theory.law import ModelError, error_text, line_of
from theory.model import LEADING, SETTINGS, TABLES, Model

HERE = Path(__file__).resolve().parents[1]
LIBRARIES = [Path(sysconfig.get_path(name)) for name in ("stdlib", "platstdlib")]
INSTALLED = {*LIBRARIES, *(HERE / name for name in ("theory", "dynamics", "attdyn.py"))}
"""Folders whose modules are not source of a model: the standard library, packages, this one."""
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
        raise ModelError(f"{str(path)[:60]!r} is not a path of a file")
    file = Path(os.path.expanduser(path)).absolute()
    try:
        text = importlib.util.decode_source(file.read_bytes())
    except (OSError, UnicodeDecodeError, SyntaxError) as error:
        reason = getattr(error, "strerror", None) or "not text"
        raise ModelError(f"{str(path)!r} cannot be read ({reason.lower()})") from None
    module = types.ModuleType(f"attdyn_model_{file.stem}")
    module.__file__ = str(file)
    imported: dict[str, types.ModuleType] = {}
    names = _importing_from(imported)
    _with(module, names)
    finder = _finder(names)
    sys.meta_path.insert(0, finder)
    sys.path.insert(0, str(file.parent))
    # Dataclasses and the like look their module up by name.
    sys.modules[module.__name__] = module
    # Helpers are run again: one may have changed since it was imported.
    hidden = _own_modules(sys.modules.keys() - {module.__name__, "__main__"})
    for name in hidden:
        del sys.modules[name]
    before, writes = set(sys.modules), sys.dont_write_bytecode
    sys.dont_write_bytecode = True
    try:
        exec(compile(text, str(file), "exec"), module.__dict__)
        _import_what_functions_import(module, before)
    except KeyboardInterrupt:
        raise
    except BaseException as error:  # SystemExit too
        raise ModelError(
            f"{file.name} cannot be run: {error_text(error)}{line_of(error, file)}"
        ) from error
    finally:
        sys.dont_write_bytecode = writes
        sys.path.remove(str(file.parent))
        sys.meta_path.remove(finder)
        # Another model may have helpers of the same names, or newer ones.
        imported |= _own_modules(set(sys.modules) - before)
        for name in imported:
            del sys.modules[name]
        sys.modules.update(hidden)
    content = vars(module)
    names_of_parts = [*LEADING, *TABLES, *SETTINGS]
    arguments = {name: content[name] for name in names_of_parts if content.get(name) is not None}
    if "start" not in arguments:
        raise ModelError(f"{file.name} holds no model: it has no function start(...)")
    files = [str(m.__file__) for m in imported.values() if getattr(m, "__file__", None)]
    arguments["imported"] = {name: _digest(name) for name in sorted(files)}
    documentation = module.__doc__ or ""
    arguments |= {"documentation": documentation, "source": str(content.get("SOURCE", ""))}
    title = Documentation(documentation).title or file.stem
    try:
        return Model(**arguments, name=file.stem, title=title, path=file)
    except ModelError as error:
        raise ModelError(f"{file.name}: {error}") from None


def _finder(builtins: Mapping[str, Any]) -> Any:
    """Finds helpers, and runs them with built-in names of their own."""

    def find_spec(name: str, path: Any = None, target: Any = None) -> Any:
        spec: Any = PathFinder.find_spec(name, path, target)
        if spec is None or not _is_own(spec.origin):
            return None  # the next finder is asked
        run = spec.loader.exec_module
        spec.loader.exec_module = lambda module: run(_with(module, builtins))
        return spec

    return types.SimpleNamespace(find_spec=find_spec)


def _with(module: types.ModuleType, builtins: Mapping[str, Any]) -> types.ModuleType:
    vars(module)["__builtins__"] = builtins
    return module


def _importing_from(modules: dict[str, types.ModuleType]) -> dict[str, Any]:
    """Built-in names with an import that finds these modules, which are in ``sys.modules`` no more.

    Python calls it for the ``import`` in a function when the function is called.
    """

    def importing(name: str, *arguments: Any, **named: Any) -> Any:
        former = {each: sys.modules[each] for each in modules if each in sys.modules}
        sys.modules.update(modules)
        try:
            return __import__(name, *arguments, **named)
        finally:
            for each in modules:
                sys.modules.pop(each, None)
            sys.modules.update(former)

    return {**vars(builtins), "__import__": importing}


def _import_what_functions_import(module: types.ModuleType, before: set[str]) -> None:
    """Import the helpers that functions of a module, or of its helpers, import when called."""
    pending, done = [module], set[str]()
    for each in pending:
        file = getattr(each, "__file__", None)
        tree = ast.parse(Path(file).read_bytes() if file else "")
        functions = [f for f in ast.walk(tree) if isinstance(f, ast.FunctionDef)]
        nodes = (node for function in functions for node in ast.walk(function))
        names = {name for node in nodes for name in _modules_of(node, each.__package__)}
        for name in sorted(names):
            with suppress(ImportError):  # told where the function is called
                if name not in sys.modules and _finds(name):
                    importlib.import_module(name)
        found = _own_modules(set(sys.modules) - before)
        pending += [found[name] for name in found.keys() - done]
        done |= found.keys()


def _modules_of(node: ast.AST, package: str | None) -> list[str]:
    """Names of the modules that a statement may import."""
    if isinstance(node, ast.Import):
        return [alias.name for alias in node.names]
    if not isinstance(node, ast.ImportFrom):
        return []
    name = node.module or ""
    if node.level:
        name = importlib.util.resolve_name("." * node.level + name, package)
    return [name, *(f"{name}.{alias.name}" for alias in node.names)]


def _finds(name: str) -> bool:
    """Whether the first part of the name of a module is a helper, or a folder."""
    spec = PathFinder.find_spec(name.partition(".")[0])
    return spec is not None and (spec.origin is None or _is_own(spec.origin))


def imports_are_unchanged(model: Model) -> bool:
    """Whether the sources that the file of a model imported are what they were."""
    return all(_digest(name) == digest for name, digest in model.imported.items())


def _digest(file: str) -> str:
    try:
        return hashlib.sha256(Path(file).read_bytes()).hexdigest()
    except OSError:
        return "missing"


def _own_modules(names: Set[str]) -> dict[str, types.ModuleType]:
    """Modules with a source outside of installed packages, but for those being imported now.

    Their folders too, which may have no source.
    """
    found = {}
    for name in names:
        module = sys.modules[name]
        spec = getattr(module, "__spec__", None)
        importing = getattr(spec, "_initializing", False)
        if _is_own(getattr(module, "__file__", None)) and not importing:
            found[name] = module
    folders = {name.rpartition(".")[0] for name in found} - found.keys()
    return found | {name: sys.modules[name] for name in folders & names}


def _is_own(file: Any) -> bool:
    """Whether a file is a source outside of installed packages."""
    if not (isinstance(file, str) and file.endswith(".py")) or file.startswith(PACKAGES):
        return False
    path = Path(file).resolve()
    packages = {"site-packages", "dist-packages"} & {*path.parts}
    return not (packages or INSTALLED & {path, *path.parents})
