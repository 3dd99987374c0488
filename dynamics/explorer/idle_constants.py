"""Whole constants and words that change nothing where a page stands: heads of a model that has one.

A constant is idle where its next values give the same start, law and fixed arrays and the same
traced functions. Nothing is compiled for this.
"""

from __future__ import annotations

import dataclasses
from collections.abc import Mapping, Sequence
from typing import Any

import numpy as np

from dynamics.models.engine.definition import Definition
from dynamics.models.engine.realization import Realization
from dynamics.validation import InvalidRequest


def idle_constants(
    definition: Definition,
    parameters: Any,
    draws: tuple[int, int],
    moves: Mapping[str, Sequence[Any]],
) -> frozenset[str]:
    """Names of the constants that change nothing at some values of the others.

    Parameters
    ----------
    definition : Definition
        Of the model.
    parameters : Parameters
    draws : (samples, seed)
        Of a law that can only be sampled.
    moves : mapping
        Constant -> other values of it. One is idle if all that the model allows change nothing,
        and it allows some.
    """
    here = _traced(definition.realization(parameters, *draws))
    idle = set()
    for name, values in moves.items():
        others = []
        for value in values:
            try:
                changed = dataclasses.replace(parameters, **{name: value})
                others.append(_traced(definition.realization(changed, *draws)))
            except InvalidRequest:
                continue
        if others and all(_equal(here, other) for other in others):
            idle.add(name)
    return frozenset(idle)


def _traced(made: Realization) -> tuple[str, list[Any]]:
    """The traced risk and observables of a realization, and its arrays."""
    import jax

    program = made.program
    with jax.enable_x64(True):
        text = jax.make_jaxpr(
            lambda flat, data: (program.risk(flat, data), program.observables(flat, data))
        )(made.flat_start, made.data)
        arrays = [np.asarray(leaf) for leaf in jax.tree.leaves(made.data)]
    return str(text), [made.flat_start, *arrays]


def _equal(one: tuple[str, list[Any]], other: tuple[str, list[Any]]) -> bool:
    same = one[0] == other[0] and len(one[1]) == len(other[1])
    return same and all(map(np.array_equal, one[1], other[1]))
