"""What goes wrong while a model is traced, as one line with the line of the user's file."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from dynamics.codegen import cache_directory
from dynamics.validation import InvalidRequest
from theory.model_error import ModelError, line_of, told_error

MISSING = "own models need JAX, which is not installed: pip install -e '.[models]'"
WORTH_KEEPING = 0.05
"""Seconds of compilation from which a program is kept on disk."""
HINTS = {
    "TracerBoolConversionError": "decides by `if`, `and`, `max(...)` or the like on a traced "
    "value; use xp.where, or make the constant a whole number",
    "ConcretizationTypeError": "needs the value of a traced number; use xp.where, or make the "
    "constant a whole number",
    "NonConcreteBooleanIndexError": "indexes by a traced condition; use xp.where",
    "TracerArrayConversionError": "hands a traced value to numpy; use the same function of xp",
    "TracerIntegerConversionError": "uses a traced number as an index or a size; make the "
    "constant a whole number",
    "UnexpectedTracerError": "keeps a traced value outside of the function",
}


def require_jax() -> Any:
    """The module ``jax``, which keeps what it compiles beside the other generated files.

    A folder for compiled programs that the user has chosen stays as it is.

    Raises
    ------
    InvalidRequest
        If it is not installed.
    """
    try:
        import jax
    except ImportError:
        raise InvalidRequest(MISSING) from None
    if getattr(jax.config, "jax_compilation_cache_dir", "") is None:
        jax.config.update("jax_compilation_cache_dir", str(cache_directory() / "jax"))
        jax.config.update("jax_persistent_cache_min_compile_time_secs", WORTH_KEEPING)
    return jax


@contextmanager
def refusals(role: str = "", path: Path | None = None) -> Iterator[None]:
    """Turn errors of a model, and of tracing it, into one line.

    Parameters
    ----------
    role : str
        The function that is traced; errors of other kinds pass where it is empty.
    path : Path, optional
        File of the model, for the number of the line.

    Raises
    ------
    InvalidRequest
    """
    try:
        yield
    except ModelError as error:
        place = line_of(error, path) if str(error).startswith("xp.") else ""
        front = f"{role}: " if place else ""
        raise InvalidRequest(f"{front}{error}{place}") from None
    except Exception as error:
        if isinstance(error, InvalidRequest) or not role:
            raise
        hint = next((HINTS[k.__name__] for k in type(error).__mro__ if k.__name__ in HINTS), "")
        told = hint or f"raises {told_error(error)}"
        raise InvalidRequest(f"{role} {told}{line_of(error, path)}") from None
