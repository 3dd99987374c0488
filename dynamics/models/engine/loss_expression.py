"""The loss of a model on its scalars as an expression of sympy, and whether it is trained by it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np
import sympy

from dynamics.models.engine.program import evaluated
from dynamics.models.engine.realization import Realization
from dynamics.models.engine.tracing import jax
from theory.closure import Closure
from theory.law import select_samples
from theory.tracing import UntracedPrimitive, to_sympy

SYMBOLIC_NUMBERS = 2500
"""Numbers of one loss up to which the entries of the sample are symbols."""
SAME = 1e-6
"""Part of a gradient by which derivatives of an expression may differ from it."""
RENAMED = "sample_"
"""Front of the letters of a sample that are those of something else."""


def sample_text(sample: Any) -> str:
    """A sample in one line, its numbers shortened."""
    if isinstance(sample, Mapping):
        text = ", ".join(f"{name} {sample_text(part)}" for name, part in sample.items())
    elif isinstance(sample, tuple):
        text = ", ".join(map(sample_text, sample))
    else:
        text = np.array2string(np.asarray(sample), precision=4, separator=" ", threshold=40)
    text = " ".join(text.split())
    return text if len(text) < 120 else text[:117] + "..."


def written_loss(
    made: Realization, closure: Closure, symbols: Sequence[sympy.Symbol]
) -> tuple[str, sympy.Expr | None]:
    """The loss of one sample, or the risk, on the scalars, with a heading.

    Parameters
    ----------
    made : Realization
    closure : Closure
    symbols : sequence of sympy.Symbol
        One for each scalar.

    Returns
    -------
    heading : str
    loss : sympy.Expr or None
        None where a primitive has no expression.
    """
    if not made.program.has_law:
        return "Risk on the scalars", read_loss(made, closure, symbols, None)
    assert made.law is not None
    sample = select_samples(made.law.samples, _likeliest(made, closure))
    if made.numbers_of_a_sample() <= SYMBOLIC_NUMBERS and _all_real(sample):
        taken = {*map(str, symbols), *made.reals}
        result = read_loss(made, closure, symbols, (sample, _named(sample, taken)))
        if result is not None:
            return "Loss of a sample on the scalars", result
    text = sample_text(sample)
    return f"Loss of one sample on the scalars ({text})", read_loss(
        made, closure, symbols, (sample, sample)
    )


def _likeliest(made: Realization, closure: Closure) -> int:
    """Number of a sample of the class of the largest probability."""
    groups = closure.sample_groups
    if groups is None or made.law is None:
        return 0
    return int(groups.first[int(np.argmax(groups.summed(made.law.weights)))])


def _all_real(sample: Any) -> bool:
    return all(np.asarray(leaf).dtype.kind == "f" for leaf in jax.tree.leaves(sample))


def _named(sample: Any, taken: set[str]) -> Any:
    """The sample with a symbol for each number: ``X_0``, ``y``; ``sample_X_0`` where X_0 is taken.

    Parameters
    ----------
    sample : tree of arrays
    taken : set of str
        Names of the scalars and of the constants.
    """

    def symbols(path: tuple[Any, ...], leaf: Any) -> Any:
        part = path[-1] if path else None
        name = str(getattr(part, "key", f"s{getattr(part, 'idx', '')}"))
        out = np.empty(np.shape(leaf), dtype=object)
        names = {index: "_".join([name, *map(str, index)]) for index in np.ndindex(*out.shape)}
        while not taken.isdisjoint(names.values()):
            names = {index: RENAMED + each for index, each in names.items()}
        for index, each in names.items():
            out[index] = sympy.Symbol(each, real=True)
        return out

    return jax.tree.map_with_path(symbols, sample)


def restricted_loss(
    made: Realization,
    closure: Closure,
    symbols: Sequence[sympy.Symbol],
    columns: Sequence[sympy.Symbol] | None,
) -> sympy.Expr | None:
    """The loss at the scalars, with a symbol for each number of a sample; or the risk.

    Parameters
    ----------
    made : Realization
    closure : Closure
    symbols : sequence of sympy.Symbol
        One for each scalar.
    columns : sequence of sympy.Symbol or None
        One for each number of a sample, in the order of the leaves; None without a law.

    Returns
    -------
    sympy.Expr or None
        None where a primitive has no expression.
    """
    if columns is None or made.law is None:
        return read_loss(made, closure, symbols, None)
    one = select_samples(made.law.samples, 0)
    left = iter(columns)

    def named(leaf: Any) -> Any:
        return np.array([next(left) for _ in range(np.size(leaf))], object).reshape(np.shape(leaf))

    return read_loss(made, closure, symbols, (one, jax.tree.map(named, one)))


def read_loss(
    made: Realization, closure: Closure, symbols: Sequence[sympy.Symbol], sample: Any
) -> sympy.Expr | None:
    """The traced loss at the scalars, in sympy; None where a primitive has no expression.

    Parameters
    ----------
    made : Realization
    closure : Closure
    symbols : sequence of sympy.Symbol
        One for each scalar.
    sample : (tree, tree) or None
        A sample, and the same with symbols for its numbers; None of a risk.
    """
    classes, program, data = closure.classes, made.program, made.data
    entries = classes.lift_objects(symbols, lambda value: sympy.nsimplify(value, rational=True))
    reals = {name: sympy.Symbol(name, real=True) for name in made.reals}

    def loss(flat: Any, one: Any, untrained: Any, constants: Any) -> Any:
        return program.sample_loss(flat, one, data._replace(fixed=untrained, reals=constants))

    concrete, named = sample or (None, None)
    with jax.enable_x64(True):
        traced = jax.make_jaxpr(loss)(classes.start, concrete, data.fixed, dict(made.reals))
    try:
        (value,) = to_sympy(traced, jax.tree.leaves((entries, named, data.fixed, reals)))
    except (UntracedPrimitive, ValueError, TypeError):
        return None
    return sympy.sympify(value.item())


def are_trained_by(
    made: Realization,
    closure: Closure,
    symbols: Sequence[sympy.Symbol],
    slopes: Sequence[sympy.Expr],
) -> bool:
    """Whether derivatives of the expression are JAX's, at two points near the start.

    Where one of them has no number there, nothing speaks against it.

    Parameters
    ----------
    made : Realization
    closure : Closure
    symbols : sequence of sympy.Symbol
        One for each scalar.
    slopes : sequence of sympy.Expr
        Derivatives of the loss that is written, by each.
    """
    classes, generator = closure.classes, np.random.default_rng(0)
    start = classes.start[classes.first]
    values: dict[Any, float] = {sympy.Symbol(n, real=True): x for n, x in made.reals.items()}
    if made.program.has_law:
        assert made.law is not None
        number = _likeliest(made, closure)
        one = select_samples(made.law.samples, number)
        named = _named(one, {*map(str, symbols), *made.reals})
        for letters, leaf in zip(jax.tree.leaves(named), jax.tree.leaves(one), strict=True):
            values |= zip(np.ravel(letters).tolist(), np.ravel(leaf).tolist(), strict=True)
        some = select_samples(made.law.samples, np.array([number]))
    largest = float(np.abs(made.training.gradient(made.flat_start)).max(initial=1e-300))
    for _ in range(2):
        scalars = start + 0.1 * (1 + np.abs(start)) * generator.standard_normal(start.size)
        state = classes.lift(scalars)
        if made.program.has_law:
            gradient = evaluated(made.program.compiled_slopes, state, some, made.data)[0]
        else:
            gradient = made.training.gradient(state)
        expected = classes.project(gradient) * classes.sizes
        here = values | dict(zip(symbols, scalars.tolist(), strict=True))
        try:
            found = np.array([complex(slope.evalf(20, subs=here)).real for slope in slopes])
        except (TypeError, ValueError):
            continue
        off, largest = np.abs(found - expected), max(largest, float(np.abs(expected).max()))
        if np.isfinite(off).all() and off.max() > SAME * largest:
            return False
    return True
