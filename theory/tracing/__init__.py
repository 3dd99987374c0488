"""Traced programs read in another arithmetic: symbols, or fifty digits.

A model that is written as a JAX function says what it computes once. Its jaxpr, the list of
equations that `jax.make_jaxpr` returns, can be evaluated on entries other than float64:

- `to_sympy` gives expressions, as a paper would write them (`theory.tracing.sympy_reading`);
- `to_mpmath` gives numbers of any precision (`theory.tracing.arithmetic`);
- `evaluate` is the interpreter of both, for any `Arithmetic` (`theory.tracing.evaluation`).

A gradient is read by tracing `jax.grad` of the function. Trace under ``jax.enable_x64(True)``.
"""

from theory.tracing.arithmetic import Arithmetic, Mpmath, UntracedPrimitive
from theory.tracing.evaluation import evaluate, to_mpmath, to_sympy
from theory.tracing.sympy_reading import Sympy

__all__ = [
    "Arithmetic",
    "Mpmath",
    "Sympy",
    "UntracedPrimitive",
    "evaluate",
    "to_mpmath",
    "to_sympy",
]
