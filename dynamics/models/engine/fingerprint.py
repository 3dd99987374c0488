"""Fingerprint of a model: a short hash of each of its parts.

The hash of a part covers its value at the default constants: arrays, samples with probabilities, or
a traced program. The hash also covers the syntax trees of the part's function and of all
definitions that the function uses in the same file. Comments, docstrings and formatting change no
hash. Imported source files outside installed packages and the version of JAX have hashes too.
"""

from __future__ import annotations

import ast
import hashlib
from functools import partial
from pathlib import Path
from typing import Any

import numpy as np

from dynamics.cache import jax
from dynamics.models.engine.program import array_hash, traced_text
from dynamics.models.engine.realization import Realization
from theory.model import LEADING


def digests(made: Realization) -> dict[str, str]:
    """Name of each part of a model -> short hash of the part.

    `made` is the model at its default constants, except those in ``held_at`` of the file.
    """
    model, program = made.model, made.program
    parts: dict[str, list[Any]] = {
        "constants": sorted((n, repr(v)) for n, v in model.constants.items()),
        "start": [(n, a.shape, array_hash(a)) for n, a in made.arrays.items()],
        "fixed": [(n, array_hash(a)) for n, a in made.data.fixed.items()],
    }
    parts["version of JAX"] = [jax.__version__]
    if model.imported:
        parts["imports"] = sorted((Path(n).name, d) for n, d in model.imported.items())
    for role in ("names", "events"):
        table = model.table(role, made.constants)
        parts[role] = sorted((name, repr(entry)) for name, entry in table.items())
    for role, law in (("law", made.law), ("held_out", made.held_out)):
        if law is not None:
            leaves = jax.tree.leaves(law.samples)
            parts[role] = [array_hash(law.weights), *map(array_hash, leaves)]
    abstract = jax.tree.map(lambda a: jax.ShapeDtypeStruct(a.shape, a.dtype), made.data)
    flat = jax.ShapeDtypeStruct((program.size,), np.float64)
    with jax.enable_x64(True):
        role = program.expectation
        traced = jax.make_jaxpr(partial(program.first_values, role))(flat, abstract)
        parts[role] = [traced_text(traced)]
        if made.observable_names:
            parts["observables"] = [
                traced_text(jax.make_jaxpr(program.observables)(flat, abstract))
            ]
    for role, text in syntax(model.path).items():
        parts.setdefault("observables" if role == "observe" else role, []).append(text)
    return {name: _short(repr(part)) for name, part in parts.items()}


def syntax(path: Path | None) -> dict[str, str]:
    """Function name -> syntax tree of the function and of all definitions it uses, as text.

    The result is empty if the model has no file, or if the file was deleted.
    """
    if path is None or not path.exists():
        return {}
    tree = ast.parse(path.read_bytes())
    named: dict[str, list[ast.stmt]] = {}
    for statement in tree.body:
        for name in _names(statement):
            named.setdefault(name, []).append(statement)
    return {role: _closure(role, named) for role in (*LEADING, "starts") if role in named}


def _names(statement: ast.stmt) -> set[str]:
    """Names bound by a statement at the top level of a file."""
    if isinstance(statement, (ast.FunctionDef, ast.ClassDef)):
        return {statement.name}
    if isinstance(statement, (ast.Import, ast.ImportFrom)):
        return {(alias.asname or alias.name).split(".")[0] for alias in statement.names}
    bound = (n for n in ast.walk(statement) if isinstance(n, ast.Name))
    return {n.id for n in bound if isinstance(n.ctx, ast.Store)}


def _closure(role: str, named: dict[str, list[ast.stmt]]) -> str:
    """Text of the syntax trees of a function and of all definitions that it uses in the file."""
    pending, observables = [role], {role}
    texts = []
    for name in pending:
        for statement in named[name]:
            plain = _without_docstrings(statement)
            texts.append(ast.dump(plain))
            used = {n.id for n in ast.walk(plain) if isinstance(n, ast.Name)}
            fresh = sorted(used & named.keys() - observables)
            observables |= set(fresh)
            pending += fresh
    return " ".join(texts)


def _without_docstrings(statement: ast.stmt) -> ast.stmt:
    """Remove the docstrings of functions and classes from a statement, in place."""
    for node in ast.walk(statement):
        if isinstance(node, (ast.FunctionDef, ast.ClassDef)) and ast.get_docstring(node):
            node.body = node.body[1:] or [ast.Pass()]
    return statement


def _short(text: str) -> str:
    return hashlib.sha256(text.encode()).hexdigest()[:12]
