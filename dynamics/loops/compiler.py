"""Kernels as numba compiles them, once on a machine.

numba keeps what it compiled until the file of the function changes, and looks at no function that
is called there. So its folder is one of the cache, named by a hash of the text of all kernels and
by the version of numba. Where no folder can be written, a process compiles for itself.
"""

from __future__ import annotations

import hashlib
import inspect
import sys
from collections.abc import Callable
from functools import cache, wraps
from pathlib import Path
from shutil import rmtree
from typing import Any

from dynamics.cache.folder import cache_directory, report, say_compiling
from dynamics.loops.kernels import MODULES, kinds

PACKAGE = Path(__file__).parents[1]
SOURCES = (
    "loops/compiler.py",
    "loops/kernels/*.py",
    "expectations/*.py",
    "papers/*/kernels/*.py",
)
"""Files of the package that decide what is compiled."""
OPTIONS: Any = {"error_model": "numpy", "fastmath": False}
"""Division by 0 is not an error, and no operation is reordered."""


def compiled(kernel: Callable[..., Any], data: Any = None) -> Callable[..., Any]:
    """A kernel, compiled for each type of its arguments when it is first called with it.

    `kernel`: of a module of `dynamics.loops.kernels.MODULES`; `data`: of the problem, if the kernel
    is called with it.
    """
    compiler = _numba()
    while MODULES:
        module = MODULES.pop()
        for function in vars(sys.modules[module]).values():
            if inspect.isfunction(function) and function.__module__ == module:
                options = OPTIONS | {"forceinline": hasattr(function, "inlined")}
                compiler.extending.register_jitable(**options)(function)
    kind: Any = type(data)
    return _dispatcher(kernel, kind)


@cache
def _dispatcher(kernel: Callable[..., Any], kind: Any) -> Callable[..., Any]:
    """A compiled kernel for a kind of problem, with a folder of its own.

    numba keeps an index of types for each function. Processes that write to it at once may confuse
    different types, and one that reads it imports the modules of all.
    """
    numba, folder = _numba(), _folder()
    own = folder and f"{folder}/{kind.__module__}.{kind.__qualname__}"
    before = numba.config.CACHE_DIR
    # Read here, and no more.
    numba.config.CACHE_DIR = own
    try:
        made = numba.njit(cache=bool(folder), nogil=True, **OPTIONS)(kernel)
    finally:
        numba.config.CACHE_DIR = before
    return made if not folder or made is kernel else _unless_damaged(made, own)


def _unless_damaged(made: Any, folder: str) -> Callable[..., Any]:
    """A compiled kernel that removes its folder where its first call cannot read what is there."""

    @wraps(made)
    def call(*arguments: Any) -> Any:
        if made.signatures:
            return made(*arguments)
        try:
            return made(*arguments)
        except Exception:  # numba unpickles a file
            report(f"machine code in {folder!r} is damaged; it is compiled again")
            rmtree(folder, ignore_errors=True)
            return made(*arguments)

    return call


@cache
def _folder() -> str:
    """The folder of machine code; empty where none can be written."""
    paths = sorted(path for pattern in SOURCES for path in PACKAGE.glob(pattern))
    digest = hashlib.sha256(_numba().__version__.encode())
    for path in paths:
        digest.update(path.read_bytes())
    try:
        folder = cache_directory() / f"numba-{digest.hexdigest()[:16]}"
        folder.mkdir(mode=0o700, exist_ok=True)
    except OSError:
        return ""
    return str(folder.resolve())


@cache
def _numba() -> Any:
    """The module, imported late; compiled code chooses the functions of a kind of problem."""
    import numba
    from numba.core import event
    from numba.extending import overload

    class Listener(event.Listener):
        def on_start(self, event: Any) -> None:
            if event.data["dispatcher"].py_func.__module__.startswith("dynamics."):
                say_compiling()

        def on_end(self, event: Any) -> None:
            pass

    event.register("numba:compile", Listener())

    def choose(name: str) -> None:
        def of_kind(*arguments: Any) -> Any:
            (kind,) = (each.instance_class for each in arguments if hasattr(each, "instance_class"))
            return kinds.chosen(kind, name)

        overload(getattr(kinds, name), jit_options=OPTIONS, strict=False)(of_kind)

    for name in kinds.NAMES:
        choose(name)
    return numba
