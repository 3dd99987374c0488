"""Plain functions on floats and arrays, written in the subset of Python that numba compiles.

They are compiled only as part of a generated file (`dynamics.codegen`), whose name is a hash of
its whole text, so a compiled loop can never keep an older version of a function it calls. Imported
directly they run as ordinary Python, which is how the tests read them slowly.
"""

from collections.abc import Callable
from typing import Any, TypeVar

Function = TypeVar("Function", bound=Callable[..., Any])


def exact(function: Function) -> Function:
    """Mark a kernel whose operations the compiler must not reorder."""
    function.exact = True  # type: ignore[attr-defined]
    return function


def fused(function: Function) -> Function:
    """Mark an `exact` kernel in which a product and a sum may be one instruction, rounded once."""
    function.fused = True  # type: ignore[attr-defined]
    return function
