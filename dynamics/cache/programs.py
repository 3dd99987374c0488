"""JAX, imported late; what XLA is to do for its programs, and where they are stored.

XLA takes longer to compile most programs here than they run. Its emitters of fused loops take a
third of that time, its highest levels of optimization a tenth, and no model of the library is
trained the quicker for them. Without any optimization XLA would take a third of the time, but a
large model is closed by thousands of calls of a few programs, which would take twice as long. The
code of a program is made in one part, not in threads, because processes share the cores.
"""

from __future__ import annotations

import hashlib
import importlib
from collections.abc import Callable, Iterator
from contextlib import contextmanager, nullcontext, suppress
from functools import cache
from pathlib import Path
from typing import Any

from dynamics.cache.folder import cache_directory, replace_file, report, say_compiling
from dynamics.process_settings import ForAWhile
from dynamics.validation import refuse

OPTIONS = {
    "xla_cpu_use_fusion_emitters": False,
    "xla_cpu_parallel_codegen_split_count": 1,
    "xla_backend_optimization_level": 1,
}
HASH = 16
"""Bytes of a hash."""
WORTH_STORING = 0.02
"""Seconds of compilation from which a program is stored on disk."""


class _Jax:
    """The module ``jax``, imported when it is first used: that takes longer than most commands."""

    def __getattr__(self, name: str) -> Any:
        value = getattr(_module(), name)
        setattr(self, name, value)
        return value

    @contextmanager
    def enable_x64(self, enabled: bool, kept: bool = True) -> Iterator[None]:
        """Compilation by JAX; programs compiled within are kept on request."""
        with programs_kept() if kept else nullcontext(), _module().enable_x64(enabled):
            yield


def _module() -> Any:
    """JAX; a platform on which it cannot run is refused."""
    module = importlib.import_module("jax")
    try:
        module.devices()
    except Exception:  # RuntimeError first, AssertionError afterwards
        asked = module.config.jax_platforms or "none"
        refuse("JAX_PLATFORMS", asked, "has no device here", "unset, or cpu", "cpu")
    return module


jax: Any = _Jax()


def compiled_program(function: Callable[..., Any], **options: Any) -> Any:
    """A function that JAX compiles when it is first called; not to be called while JAX traces.

    `function`: of arrays; traced; `**options`: as of ``jax.jit``.
    """
    known = {name: value for name, value in OPTIONS.items() if _has(name, value)}
    return jax.jit(function, compiler_options=known, **options)


@cache
def _has(name: str, value: Any) -> bool:
    """Whether XLA as it is installed has an option."""
    try:
        jax.jit(lambda number: number, compiler_options={name: value}).lower(0.0).compile()
    except Exception:  # of a kind that is XLA's own, and has changed
        return False
    return True


class _Programs:
    """Compiled programs as files that end in a hash; a damaged one is removed."""

    def __init__(self, folder: Path) -> None:
        self._path = folder

    def get(self, key: str) -> bytes | None:
        """A program by its key, or None: then JAX compiles it."""
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
        """Keep a program, where the folder can be written."""
        with suppress(OSError):
            self._path.mkdir(mode=0o700, exist_ok=True)
            replace_file(self._path / f"{key}.program", program + _hash(program))


def _hash(content: bytes) -> bytes:
    return hashlib.blake2b(content, digest_size=HASH).digest()


def _store_programs() -> Callable[[], None]:
    """Let JAX keep what it compiles in the folder of the cache; what ends that."""
    try:
        from jax._src import compilation_cache as cache

        names = "jax_compilation_cache_dir", "jax_persistent_cache_min_compile_time_secs"
        before = {name: getattr(jax.config, name) for name in names}
        known = cache._cache, cache.reset_cache
    except (ImportError, AttributeError):  # another version of JAX: nothing is kept
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
    programs: Any = _Programs(folder)  # not the class that JAX declares
    cache._cache = programs
    return put_back


programs_kept = ForAWhile(_store_programs)
"""Contexts in which JAX keeps what it compiles; a folder that the user has set stays."""
