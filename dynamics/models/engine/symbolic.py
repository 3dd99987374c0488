r"""The traced program of a model in other arithmetic: a compiled gradient, and a certificate.

*Compiled.* The reduced gradient of a small model as a generated file, for runs of millions of
steps. The traced loss on the scalars is read into sympy, with a symbol for each number of a sample;
:math:`\sum_c P_c\, \partial\ell(z; s_c)/\partial z` is printed as a loop over the classes of
samples and compiled by numba. It pays where the program is small and the run long: a step costs a
tenth of a microsecond and more for each class, where an array step costs some microseconds whatever
it computes, and compiling takes seconds. Exponentials are written without a shift, so where a step
is not finite the arrays take over.

*Proved.* The gradient of the whole law is evaluated by mpmath at many digits, at a random state of
the closed space. The law is *exact* where its function takes constants as exact decimals and gives
probabilities of the same kind; then what lies outside the classes is rounding of that precision.
Probabilities in double precision already differ by 3e-16 between samples equal by symmetry.
"""

from __future__ import annotations

from fractions import Fraction
from itertools import islice
from typing import TYPE_CHECKING, Any

import numpy as np
import sympy

from dynamics import codegen
from dynamics.codegen.kernels.elementary import logistic
from dynamics.models.engine.loss_expression import restricted_loss
from dynamics.models.engine.realization import Realization
from dynamics.models.engine.space_and_laws import SEED
from dynamics.models.engine.tracing import jax
from dynamics.validation import InvalidRequest
from theory.closure import Closure
from theory.law import ModelError, select_samples, stacked
from theory.tracing import Mpmath, UntracedPrimitive, to_mpmath

if TYPE_CHECKING:
    from dynamics.models.engine.square import ReducedPopulation

LARGEST = 8000
"""Characters of a gradient that is worth compiling."""
LONG_RUN = 2_500_000
"""Steps from which ``auto`` compiles it."""
MOST_ENTRIES = 64
"""Numbers of a sample that may be symbols."""


class Softplus(sympy.Function):  # type: ignore[misc]
    """log(1 + exp(x)), whose derivative does not overflow."""

    def fdiff(self, argindex: int = 1) -> sympy.Expr:
        """The logistic function."""
        return Logistic(self.args[0])


class Logistic(sympy.Function):  # type: ignore[misc]
    """1 / (1 + exp(-x)), printed as the kernel ``logistic``."""


def compiled_gradient(problem: ReducedPopulation) -> tuple[codegen.CompiledModule, Any]:
    """The generated file of a reduced problem, and the data of its functions.

    Raises
    ------
    InvalidRequest
        If the loss has no expression that can be compiled, or a long one.
    """
    made, closure = problem.realization, problem.closure
    names = tuple(f"scalar_{k}_" for k in range(closure.scalars))
    symbols = [_real(name) for name in names]
    table, weights, columns = _table(problem)
    loss = restricted_loss(made, closure, symbols, columns)
    if loss is None:
        raise InvalidRequest(f"the loss of {problem.system} has no expression that is compiled")
    loss = loss.replace(_is_softplus, lambda function: Softplus(_inner(function)))
    # By names that no line of the generated file has: a constant may be called "weight", or "row".
    reals = tuple(made.reals)
    given = {name: f"constant_{k}_" for k, name in enumerate(reals)}
    loss = loss.xreplace({_real(name): _real(own) for name, own in given.items()})
    slopes = [sympy.diff(loss, symbol) for symbol in symbols]
    letters = names, tuple(given.values()), tuple(map(str, columns or ()))
    source = codegen.summed("gradient", slopes, letters)
    if len(source) > LARGEST:
        raise InvalidRequest(
            f"the gradient of {problem.system} has {len(source)} characters; at most {LARGEST} are "
            "worth compiling; backend can be arrays"
        )
    kinds = [(kind, int(key)) for kind, key in problem.columns]
    parts = [
        codegen.kernel_source(logistic) + "\nLogistic = logistic\n",
        source,
        codegen.selected(kinds),
    ]
    module = codegen.build(f"{problem.system}, reduced problem.", names, parts)
    share = np.asarray(problem.embedding.share, dtype=float)
    constants = np.array([made.reals[name] for name in reals], dtype=float)
    return module, (constants, weights, table, share)


def _real(name: str) -> sympy.Symbol:
    return sympy.Symbol(name, real=True)


def _is_softplus(expression: sympy.Expr) -> bool:
    return isinstance(expression, sympy.log) and _inner(expression) is not None


def _inner(expression: sympy.Expr) -> sympy.Expr | None:
    """X of log(1 + exp(x)); None of anything else."""
    total = expression.args[0]
    if not isinstance(total, sympy.Add) or len(total.args) != 2 or sympy.S.One not in total.args:
        return None
    other = next(part for part in total.args if part != 1)
    return other.args[0] if isinstance(other, sympy.exp) else None


def _table(problem: ReducedPopulation) -> tuple[Any, Any, list[sympy.Symbol] | None]:
    """Samples as rows of numbers, their weights, and a symbol for each column."""
    data = problem.payload[0]
    if not problem.realization.program.has_law:
        return np.zeros((1, 0)), np.ones(1), None
    leaves = [np.asarray(leaf) for leaf in jax.tree.leaves(data.samples)]
    if any(leaf.dtype.kind != "f" for leaf in leaves):
        raise InvalidRequest(
            f"samples of {problem.system} hold whole numbers, which are no symbols; backend can be "
            "arrays"
        )
    table = np.concatenate([leaf.reshape(len(leaf), -1) for leaf in leaves], axis=1)
    if table.shape[1] > MOST_ENTRIES:
        raise InvalidRequest(f"a sample of {problem.system} has {table.shape[1]} numbers")
    symbols = [_real(f"sample_{k}_") for k in range(table.shape[1])]
    return np.ascontiguousarray(table), np.asarray(data.weights).copy(), symbols


DIGITS = 50
DENOMINATOR = 10**6
"""Denominators up to which a constant is read as a fraction."""
BLOCK = 128
"""Samples that are evaluated at a time."""


def prove(made: Realization, closure: Closure, digits: int = DIGITS) -> dict[str, Any]:
    """Part of the gradient outside the classes, at many digits.

    Parameters
    ----------
    made : Realization
    closure : Closure
    digits : int

    Returns
    -------
    dict
        ``digits``, ``residual`` relative to the largest gradient, ``exact`` (whether the law is),
        ``entry`` that leaves its class most, and a ``text`` for a reader.

    Raises
    ------
    InvalidRequest
        If the law is only known by draws, which have no symmetry, a function cannot be evaluated at
        many digits, or the gradient is finite at no point.
    """
    import mpmath

    if made.only_sampled:
        raise InvalidRequest(
            f"prove needs the law, and that of {made.model.name} is known by draws, which do not "
            "have its symmetry; the symmetry itself is stated by the model"
        )
    with mpmath.workdps(digits + 10):
        exact, weights = _weights(made)
        generator = np.random.default_rng(SEED + 3)
        classes = closure.classes
        drawn = generator.standard_normal(closure.scalars)
        at_start = classes.start[classes.first]
        for point in (drawn, at_start + 0.1 * drawn, at_start + 0.01 * drawn):
            scalars = [mpmath.mpf(repr(float(x))) for x in point]
            state = classes.lift_objects(scalars, lambda value: mpmath.mpf(repr(float(value))))
            try:
                gradient = _gradient(made, state, weights, digits)
            except UntracedPrimitive as error:
                raise InvalidRequest(f"prove: {error}") from None
            if all(mpmath.isfinite(value) for value in gradient):
                break
        else:
            raise InvalidRequest("prove: the gradient is finite at no point near the start")
        means: list[Any] = [mpmath.mpf(0)] * closure.scalars
        for label, sign, value in zip(classes.labels, classes.signs, gradient, strict=True):
            if label >= 0:
                means[label] += int(sign) * value / int(classes.sizes[label])
        inside = classes.lift_objects(means, lambda value: 0)
        off = [abs(value - mean) for value, mean in zip(gradient, inside, strict=True)]
        largest = max(abs(value) for value in gradient)
        worst = int(np.argmax([float(mpmath.log10(x + mpmath.mpf(10) ** -400)) for x in off]))
        residual = float(max(off) / largest) if largest else 0.0
    law = "an exact law" if exact else "a law in double precision"
    text = f"at {digits} digits, {law}: {residual:.1e} of the gradient outside the classes"
    if residual > (10.0 ** (10 - digits) if exact else 1e-13):
        text += f"; {made.entry_name(worst)} leaves its class"
    return {
        "digits": digits, "residual": residual, "exact": exact, "entry": made.entry_name(worst),
        "text": text,
    }  # fmt: skip


def _weights(made: Realization) -> tuple[bool, list[Any]]:
    """Whether the law is exact, and its probabilities as numbers of mpmath."""
    import mpmath

    if made.law is None:
        return True, []
    decimal = {
        name: _exact(value) if isinstance(value, float) else value
        for name, value in made.constants.items()
    }
    try:
        # Probabilities that underflow as floats never do as exact numbers.
        positive = ((p, s) for p, s in made.model.call("law", constants=decimal) if p > 0)
        pairs = list(islice(positive, made.law.size + 1))
        samples = stacked([sample for _, sample in pairs], "law")
        same = all(jax.tree.leaves(jax.tree.map(np.array_equal, samples, made.law.samples)))
    except (ModelError, TypeError, ValueError, AttributeError):
        pairs, same = [], False
    kinds = (mpmath.mpf, int, Fraction)
    if same and all(isinstance(p, kinds) for p, _ in pairs):
        return True, [Mpmath().number(p) for p, _ in pairs]
    return False, [mpmath.mpf(float(p)) for p in made.law.weights]


def _exact(value: float) -> Any:
    """The number that a constant stands for: 1/3 and 0.1 where it is the nearest to these."""
    simple = Fraction(value).limit_denominator(DENOMINATOR)
    return Mpmath().number(simple if float(simple) == value else value)


def _gradient(made: Realization, state: Any, weights: list[Any], digits: int) -> list[Any]:
    """Gradient of the risk at a state, one number of mpmath for each entry."""
    program, data = made.program, made.data
    reals = {name: _exact(value) for name, value in made.reals.items()}

    def risk(flat: Any, w: Any, samples: Any, untrained: Any, constants: Any) -> Any:
        here = data._replace(fixed=untrained, reals=constants)
        if not program.has_law:
            return program.sample_loss(flat, None, here)
        return program.weighted_loss(flat, (w, samples), here)

    total: list[Any] = [0] * program.size
    for first in range(0, max(len(weights), 1), BLOCK):
        part = np.array(weights[first : first + BLOCK], dtype=object)
        with jax.enable_x64(True):
            samples = select_samples(data.samples, slice(first, first + BLOCK))
            traced = jax.make_jaxpr(jax.grad(risk))(
                np.zeros(program.size), np.zeros(part.size), samples, data.fixed, dict(made.reals)
            )
        inputs = jax.tree.leaves((state, part, samples, data.fixed, reals))
        (slope,) = to_mpmath(traced, inputs, digits + 10)
        total = [a + b for a, b in zip(total, slope.ravel().tolist(), strict=True)]
    return total
