"""Which expectation a block takes: the cheaper by prediction, or the one that is asked for."""

from __future__ import annotations

from collections.abc import Sequence
from math import sqrt

import numpy as np

from dynamics.problem import FloatArray
from dynamics.systems.masked_image_modeling.parameters import Parameters
from dynamics.systems.masked_image_modeling.reduced import counts
from dynamics.systems.masked_image_modeling.reduced.blocks import Block
from dynamics.validation import refuse

KINDS = ("auto", "counts", "contour")
MOST_NUMBERS = 2e7
"""Numbers that a table of configurations may hold."""
MOST_TERMS = 1e9
"""Terms of one gradient, latents included."""
PER_TERM = 2.0e-9
PER_BLOCK = 2e-6
PER_NODE = 1.2e-7
RADII = 110
"""Values of s on a contour, about."""

Part = tuple[Block, tuple[FloatArray, FloatArray] | None]


def checked(name: str) -> str:
    """Refuse an unknown expectation."""
    if name not in KINDS:
        refuse("expectation", name, "is unknown", ", ".join(KINDS), "auto")
    return name


def terms(block: Block, parameters: Parameters) -> float:
    """Predicted terms of a sum over counts, units and latents."""
    single = block.single(merging=len(parameters.z) == 1)
    many = counts.estimate(single.sizes, parameters.P - parameters.masked)
    return many * (1 + len(single.sizes)) * float(len(parameters.z)) ** len(single.slots)


def nodes(block: Block, parameters: Parameters) -> float:
    """Predicted nodes of a contour, times units and latents."""
    others = parameters.P - 1
    share = (parameters.P - parameters.masked) / others
    angles = min(others / 2 + 1, 7.0 * sqrt(others * share * (1 - share)) + 12.0)
    # Few of the angles matter at most radii; see the cut in `contour_kernels`.
    return RADII * (20.0 + 0.2 * angles) * (1 + len(block.sizes)) * len(parameters.z)


def seconds(block: Block, parameters: Parameters, name: str) -> float:
    """Predicted time of one gradient of a block."""
    by_counts = PER_BLOCK + PER_TERM * terms(block, parameters)
    by_contour = PER_NODE * nodes(block, parameters)
    return {"counts": by_counts, "contour": by_contour}.get(name, min(by_counts, by_contour))


def parts(blocks: Sequence[Block], parameters: Parameters, name: str) -> tuple[Part, ...]:
    """Every block with its configurations, or with None where it takes the contour.

    Raises
    ------
    InvalidRequest
        If a sum over counts is asked for that is too long.
    """
    found: list[Part] = []
    opened = parameters.P - parameters.masked
    tables: dict[tuple[int, ...], tuple[FloatArray, FloatArray]] = {}
    for block in blocks:
        by_counts = seconds(block, parameters, "counts")
        if name == "contour" or (
            name == "auto" and by_counts > seconds(block, parameters, "contour")
        ):
            found.append((block, None))
            continue
        single = block.single(merging=len(parameters.z) == 1)
        _affordable(single, parameters)
        sizes = single.sizes
        if sizes not in tables:
            tables[sizes] = counts.configurations(sizes, opened)
        found.append((single, tables[sizes]))
    return tuple(found)


def _affordable(single: Block, parameters: Parameters) -> None:
    """Refuse a table that would not fit, or sums that would not end."""
    sizes, opened = single.sizes, parameters.P - parameters.masked
    numbers = counts.estimate(sizes, opened) * len(sizes)
    needed = max(numbers / MOST_NUMBERS, terms(single, parameters) / MOST_TERMS)
    if needed > 1:
        allowed = f"another one where counts need more than {MOST_TERMS:.0g} terms"
        problem = f"needs {terms(single, parameters):.2g} terms at P={parameters.P}"
        refuse("expectation", "counts", problem, allowed, "contour")


def described(parts: Sequence[Part]) -> dict[str, object]:
    """How many blocks take which expectation, and the size of the sums."""
    many = [configured[1].size for _, configured in parts if configured is not None]
    kinds = {"counts": len(many), "contour": len(parts) - len(many)}
    name = "+".join(kind for kind, number in kinds.items() if number)
    return {"expectation": name, "configurations": int(np.sum(many, dtype=np.int64))}
