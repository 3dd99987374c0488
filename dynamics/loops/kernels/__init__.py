"""Kernels: functions on floats and arrays in the subset of Python that numba compiles.

A kernel module registers itself by calling `kernels`. Without compilation, kernels run as ordinary
Python, which the tests use as a slow reference.
"""

from collections.abc import Callable
from typing import Any

MODULES: list[str] = []
"""Modules with functions that compiled code may call."""


def kernels(module: str) -> None:
    """Register a module whose functions compiled code may call."""
    MODULES.append(module)


def inlined(function: Callable[..., Any]) -> Callable[..., Any]:
    """Mark a function that numba inlines, because a call costs more than its body."""
    function.inlined = True  # type: ignore[attr-defined]
    return function
