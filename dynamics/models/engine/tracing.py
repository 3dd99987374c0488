"""Tracing of a model by JAX: one-line messages for errors, and the array namespace ``xp``.

``xp`` has elementary functions of JAX in double precision. An unknown name after ``xp.`` is refused
with the nearest known names.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import Any

from dynamics.cache import jax
from dynamics.validation import InvalidRequest
from theory.law import ModelError, error_text, line_of
from theory.program.reading import named_function

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
LARGE = "has a whole number of 2^63 or more; write it as a float: 1e19"
OF_LARGE = ("argument to a jitted computation", "too large to convert to int64")
"""Texts by which the errors of JAX and numpy for integers beyond 64 bits are recognized."""


@contextmanager
def refusals(role: str = "", path: Path | None = None) -> Iterator[None]:
    """Context that replaces an error of the model by InvalidRequest with a message of one line.

    `role` names the traced function; if it is empty, only ModelError is replaced. The message has
    the line number of the error in the model file `path`.
    """
    try:
        yield
    except ModelError as error:
        location = line_of(error, path) if str(error).startswith("xp.") else ""
        front = f"{role}: " if location else ""
        raise InvalidRequest(f"{front}{error}{location}") from None
    except BaseException as error:  # SystemExit too
        if isinstance(error, (InvalidRequest, MemoryError, KeyboardInterrupt)) or not role:
            raise
        hint = next((HINTS[k.__name__] for k in type(error).__mro__ if k.__name__ in HINTS), "")
        if isinstance(error, OverflowError) and any(part in str(error) for part in OF_LARGE):
            hint = LARGE
        text = hint or f"raises {error_text(error)}"
        raise InvalidRequest(f"{role} {text}{line_of(error, path)}") from None


NUMPY = (
    "abs", "add", "all", "allclose", "any", "append", "arange", "arccos", "arccosh", "arcsin",
    "arcsinh", "arctan", "arctan2", "arctanh", "argmax", "argmin", "argsort", "array", "asarray",
    "atleast_1d", "atleast_2d", "average", "bool_", "broadcast_to", "cbrt", "ceil", "clip",
    "column_stack", "concatenate", "cos", "cosh", "cross", "cumprod", "cumsum", "diag", "diagonal",
    "diff", "divide", "dot", "e", "einsum", "equal", "exp", "exp2", "expand_dims", "expm1", "eye",
    "flip", "float64", "floor", "full", "full_like", "greater", "greater_equal", "heaviside",
    "hstack", "hypot", "identity", "inf", "inner", "int64", "isfinite", "isnan", "kron", "less",
    "less_equal", "linspace", "log", "log10", "log1p", "log2", "logaddexp", "logical_and",
    "logical_not", "logical_or", "matmul", "max", "maximum", "mean", "median", "meshgrid", "min",
    "minimum", "mod", "moveaxis", "multiply", "nan_to_num", "negative", "newaxis", "not_equal",
    "ones", "ones_like", "outer", "pad", "pi", "power", "prod", "ravel", "reciprocal", "repeat",
    "reshape", "roll", "round", "sign", "sin", "sinc", "sinh", "sort", "split", "sqrt", "square",
    "squeeze", "stack", "std", "subtract", "sum", "swapaxes", "take", "take_along_axis", "tan",
    "tanh", "tensordot", "tile", "trace", "transpose", "tri", "tril", "triu", "true_divide", "var",
    "vdot", "vstack", "where", "zeros", "zeros_like",
)  # fmt: skip
NEURAL = (
    "elu", "gelu", "leaky_relu", "log_sigmoid", "log_softmax", "logsumexp", "one_hot", "relu",
    "sigmoid", "silu", "softmax", "softplus",
)  # fmt: skip
LAX = {"stop_gradient": "stop_gradient", "erf": "erf"}


class Namespace:
    """Array namespace ``xp``, through which the functions of a model call array functions."""

    def __init__(self, functions: dict[str, Any]) -> None:
        vars(self).update(functions)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        names = list(vars(self))
        near = get_close_matches(name, names, 3, 0.5) or ["exp", "sum", "where"]
        raise ModelError(
            f"xp.{name} is unknown; nearest: {', '.join(f'xp.{n}' for n in near)} "
            f"(xp has {len(names)} elementary functions of numpy, softmax, softplus, relu, ...)"
        )


def _named(name: str) -> Any:
    """Function of `jax.nn` along an axis, traced as a single operation with its own name."""
    plain = getattr(jax.nn, name)
    named = named_function(plain, f"attdyn_{name}", static_argnames=("axis", "keepdims"))

    def of(x: Any, axis: Any = None if name == "logsumexp" else -1, **options: Any) -> Any:
        whole = isinstance(axis, int) and not set(options) - {"keepdims"}
        return named(x, axis=axis, **options) if whole else plain(x, axis=axis, **options)

    return of


@cache
def namespace() -> Namespace:
    """The array namespace ``xp``; imports JAX."""
    functions = {name: getattr(jax.numpy, name) for name in NUMPY}
    functions |= {name: getattr(jax.nn, name) for name in NEURAL}
    functions |= {name: getattr(jax.lax, target) for name, target in LAX.items()}
    functions |= {name: _named(name) for name in ("softmax", "log_softmax", "logsumexp")}
    return Namespace(functions)
