"""The certificate of a closure at many digits.

The gradient of the whole law is evaluated by mpmath from the traced program, at a random state of
the closed space. The law is *exact* where its function takes constants as exact decimals and gives
probabilities of the same kind; then what lies outside the classes is rounding of that precision.
Probabilities in double precision already differ by 3e-16 between samples equal by symmetry.
"""

from __future__ import annotations

from collections.abc import Mapping
from fractions import Fraction
from typing import Any

import numpy as np

from dynamics.models.engine.closing import SEED
from dynamics.models.engine.realization import Realization
from theory.closure import Closure
from theory.law import ModelError, stacked
from theory.tracing import to_mpmath

DIGITS = 50
DENOMINATOR = 10**6
"""Denominators up to which a constant is read as a fraction."""
BLOCK = 128
"""Samples that are evaluated at a time."""


def prove(made: Realization, closure: Closure, digits: int = DIGITS) -> dict[str, Any]:
    """What of the gradient lies outside the classes, at many digits.

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
    """
    import mpmath

    with mpmath.workdps(digits + 10):
        exact, weights = _weights(made)
        generator = np.random.default_rng(SEED + 3)
        scalars = [mpmath.mpf(repr(float(x))) for x in generator.standard_normal(closure.scalars)]
        classes = closure.classes
        state = np.array(
            [
                int(sign) * scalars[label] if label >= 0 else mpmath.mpf(repr(float(value)))
                for label, sign, value in zip(
                    classes.labels, np.where(classes.labels >= 0, classes.signs, 0),
                    classes.start, strict=True,
                )
            ],
            dtype=object,
        )  # fmt: skip
        gradient = _gradient(made, state, weights, digits)
        means: list[Any] = [mpmath.mpf(0)] * closure.scalars
        for entry, value in enumerate(gradient):
            if classes.labels[entry] >= 0:
                label = classes.labels[entry]
                means[label] += int(classes.signs[entry]) * value / int(classes.sizes[label])
        off = [
            abs(value - (int(classes.signs[k]) * means[classes.labels[k]] if classes.labels[k] >= 0
                         else 0))
            for k, value in enumerate(gradient)
        ]  # fmt: skip
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
        pairs = [(p, s) for p, s in made.model.call("law", constants=decimal) if p > 0]
        samples = stacked([sample for _, sample in pairs], "law")
        same = _equal(samples, made.law.samples)
    except (ModelError, TypeError, ValueError, AttributeError):
        pairs, same = [], False
    kinds = (mpmath.mpf, int, Fraction)
    if same and all(isinstance(p, kinds) for p, _ in pairs):
        numbers = [mpmath.mpf(p.numerator) / p.denominator if isinstance(p, Fraction) else +p
                   for p, _ in pairs]  # fmt: skip
        return True, [mpmath.mpf(p) for p in numbers]
    return False, [mpmath.mpf(float(p)) for p in made.law.weights]


def _exact(value: float) -> Any:
    """The number that a constant stands for: 1/3 and 0.1 where it is the nearest to these."""
    import mpmath

    simple = Fraction(value).limit_denominator(DENOMINATOR)
    if float(simple) == value:
        return mpmath.mpf(simple.numerator) / simple.denominator
    return mpmath.mpf(repr(value))


def _equal(one: Any, two: Any) -> bool:
    if isinstance(one, Mapping):
        return all(_equal(one[name], two[name]) for name in one)
    if isinstance(one, tuple):
        return all(_equal(a, b) for a, b in zip(one, two, strict=True))
    return bool(np.array_equal(one, two))


def _gradient(made: Realization, state: Any, weights: list[Any], digits: int) -> list[Any]:
    """Gradient of the risk at a state, one number of mpmath for each entry."""
    import jax

    program, data = made.program, made.data
    fixed = {name: np.asarray(value) for name, value in data.fixed.items()}
    shared: list[Any] = [fixed[name] for name in sorted(fixed)]
    shared += [_exact(made.reals[name]) for name in sorted(made.reals)]

    def risk(flat: Any, w: Any, samples: Any, untrained: Any, constants: Any) -> Any:
        here = data._replace(fixed=untrained, reals=constants)
        if not program.has_law:
            return program.closed_risk(flat, here)
        return program.weighted_loss(flat, w, samples, here)

    flat = np.zeros(program.size)
    total: list[Any] = [0] * program.size
    count = len(weights)
    for first in range(0, max(count, 1), BLOCK):
        part = slice(first, min(first + BLOCK, count))
        with jax.enable_x64(True):
            samples = jax.tree.map(lambda leaf: np.asarray(leaf)[part], data.samples)  # noqa: B023
            traced = jax.make_jaxpr(jax.grad(risk))(
                flat, np.zeros(len(weights[part])), samples, fixed, dict(made.reals)
            )
        inputs: list[Any] = [
            state,
            np.array(weights[part], dtype=object),
            *jax.tree.leaves(samples),
            *shared,
        ]
        (slope,) = to_mpmath(traced, inputs, digits + 10)
        total = [a + b for a, b in zip(total, slope.ravel().tolist(), strict=True)]
    return total
