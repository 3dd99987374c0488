"""From kernels to compiled functions, by way of a source file that can be read.

A generated file holds, in one text, hand-written kernels (their source is copied in) and entries by
which the loops that train call them (`dynamics.codegen.loops`; those are compiled once
for all models). Its name carries a hash of that text, of numba's version and of `CACHE_FORMAT`,
which counts changes of what a file imports, so nothing stale is run; numba caches machine code
beside it, so a second process compiles nothing (`dynamics.codegen.machine_code`: nor does it run
what is damaged).
"""

from __future__ import annotations

import dis
import hashlib
import inspect
import sys
import textwrap
import typing
from collections.abc import Callable, Collection, Iterable, Sequence
from dataclasses import dataclass
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any

from dynamics.cache.folder import cache_directory, replace_file
from dynamics.codegen.addresses import AddressedModel, entries_of, entry_source, packed
from dynamics.process_settings import fewer_collections
from dynamics.validation import InvalidRequest

__all__ = [
    "AddressedModel",
    "CompiledModule",
    "build",
    "kernel_source",
]

CACHE_FORMAT = 8
"""Of the files with machine code and of `dynamics.codegen.calls`; in the names of the files."""

HEADER = '''"""{title}

Generated from the model; do not edit. State order: {order}.
"""

from math import asinh, atan, atan2, ceil, copysign, cos, cosh, erf, erfc, exp, expm1, floor
from math import isfinite, log, log1p, pi, sin, sinh, sqrt, tan, tanh

import numpy as np
from numba import njit

from dynamics.codegen.linked_functions import linked

STATE_ORDER = {order!r}

# Sums may be reordered, but not 'nnan' and 'ninf'. Reordering folds isfinite to True and removes
# roundings that are meant, so some functions forbid it: in words, because a function that says
# nothing inherits the flags of its caller.
FLAGS = {{"contract", "arcp", "nsz", "reassoc"}}
# Every entry holds all that it calls, as its own: of a function that several entries shared,
# roundings would depend on which of them a process had loaded first.
kernel = linked(error_model="numpy", fastmath=FLAGS)
exact_kernel = linked(error_model="numpy", fastmath=False, nogil=True)
fused_kernel = linked(error_model="numpy", fastmath={{"contract"}}, nogil=True)
'''


@dataclass(frozen=True)
class CompiledModule:
    """A generated file, imported.

    Attributes
    ----------
    path : Path
        Where the source is.
    source : str
        Its text.
    state_order : tuple of str
        Names of the entries of every ``state`` argument.
    functions : module
        The functions as compiled code calls them; Python calls those that are attributes of this
        object (`dynamics.codegen.linked_functions`).
    """

    path: Path
    source: str
    state_order: tuple[str, ...]
    functions: ModuleType

    def __getattr__(self, name: str) -> Any:
        from dynamics.codegen.linked_functions import callable_function, is_linked

        value = getattr(self.functions, name)
        return callable_function(value) if is_linked(value) else value

    def entry_point(self, name: str, *arguments: Any) -> Callable[..., Any]:
        """A function compiled for arguments of these types, which looks at no type again.

        A call by name looks at the types of all fields of named tuples, which takes longer than a
        small gradient.

        Parameters
        ----------
        name : str
        *arguments
            Of the types and layouts that it will be called with, by position.
        """
        import numba

        with fewer_collections():
            return getattr(self, name).compile(tuple(map(numba.typeof, arguments)))

    def addressed(self, data: Any) -> AddressedModel:
        """The functions that loops call, by their addresses, on some data.

        Parameters
        ----------
        data : tuple
            Of arrays, numbers and tuples of these.

        Raises
        ------
        TypeError
            If the data hold something else.
        """
        entries = entries_of(self.functions, data)
        return AddressedModel(entries, data, packed(data))


def kernel_source(*entries: Callable[..., Any], data: Collection[type] = ()) -> str:
    """Source of hand-written kernels and of all that they call, callees before callers.

    The functions and the numbers that a kernel reads from its module are followed; a name that is
    None there is supplied by another part of the generated file. A kernel marked
    `dynamics.codegen.kernels.exact` or `fused` is compiled without any reordering.

    Parameters
    ----------
    *entries : callable
        Plain functions of `dynamics.codegen.kernels` or of a system's kernels. Each replaces
        every function of its name.
    data : collection of type
        The named tuples that the entries are called with; those in their fields are followed.

    Raises
    ------
    ValueError
        If two of the functions, or two of the numbers, have the same name.

    Examples
    --------
    >>> from dynamics.codegen.kernels.elementary import logistic_loss
    >>> print(kernel_source(logistic_loss).splitlines()[1])
    def logistic_loss(margin: float) -> float:
    """
    replaced = {entry.__name__: entry for entry in entries}
    functions: dict[str, Callable[..., Any]] = {}
    numbers: dict[str, float] = {}

    def follow(function: Callable[..., Any]) -> None:
        name = function.__name__
        if functions.setdefault(name, function) is not function:
            raise ValueError(f"two kernels of one file have the name {name}")
        namespace = function.__globals__
        for used in sorted(_globals_of(function.__code__)):
            value = replaced.get(used, namespace.get(used))
            if inspect.isfunction(value) and value not in functions.values():
                follow(value)
            elif isinstance(value, int | float) and numbers.setdefault(used, value) != value:
                raise ValueError(f"two numbers of one file have the name {used}")
        functions[name] = functions.pop(name)

    for entry in entries:
        if entry not in functions.values():
            follow(entry)
    texts = ["\n".join(f"{name} = {value!r}" for name, value in numbers.items()) + "\n"]
    for function in functions.values():
        text = textwrap.dedent(inspect.getsource(function))
        marks = [mark for mark in ("fused", "exact") if hasattr(function, mark)]
        decorator = f"{marks[0]}_kernel" if marks else "kernel"
        texts.append(f"@{decorator}\n{text[text.index('def ') :]}")
    return "\n\n".join([*_field_names(data), *filter(str.strip, texts)])


def _globals_of(code: CodeType) -> set[str]:
    """Names that a function reads from its module."""
    names = {i.argval for i in dis.get_instructions(code) if i.opname == "LOAD_GLOBAL"}
    inner = (constant for constant in code.co_consts if isinstance(constant, CodeType))
    return names.union(*map(_globals_of, inner))


def _field_names(classes: Iterable[Any]) -> Iterable[str]:
    """A comment with the fields of each named tuple, and of those in its fields.

    Compiled code knows fields by their position and a class by its module, so another order of
    fields, or a class that moved, must be a change of the text that the code is cached with.
    """
    waiting = list(classes)
    for kind in waiting:
        yield f"# {kind.__module__}.{kind.__name__}: {', '.join(kind._fields)}\n"
        fields = typing.get_type_hints(kind).values()
        waiting += [field for field in fields if hasattr(field, "_fields")]


def build(
    title: str, state_order: Sequence[str], parts: Sequence[str], entries: bool = True
) -> CompiledModule:
    """Write a generated file, import it, and return its functions (compiled on first call).

    Parameters
    ----------
    title : str
        First line of the file's docstring.
    state_order : sequence of str
        Names of the entries of ``state``.
    parts : sequence of str
        Sources of the functions, callees before callers.
    entries : bool
        Whether loops call them by their addresses.

    Raises
    ------
    OSError
        If no directory for generated files can be written.
    InvalidRequest
        If numba's compiler is turned off.
    """
    import numba

    if numba.config.DISABLE_JIT:  # type: ignore[attr-defined]
        raise InvalidRequest(
            "NUMBA_DISABLE_JIT=1 turns off the compiler that runs problems; unset it"
        )
    order = tuple(state_order)
    text = "\n\n".join([HEADER.format(title=title, order=order), *parts])
    text += entry_source(text) if entries else ""
    versions = f"{numba.__version__} {CACHE_FORMAT}"
    digest = hashlib.sha256(f"{versions}\n{text}".encode()).hexdigest()[:16]
    name = f"attdyn_generated_{digest}"
    path = cache_directory() / f"{name}.py"
    if not path.exists() or path.read_bytes() != text.encode():
        replace_file(path, text)
    module = sys.modules.get(name) or _run(name, path, text)
    return CompiledModule(path, text, order, module)


def _run(name: str, path: Path, text: str) -> ModuleType:
    """The module of a generated file, from its text: what else is on disk may be damaged."""
    from dynamics.codegen.machine_code import check_on_load

    module = ModuleType(name)
    module.__file__ = str(path)
    sys.modules[name] = module
    exec(compile(text, path, "exec"), vars(module))
    check_on_load(module)
    return module
