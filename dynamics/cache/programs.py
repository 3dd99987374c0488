"""JAX, imported at first use, with XLA options and an on-disk store of compiled programs.

Most programs of this package take longer to compile than to run. XLA spends a third of the
compilation time in its fusion emitters and a tenth in its highest optimization levels; neither
speeds up the training of a library model. Optimization level 0 would save a third of the remaining
compilation time, but double the run time of the thousands of calls that find a large model's
closure. One thread generates the code of a program, because several processes share the cores.
"""

from __future__ import annotations

import hashlib
import importlib
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from functools import cache
from pathlib import Path
from typing import Any

from dynamics.cache.folder import cache_directory, replace_file, report, say_compiling
from dynamics.validation import refuse

OPTIONS = {
    "xla_cpu_use_fusion_emitters": False,
    "xla_cpu_parallel_codegen_split_count": 1,
    "xla_backend_optimization_level": 1,
}
HASH = 16
"""Length in bytes of the hash at the end of a stored program."""
WORTH_STORING = 0.02
"""Minimum compilation time, in seconds, of a program that is stored on disk."""


class _Jax:
    """The module ``jax``, imported at first use: the import takes longer than most commands."""

    def __getattr__(self, name: str) -> Any:
        value = getattr(_module(), name)
        setattr(self, name, value)
        return value

    @contextmanager
    def enable_x64(self, enabled: bool, kept: bool = True) -> Iterator[None]:
        """Context in which JAX has 64 bits if `enabled`, and stores compiled programs if `kept`."""
        with programs_kept() if kept else nullcontext(), _module().enable_x64(enabled):
            yield


def _module() -> Any:
    """The JAX module; raises InvalidRequest if no device is available."""
    module = importlib.import_module("jax")
    try:
        module.devices()
    except Exception:  # without device: RuntimeError at the first call, then AssertionError
        asked = module.config.jax_platforms or "none"
        refuse("JAX_PLATFORMS", asked, "has no device here", "unset, or cpu", "cpu")
    return module


jax: Any = _Jax()


def compiled_program(function: Callable[..., Any], **options: Any) -> Any:
    """Function compiled by JAX at its first call; create it outside of JAX traces."""
    known = {name: value for name, value in OPTIONS.items() if _has(name, value)}
    return jax.jit(function, compiler_options=known, **options)


@cache
def _has(name: str, value: Any) -> bool:
    """Whether the installed XLA accepts an option."""
    try:
        jax.jit(lambda number: number, compiler_options={name: value}).lower(0.0).compile()
    except Exception:  # XLA's own error type differs between versions
        return False
    return True


class _Programs:
    """Store of compiled programs; each file ends with a hash, and damaged files are deleted."""

    def __init__(self, folder: Path) -> None:
        self._path = folder

    def get(self, key: str) -> bytes | None:
        """Program stored under a key, or None if missing or damaged (JAX then compiles it)."""
        path = self._path / f"{key}.program"
        try:
            content = path.read_bytes()
            if content[-HASH:] == _hash(content[:-HASH]):
                return content[:-HASH]
            path.unlink()
        except OSError:
            say_compiling()
            return None
        report(f"a compiled program in {str(self._path)!r} is damaged; it is compiled again")
        return None

    def put(self, key: str, program: bytes) -> None:
        """Store a program, if the folder is writable."""
        with suppress(OSError):
            self._path.mkdir(mode=0o700, exist_ok=True)
            replace_file(self._path / f"{key}.program", program + _hash(program))


def _hash(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=HASH).digest()


def _store_programs() -> Callable[[], None]:
    """Make JAX store compiled programs in the cache folder; returns a function that undoes this."""
    try:
        from jax._src import compilation_cache as cache

        names = "jax_compilation_cache_dir", "jax_persistent_cache_min_compile_time_secs"
        before = {name: getattr(jax.config, name) for name in names}
        known = cache._cache, cache.reset_cache
    except (ImportError, AttributeError):  # this JAX has unknown internals: nothing is stored
        return lambda: None
    if before[names[0]] is not None or known[0] is not None:
        return lambda: None
    folder = cache_directory() / "jax"

    def put_back() -> None:
        for name, value in before.items():
            jax.config.update(name, value)
        cache.reset_cache()

    cache.reset_cache()
    jax.config.update(names[0], str(folder))
    jax.config.update(names[1], WORTH_STORING)
    programs: Any = _Programs(folder)  # has the methods of JAX's own cache class
    cache._cache = programs
    return put_back


class ForAWhile:
    """Context of a global setting; threads may enter and leave the context in any order.

    `change` changes the setting and returns the function that restores it.
    """

    def __init__(self, change: Callable[[], Callable[[], None]]) -> None:
        self._change, self._changing = change, threading.Lock()
        self._inside: list[Callable[[], None]] = []

    @contextmanager
    def __call__(self) -> Iterator[None]:
        """Context in which the setting is changed for all threads."""
        with self._changing:
            self._inside.append(self._change())
        try:
            yield
        finally:
            with self._changing:
                # The first thread to enter knows the old setting; the last to leave restores it.
                first = self._inside[0]
                self._inside.pop()
                if not self._inside:
                    first()


programs_kept = ForAWhile(_store_programs)
"""Context in which JAX stores compiled programs, unless the user has set a cache folder of JAX."""
