"""First integrals f(x) + g(y) of the gradient flow of a model, for pairs of its scalars x, y."""

from __future__ import annotations

import numpy as np
import sympy

from dynamics.models.engine.expressions import Expressions, symbol
from theory.closure.first_integrals import (
    change,
    first_integral,
    separating_pairs,
    states_near,
)
from theory.law import FloatArray
from theory.program import run_floats, symbolic
from theory.program.symbolic import decimal
from theory.rendering import MOST_SCALARS

SEED = 70
CHECKS, KEPT = 8, 1e-8
"""A first integral is checked at CHECKS random states: its rate of change, divided by the larger
rate of its terms f and g, is at most KEPT."""


def first_integrals(found: Expressions) -> tuple[tuple[sympy.Expr, float], ...]:
    """First integrals f(x) + g(y) of the gradient flow, with their values at the start.

    First integrals that follow from others are left out. The tuple is empty for more than
    `MOST_SCALARS` scalars, if conserved combinations are substituted, or if learning rates differ.
    """
    closure = found.closure
    if closure.scalars > MOST_SCALARS or found.eliminated or len(set(found.rates)) > 1:
        return ()
    letters, numbers = [symbol(name) for name in closure.names], found.real_constants
    start, draw = closure.classes.start[closure.classes.first], np.random.default_rng(SEED)
    known = [{k for term in law.terms for k in term} for law in closure.laws]
    program = found.table.program({"": found.table.gradient})

    def rates(state: FloatArray) -> FloatArray:
        values = run_floats(program, np.concatenate([state, found.given_numbers]))
        return -values[program.outputs[""]]

    group, laws = np.arange(closure.scalars), []
    for i, j in separating_pairs(rates, start, known, draw):
        if group[i] == group[j]:
            continue
        roots = [int(found.table.gradient[k]) for k in (i, j)]
        taken = (*closure.names, *found.made.constants)
        parts, slopes = symbolic.named_parts(found.table.values, roots, found.given, taken, decimal)
        pair = letters[i], letters[j]
        law = first_integral(pair, (slopes[0], slopes[1]), parts, numbers)
        if law is None or not all(
            change(law, pair, tuple(rates(z)[[i, j]]), _at(letters, z) | numbers) <= KEPT
            for z in states_near(rates, start, CHECKS, draw)
        ):
            continue
        group[group == group[j]] = group[i]
        laws.append((law, float(law.subs(_at(letters, start) | numbers))))
    return tuple(laws)


def _at(letters: list[sympy.Symbol], state: FloatArray) -> dict[sympy.Symbol, float]:
    return dict(zip(letters, state.tolist(), strict=True))
