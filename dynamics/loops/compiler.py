"""Compilation of kernels by numba, cached on disk.

numba recompiles a function when its file changes, but ignores changes of called functions. The
cache folder is therefore named by a hash of all kernel sources and the version of numba. Without a
writable folder, each process compiles anew.
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
"""Patterns of the source files whose hash names the cache folder."""
OPTIONS: Any = {"error_model": "numpy", "fastmath": False}
"""numba options: division by 0 gives inf or NaN, and floating-point operations are not reordered.
"""


def compiled(kernel: Callable[..., Any], data: Any = None) -> Callable[..., Any]:
    """Kernel that numba compiles at the first call with each combination of argument types.

    The kernel is a function of a module in `dynamics.loops.kernels.MODULES`. `data` is the loop
    data, if the kernel takes it as an argument.
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
    """Compiled kernel for a kind of problem, cached in a separate folder.

    numba keeps one index of argument types per function and folder. If kinds of problems shared it,
    concurrent writers could mix up types, and a reader would import the modules of all kinds.
    """
    numba, folder = _numba(), _folder()
    own = folder and f"{folder}/{kind.__module__}.{kind.__qualname__}"
    before = numba.config.CACHE_DIR
    # numba reads CACHE_DIR only inside njit.
    numba.config.CACHE_DIR = own
    try:
        made = numba.njit(cache=bool(folder), nogil=True, **OPTIONS)(kernel)
    finally:
        numba.config.CACHE_DIR = before
    return made if not folder or made is kernel else _unless_damaged(made, own)


def _unless_damaged(made: Any, folder: str) -> Callable[..., Any]:
    """Compiled kernel that deletes its cache folder and recompiles if the first call fails."""

    @wraps(made)
    def call(*arguments: Any) -> Any:
        if made.signatures:
            return made(*arguments)
        try:
            return made(*arguments)
        except Exception:  # unpickling a damaged file can raise any error
            report(f"machine code in {folder!r} is damaged; it is compiled again")
            rmtree(folder, ignore_errors=True)
            return made(*arguments)

    return call


@cache
def _folder() -> str:
    """Path of the folder of machine code, or "" if it cannot be created."""
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
    """The numba module, imported at first use, with overloads for the functions of `kinds`."""
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
