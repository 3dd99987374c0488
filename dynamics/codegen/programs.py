"""Programs of JAX: what XLA is to do for them, and where they are stored.

XLA takes longer to compile most programs here than they run. Its emitters of fused loops take a
third of that time and its highest levels of optimization a tenth, and no model of the library is
trained the quicker for them. Without any optimization a program is compiled in a fifth of the time,
and its steps take up to five times as long.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from typing import Any

from dynamics.codegen.folder import cache_directory

OPTIONS = {"xla_cpu_use_fusion_emitters": False, "xla_cpu_parallel_codegen_split_count": 1}
LEVEL = "xla_backend_optimization_level"
OFTEN, SELDOM = 1, 0
"""Level of optimization of programs that are run often, and a few times."""
WORTH_STORING = 0.02
"""Seconds of compilation from which a program is stored on disk."""


def compiled_program(jax: Any, function: Callable[..., Any], level: int, **options: Any) -> Any:
    """A function that JAX compiles when it is first called.

    Parameters
    ----------
    jax : module
    function : callable
        Of arrays; traced.
    level : int
        `OFTEN` or `SELDOM`.
    **options
        As of ``jax.jit``.
    """
    known = {name: value for name, value in (OPTIONS | {LEVEL: level}).items() if _has(jax, name)}
    return jax.jit(function, compiler_options=known, **options)


@cache
def _has(jax: Any, name: str) -> bool:
    """Whether XLA as it is installed has an option."""
    value = OPTIONS.get(name, OFTEN)
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
