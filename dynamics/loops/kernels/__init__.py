"""Plain functions on floats and arrays, in the subset of Python that numba compiles.

A module of them names itself by `kernels`, and compiled code may call its functions. Imported
directly they run as ordinary Python, which is how the tests read them slowly.
"""

from collections.abc import Callable
from typing import Any

MODULES: list[str] = []
"""Modules whose functions compiled code may call."""


def kernels(module: str) -> None:
    """Let compiled code call the functions of a module."""
    MODULES.append(module)


def inlined(function: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a function whose call would take longer than what it does."""
    function.inlined = True  # type: ignore[attr-defined]
    return function
