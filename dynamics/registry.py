"""Registry of systems: by name, from a model file, or from a `Model` object.

A paper's system is `dynamics.papers.<name>.system`; a library model is a file of `dynamics.models`.
"""

from __future__ import annotations

import ast
import importlib
import os
from collections.abc import Mapping
from typing import Any

from dynamics.library import HERE, built_in_names, library_file, library_names, system_names
from dynamics.system import System
from dynamics.validation import InvalidRequest, nearest_name, refuse, shown


def title(name: str) -> str:
    """Title of the built-in system or library model `name`, read without loading it."""
    if name in built_in_names():
        text = (HERE / "papers" / name / "presentation.py").read_text(encoding="utf-8")
        words = (node for node in ast.walk(ast.parse(text)) if isinstance(node, ast.keyword))
        return next(ast.literal_eval(word.value) for word in words if word.arg == "title")
    module = ast.parse(library_file(name).read_text(encoding="utf-8"))
    return (ast.get_docstring(module) or name).splitlines()[0].rstrip(".")


def is_model_file(source: str) -> bool:
    """Whether a word is the path of a model file: it ends in ``.py``, or the file exists."""
    return source.endswith(".py") or os.path.isfile(os.path.expanduser(source))


def load_system(source: Any) -> System:
    """Load a system by name, from a model file, or from a model.

    Parameters
    ----------
    source : str, path-like, Model or System
        A name from `system_names`, the path of a model file, or a `Model`. A `System` is returned
        unchanged.

    Raises
    ------
    InvalidRequest
        If the name is unknown, the file is missing, or the source has another type.

    Examples
    --------
    >>> import dynamics
    >>> dynamics.load_system("positional_attention").Parameters().D
    16
    """
    if isinstance(source, System):
        return source
    if isinstance(source, (str, os.PathLike)):
        return _named(os.fspath(source))
    if hasattr(source, "start") and (hasattr(source, "loss") or hasattr(source, "risk")):
        from dynamics.models.engine.system import system_of

        return system_of(source)
    raise InvalidRequest(
        f"system={shown(source)} is not a system; system can be a name, a model file, a Model "
        f"or a System; nearest: {built_in_names()[0]!r}"
    )


def load_unchanged(reference: str, digests: Mapping[str, str]) -> System:
    """Load a system by its `System.reference`, and refuse a changed model.

    `digests` holds the earlier `System.digests`, which are empty for a built-in system. An
    InvalidRequest names the parts of the model whose digests have changed.
    """
    system = load_system(reference)
    if _changed(system, digests) and system.origin is not None:
        # The modules that a model file imports may have changed although the file has not.
        system = _file(system.origin.path, anew=True)
    if changed := _changed(system, digests):
        name = os.path.basename(reference)
        raise InvalidRequest(
            f"model {name!r} was changed since the sweep began: {', '.join(changed)}"
        )
    return system


def can_be_loaded_again(system: System) -> bool:
    """Whether another process can load the same system by its reference."""
    if system.origin is not None:
        return bool(system.origin.path)
    return system.name in built_in_names() and load_system(system.name) is system


def _changed(system: System, digests: Mapping[str, str]) -> list[str]:
    """Names of the parts of a model whose hashes differ from `digests`; empty without `digests`."""
    if not digests:
        return []
    parts = dict.fromkeys([*digests, *system.digests])
    return [part for part in parts if digests.get(part) != system.digests.get(part)]


def _file(path: str, anew: bool = False) -> System:
    from dynamics.models.engine.system import load

    return load(path, anew)


def _named(source: str) -> System:
    if source in built_in_names():
        system: System = importlib.import_module(f"dynamics.papers.{source}.system").SYSTEM
        return system
    if source in library_names():
        return _file(str(library_file(source)))
    if is_model_file(source):
        return _file(source)
    names = system_names()
    allowed = f"{', '.join(names)}, or a model file"
    refuse("system", source, "is unknown", allowed, nearest_name(source, names))
