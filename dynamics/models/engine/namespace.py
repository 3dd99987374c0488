"""The array namespace ``xp`` that a loss may use: elementary functions of JAX in double precision.

A name that is not here is refused with the nearest that is, before anything is traced.
"""

from __future__ import annotations

from difflib import get_close_matches
from functools import cache
from typing import Any

from theory.model_error import ModelError

NUMPY = (
    "abs", "add", "all", "allclose", "any", "append", "arange", "arccos", "arcsin", "arctan",
    "arctan2", "argmax", "argmin", "argsort", "array", "asarray", "atleast_1d", "atleast_2d",
    "average", "bool_", "broadcast_to", "cbrt", "ceil", "clip", "column_stack", "concatenate",
    "cos", "cosh", "cross", "cumprod", "cumsum", "diag", "diagonal", "diff", "divide", "dot", "e",
    "einsum", "equal", "exp", "exp2", "expand_dims", "expm1", "eye", "flip", "float64", "floor",
    "full", "full_like", "greater", "greater_equal", "heaviside", "hstack", "hypot", "identity",
    "inf", "inner", "int64", "isfinite", "isnan", "kron", "less", "less_equal", "linspace", "log",
    "log10", "log1p", "log2", "logaddexp", "logical_and", "logical_not", "logical_or", "matmul",
    "max", "maximum", "mean", "median", "meshgrid", "min", "minimum", "mod", "moveaxis",
    "multiply", "nan_to_num", "negative", "newaxis", "not_equal", "ones", "ones_like", "outer",
    "pad", "pi", "power", "prod", "ravel", "reciprocal", "repeat", "reshape", "roll", "round",
    "sign", "sin", "sinc", "sinh", "sort", "split", "sqrt", "square", "squeeze", "stack", "std",
    "subtract", "sum", "swapaxes", "take", "take_along_axis", "tan", "tanh", "tensordot", "tile",
    "trace", "transpose", "tri", "tril", "triu", "true_divide", "var", "vdot", "vstack", "where",
    "zeros", "zeros_like",
)  # fmt: skip
NEURAL = (
    "elu", "gelu", "leaky_relu", "log_sigmoid", "log_softmax", "logsumexp", "one_hot", "relu",
    "sigmoid", "silu", "softmax", "softplus",
)  # fmt: skip
LAX = {"stop_gradient": "stop_gradient", "erf": "erf"}


class Namespace:
    """What a loss sees as ``xp``."""

    def __init__(self, functions: dict[str, Any]) -> None:
        vars(self).update(functions)

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        known = list(vars(self))
        near = get_close_matches(name, known, 3, 0.5) or ["exp", "sum", "where"]
        raise ModelError(
            f"xp.{name} is unknown; nearest: {', '.join(f'xp.{n}' for n in near)} "
            f"(xp has {len(known)} elementary functions of numpy, softmax, softplus, relu, ...)"
        )


@cache
def namespace() -> Namespace:
    """The namespace; imports JAX."""
    import jax
    import jax.numpy as jnp

    found = {name: getattr(jnp, name) for name in NUMPY}
    found |= {name: getattr(jax.nn, name) for name in NEURAL}
    found |= {name: getattr(jax.lax, target) for name, target in LAX.items()}
    return Namespace(found)
