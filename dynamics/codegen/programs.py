"""Programs of JAX: what XLA is to do for them, and where they are stored.

XLA takes longer to compile most programs here than they run. Its emitters of fused loops take a
third of that time, its highest levels of optimization a tenth, and no model of the library is
trained the quicker for them. Without any optimization XLA would take a third of the time, but a
large model is closed by thousands of calls of a few programs, which would take twice as long. The
code of a program is made in one part, not in threads, because processes share the cores.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from dynamics.codegen.folder import cache_directory

OPTIONS = {
    "xla_cpu_use_fusion_emitters": False,
    "xla_cpu_parallel_codegen_split_count": 1,
    "xla_backend_optimization_level": 1,
}
WORTH_STORING = 0.02
"""Seconds of compilation from which a program is stored on disk."""


def compiled_program(jax: Any, function: Callable[..., Any], **options: Any) -> Any:
    """A function that JAX compiles when it is first called; not to be called while JAX traces.

    Parameters
    ----------
    jax : module
    function : callable
        Of arrays; traced.
    **options
        As of ``jax.jit``.
    """
    known = {name: value for name, value in OPTIONS.items() if _has(jax, name, value)}
    return jax.jit(function, compiler_options=known, **options)


@cache
def _has(jax: Any, name: str, value: Any) -> bool:
    """Whether XLA as it is installed has an option."""
    try:
        jax.jit(lambda number: number, compiler_options={name: value}).lower(0.0).compile()
    except Exception:  # of a kind that is XLA's own, and has changed
        return False
    return True


def store_programs(jax: Any) -> None:
    """Let JAX keep what it compiles beside the other generated files.

    A folder for compiled programs that the user has set stays as it is.

    Parameters
    ----------
    jax : module
    """
    if getattr(jax.config, "jax_compilation_cache_dir", "") is None:
        jax.config.update("jax_compilation_cache_dir", str(cache_directory() / "jax"))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", WORTH_STORING)
