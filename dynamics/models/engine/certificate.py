"""A certificate of a closure: the gradient of every entry at many digits.

The gradient of the whole law is evaluated by mpmath, at a random state of the closed space. The law
is *exact* where its function takes constants as exact decimals and gives probabilities of the same
kind; then what lies outside the classes is rounding of that precision. Probabilities in double
precision already differ by 3e-16 between samples equal by symmetry.
"""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import islice
from typing import Any

import numpy as np

from dynamics.models.engine.functions import Embedding
from dynamics.models.engine.realization import Realization
from dynamics.models.engine.reduced_risk import ReducedRisk
from dynamics.models.engine.space_and_laws import SEED
from dynamics.models.engine.tracing import jax
from dynamics.training.progress import bar
from dynamics.validation import InvalidRequest
from theory.closure import Closure
from theory.law import ModelError, stacked
from theory.program import UnreadPrimitive, field, precise

DIGITS = 50


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
        descended = _EveryEntry(made, weights)
        generator = np.random.default_rng(SEED + 3)
        classes = closure.classes
        drawn = generator.standard_normal(closure.scalars)
        at_start = classes.start[classes.first]
        for point in (drawn, at_start + 0.1 * drawn, at_start + 0.01 * drawn):
            scalars = [mpmath.mpf(repr(float(x))) for x in point]
            state = classes.lift_objects(scalars, lambda value: mpmath.mpf(repr(float(value))))
            gradient = descended.gradient(state.tolist(), digits + 10)
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
        name: precise.number(field.simplest(value)) if isinstance(value, float) else value
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
        return True, [precise.number(p) for p, _ in pairs]
    return False, [mpmath.mpf(float(p)) for p in made.law.weights]


class _EveryEntry:
    """The gradient of the whole law by every entry, as a table of values.

    Parameters
    ----------
    made : Realization
    weights : list
        Probability of each sample in mpmath.

    Raises
    ------
    InvalidRequest
        If something has no program.
    """

    def __init__(self, made: Realization, weights: list[Any]) -> None:
        count = made.program.size
        ones = np.ones(count)
        single = Embedding(np.zeros(count), np.zeros((0, 0)), np.arange(count), ones, ones)
        names = [made.entry_name(k) for k in range(count)]
        try:
            with bar("gradient of every entry", unit="entries"):
                self.risk = ReducedRisk(made.program, made.data, single, names)
                self.slopes = self.risk.gradient.tolist()
        except UnreadPrimitive as error:
            raise InvalidRequest(f"prove: {error}") from None
        reals = {k: field.simplest(made.reals[name]) for name, k in self.risk.reals.items()}
        totals: list[Any] = [0] * self.risk.weights.size
        for label, weight in zip(self.risk.classes.tolist(), weights, strict=True):
            totals[label] += weight
        self.given = reals | dict(zip(self.risk.weights.tolist(), totals, strict=True))

    def gradient(self, state: Sequence[Any], digits: int) -> list[Any]:
        """One number of mpmath for each entry.

        Parameters
        ----------
        state : sequence
            Every entry.
        digits : int
        """
        given = self.given | dict(zip(self.risk.scalars.tolist(), state, strict=True))
        found = precise.evaluated(self.risk.values, self.slopes, given, digits)
        return [found[slope] for slope in self.slopes]
