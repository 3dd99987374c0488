"""Types of operators on numbers and arrays, found once.

For every operation of a function numba goes through some twenty templates, those for texts, sets
and dates among them, until one fits. On numbers and arrays the answer does not change, and a tenth
of the time of a compilation went into finding it again and again.
"""

from __future__ import annotations

import operator
from typing import Any

from numba import types
from numba.core.registry import cpu_target

_OPERATORS = frozenset(each for each in vars(operator).values() if callable(each))
_OPERANDS = (types.Number, types.Boolean, types.Array, types.BaseTuple, types.SliceType)
_find = types.Function.get_call_type
_known: dict[tuple[int, tuple[Any, ...]], tuple[Any, Any]] = {}


def _get_call_type(self: Any, context: Any, args: tuple[Any, ...], kws: dict[str, Any]) -> Any:
    """The signature of a call, as numba finds it; that of an operator is remembered."""
    if (
        kws
        or self.typing_key not in _OPERATORS
        or context is not cpu_target.typing_context
        or not all(isinstance(each, _OPERANDS) for each in args)
    ):
        return _find(self, context, args, kws)
    key = id(self), args
    if key not in _known:
        # With the function itself, whose address no other can have then.
        _known[key] = self, _find(self, context, args, kws)
    return _known[key][1]


def remember_operators() -> None:
    """Let numba remember them, in all that it compiles in this process."""
    function: Any = types.Function
    function.get_call_type = _get_call_type
